package model

import (
	"ridge/nn"
	"ridge/weights/tensor"
)

// Refact: Llama with ALiBi, one head of keys and values, and LayerNorm without
// biases. The models were trained with that norm; llama.cpp computes RMSNorm, and
// the key of its files names that one.
var refact = architecture{
	name: "refact", hf: []string{"gpt_refact"},
	describe: func(d *description, c *Config) {
		llamaLike(c, nn.RopeNone)
		c.Norm, c.AlibiBias = nn.NormLayer, 8
		if d.hf {
			c.KVHeads = everyLayer(c.Layers, 1)
			c.FFN = (4*c.Hidden*2/3 + 255) / 256 * 256
			if !d.bool("", "multi_query", true) {
				d.fail("multi_query", "true", false)
			}
		}
	},
	names: hfNames{layers: "h.", home: "transformer.", names: map[string]string{
		"token_embd": "wte", "output_norm": "ln_f", "output": "lm_head", "attn_norm": "ln_1", "ffn_norm": "ln_2",
		"attn_q": "attn.q", "attn_k": "attn.kv", "attn_v": "attn.kv", "attn_output": "attn.c_proj",
		"ffn_gate": "mlp.gate_up_proj", "ffn_up": "mlp.gate_up_proj", "ffn_down": "mlp.c_proj",
	}, fix: func(c *Config, layer int, part string, bias bool) func(tensor.Mat) (tensor.Mat, error) {
		second := func(n int) func(int) int { return func(i int) int { return n + i } }
		first := func(i int) int { return i }
		switch part {
		case "attn_k":
			return takeRows(2*c.HeadDim, c.HeadDim, first)
		case "attn_v":
			return takeRows(2*c.HeadDim, c.HeadDim, second(c.HeadDim))
		case "ffn_gate":
			return takeRows(2*c.FFN, c.FFN, first)
		case "ffn_up":
			return takeRows(2*c.FFN, c.FFN, second(c.FFN))
		}
		return nil
	}},
	build: (*builder).decoder,
}
