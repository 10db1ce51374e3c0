package model

import "ridge/nn"

// OLMo (norms without weights) and OLMo 2 (norms only after attention and
// MLP, queries and keys normalized over all heads).
func init() {
	register(&family{
		arch: "olmo", hf: []string{"olmo"},
		gguf: func(m *ggufMeta, c *Config) {
			llamaLike(c, nn.RopeNorm)
			c.Norm, c.NormEps, c.PlainNorms = nn.NormLayer, 1e-5, true
			c.ClipQKV = float32(m.float("attention.clamp_kqv", 0))
		},
		config: func(h *hfMeta, c *Config) {
			llamaLike(c, nn.RopeNorm)
			c.Norm, c.NormEps, c.PlainNorms = nn.NormLayer, 1e-5, true
			c.ClipQKV = float32(h.float(0, "clip_qkv"))
		},
		layout: hfLayout{layers: "layers.", names: llamaNames(map[string]string{
			"output_norm": "", "attn_norm": "", "ffn_norm": "",
		}), fix: permuteQK},
	})
	register(&family{
		arch: "olmo2", hf: []string{"olmo2"},
		gguf:   func(m *ggufMeta, c *Config) { llamaLike(c, nn.RopeNeox); c.PostNorms = true },
		config: func(h *hfMeta, c *Config) { llamaLike(c, nn.RopeNeox); c.PostNorms = true },
		layout: hfLayout{layers: "layers.", names: llamaNames(map[string]string{
			"attn_norm": "", "ffn_norm": "",
			"post_attention_norm": "post_attention_layernorm", "post_ffw_norm": "post_feedforward_layernorm",
		})},
	})
}
