package grammar

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"ridge/internal/testdata"
)

// BenchmarkString finds the mask inside a JSON string from nothing: the largest
// walk there is, done once for a vocabulary.
func BenchmarkString(b *testing.B) {
	v := realVocabulary(b, "gpt-2")
	g, err := JSON(v, false, Options{})
	if err != nil {
		b.Fatal(err)
	}
	s := g.NewState()
	if err := s.AcceptBytes([]byte(`"a`)); err != nil {
		b.Fatal(err)
	}
	q := s.at.items[0].q
	for b.Loop() {
		g.m.begin()
		g.m.findLocal(q)
	}
	b.ReportMetric(float64(len(v.nodes)), "nodes")
}

// BenchmarkMask applies the remembered masks along a text.
func BenchmarkMask(b *testing.B) {
	v := realVocabulary(b, "gpt-2")
	g, err := sources["person"](v)
	if err != nil {
		b.Fatal(err)
	}
	states := textStates(b, g)
	logits := make([]float32, v.n)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		states[i%len(states)].Mask(logits)
	}
}

func textStates(t testing.TB, g *Grammar) []*State {
	rng := rand.New(rand.NewPCG(1, 2))
	var states []*State
	s := g.NewState()
	for range 40 {
		states = append(states, s.Clone())
		id := pick(s.MaskBits(), rng)
		if g.m.v.IsEnd(id) {
			break
		}
		if err := s.Accept(id); err != nil {
			t.Fatal(err)
		}
	}
	return states
}

func BenchmarkAccept(b *testing.B) {
	v := realVocabulary(b, "gpt-2")
	g, err := JSON(v, false, Options{})
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
	v := realVocabulary(b, "gpt-2")
	b.ReportAllocs()
	for b.Loop() {
		if _, err := sources["person"](v); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkMaskTime measures single masks along random texts of all schemas of
// the suite with the vocabularies of real models, compiling included, and
// reports percentiles over all of them.
func BenchmarkMaskTime(b *testing.B) {
	for _, model := range []string{"smollm2", "qwen", "gemma3"} {
		b.Run(model, func(b *testing.B) { maskTime(b, vocabularyOf(b, testdata.Model(b, model))) })
	}
}

func maskTime(b *testing.B, v *Vocabulary) {
	var times, compiling []time.Duration
	rng := rand.New(rand.NewPCG(1, 2))
	for b.Loop() {
		for _, c := range schemaCases {
			start := time.Now()
			g, err := JSONSchema(v, []byte(c.schema), c.options)
			if err != nil {
				b.Fatal(err)
			}
			compiling = append(compiling, time.Since(start))
			for range 3 {
				s := g.NewState()
				for range 40 {
					start := time.Now()
					mask := s.MaskBits()
					times = append(times, time.Since(start))
					id := pick(mask, rng)
					if s.Accept(id) != nil || v.IsEnd(id) {
						break
					}
				}
			}
		}
	}
	at := func(list []time.Duration, p float64) float64 {
		slices.Sort(list)
		return float64(list[int(p*float64(len(list)-1))].Nanoseconds()) / 1000
	}
	b.ReportMetric(float64(v.n), "tokens")
	b.ReportMetric(at(times, 0.5), "p50-µs")
	b.ReportMetric(at(times, 0.99), "p99-µs")
	b.ReportMetric(at(times, 0.999), "p99.9-µs")
	b.ReportMetric(at(compiling, 0.5), "compile-p50-µs")
	b.ReportMetric(at(compiling, 0.99), "compile-p99-µs")
	b.ReportMetric(0, "ns/op")
}

// Masks that are remembered cost no memory, however they are asked for.
func TestNoAllocations(t *testing.T) {
	v := smallVocabulary()
	for name, compile := range sources {
		g, err := compile(v)
		if err != nil {
			t.Fatal(err)
		}
		states := textStates(t, g)
		logits := make([]float32, v.n)
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
