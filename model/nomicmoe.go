package model

import (
	"ridge/nn"
	"ridge/weights/tensor"
)

// NomicBERT with experts in every n-th layer, as nomic-embed-text-v2 is (Nussbaum and
// Duderstadt 2025, arXiv 2502.07972): biases everywhere, MLPs that are not gated, and a
// bias of all experts' sum, which llama.cpp's files leave out.
var nomicBertMoE = architecture{
	name: "nomic-bert-moe", hf: []string{"nomic_bert/moe"}, encoder: true,
	describe: func(d *description, c *Config) {
		bertLike(d, c)
		c.RopeStyle = nn.RopeNeox
		d.types(c)
		d.must(attnBias...)
		d.must("ffn_up.bias", "ffn_down.bias")
		d.with(true, "ffn_exps.bias")
		every := d.int("moe_every_n_layers", "moe_every_n_layers", 2)
		if every < 1 {
			d.fail("moe_every_n_layers", "1 or more", every)
			return
		}
		c.Experts = ExpertConfig{
			Count: d.int("expert_count", "num_experts|num_local_experts", 8), TopK: d.int("expert_used_count", "moe_top_k", 1), FFN: c.FFN, Scale: 1,
			Layers: expertLayers(c.Layers, func(i int) bool { return i%every == 1 }),
		}
	},
	aliases: bertAliases,
	names: hfNames{layers: "layers.|encoder.layers.", fix: nomicDown, names: bertNames(map[string]string{
		"token_embd_norm.weight": "emb_ln.weight", "token_embd_norm.bias": "emb_ln.bias",
		"attn_qkv": "attn.Wqkv", "attn_output": "attn.out_proj",
		"attn_norm.weight": "norm1.weight", "attn_norm.bias": "norm1.bias", "ffn_norm.weight": "norm2.weight", "ffn_norm.bias": "norm2.bias",
		"ffn_up": "mlp.fc1", "ffn_down": "mlp.fc2", "ffn_gate_inp": "mlp.router.layer",
		"ffn_up_exps.weight": "mlp.experts.mlp.w1", "ffn_down_exps.weight": "mlp.experts.mlp.w2", "ffn_exps.bias": "mlp.experts.bias",
	})},
	build: (*builder).decoder, unused: bertUnused, eps: 1e-12,
}

// nomicDown turns the [in][out] down matrices of experts around.
func nomicDown(c *Config, layer int, part string, bias bool) func(tensor.Mat) (tensor.Mat, error) {
	if part != "ffn_down_exps" {
		return nil
	}
	return turnExperts(c.Experts.Count, 1, false, func(out, o int) int { return o })
}
