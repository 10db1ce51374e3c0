package model

import (
	"fmt"
	"math"

	"ridge/nn"
)

// Apertus: queries and keys normalized per head, MLPs without a gate whose
// activation is an xIELU with numbers of each layer. A GGUF file has these in its
// metadata.
var apertus = architecture{
	name: "apertus", hf: []string{"apertus"}, acts: map[string]nn.Activation{"xielu": nn.XIELU},
	describe: func(d *description, c *Config) {
		llamaLike(c, nn.RopeNeox)
		c.Act, c.Gated = nn.XIELU, false
		d.must(qkNorms...)
		d.with(d.bool("", "attention_bias", false), attnBias...)
		for _, name := range xieluNumbers {
			if !d.hf {
				c.XIELU = append(c.XIELU, d.layerFloats(".xielu."+name, c.Layers))
			}
		}
	},
	names: hfNames{layers: "layers.", names: llamaNames(map[string]string{
		"attn_norm": "attention_layernorm", "ffn_norm": "feedforward_layernorm", "ffn_gate": "",
		"ffn_act.alpha_p": "mlp.act_fn.alpha_p", "ffn_act.alpha_n": "mlp.act_fn.alpha_n",
		"ffn_act.beta": "mlp.act_fn.beta", "ffn_act.eps": "mlp.act_fn.eps",
	})},
	build: func(b *builder) *Net {
		net := b.decoder()
		for i := range net.Layers {
			if m, ok := net.Layers[i].FFN.(*nn.MLP); ok && m.Act == nn.XIELU {
				m.XIELU = b.xielu(i)
			}
		}
		return net
	},
}

var xieluNumbers = []string{"alpha_p", "alpha_n", "beta", "eps"}

// xielu returns the curve of a layer.
func (b *builder) xielu(layer int) (x [4]float32) {
	for i, name := range xieluNumbers {
		if b.gguf {
			x[i] = b.c.XIELU[i][layer]
			continue
		}
		tensor := fmt.Sprintf("blk.%d.ffn_act.%s", layer, name)
		v := b.vector(tensor, 1)
		if v == nil {
			b.missing(1, 1, tensor)
			return x
		}
		x[i] = v[0]
	}
	return [4]float32{softplus(x[0]), x[2] + softplus(x[1]), x[2], x[3]}
}

func softplus(x float32) float32 { return float32(math.Log1p(math.Exp(float64(x)))) }
