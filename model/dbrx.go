package model

import (
	"ridge/nn"
	"ridge/weights/tensor"
)

// DBRX: norms without a mean's bias, queries, keys and values in one matrix and
// limited, experts in all layers.
var dbrx = architecture{
	name: "dbrx", hf: []string{"dbrx"},
	describe: func(d *description, c *Config) {
		llamaLike(c, nn.RopeNeox)
		c.Norm = nn.NormLayer
		if d.hf {
			dbrxParts(d, c)
			return
		}
		c.Experts = d.experts(c, ExpertConfig{Normalize: true})
		c.ClipQKV = d.float32("attention.clamp_kqv", "", 0)
	},
	names: hfNames{layers: "blocks.", home: "transformer.", names: map[string]string{
		"token_embd": "wte", "output_norm": "norm_f", "output": "lm_head",
		"attn_norm": "norm_attn_norm.norm_1", "ffn_norm": "norm_attn_norm.norm_2",
		"attn_qkv": "norm_attn_norm.attn.Wqkv", "attn_output": "norm_attn_norm.attn.out_proj",
		"ffn_gate_inp": "ffn.router.layer", "ffn_gate_exps.weight": "ffn.experts.mlp.w1",
		"ffn_up_exps.weight": "ffn.experts.mlp.v1", "ffn_down_exps.weight": "ffn.experts.mlp.w2",
	}, fix: dbrxDown},
	aliases: map[string]string{"ffn_norm": "attn_output_norm"},
	build:   (*builder).decoder,
}

// dbrxParts reads the objects of a config.json that describe attention and experts.
func dbrxParts(d *description, c *Config) {
	c.NormEps = 1e-5
	a, f := d.object("attn_config"), d.object("ffn_config")
	if a == nil || f == nil {
		d.fail("attn_config, ffn_config", "objects", "none")
		return
	}
	c.ClipQKV = a.float32("", "clip_qkv", 0)
	c.KVHeads = everyLayer(c.Layers, a.int("", "kv_n_heads", 1))
	c.Rope[0].Base = a.float("", "rope_theta", c.Rope[0].Base)
	c.FFN = f.int("", "ffn_hidden_size", 3584)
	c.Experts = ExpertConfig{
		Count: f.int("", "moe_num_experts", 4), TopK: f.int("", "moe_top_k", 1), FFN: c.FFN, Scale: 1,
		Layers: expertLayers(c.Layers, func(int) bool { return true }),
	}
	if _, given := f.json["moe_normalize_expert_weights"]; !given || f.has("", "moe_normalize_expert_weights") {
		if n := f.float("", "moe_normalize_expert_weights", 1); n != 1 {
			f.fail("moe_normalize_expert_weights", "1 or null", n)
		}
		c.Experts.Normalize = true
	}
	if act := f.object("ffn_act_fn"); act != nil && act.str("", "name", "silu") != "silu" {
		act.fail("name", "silu", act.str("", "name", ""))
	}
}

// dbrxDown turns the [in][out] down matrices of experts around.
func dbrxDown(c *Config, layer int, part string, bias bool) func(tensor.Mat) (tensor.Mat, error) {
	if part != "ffn_down_exps" {
		return nil
	}
	return turnExperts(c.Experts.Count, 1, false, func(out, o int) int { return o })
}
