package model

import "ridge/nn"

// Helium 1: Llama whose checkpoints keep rotated neighbours side by side.
var helium = architecture{
	name: "helium", hf: []string{"helium"},
	describe: func(d *description, c *Config) {
		llamaLike(c, nn.RopeNorm)
		d.with(d.bool("", "attention_bias", false), qkvBias...)
		d.with(d.bool("", "mlp_bias", false), mlpBias...)
	},
	names: hfNames{layers: "layers.", names: llamaNames(nil)},
	build: (*builder).decoder,
}
