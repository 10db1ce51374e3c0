package model

import (
	"ridge/nn"
)

// Qwen 2 and 2.5: biases on queries, keys and values.
var qwen2 = architecture{
	name: "qwen2", hf: []string{"qwen2"},
	describe: qwenDescribe,
	names:    hfNames{layers: "layers.", names: llamaNames(nil)},
	build:    (*builder).decoder,
}

// Qwen 3: queries and keys are normalized per head.
var qwen3 = architecture{
	name: "qwen3", hf: []string{"qwen3"},
	describe: qwenDescribe,
	names:    hfNames{layers: "layers.", names: llamaNames(nil)},
	build:    (*builder).decoder,
}

func qwenDescribe(d *description, c *Config) {
	llamaLike(c, nn.RopeNeox)
	c.Window = everyLayer(c.Layers, 0)
	first := d.int("", "max_window_layers", 28)
	if !d.hf {
		first = 0
	}
	if !d.hf || d.bool("", "use_sliding_window", false) {
		c.Window = d.windows(c.Layers, from(first))
	}
}
