package model

import "ridge/nn"

// Arctic: a dense layer, and experts beside it that read the layer's input.
var arctic = architecture{
	name: "arctic", hf: []string{"arctic"},
	describe: func(d *description, c *Config) {
		llamaLike(c, nn.RopeNorm)
		c.Experts = d.experts(c, ExpertConfig{Normalize: true})
		c.FFN = c.Hidden // of the dense part
		if !d.hf {
			return
		}
		if !d.bool("", "parallel_attn_mlp_res", false) || !d.bool("", "use_residual", false) {
			d.fail("parallel_attn_mlp_res, use_residual", "true", false)
		}
		if n := d.int("", "moe_layer_frequency", 2); n != 1 {
			d.fail("moe_layer_frequency", "1", n)
		}
	},
	names: hfNames{layers: "layers.", names: llamaNames(map[string]string{
		"ffn_norm": "residual_layernorm", "ffn_gate": "residual_mlp.w1", "ffn_up": "residual_mlp.w3", "ffn_down": "residual_mlp.w2",
		"ffn_norm_exps": "post_attention_layernorm",
		"ffn_gate_inp":  "block_sparse_moe.gate", "ffn_gate_exps.#": "block_sparse_moe.experts.#.w1",
		"ffn_up_exps.#": "block_sparse_moe.experts.#.w3", "ffn_down_exps.#": "block_sparse_moe.experts.#.w2",
	}), fix: permuteQK},
	build: func(b *builder) *Net {
		return b.stack(func(i int, at func(string) string) nn.Mixer { return b.attention(i, at) }, beside)
	},
}

// beside makes the experts of a layer a part beside its MLP.
func beside(b *builder, l *Layer, at func(string) string) {
	l.PreBeside, l.Beside = b.norm(at("ffn_norm_exps"), b.c.Hidden), b.moe(at)
	l.FFN = b.mlpOf(at, "", b.c.FFN)
}
