package model

import (
	"math"

	"ridge/nn"
)

// MiniCPM 1, 2 and 4: Llama with scales of embedding, of what layers add, and of
// logits.
var minicpm = architecture{
	name: "minicpm", hf: []string{"minicpm"},
	describe: func(d *description, c *Config) {
		llamaLike(c, nn.RopeNorm)
		if d.bool("", "attention_bias", false) { // no released model has it
			d.fail("attention_bias", "false", true)
		}
		depth := math.Sqrt(float64(c.Layers))
		if d.hf {
			c.EmbScale = d.float32("embedding_scale", "scale_emb", 1)
			c.ResidScale = float32(d.float("", "scale_depth", 1) / depth)
			down := float32(float64(c.Hidden) / d.float("", "dim_model_base", 1))
			d.note("residual_scale", float64(c.ResidScale), "a number")
			d.note("logit_scale", float64(down), "a number")
			c.LogitScale = 1 / down
			return
		}
		// Older files have the scales of the first model, and do not say so.
		c.EmbScale = d.float32("embedding_scale", "", 12)
		c.ResidScale = d.float32("residual_scale", "", 1.4/depth)
		c.LogitScale = 1 / d.float32("logit_scale", "", float64(c.Hidden)/256)
	},
	names: hfNames{layers: "layers.", names: llamaNames(nil), fix: permuteQK},
	build: (*builder).decoder,
}
