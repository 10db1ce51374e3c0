package engine

import (
	"math/rand/v2"
	"testing"
	"time"

	"ridge/spec"
	"ridge/spec/skip"
)

// One answer, when the model guesses itself on keys and values of the sequence, with layers
// left out or with none: these are what they were afterwards, whoever shares pages, is
// preempted, or has left a window. With none left out, nearly all guesses are right.
func TestOneAnswerWithSkippedLayers(t *testing.T) {
	for i, name := range []string{"llama", "gemma3", "deepseek3", "phi3-longrope-long"} {
		r := rand.New(rand.NewPCG(uint64(i), 23))
		ref := openTiny(t, name, 64)
		reqs := workload(r, 16>>min(i, 1), ref.Config().Vocab, 70, 30)
		want := replies(t, ref, reqs)
		for k, s := range settings(t, r) {
			if (k+i)%3 != 0 || i > 0 && (k+i)%6 != 0 {
				continue
			}
			t.Run(name+" "+s.name, func(t *testing.T) {
				m := openTiny(t, name, s.pages)
				parts := make([]uint8, len(m.Net().Layers))
				if k%2 > 0 {
					parts, _ = skip.Exit(m, 1)
				}
				d, err := skip.New(m, parts)
				if err != nil {
					t.Fatal(err)
				}
				s.o.Draft = &spec.Drafting{New: func(int) spec.Drafter { return spec.NewNGram(0) }, Slow: d.Drafter, Most: 1 + r.IntN(6), Always: k%4 < 3}
				e := start(t, m, s.o)
				reqs := s.share(reqs)
				play(t, e, reqs, want, r, time.Millisecond/4)
				play(t, e, reqs, want, r, 0)
				var st Stats
				until(t, "the end", func() bool { st = e.Stats(); return st.Requests == 0 })
				t.Logf("%d of %d guesses were right", st.Right, st.Guessed)
			})
		}
	}
}

// A model that guesses itself, with nothing left out, is right, and a step gives as many
// tokens as it may.
func TestSkippingNothingIsRight(t *testing.T) {
	ref := openTiny(t, "llama", 64)
	q := long(60)
	q.N = 1
	want := []reply{{choices: []answer{alone(t, ref, q)}}}
	m := openTiny(t, "llama", 64)
	d, err := skip.New(m, make([]uint8, len(m.Net().Layers)))
	if err != nil {
		t.Fatal(err)
	}
	e := start(t, m, Options{Draft: &spec.Drafting{New: func(int) spec.Drafter { return spec.NewNGram(0) }, Slow: d.Drafter, Most: 4, Always: true}, NoPrefixCache: true})
	play(t, e, []Request{q}, want, rand.New(rand.NewPCG(1, 1)), 0)
	if st := settled(t, e, 60); st.Steps > 14 || st.Right < 46 {
		t.Errorf("%d steps, %d of %d guesses right", st.Steps, st.Right, st.Guessed)
	}
}
