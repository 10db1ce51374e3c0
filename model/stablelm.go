package model

import "ridge/nn"

// StableLM: LayerNorm around a gated MLP, partial rotation.
var stablelm = architecture{
	name: "stablelm", hf: []string{"stablelm", "stablelm_epoch"}, rotary: 0.25,
	describe: func(d *description, c *Config) {
		llamaLike(c, nn.RopeNeox)
		c.Norm = nn.NormLayer
	},
	names: hfNames{layers: "layers.", names: llamaNames(map[string]string{
		"attn_q_norm": "self_attn.q_layernorm.norms.#", "attn_k_norm": "self_attn.k_layernorm.norms.#",
	})},
	build: func(b *builder) *Net {
		// Some files say that attention and MLP are side by side when they are not:
		// those that are have no second norm.
		b.c.Parallel = !b.has("blk.0.ffn_norm.weight")
		return b.decoder()
	},
}
