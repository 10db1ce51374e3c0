package schema

import (
	"math/rand/v2"
	"testing"

	"ridge/text/grammar/internal/grammartest"
)

// The masks of sets allow exactly the tokens that can be accepted, whatever has
// come and wherever in a text, and no text ends where nothing can follow.
func TestSetMasks(t *testing.T) {
	v := grammartest.Small()
	for i, schema := range []string{
		`{"type":"array","items":{"type":"string","pattern":"^(na|name|me)*$"},"uniqueItems":true}`,
		`{"type":"array","items":{"type":"string","pattern":"^(a|b|ab|abc|aaaa){1,3}$"},"uniqueItems":true,"minItems":4}`,
		`{"type":"array","items":{"type":"integer","minimum":1,"maximum":130},"uniqueItems":true,"maxItems":9}`,
		`{"type":"array","items":{"type":["number","null","boolean"]},"uniqueItems":true}`,
		`{"type":"array","items":{"enum":["a","aa","aaa","aaaa","ab","abc","b","c","d","e","f","g","h","i","j"]},"uniqueItems":true,"minItems":15}`,
		`{"type":"array","items":{"type":"array","items":{"type":"string","maxLength":2},"uniqueItems":true},"minItems":2}`,
	} {
		g, err := Compile(v, []byte(schema), Options{Whitespace: []Whitespace{Compact, Flexible, Spaced}[i%3]})
		if err != nil {
			t.Fatal(err)
		}
		rng := rand.New(rand.NewPCG(5, uint64(i)))
		for range 12 {
			s := g.NewState()
			for range 50 {
				bits := s.MaskBits()
				var allowed []int32
				for id := range int32(len(grammartest.Pieces)) {
					in := bits[id/64]>>(id%64)&1 != 0
					if got := s.Clone().Accept(id) == nil; got != in {
						t.Fatalf("%s: token %q is accepted: %v, allowed: %v", schema, grammartest.Pieces[id], got, in)
					}
					if in && id != grammartest.EOS {
						allowed = append(allowed, id)
					}
				}
				if s.Err() != nil {
					t.Fatalf("%s: %v", schema, s.Err())
				}
				if len(allowed) == 0 {
					break
				}
				if err := s.Accept(allowed[rng.IntN(len(allowed))]); err != nil {
					t.Fatal(err)
				}
			}
			if end := s.Shortest(400); end != nil {
				if err := s.AcceptBytes(end); err != nil || !s.Complete() {
					t.Errorf("%s: the shortest end %s: %v", schema, end, err)
				}
			} else if !s.Complete() {
				t.Errorf("%s: no end", schema)
			}
		}
	}
}
