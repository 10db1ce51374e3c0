package model

import "ridge/nn"

// Qwen 2, 2.5 (biases on queries, keys and values) and 3 (queries and keys
// normalized per head).
func init() {
	for _, arch := range []string{"qwen2", "qwen3"} {
		f := &family{
			arch: arch, hf: []string{arch},
			gguf: func(m *ggufMeta, c *Config) {
				llamaLike(c, nn.RopeNeox)
				c.Window = m.windows(c.Layers, 1)
			},
			config: func(h *hfMeta, c *Config) {
				llamaLike(c, nn.RopeNeox)
				c.Window = layerWindows(h, c.Layers, h.int(28, "max_window_layers"))
			},
			layout: hfLayout{layers: "layers.", names: llamaNames(nil)},
		}
		if arch == "qwen3" {
			f.layout.names["attn_q_norm"], f.layout.names["attn_k_norm"] = "self_attn.q_norm", "self_attn.k_norm"
		}
		register(f)
	}
}

// windows reads sliding windows: layer i has one unless the pattern says
// otherwise. A pattern n means that every n-th layer sees everything; an array
// says it layer by layer. def is the pattern of a file that has none, 1 for a
// window everywhere.
func (m *ggufMeta) windows(layers, def int) []int {
	out := everyLayer(layers, 0)
	size := m.int("attention.sliding_window", 0)
	if size == 0 {
		return out
	}
	key := m.arch + ".attention.sliding_window_pattern"
	v, ok := m.f.Lookup(key)
	if list, isList := v.([]bool); isList && len(list) == layers {
		for i, on := range list {
			if on {
				out[i] = size
			}
		}
		return out
	}
	n := def
	if ok {
		var isInt bool
		if n, isInt = asInt(v); !isInt {
			m.fail(key, "an integer or one boolean per layer", describe(v))
		}
	}
	for i := range out {
		if n <= 1 || i%n < n-1 {
			out[i] = size
		}
	}
	return out
}
