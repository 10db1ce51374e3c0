package model

import (
	"math"
	"strings"

	"ridge/nn"
	"ridge/weights/tensor"
)

// Gemma 1, 2 and 3 (text): scaled embeddings, tied output, GELU gate. Gemma 2
// adds norms after attention and MLP, soft-capped scores and alternating
// sliding windows; Gemma 3 normalizes queries and keys instead of capping, and
// rotates local and global layers differently.
func init() {
	names := llamaNames(map[string]string{
		"post_attention_norm": "post_attention_layernorm",
		"ffn_norm":            "pre_feedforward_layernorm",
		"post_ffw_norm":       "post_feedforward_layernorm",
	})
	register(&family{
		arch: "gemma", hf: []string{"gemma"},
		gguf:   func(m *ggufMeta, c *Config) { gemmaLike(c) },
		config: func(h *hfMeta, c *Config) { gemmaLike(c) },
		layout: hfLayout{layers: "layers.", names: llamaNames(nil), fix: gemmaNorms},
	})
	register(&family{
		arch: "gemma2", hf: []string{"gemma2"},
		gguf: func(m *ggufMeta, c *Config) {
			gemmaLike(c)
			c.PostNorms = true
			c.AttnSoftcap = float32(m.float("attn_logit_softcapping", 0))
			c.FinalSoftcap = float32(m.float("final_logit_softcapping", 0))
			c.AttnScale = gemmaScale(m, c, 46)
			c.Window = m.windows(c.Layers, 2)
		},
		config: func(h *hfMeta, c *Config) {
			gemmaLike(c)
			gemmaHF(h, c)
			c.Window = gemmaWindows(h, c.Layers, 2)
		},
		layout: hfLayout{layers: "layers.", names: names, fix: gemmaNorms},
	})
	register(&family{
		arch: "gemma3", hf: []string{"gemma3_text", "gemma3"},
		gguf: func(m *ggufMeta, c *Config) {
			gemmaLike(c)
			c.PostNorms = true
			c.FinalSoftcap = float32(m.float("final_logit_softcapping", 0))
			c.AttnScale = gemmaScale(m, c, 62)
			c.Window = m.windows(c.Layers, 6)
			c.Rope = append(c.Rope, RopeConfig{Base: m.float("rope.freq_base_swa", 10000)})
			c.localRope()
		},
		config: func(h *hfMeta, c *Config) {
			gemmaLike(c)
			gemmaHF(h, c)
			c.Window = gemmaWindows(h, c.Layers, h.int(6, "sliding_window_pattern"))
			local := RopeConfig{Base: h.float(10000, "rope_local_base_freq")}
			if p, ok := h.object("rope_parameters"); ok {
				if full, ok := p["full_attention"].(map[string]any); ok {
					c.Rope[0] = hfRope(h, c, map[string]any{"rope_parameters": full})
				}
				if sliding, ok := p["sliding_attention"].(map[string]any); ok {
					local = hfRope(h, c, map[string]any{"rope_parameters": sliding})
				}
			}
			c.Rope = append(c.Rope, local)
			c.localRope()
		},
		layout: hfLayout{layers: "layers.", names: names, fix: gemmaNorms},
	})
}

func gemmaLike(c *Config) {
	c.Norm, c.Act, c.Gated, c.RopeStyle = nn.NormRMS, nn.GELUTanh, true, nn.RopeNeox
	c.EmbScale = float32(math.Sqrt(float64(c.Hidden)))
	c.Tied = true
}

// gemmaScale is the score scale of a GGUF file: most sizes use the head
// dimension, the largest of each generation (known by its layers) the width
// divided by the heads.
func gemmaScale(m *ggufMeta, c *Config, largest int) float32 {
	scale := 1 / math.Sqrt(float64(max(c.HeadDim, 1)))
	if c.Layers == largest && c.Heads > 0 {
		scale = 1 / math.Sqrt(float64(c.Hidden)/float64(c.Heads))
	}
	return float32(m.float("attention.scale", scale))
}

func gemmaHF(h *hfMeta, c *Config) {
	c.PostNorms = true
	c.AttnSoftcap = float32(h.float(0, "attn_logit_softcapping"))
	c.FinalSoftcap = float32(h.float(0, "final_logit_softcapping"))
	if s := h.float(0, "query_pre_attn_scalar"); s > 0 {
		c.AttnScale = float32(1 / math.Sqrt(s))
	}
}

func gemmaWindows(h *hfMeta, layers, pattern int) []int {
	out := everyLayer(layers, 0)
	size, types := h.int(0, "sliding_window"), h.strings("layer_types")
	for i := range out {
		sliding := pattern <= 1 || (i+1)%pattern != 0
		if len(types) == layers {
			sliding = types[i] == "sliding_attention"
		}
		if sliding {
			out[i] = size
		}
	}
	return out
}

// localRope gives the layers with a window the second set of frequencies.
func (c *Config) localRope() {
	c.LayerRope = everyLayer(c.Layers, 0)
	for i := range c.LayerRope {
		if c.Window[i] > 0 {
			c.LayerRope[i] = 1
		}
	}
}

func gemmaNorms(c *Config, layer int, part string, bias bool) func(tensor.Mat) (tensor.Mat, error) {
	if strings.HasSuffix(part, "norm") {
		return addOne
	}
	return nil
}
