package model

import (
	"slices"

	"ridge/nn"
)

// MPT: ALiBi, LayerNorm that may be without biases, limited projections.
var mpt = architecture{
	name: "mpt", hf: []string{"mpt"},
	describe: func(d *description, c *Config) {
		gptLike(c, nn.GELUErf)
		d.with(false, slices.Concat(linearBias, normBias, qkNorms, qkNormsBias, []string{"position_embd.weight"})...)
		c.AlibiBias = d.float32("attention.max_alibi_bias", "", 0)
		c.ClipQKV = d.float32("attention.clamp_kqv", "", 0)
		if !d.hf {
			return
		}
		c.FFN, c.AlibiBias = 4*c.Hidden, 8
		if a := d.object("attn_config"); a != nil {
			c.ClipQKV = a.float32("", "clip_qkv", 0)
			c.AttnScale = a.float32("", "softmax_scale", 0)
			c.KVHeads = everyLayer(c.Layers, a.int("", "kv_n_heads", c.Heads))
		}
	},
	names: hfNames{layers: "blocks.", home: "transformer.", names: map[string]string{
		"token_embd": "wte", "position_embd": "wpe", "output_norm": "norm_f", "output": "lm_head",
		"attn_norm": "norm_1", "attn_qkv": "attn.Wqkv", "attn_output": "attn.out_proj",
		"ffn_norm": "norm_2", "ffn_up": "ffn.up_proj", "ffn_down": "ffn.down_proj",
	}},
	build: (*builder).decoder,
}
