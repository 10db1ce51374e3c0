package model

import "ridge/nn"

// Granite 3 and 4 (dense): Llama with multipliers of the embedding, of what
// layers add, of scores and of logits.
var granite = architecture{
	name: "granite", hf: []string{"granite"},
	describe: func(d *description, c *Config) {
		llamaLike(c, nn.RopeNorm)
		scores, logits := 0.0, requiredFloat // 0: as others scale them
		if d.hf {
			scores, logits = 1, 1
		}
		c.EmbScale = d.float32("embedding_scale", "embedding_multiplier", 1)
		c.ResidScale = d.float32("residual_scale", "residual_multiplier", 1)
		c.AttnScale = d.float32("attention.scale", "attention_multiplier", scores)
		c.LogitScale = 1 / d.float32("logit_scale", "logits_scaling", logits)
	},
	names: hfNames{layers: "layers.", names: llamaNames(nil), fix: permuteQK},
	build: (*builder).decoder,
}
