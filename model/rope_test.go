package model

import (
	"path/filepath"
	"testing"

	"ridge/weights/tensor"
)

// The length of the sequence decides about frequencies, not the context that was
// opened: transformers' logits, below and past the original context.
func TestRotationFollowsSequence(t *testing.T) {
	for _, name := range []string{"phi3-longrope-short", "phi3-longrope-long", "phi3-longrope-cross", "llama-rope-dynamic", "llama-rope-dynamic-long"} {
		g := readGolden(t, filepath.Join(tinyModels, name))
		for _, context := range []int{len(g.Prompt), 512, 4096} {
			m := openTiny(t, g.dir, context, Options{KV: tensor.F32, Workers: 2})
			if d, at := g.diff(t, compute(t, m, g.Prompt, 24)); !(d <= logitTolerance) {
				t.Errorf("%s with a context of %d: row %d: logits differ by %v", name, context, g.row(at), d)
			}
		}
	}
}

func TestRopeLength(t *testing.T) {
	type lengths struct{ prompt, tokens, want int }
	for name, cases := range map[string][]lengths{
		"llama":                   {{5, 5, 0}, {64, 100, 0}},
		"phi3-longrope-cross":     {{5, 5, 0}, {64, 70, 0}, {64, 71, 71}, {80, 90, 71}},
		"llama-rope-dynamic-long": {{5, 5, 0}, {32, 90, 0}, {33, 33, 33}, {40, 90, 40}},
	} {
		m := openTiny(t, filepath.Join(tinyModels, name), 128, Options{})
		for _, c := range cases {
			if got := m.RopeLength(c.prompt, c.tokens); got != c.want {
				t.Errorf("%s: %d tokens, %d of them the prompt: rotated for %d, want %d", name, c.tokens, c.prompt, got, c.want)
			}
		}
	}
}
