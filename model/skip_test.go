package model

import (
	"slices"
	"strings"
	"testing"
)

// A step without parts of layers has the bits of a network that does not have them, and
// keeps nothing of them.
func TestSkip(t *testing.T) {
	const dir = "../internal/tinymodel/testdata/"
	for _, name := range []string{"llama", "gemma2", "gemma3", "gemma3n", "deepseek3", "neox", "phi3-swa", "qwen3moe"} {
		m, ref := openTiny(t, dir+name, 64, Options{}), openTiny(t, dir+name, 64, Options{})
		can := m.net.Skippable()
		n := len(m.net.Layers)
		kinds := map[string][]uint8{"one": make([]uint8, n)}
		if m.net.Embed.Streams != nil {
			kinds["one"][2] = 3 // others read the keys of those before
		} else {
			kinds["one"][0] = 3
			kinds["the last"], kinds["all"] = make([]uint8, n), slices.Repeat([]uint8{3}, n)
			kinds["the last"][n-1] = 3
		}
		if can[0] == 3 {
			kinds["a mixer"], kinds["an FFN"], kinds["the last mixer"] = make([]uint8, n), make([]uint8, n), make([]uint8, n)
			kinds["a mixer"][0], kinds["an FFN"][0], kinds["the last mixer"][n-1] = 1, 2, can[n-1]&1
		}
		for kind, skip := range kinds {
			layers := slices.Clone(ref.net.Layers)
			for i, what := range skip {
				l := &ref.net.Layers[i]
				switch {
				case what == 3:
					l.Mix, l.Scale = nil, 0
				case what&1 > 0:
					l.Mix = nil
				case what&2 > 0:
					l.FFN = nil
				}
			}
			run := func(m *Model, skip []uint8) (out []float32) {
				q := m.Pool().NewSeq()
				defer m.Pool().Free(q)
				for _, tokens := range [][]int32{{5, 9, 7, 11, 3}, {8}, {4, 6}} {
					if err := m.Forward(&Step{Runs: []Run{{Seq: q, Tokens: tokens, Outputs: 1}}, Skip: skip}); err != nil {
						t.Fatalf("%s, %s: %v", name, kind, err)
					}
					out = append(out, m.Logits(0)...)
				}
				return out
			}
			got, want := run(m, skip), run(ref, nil)
			copy(ref.net.Layers, layers)
			if !slices.Equal(got, want) {
				t.Errorf("%s: without %s other logits than of a network that does not have it", name, kind)
			}
			if full := run(m, nil); slices.Equal(got, full) && slices.Max(skip) > 0 {
				t.Errorf("%s: without %s the logits of the whole network", name, kind)
			}
		}
	}
}

// What cannot be left out is refused.
func TestSkipRefused(t *testing.T) {
	for _, c := range []struct {
		name string
		skip func(n int) []uint8
		want string
	}{
		{"llama", func(n int) []uint8 { return make([]uint8, n+1) }, "model: skip: expected a number for each of 2 layers, found 3"},
		{"llama", func(n int) []uint8 { return slices.Repeat([]uint8{4}, n) }, "model: skip: layer 0: expected 0 to 3, found 4"},
		{"neox", func(n int) []uint8 { return slices.Repeat([]uint8{1}, n) }, "model: skip: layer 0: expected both of its parts or none, as they run side by side, found 1"},
		{"mamba", func(n int) []uint8 { return make([]uint8, n) }, "model: skip: expected layers that can drop their last tokens, found some with states"},
		{"gemma3n", func(n int) []uint8 { s := make([]uint8, n); s[0], s[1], s[2] = 3, 3, 3; return s }, "expected the mixer of layer"},
	} {
		m := openTiny(t, "../internal/tinymodel/testdata/"+c.name, 64, Options{})
		q := m.Pool().NewSeq()
		err := m.Forward(&Step{Runs: []Run{{Seq: q, Tokens: []int32{5}, Outputs: 1}}, Skip: c.skip(len(m.net.Layers))})
		if err == nil || !strings.Contains(err.Error(), c.want) || q.Len() > 0 {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}
