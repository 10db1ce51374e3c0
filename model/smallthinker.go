package model

import "ridge/nn"

// SmallThinker: the router looks at a layer's rows before attention does, so that
// experts can be fetched meanwhile; they are gated by ReLU. Of the larger model
// every fourth layer sees all and is not rotated, the others have a window.
var smallThinker = architecture{
	name: "smallthinker", hf: []string{"smallthinker"},
	describe: func(d *description, c *Config) {
		llamaLike(c, nn.RopeNeox)
		c.Act = nn.ReLU
		c.FFN = d.int("feed_forward_length", "moe_ffn_hidden_size", c.FFN)
		c.Experts = d.experts(c, ExpertConfig{Normalize: true, Early: true})
		if d.hf && !d.bool("", "moe_primary_router_apply_softmax", false) {
			c.Experts.Score = nn.ScoreSigmoid
		}
		if d.hf && !d.bool("", "moe_enable_early_router", true) {
			d.fail("moe_enable_early_router", "true", false)
		}
		size := d.int("attention.sliding_window", "sliding_window_size", 0)
		c.Window, c.LayerRope = everyLayer(c.Layers, 0), everyLayer(c.Layers, 0)
		windows, ropes := d.ints("sliding_window_layout", c.Layers), d.ints("rope_layout", c.Layers)
		for i := range c.Window {
			sliding := !d.hf && size > 0 && i%4 != 0 || windows != nil && windows[i] != 0
			rotated := !d.hf && (size == 0 || i%4 != 0) || d.hf && (ropes == nil || ropes[i] != 0)
			if sliding {
				c.Window[i] = size
			}
			if !rotated {
				c.LayerRope[i] = -1
			}
		}
	},
	names: hfNames{layers: "layers.", names: llamaNames(map[string]string{
		"ffn_gate_inp": "block_sparse_moe.primary_router", "ffn_gate_exps.#": "block_sparse_moe.experts.#.gate",
		"ffn_up_exps.#": "block_sparse_moe.experts.#.up", "ffn_down_exps.#": "block_sparse_moe.experts.#.down",
	})},
	build: (*builder).decoder,
}
