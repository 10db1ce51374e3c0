package kvcache

import (
	"slices"
	"testing"
)

// Known finds what Match does not: where a sequence leaves the tree, to the token,
// also if layers have windows, and what is there in place of it.
func TestKnown(t *testing.T) {
	for _, layers := range [][]LayerShape{{{Heads: 1, KDim: 16, VDim: 16}}, {{Heads: 1, KDim: 16, VDim: 16, Window: 16}, {Heads: 1, KDim: 16, VDim: 16}}} {
		p, err := New(Config{Layers: layers, PageTokens: 16, DType: 1, MaxBytes: 1 << 20})
		if err != nil {
			t.Fatal(err)
		}
		tree := NewTree(p)
		var tokens []int32
		for i := range 70 {
			tokens = append(tokens, int32(i))
		}
		s := p.NewSeq()
		if err := p.Grow(s, len(tokens)); err != nil {
			t.Fatal(err)
		}
		tree.Insert("a", tokens, s)
		p.Free(s)
		other := slices.Clone(tokens)
		other[37] = 99
		before := tree.Stats()
		for _, c := range []struct {
			salt    string
			tokens  []int32
			n       int
			instead []int32
		}{
			{"a", other, 37, []int32{37, 38, 39}}, {"a", tokens, 70, nil}, {"a", append(slices.Clone(tokens), 1), 70, nil}, {"a", tokens[:5], 5, []int32{5, 6, 7}},
			{"b", other, 0, nil}, {"a", other[37:], 0, []int32{0, 1, 2}},
		} {
			if n, instead := tree.Known(c.salt, c.tokens, 3); n != c.n || !slices.Equal(instead, c.instead) {
				t.Errorf("%q of %d tokens: %d known, then %v; expected %d, %v", c.salt, len(c.tokens), n, instead, c.n, c.instead)
			}
		}
		if tree.Stats() != before {
			t.Errorf("it had an effect: %+v, before %+v", tree.Stats(), before)
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}
}
