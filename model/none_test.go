package model

import (
	"math"
	"path/filepath"
	"testing"

	"ridge/weights/gguf"
	"ridge/weights/tensor"
)

// setTo returns a change that sets keys, or takes out those whose value is nil.
func setTo(values map[string]any) func(*gguf.Builder) {
	return func(b *gguf.Builder) {
		for key, v := range values {
			if v == nil {
				b.Remove(key)
			} else if err := b.Set(key, v); err != nil {
				panic(err)
			}
		}
	}
}

// Writers say in several ways that a model has no such number, leave keys out
// that their own reader has a default for, and spell keys in their own way.
func TestNoneInGGUF(t *testing.T) {
	minusOne, maximum := int32(-1), uint32(math.MaxUint32)
	for _, c := range []struct {
		model string
		set   map[string]any
	}{
		{"llama", map[string]any{"llama.rope.scaling.type": "linear", "llama.rope.scaling.factor": float32(0)}},
		{"llama", map[string]any{"llama.rope.scaling.type": "none", "llama.rope.scaling.factor": float32(4)}},
		{"llama", map[string]any{"llama.rope.scale_linear": float32(0), "llama.rope.scaling.original_context_length": maximum}},
		{"llama", map[string]any{"llama.rope.dimension_count": uint32(0), "llama.attention.key_length": uint32(0), "llama.attention.value_length": uint32(0)}},
		{"llama", map[string]any{"llama.rope.dimension_count": maximum, "llama.attention.key_length": minusOne, "llama.attention.value_length": nil}},
		{"llama", map[string]any{"llama.attention.sliding_window": uint32(0), "llama.rope.freq_base": float32(0)}},
		{"llama", map[string]any{"llama.attention.sliding_window": maximum}},
		{"llama", map[string]any{"llama.attention.sliding_window": minusOne}},
		{"llama", map[string]any{"llama.attention.layer_norm_epsilon": float32(0.5), "llama.expert_count": uint32(0)}},
		{"llama", map[string]any{"llama.attention.layer_norm_rms_epsilon": float32(0), "llama.attention.layer_norm_epsilon": float32(1e-5)}},
		{"neox", map[string]any{"gptneox.attention.layer_norm_rms_epsilon": float32(0)}},
		{"neox", map[string]any{"gptneox.attention.layer_norm_rms_epsilon": float32(0.5)}},
		{"qwen2", map[string]any{"qwen2.attention.sliding_window": maximum}},
		{"llama-rope-yarn", map[string]any{"llama.rope.scaling.yarn_attn_factor": float32(1), "llama.rope.scaling.attn_factor": float32(1)}},
		{"llama-rope-yarn", map[string]any{"llama.rope.scaling.yarn_beta_fast": float32(0), "llama.rope.scaling.yarn_beta_slow": float32(0)}},
		{"gemma3", map[string]any{"gemma3.rope.freq_base": nil, "gemma3.attention.layer_norm_rms_epsilon": nil}},
		{"gemma3", map[string]any{"gemma3.rope.freq_base": nil, "gemma3.rope.freq_base_swa": nil,
			"gemma3.rope.global.freq_base": float32(1e6), "gemma3.rope.local.freq_base": float32(10000)}},
		{"gemma3", map[string]any{"gemma3.attention.scale": float32(0), "gemma3.final_logit_softcapping": float32(0)}},
		{"gemma3", map[string]any{"gemma3.attention.sliding_window_pattern": []uint32{1, 1, 1, 1, 1, 0}}},
		{"mpt", map[string]any{"mpt.attention.clamp_kqv": float32(-1)}},
	} {
		g := readGolden(t, filepath.Join(tinyModels, c.model))
		path := rewrite(t, t.TempDir(), c.model, setTo(c.set))
		m := openTiny(t, path, g.Context, Options{KV: tensor.F32, Workers: 1})
		if d, at := g.diff(t, compute(t, m, g.Prompt, len(g.Prompt))); !(d <= logitTolerance) {
			t.Errorf("%s with %v: row %d: logits differ by %v", c.model, c.set, g.row(at), d)
		}
	}
}
