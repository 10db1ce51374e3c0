package model

import (
	"strconv"

	"ridge/nn"
)

// EXAONE with experts (K-EXAONE): norms before the parts, EXAONE 4's windows, and
// DeepSeek V3's experts.
var exaoneMoE = architecture{
	name: "exaone-moe", hf: []string{"exaone_moe"},
	describe: func(d *description, c *Config) {
		llamaLike(c, nn.RopeNeox)
		d.must(qkNorms...)
		d.must("exp_probs_b.bias")
		c.Window = d.windows(c.Layers, everyButNth(d.int("", "sliding_window_pattern", 4)))
		if d.int("attention.sliding_window", "sliding_window", 0) > 0 {
			c.rotateWindows()
		}
		c.Experts = d.experts(c, ExpertConfig{Score: nn.ScoreSigmoid, GroupTop: 2})
		d.sharedExperts(&c.Experts)
		for i, t := range d.strings("mlp_layer_types", c.Layers) {
			if c.Experts.Layers[i] = t == "sparse"; t != "sparse" && t != "dense" {
				d.fail("mlp_layer_types", "sparse or dense", strconv.Quote(t))
			}
		}
	},
	names: hfNames{layers: "layers.", names: llamaNames(map[string]string{
		"exp_probs_b.bias": "mlp.e_score_correction_bias|mlp.gate.e_score_correction_bias",
	})},
	unused: []string{"mtp.*"},
	build:  (*builder).decoder,
}
