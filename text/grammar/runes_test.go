package grammar

import (
	"math/rand/v2"
	"slices"
	"testing"
	"unicode"
)

func TestRuneSets(t *testing.T) {
	rng := rand.New(rand.NewPCG(31, 1))
	edges := []rune{0, 1, 0x7F, 0x80, 0x7FF, 0x800, 0xFFF, 0x1000, 0xD7FF, 0xD800, 0xDFFF, 0xE000, 0xFFFF, 0x10000, 0x3FFFF, 0x40000, 0x10FFFF, 'a', 'z', 0x20AC, 0x1F600}
	for range 300 {
		var s RuneSet
		for range rng.IntN(4) {
			a, b := edges[rng.IntN(len(edges))], edges[rng.IntN(len(edges))]
			s = append(s, min(a, b), max(a, b))
		}
		s = s.normalize()
		in := func(s RuneSet, r rune) bool {
			for i := 0; i < len(s); i += 2 {
				if s[i] <= r && r <= s[i+1] {
					return true
				}
			}
			return false
		}
		not := s.Complement()
		seqs := utf8Sequences(nil, s)
		spelled := func(b []byte) bool {
			n := 0
			for _, seq := range seqs {
				ok := len(seq) == len(b)
				for i := range seq {
					ok = ok && seq[i].Lo <= b[i] && b[i] <= seq[i].Hi
				}
				if ok {
					n++
				}
			}
			if n > 1 {
				t.Fatalf("%x: % x is spelled %d times", s, b, n)
			}
			return n == 1
		}
		for _, e := range edges {
			for r := max(0, e-2); r <= min(maxRune, e+2); r++ {
				if in(s, r) == in(not, r) {
					t.Fatalf("%x and its complement %x agree on %x", s, not, r)
				}
				if r >= surrogateMin && r <= surrogateMax {
					continue
				}
				if spelled([]byte(string(r))) != in(s, r) {
					t.Fatalf("%x: spelling of %x", s, r)
				}
			}
		}
		for _, bad := range [][]byte{{0x80}, {0xC0, 0x80}, {0xE0, 0x80, 0x80}, {0xED, 0xA0, 0x80}, {0xF4, 0x90, 0x80, 0x80}, {0xFF}} {
			if spelled(bad) {
				t.Fatalf("%x spells % x", s, bad)
			}
		}
	}
}

// Runes are the characters that the tables have, and no others.
func TestRunes(t *testing.T) {
	tables := []*unicode.RangeTable{unicode.Lu, unicode.Nl, unicode.Other_Uppercase}
	s := Runes(tables...)
	if !slices.Equal(s, slices.Clone(s).normalize()) {
		t.Error("not normalized")
	}
	for r := rune(0); r <= unicode.MaxRune; r++ {
		if in := len(s) > 1 && s[0] <= r; in != unicode.In(r, tables...) {
			t.Fatalf("%x: got %v", r, in)
		}
		if len(s) > 1 && s[1] == r {
			s = s[2:]
		}
	}
}
