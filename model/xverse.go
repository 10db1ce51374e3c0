package model

import "ridge/nn"

// XVERSE: Llama with a tokenizer of its own.
var xverse = architecture{
	name: "xverse", hf: []string{"xverse"}, head: true,
	describe: func(d *description, c *Config) { llamaLike(c, nn.RopeNorm) },
	names:    hfNames{layers: "layers.", names: llamaNames(nil), fix: permuteQK},
	build:    (*builder).decoder,
}
