package engine

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"

	"ridge/sched"
)

// windowed are tiny models that have layers with windows of 16 tokens: some of
// them or all.
var windowed = []string{"gemma2", "gemma3", "mistral-swa", "phi3-swa"}

// expect asks, and compares the answer and how many tokens of the prompt were
// found in the prefix tree.
func expect(t *testing.T, when string, e *Engine, q Request, want *answer, cached int) {
	t.Helper()
	if got, info := ask(t, e, q); !same(&got[0], want) || info.Cached != cached {
		t.Errorf("%s: %d tokens cached, want %d, got %v, want %v", when, info.Cached, cached, got[0].tokens, want.tokens)
	}
}

// Prompts of many windows: the answers are those of a cache that keeps all, cold,
// with a prefix that is known, and after a restart from a session; and what a
// sequence holds is what its windows explain.
func TestWindows(t *testing.T) {
	for _, name := range windowed {
		t.Run(name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(5, 1))
			ref := openTiny(t, name, 64)
			vocab := ref.Config().Vocab
			most := min(ref.Context()-40, 200)
			q := Request{Tokens: randomTokens(r, most, vocab), MaxTokens: 20}
			want := alone(t, ref, q)

			cfg := sched.Config{Split: true, MaxTokens: 32, MaxSeqs: 8}
			e := start(t, openTiny(t, name, 40), Options{Sched: &cfg})
			expect(t, "cold", e, q, &want, 0)
			expect(t, "again", e, q, &want, most-1)
			all := append(slices.Clone(q.Tokens), want.tokens...)
			var file bytes.Buffer
			n, err := e.SaveSession(t.Context(), &file, Session{Tokens: all})
			if err != nil || n != len(all)-1 {
				t.Fatalf("saved %d of %d tokens: %v", n, len(all), err)
			}
			pool := e.pool
			if st := pool.Stats(); st.Cached >= pool.PagesFor(nil, len(all)) {
				t.Errorf("the prefix tree keeps %d pages, as many as a cache without windows", st.Cached)
			}
			next := Request{Tokens: append(all, 3, 1, 2), MaxTokens: 8}
			e = start(t, openTiny(t, name, 40), Options{Sched: &cfg})
			if _, err := e.LoadSession(t.Context(), &file, Session{}); err != nil {
				t.Fatal(err)
			}
			want = alone(t, ref, next)
			expect(t, "restarted", e, next, &want, n)
		})
	}
}

// A model with windows is served in a memory that would be too small for all
// that its sequences have computed.
func TestWindowsHoldNoMore(t *testing.T) {
	for _, name := range []string{"mistral-swa", "phi3-swa"} {
		r := rand.New(rand.NewPCG(6, 1))
		m := openTiny(t, name, 6)
		cfg := sched.Config{Split: true, MaxTokens: 16, MaxSeqs: 1}
		e := start(t, m, Options{Sched: &cfg, NoPrefixCache: true})
		length := min(m.Context()-20, 220)
		q := Request{Tokens: randomTokens(r, length, m.Config().Vocab), MaxTokens: 10}
		if all := e.pool.PagesFor(nil, length); all <= e.Pages() {
			t.Fatalf("%s: %d pages are enough for all %d tokens", name, e.Pages(), length)
		}
		want := alone(t, openTiny(t, name, 64), q)
		if got, _ := ask(t, e, q); !same(&got[0], &want) {
			t.Errorf("%s: got %v %v, want %v", name, got[0].tokens, got[0].last.Err, want.tokens)
		}
		if err := e.Check(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// Workloads that preempt each other, over the models with windows.
func TestWindowsOneAnswer(t *testing.T) {
	for _, name := range windowed {
		r := rand.New(rand.NewPCG(7, 3))
		ref := openTiny(t, name, 64)
		reqs := workload(r, 12, ref.Config().Vocab, 90, 20)
		want := replies(t, ref, reqs)
		for _, s := range settings(t, r) {
			if s.preempt || s.name == "ridge" || s.name == "budget 33" {
				s.preempt = false // there may be room for all: windows are small
				t.Run(name+" "+s.name, func(t *testing.T) {
					e := start(t, openTiny(t, name, s.pages), s.o)
					for range 2 {
						play(t, e, reqs, want, r, 0)
					}
				})
			}
		}
	}
}
