package model

import (
	"fmt"

	"ridge/nn"
)

// StableLM: LayerNorm around a gated MLP, partial rotation.
var stablelm = architecture{
	name: "stablelm", head: true, hf: []string{"stablelm", "stablelm_epoch"},
	describe: func(d *description, c *Config) {
		llamaLike(c, nn.RopeNeox)
		c.Norm = nn.NormLayer
		d.must(normBias...)
		d.with(d.bool("", "use_qkv_bias", false), qkvBias...)
		d.with(d.bool("", "qk_layernorm", false), qkNorms...)
		c.Parallel = d.bool("", "use_parallel_residual", false)
	},
	names: hfNames{layers: "layers.", names: llamaNames(map[string]string{
		"attn_q_norm": "self_attn.q_layernorm.norms.#", "attn_k_norm": "self_attn.k_layernorm.norms.#",
	})},
	build: func(b *builder) *Net {
		// Some GGUF files say that attention and MLP are side by side when they are
		// not: those that are have no second norm.
		if b.gguf {
			b.c.Parallel = true
			for i := range b.c.Layers {
				b.c.Parallel = b.c.Parallel && !b.has(fmt.Sprintf("blk.%d.ffn_norm.weight", i))
			}
		}
		return b.decoder()
	},
}
