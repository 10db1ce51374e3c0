package model

import (
	"strings"

	"ridge/nn"
	"ridge/weights/tensor"
)

// Nemotron 3 and 4, Minitron: LayerNorm whose weights are kept as their distance
// from 1, half of each head rotated, MLPs without a gate with the square of ReLU.
var nemotron = architecture{
	name: "nemotron", hf: []string{"nemotron"}, head: true,
	describe: func(d *description, c *Config) {
		llamaLike(c, nn.RopeNeox)
		c.Norm, c.Act, c.Gated = nn.NormLayer, nn.ReLU2, false
		d.must(normBias...)
		llamaBiases(d)
	},
	names: hfNames{layers: "layers.", names: llamaNames(map[string]string{"ffn_gate": ""}),
		fix: func(c *Config, layer int, part string, bias bool) func(tensor.Mat) (tensor.Mat, error) {
			if strings.HasSuffix(part, "norm") && !bias {
				return addOne
			}
			return nil
		}},
	build: (*builder).decoder,
}
