package diag

import (
	"strings"
	"testing"
)

func TestQuote(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"", `""`},
		{"blk.0.attn_q.weight", `"blk.0.attn_q.weight"`},
		{"a\nb\x00\xff", `"a\nb\x00\xff"`},
		{strings.Repeat("a", 81), `"` + strings.Repeat("a", 80) + `"... (81 bytes)`},
		{strings.Repeat("a", 79) + "é", `"` + strings.Repeat("a", 79) + `"... (81 bytes)`},
	} {
		if got := Quote(c.in); got != c.want {
			t.Errorf("Quote(%q) = %s, want %s", c.in, got, c.want)
		}
	}
}

func TestPath(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"models/a b.gguf", "models/a b.gguf"},
		{"modèle.gguf", "modèle.gguf"},
		{"a\nb.gguf", `"a\nb.gguf"`},
		{"a\x1b[31m.gguf", `"a\x1b[31m.gguf"`},
		{"\xff.gguf", `"\xff.gguf"`},
	} {
		if got := Path(c.in); got != c.want {
			t.Errorf("Path(%q) = %s, want %s", c.in, got, c.want)
		}
	}
}

func TestShape(t *testing.T) {
	for _, c := range []struct {
		in   []uint64
		want string
	}{
		{nil, "[]"},
		{[]uint64{2, 3}, "[2 3]"},
		{[]uint64{1, 2, 3, 4, 5, 6, 7, 8}, "[1 2 3 4 5 6 7 8]"},
		{make([]uint64, 1000), "[0 0 0 0 0 0 0 0 ...]"},
	} {
		if got := Shape(c.in); got != c.want {
			t.Errorf("Shape(%d extents) = %s, want %s", len(c.in), got, c.want)
		}
	}
}
