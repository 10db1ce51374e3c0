package model

import (
	"ridge/nn"
	"ridge/weights/tensor"
)

// GPT-2: LayerNorm, biases, learned positions, fused projections.
var gpt2 = architecture{
	name: "gpt2", hf: []string{"gpt2"},
	describe: func(d *description, c *Config) {
		gptLike(c, nn.GELUTanh)
		gptWeights(d)
		if !d.bool("", "scale_attn_weights", true) {
			c.AttnScale = 1
		}
		c.ScaleByLayer = d.bool("", "scale_attn_by_inverse_layer_idx", false)
	},
	names: hfNames{layers: "h.", home: "transformer.", names: gpt2Names,
		fix: func(c *Config, layer int, part string, bias bool) func(tensor.Mat) (tensor.Mat, error) {
			switch part {
			case "attn_qkv", "attn_output", "ffn_up", "ffn_down":
				if !bias {
					return transpose
				}
			}
			return nil
		}},
	build:  (*builder).decoder,
	unused: gpt2Masks,
}

// StarCoder (GPT-BigCode): GPT-2 with one key-value head.
var starcoder = architecture{
	name: "starcoder", hf: []string{"gpt_bigcode"},
	describe: func(d *description, c *Config) {
		gptLike(c, nn.GELUTanh)
		gptWeights(d)
		if d.hf && d.bool("", "multi_query", true) {
			c.KVHeads = everyLayer(c.Layers, 1)
		}
	},
	names:  hfNames{layers: "h.", home: "transformer.", names: gpt2Names, fix: interleavedHeads},
	build:  (*builder).decoder,
	unused: gpt2Masks,
}

// gpt2Masks are causal masks, which checkpoints of the first years have.
var gpt2Masks = []string{"*h.*.attn.bias", "*h.*.attn.masked_bias"}

// gptWeights says that there are positions, and biases everywhere.
func gptWeights(d *description) {
	d.must("position_embd.weight")
	d.must(linearBias...)
	d.must(normBias...)
}

var gpt2Names = map[string]string{
	"token_embd": "wte", "position_embd": "wpe", "output_norm": "ln_f", "output": "lm_head",
	"attn_norm": "ln_1", "attn_qkv": "attn.c_attn", "attn_output": "attn.c_proj",
	"ffn_norm": "ln_2", "ffn_up": "mlp.c_fc", "ffn_down": "mlp.c_proj",
}

func gptLike(c *Config, act nn.Activation) {
	c.Norm, c.Act, c.RopeStyle = nn.NormLayer, act, nn.RopeNone
}

// interleavedHeads reorders fused projections that keep query, key and value
// of each head together. With one key-value head they are in order already.
func interleavedHeads(c *Config, layer int, part string, bias bool) func(tensor.Mat) (tensor.Mat, error) {
	if part != "attn_qkv" || c.KVHeads[layer] != c.Heads {
		return nil
	}
	return groupsToFused(c.Heads, 1, c.HeadDim)
}
