package model

import "ridge/nn"

// Orion 14B: Llama with LayerNorm, whose epsilon config.json calls that of an
// RMSNorm.
var orion = architecture{
	name: "orion", hf: []string{"orion"}, head: true,
	describe: func(d *description, c *Config) {
		llamaLike(c, nn.RopeNeox)
		c.Norm = nn.NormLayer
		d.must(normBias...)
	},
	names: hfNames{layers: "layers.", names: llamaNames(nil)},
	build: (*builder).decoder,
}
