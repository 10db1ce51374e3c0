package model

import "ridge/nn"

// Command-R: attention and MLP side by side behind one LayerNorm without bias,
// neighbours rotated, scaled logits. Larger ones normalize queries and keys, each
// head with weights of its own.
var commandR = architecture{
	name: "command-r", hf: []string{"cohere"},
	describe: func(d *description, c *Config) {
		cohereLike(d, c)
		d.with(d.bool("", "use_qk_norm", false), qkNorms...)
	},
	names: hfNames{layers: "layers.", names: llamaNames(nil)},
	build: (*builder).decoder,
}

// Command-R 7B and Aya: three layers of four have a window, and only those rotate.
var cohere2 = architecture{
	name: "cohere2", hf: []string{"cohere2"},
	describe: func(d *description, c *Config) {
		cohereLike(d, c)
		c.Window = d.windows(c.Layers, everyButNth(d.int("", "sliding_window_pattern", 4)))
		c.rotateWindows()
	},
	names: hfNames{layers: "layers.", names: llamaNames(nil)},
	build: (*builder).decoder,
}

func cohereLike(d *description, c *Config) {
	llamaLike(c, nn.RopeNorm)
	c.Norm, c.Parallel = nn.NormLayer, true
	d.with(d.bool("", "attention_bias", false), attnBias...)
	scale := requiredFloat
	if d.hf {
		scale = 0.0625
	}
	c.LogitScale = d.float32("logit_scale", "logit_scale", scale)
}
