package model

import "ridge/nn"

// StarCoder 2: LayerNorm and biases around rotary, grouped-query attention.
var starcoder2 = architecture{
	name: "starcoder2", hf: []string{"starcoder2"},
	describe: func(d *description, c *Config) {
		gptLike(c, nn.GELUTanh)
		c.RopeStyle = nn.RopeNeox
		d.must(normBias...)
		d.with(d.bool("", "use_bias", true), linearBias...)
		c.Window = everyLayer(c.Layers, d.int("attention.sliding_window", "sliding_window", 0))
	},
	names: hfNames{layers: "layers.", names: llamaNames(map[string]string{
		"ffn_gate": "", "ffn_up": "mlp.c_fc", "ffn_down": "mlp.c_proj",
	})},
	build: (*builder).decoder,
}
