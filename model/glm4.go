package model

import "ridge/nn"

// GLM 4 (0414): norms before and after the parts, half of each head is rotated.
var glm4 = architecture{
	name: "glm4", hf: []string{"glm4"},
	describe: func(d *description, c *Config) {
		llamaLike(c, nn.RopeNorm)
		c.PostNorms = true
		d.must("attn_norm.weight", "ffn_norm.weight")
		d.with(d.bool("", "attention_bias", true), qkvBias...)
	},
	names: hfNames{layers: "layers.", names: llamaNames(map[string]string{
		"ffn_gate": "", "ffn_up": "mlp.gate_up_proj",
		"post_attention_norm": "post_self_attn_layernorm", "post_ffw_norm": "post_mlp_layernorm",
	})},
	build: (*builder).decoder,
}
