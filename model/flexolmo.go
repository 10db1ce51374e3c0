package model

import "ridge/nn"

// FlexOlmo: OLMo 2 with experts. There are no GGUF files of it.
var flexOlmo = architecture{
	name: "flexolmo", hf: []string{"flex_olmo"},
	describe: func(d *description, c *Config) {
		llamaLike(c, nn.RopeNeox)
		c.PostNorms = true
		d.must(qkNorms...)
		d.with(d.bool("", "attention_bias", false), attnBias...)
		c.Experts = d.experts(c, ExpertConfig{})
	},
	names: olmo2.names,
	build: (*builder).decoder,
}
