package model

import "ridge/nn"

// StarCoder 2 (LayerNorm and biases around rotary, grouped-query attention)
// and StableLM (LayerNorm around a gated MLP, partial rotation).
func init() {
	register(&family{
		arch: "starcoder2", hf: []string{"starcoder2"},
		gguf: func(m *ggufMeta, c *Config) {
			gptLike(c, nn.GELUTanh)
			c.RopeStyle = nn.RopeNeox
			c.Window = everyLayer(c.Layers, m.int("attention.sliding_window", 0))
		},
		config: func(h *hfMeta, c *Config) {
			gptLike(c, nn.GELUTanh)
			c.RopeStyle, c.Tied = nn.RopeNeox, h.bool(true, "tie_word_embeddings")
			c.Window = everyLayer(c.Layers, h.int(0, "sliding_window"))
		},
		layout: hfLayout{layers: "layers.", names: llamaNames(map[string]string{
			"ffn_gate": "", "ffn_up": "mlp.c_fc", "ffn_down": "mlp.c_proj",
		})},
	})
	stable := func(c *Config, parallel bool) {
		llamaLike(c, nn.RopeNeox)
		c.Norm, c.Parallel = nn.NormLayer, parallel
	}
	register(&family{
		arch: "stablelm", hf: []string{"stablelm", "stablelm_epoch"},
		gguf: func(m *ggufMeta, c *Config) {
			_, sequential := m.f.Tensor("blk.0.ffn_norm.weight")
			stable(c, !sequential)
		},
		config: func(h *hfMeta, c *Config) {
			stable(c, h.bool(false, "use_parallel_residual"))
			if c.RopeDim == 0 && h.m["rope_parameters"] == nil {
				c.RopeDim = int(float64(c.HeadDim) * h.float(0.25, "partial_rotary_factor"))
			}
		},
		layout: hfLayout{layers: "layers.", names: llamaNames(map[string]string{
			"attn_q_norm": "self_attn.q_layernorm.norms.#", "attn_k_norm": "self_attn.k_layernorm.norms.#",
		})},
	})
}
