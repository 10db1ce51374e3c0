package model

import "ridge/nn"

// dots.llm1: Qwen 3's attention, and DeepSeek V3's experts.
var dots1 = architecture{
	name: "dots1", head: true, hf: []string{"dots1"},
	describe: func(d *description, c *Config) {
		llamaLike(c, nn.RopeNeox)
		c.Window = d.windows(c.Layers, from(d.int("", "max_window_layers", c.Layers)))
		d.with(d.bool("", "attention_bias", false), attnBias...)
		d.must(qkNorms...)
		d.must("exp_probs_b.bias")
		c.Experts = d.experts(c, ExpertConfig{Score: nn.ScoreSigmoid, GroupTop: 2})
		d.sharedExperts(&c.Experts)
	},
	names: hfNames{layers: "layers.", names: llamaNames(nil)},
	build: (*builder).decoder,
}
