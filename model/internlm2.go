package model

import (
	"ridge/nn"
	"ridge/weights/tensor"
)

// InternLM 2 and 2.5: Llama whose checkpoints keep the queries, keys and values of
// each group of heads together in one matrix.
var internlm2 = architecture{
	name: "internlm2", hf: []string{"internlm2"}, head: true,
	describe: func(d *description, c *Config) {
		llamaLike(c, nn.RopeNorm)
		if d.hf && d.bool("", "bias", true) { // no released model has it
			d.fail("bias", "false", true)
		}
	},
	names: hfNames{layers: "layers.", names: map[string]string{
		"token_embd": "tok_embeddings", "output_norm": "norm", "output": "output",
		"attn_norm": "attention_norm", "ffn_norm": "ffn_norm",
		"attn_q": "attention.wqkv", "attn_k": "attention.wqkv", "attn_v": "attention.wqkv", "attn_output": "attention.wo",
		"ffn_gate": "feed_forward.w1", "ffn_up": "feed_forward.w3", "ffn_down": "feed_forward.w2",
	}, fix: func(c *Config, layer int, part string, bias bool) func(tensor.Mat) (tensor.Mat, error) {
		kv, dim := c.KVHeads[max(layer, 0)], c.HeadDim
		if kv <= 0 {
			return nil
		}
		per := c.Heads / kv // query heads of a group, before a key and a value
		total := kv * (per + 2) * dim
		switch part {
		case "attn_q":
			return takeRows(total, c.Heads*dim, func(i int) int {
				i = halves(i, dim)
				head := i / dim
				return (head/per*(per+2)+head%per)*dim + i%dim
			})
		case "attn_k":
			return takeRows(total, kv*dim, func(i int) int {
				i = halves(i, dim)
				return (i/dim*(per+2)+per)*dim + i%dim
			})
		case "attn_v":
			return takeRows(total, kv*dim, func(i int) int { return (i/dim*(per+2)+per+1)*dim + i%dim })
		}
		return nil
	}},
	build: (*builder).decoder,
}
