package model

import "ridge/nn"

// Seed-OSS: Llama with biases of queries, keys and values.
var seedoss = architecture{
	name: "seed_oss", hf: []string{"seed_oss"},
	describe: func(d *description, c *Config) {
		llamaLike(c, nn.RopeNeox)
		d.with(d.bool("", "attention_bias", true), qkvBias...)
		d.with(d.bool("", "attention_out_bias", false), "attn_output.bias")
		d.with(d.bool("", "mlp_bias", false), mlpBias...)
	},
	names:   hfNames{layers: "layers.", names: llamaNames(nil)},
	aliases: map[string]string{"ffn_norm": "post_attention_norm"},
	build:   (*builder).decoder,
}
