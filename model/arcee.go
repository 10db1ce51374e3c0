package model

import "ridge/nn"

// Arcee: Llama with an MLP without a gate, whose activation is the square of ReLU.
var arcee = architecture{
	name: "arcee", hf: []string{"arcee"},
	describe: func(d *description, c *Config) {
		llamaLike(c, nn.RopeNorm)
		c.Act, c.Gated = nn.ReLU2, false
		llamaBiases(d)
	},
	names: hfNames{layers: "layers.", names: llamaNames(map[string]string{"ffn_gate": ""}), fix: permuteQK},
	build: (*builder).decoder,
}
