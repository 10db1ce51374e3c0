package model

import (
	"math"

	"ridge/nn"
	"ridge/weights/tensor"
)

// Falcon: attention and MLP side by side behind one LayerNorm (7B) or one each
// (40B), and the older sequential RefinedWeb models with ALiBi.
func init() {
	register(&family{
		arch: "falcon", hf: []string{"falcon", "RefinedWebModel", "RefinedWeb"},
		gguf: func(m *ggufMeta, c *Config) {
			gptLike(c, nn.GELUErf)
			c.RopeStyle, c.Parallel = nn.RopeNeox, true
		},
		config: func(h *hfMeta, c *Config) {
			gptLike(c, nn.GELUErf)
			c.Tied = h.bool(true, "tie_word_embeddings")
			switch {
			case h.bool(false, "new_decoder_architecture"):
				c.KVHeads = everyLayer(c.Layers, h.int(c.Heads, "num_kv_heads"))
				c.Parallel = true
			default:
				c.KVHeads = everyLayer(c.Layers, c.Heads)
				if h.bool(true, "multi_query") {
					c.KVHeads = everyLayer(c.Layers, 1)
				}
				c.Parallel = h.bool(true, "parallel_attn")
			}
			if h.bool(false, "alibi") {
				// The bias is scaled along with the scores.
				c.AlibiBias = 8
				c.alibiScale = float32(1 / math.Sqrt(float64(c.HeadDim)))
			} else {
				c.RopeStyle = nn.RopeNeox
			}
		},
		layout: hfLayout{layers: "h.", names: map[string]string{
			"token_embd": "word_embeddings", "output_norm": "ln_f", "output": "lm_head",
			"attn_norm": "ln_mlp|input_layernorm", "attn_norm_2": "ln_attn",
			"ffn_norm": "post_attention_layernorm",
			"attn_qkv": "self_attention.query_key_value", "attn_output": "self_attention.dense",
			"ffn_up": "mlp.dense_h_to_4h", "ffn_down": "mlp.dense_4h_to_h",
		}, fix: func(c *Config, layer int, part string, bias bool) func(tensor.Mat) (tensor.Mat, error) {
			groups := c.KVHeads[max(layer, 0)]
			if part != "attn_qkv" || groups == 1 {
				return nil
			}
			return groupsToFused(groups, c.Heads/groups, c.HeadDim)
		}},
	})
}
