package grammar_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"ridge/text/grammar"
	"ridge/text/grammar/internal/grammartest"
)

// A measured rule allows at every step exactly the tokens that the product of its
// automaton with one that counts allows.
func TestMeasured(t *testing.T) {
	v := grammartest.Small()
	for i, c := range []struct {
		expr string
		most int
	}{
		{`(ab|é)*`, 5}, {`[a-z]+(-[a-z]+)*`, 9}, {`(日本|a){2,}c?`, 7}, {`a*b{3}|c*`, 6}, {`(name|na){1,}me`, 40}, {`.*`, 3}, {`a*`, 0}, {`(aaaa)*`, 90}, {`(a|é{40})*`, 100},
	} {
		for _, loops := range []bool{false, true} {
			make := func(measured bool) *grammar.Grammar {
				b := &grammar.Builder{Source: "test"}
				d := b.Pattern("", "", c.expr, false)
				root, inside := b.Rule("root"), b.Rule("inside")
				if measured {
					inside.Spell(inside.Start, d, inside.End, inside.Runes)
					inside = b.Measured("measured", inside, c.most)
				} else {
					inside.Spell(inside.Start, d.Intersect(b, b.Lengths(0, c.most)), inside.End, inside.Runes)
				}
				// Between brackets, so that tokens lead out of it and into it again.
				open, in, out := root.State(), root.State(), root.State()
				root.Bytes(root.Start, '[', '[', open)
				root.Call(open, inside, in)
				root.Bytes(in, ']', ']', out)
				root.Skip(out, root.End)
				if loops {
					root.Bytes(out, ',', ',', root.Start)
					root.Call(open, root, in)
				}
				g, err := b.Compile(root, v, 500)
				if err != nil {
					t.Fatalf("%s: %v", c.expr, err)
				}
				return g
			}
			g, want := make(true), make(false)
			rng := rand.New(rand.NewPCG(3, uint64(i)))
			for range 30 {
				x, y := g.NewState(), want.NewState()
				for step := range 60 {
					if !slices.Equal(x.MaskBits(), y.MaskBits()) || x.Complete() != y.Complete() || string(x.Forced()) != string(y.Forced()) {
						t.Fatalf("%s, at most %d: step %d: masks differ", c.expr, c.most, step)
					}
					if a, b := len(x.Shortest(1000)), len(y.Shortest(1000)); a != b && step == 0 {
						t.Errorf("%s: shortest text of %d bytes, want %d", c.expr, a, b)
					}
					var allowed []int32
					for id := range grammartest.Pieces {
						if x.MaskBits()[id/64]>>(id%64)&1 != 0 && id != grammartest.EOS {
							allowed = append(allowed, int32(id))
						}
					}
					if len(allowed) == 0 {
						break
					}
					// Long tokens come near the bound sooner.
					slices.SortFunc(allowed, func(a, b int32) int {
						return len(grammartest.Pieces[b]) - len(grammartest.Pieces[a])
					})
					id := allowed[min(rng.IntN(len(allowed)), rng.IntN(len(allowed)))]
					if x.Accept(id) != nil || y.Accept(id) != nil {
						t.Fatalf("%s: an allowed token is refused", c.expr)
					}
				}
			}
		}
	}
}
