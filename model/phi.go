package model

import "ridge/nn"

// Phi-3 and 4 (fused projections, LongRoPE) and Phi 1 to 2 (attention and MLP
// side by side behind one LayerNorm, everything biased).
func init() {
	register(&family{
		arch: "phi3", hf: []string{"phi3"},
		gguf: func(m *ggufMeta, c *Config) {
			llamaLike(c, nn.RopeNeox)
			c.Window = everyLayer(c.Layers, m.int("attention.sliding_window", 0))
		},
		config: func(h *hfMeta, c *Config) {
			llamaLike(c, nn.RopeNeox)
			c.Window = everyLayer(c.Layers, h.int(0, "sliding_window"))
			if s := &c.Rope[0].Scaling; s.Kind == "yarn" {
				s.Kind = "longrope" // the first Phi-3 checkpoints called it so
			}
		},
		layout: hfLayout{layers: "layers.", names: llamaNames(map[string]string{
			"attn_q": "", "attn_k": "", "attn_v": "", "attn_qkv": "self_attn.qkv_proj",
			"ffn_gate": "", "ffn_up": "mlp.gate_up_proj",
		})},
	})
	register(&family{
		arch: "phi2", hf: []string{"phi"},
		gguf:   func(m *ggufMeta, c *Config) { phi2Like(c) },
		config: func(h *hfMeta, c *Config) { phi2Like(c) },
		layout: hfLayout{layers: "layers.", names: llamaNames(map[string]string{
			"output_norm": "final_layernorm", "ffn_norm": "", "ffn_gate": "",
			"attn_output": "self_attn.dense", "ffn_up": "mlp.fc1", "ffn_down": "mlp.fc2",
			"attn_q_norm": "self_attn.q_layernorm", "attn_k_norm": "self_attn.k_layernorm",
		})},
	})
}

func phi2Like(c *Config) {
	c.Norm, c.Act, c.Parallel, c.RopeStyle = nn.NormLayer, nn.GELUTanh, true, nn.RopeNeox
}
