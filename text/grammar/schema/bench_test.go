package schema

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"ridge/internal/testdata"
	"ridge/text/grammar"
	"ridge/text/grammar/internal/grammartest"
)

// BenchmarkMaskTime measures single masks along random texts of all schemas of
// the suite with the vocabularies of real models, compiling included, and
// reports percentiles over all of them.
func BenchmarkMaskTime(b *testing.B) {
	for _, model := range []string{"smollm2", "qwen", "gemma3"} {
		b.Run(model, func(b *testing.B) { maskTime(b, grammartest.VocabularyOf(b, testdata.Model(b, model))) })
	}
}

func maskTime(b *testing.B, v *grammar.Vocabulary) {
	var times, compiling []time.Duration
	rng := rand.New(rand.NewPCG(1, 2))
	for b.Loop() {
		for _, c := range schemaCases {
			start := time.Now()
			g, err := Compile(v, []byte(c.schema), c.options)
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
					id := grammartest.Pick(mask, rng)
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
	b.ReportMetric(float64(v.Size()), "tokens")
	b.ReportMetric(at(times, 0.5), "p50-µs")
	b.ReportMetric(at(times, 0.99), "p99-µs")
	b.ReportMetric(at(times, 0.999), "p99.9-µs")
	b.ReportMetric(at(compiling, 0.5), "compile-p50-µs")
	b.ReportMetric(at(compiling, 0.99), "compile-p99-µs")
	b.ReportMetric(0, "ns/op")
}
