package model

import "ridge/nn"

// Mistral 3 and Ministral 3: Llama, or Llama whose queries grow by the logarithm
// of how often the original context fits before them.
var mistral3 = architecture{
	name: "mistral3", hf: []string{"ministral3", "mistral3"},
	describe: func(d *description, c *Config) {
		llamaLike(c, nn.RopeNorm)
		c.Window = everyLayer(c.Layers, d.int("attention.sliding_window", "sliding_window", 0))
		s := &c.Rope[0].Scaling
		c.Temper.Beta = d.float32("attention.temperature_scale", "", 0)
		if p := d.object("rope_parameters"); p != nil {
			c.Temper.Beta = p.float32("", "llama_4_scaling_beta", 0)
		}
		if c.Temper.Beta != 0 {
			c.Temper.Period = s.Original
		}
		if all := d.float("rope.scaling.yarn_log_multiplier", "", 0); all != 0 && s.Kind == "yarn" {
			s.MScale, s.MScaleAll = 1, all
		}
	},
	names:  hfNames{layers: "layers.", names: llamaNames(nil), fix: permuteQK},
	build:  (*builder).decoder,
	unused: visionParts,
}
