package model

import (
	"ridge/nn"
	"ridge/weights/tensor"
)

// Llama, and what is built like it: Mistral, SmolLM, TinyLlama. RMSNorm before
// attention and before a gated SiLU MLP, rotary positions.
func init() {
	register(&family{
		arch: "llama", hf: []string{"llama", "mistral"},
		gguf: func(m *ggufMeta, c *Config) {
			llamaLike(c, nn.RopeNorm)
			c.Window = everyLayer(c.Layers, m.int("attention.sliding_window", 0))
		},
		config: func(h *hfMeta, c *Config) {
			llamaLike(c, nn.RopeNorm)
			c.Window = everyLayer(c.Layers, h.int(0, "sliding_window"))
		},
		layout: hfLayout{layers: "layers.", names: llamaNames(nil), fix: permuteQK},
	})
	register(&family{
		arch: "smollm3", hf: []string{"smollm3"},
		gguf: func(m *ggufMeta, c *Config) {
			llamaLike(c, nn.RopeNorm)
			c.LayerRope = everyFourthWithout(c.Layers, 4)
		},
		config: func(h *hfMeta, c *Config) {
			llamaLike(c, nn.RopeNorm)
			c.Tied = h.bool(true, "tie_word_embeddings")
			c.LayerRope = everyFourthWithout(c.Layers, h.int(4, "no_rope_layer_interval"))
			if list, ok := h.m["no_rope_layers"].([]any); ok && len(list) == c.Layers {
				for i, v := range list {
					c.LayerRope[i] = 0
					if n, _ := asInt(v); n == 0 {
						c.LayerRope[i] = -1
					}
				}
			}
			c.Window = layerWindows(h, c.Layers, 0)
		},
		layout: hfLayout{layers: "layers.", names: llamaNames(nil), fix: permuteQK},
	})
}

func llamaLike(c *Config, style nn.RopeStyle) {
	c.Norm, c.Act, c.Gated, c.RopeStyle = nn.NormRMS, nn.SiLU, true, style
}

// permuteQK brings query and key rows into the order that GGUF keeps them in
// for these architectures.
func permuteQK(c *Config, layer int, part string, bias bool) func(tensor.Mat) (tensor.Mat, error) {
	switch part {
	case "attn_q":
		return permuteRope(c.Heads)
	case "attn_k":
		return permuteRope(c.KVHeads[layer])
	}
	return nil
}

// everyFourthWithout marks every n-th layer as one without positions.
func everyFourthWithout(layers, n int) []int {
	s := everyLayer(layers, 0)
	for i := range s {
		if n > 0 && (i+1)%n == 0 {
			s[i] = -1
		}
	}
	return s
}

// layerWindows reads the sliding windows of a config.json: the size, whether
// it is on, and which layers have it. first is the first layer that has it
// when the configuration lists no layer types.
func layerWindows(h *hfMeta, layers, first int) []int {
	out := everyLayer(layers, 0)
	size := h.int(0, "sliding_window")
	if size == 0 || !h.bool(false, "use_sliding_window") {
		return out
	}
	types := h.strings("layer_types")
	for i := range out {
		if len(types) == layers && types[i] == "sliding_attention" || len(types) != layers && i >= first {
			out[i] = size
		}
	}
	return out
}
