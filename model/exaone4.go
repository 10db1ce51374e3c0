package model

import "ridge/nn"

// EXAONE 4: norms behind attention and MLP, queries and keys normalized per head.
// Large ones have a window in three layers of four, and only those rotate.
var exaone4 = architecture{
	name: "exaone4", hf: []string{"exaone4"},
	describe: func(d *description, c *Config) {
		llamaLike(c, nn.RopeNeox)
		c.PostNorms = true
		d.must(qkNorms...)
		c.Window = d.windows(c.Layers, everyButNth(d.int("", "sliding_window_pattern", 4)))
		window := d.int("attention.sliding_window", "sliding_window", 0)
		if !d.hf && c.Layers == 64 && window == 0 { // the first files of the 32B model do not say it
			window = 4096
			for i := range c.Window {
				if (i+1)%4 != 0 {
					c.Window[i] = window
				}
			}
		}
		if window > 0 {
			c.rotateWindows()
		}
	},
	names: hfNames{layers: "layers.", names: llamaNames(map[string]string{
		"attn_norm": "", "ffn_norm": "",
		"post_attention_norm": "post_attention_layernorm", "post_ffw_norm": "post_feedforward_layernorm",
	})},
	build: (*builder).decoder,
}
