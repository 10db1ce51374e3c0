package grammar_test

import (
	"math/rand/v2"
	"testing"

	"ridge/text/grammar"
	"ridge/text/grammar/internal/grammartest"
	"ridge/text/grammar/schema"
)

// BenchmarkString finds the mask inside a JSON string from nothing: the largest
// walk there is, done once for a vocabulary.
func BenchmarkString(b *testing.B) {
	v := grammartest.Real(b, "gpt-2")
	g, err := schema.JSON(v, false, schema.Options{})
	if err != nil {
		b.Fatal(err)
	}
	s := g.NewState()
	if err := s.AcceptBytes([]byte(`"a`)); err != nil {
		b.Fatal(err)
	}
	find := s.FindLocal()
	for b.Loop() {
		find()
	}
	b.ReportMetric(float64(v.Nodes()), "nodes")
}

// BenchmarkMask applies the remembered masks along a text.
func BenchmarkMask(b *testing.B) {
	v := grammartest.Real(b, "gpt-2")
	g, err := sources["person"](v)
	if err != nil {
		b.Fatal(err)
	}
	states := textStates(b, g)
	logits := make([]float32, v.Size())
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		states[i%len(states)].Mask(logits)
	}
}

func textStates(t testing.TB, g *grammar.Grammar) []*grammar.State {
	rng := rand.New(rand.NewPCG(1, 2))
	var states []*grammar.State
	s := g.NewState()
	for range 40 {
		states = append(states, s.Clone())
		id := grammartest.Pick(s.MaskBits(), rng)
		if g.Vocabulary().IsEnd(id) {
			break
		}
		if err := s.Accept(id); err != nil {
			t.Fatal(err)
		}
	}
	return states
}

func BenchmarkAccept(b *testing.B) {
	v := grammartest.Real(b, "gpt-2")
	g, err := schema.JSON(v, false, schema.Options{})
	if err != nil {
		b.Fatal(err)
	}
	s := g.NewState()
	text := []byte(`{"name": "a text of some length", "list": [1, 2.5, true, null, {"x": []}]}`)
	start := s.Snapshot()
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		s.Restore(start)
		if err := s.AcceptBytes(text); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCompile(b *testing.B) {
	v := grammartest.Real(b, "gpt-2")
	b.ReportAllocs()
	for b.Loop() {
		if _, err := sources["person"](v); err != nil {
			b.Fatal(err)
		}
	}
}

// Masks that are remembered cost no memory, however they are asked for.
func TestNoAllocations(t *testing.T) {
	v := grammartest.Small()
	for name, compile := range sources {
		g, err := compile(v)
		if err != nil {
			t.Fatal(err)
		}
		states := textStates(t, g)
		logits := make([]float32, v.Size())
		text := []byte(nil)
		run := func() {
			for _, s := range states {
				s.MaskBits()
				s.Mask(logits)
				p := s.Snapshot()
				s.Restore(p)
				_ = s.AcceptBytes(text)
			}
		}
		run()
		if n := testing.AllocsPerRun(5, run); n > 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}
