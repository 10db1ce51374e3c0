package model

import "ridge/nn"

// GLM 4.5 to 4.7, and Solar Open: experts behind the first layers that a sigmoid weighs, and one
// that all rows read. The largest normalizes queries and keys.
var glm4moe = architecture{
	name: "glm4moe", hf: []string{"glm4_moe", "solar_open"},
	describe: func(d *description, c *Config) {
		llamaLike(c, nn.RopeNeox)
		d.with(d.bool("", "attention_bias", false), qkvBias...)
		d.with(d.bool("", "use_qk_norm", false), qkNorms...)
		d.must("exp_probs_b.bias")
		c.Experts = d.experts(c, ExpertConfig{Score: nn.ScoreSigmoid, GroupTop: 2})
		d.sharedExperts(&c.Experts)
	},
	names:   hfNames{layers: "layers.", names: llamaNames(nil)},
	aliases: map[string]string{"ffn_norm": "post_attention_norm"},
	build:   (*builder).decoder,
}
