package engine

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"

	"ridge/sched"
	"ridge/spec"
)

// stateful are tiny models with layers that keep a state: beside attention, and
// beside experts.
var stateful = []string{"lfm2", "lfm2moe", "mamba", "jamba", "mamba2", "granitehybrid", "falcon-h1", "nemotron-h", "qwen3next", "qwen35moe", "rwkv4", "rwkv5", "rwkv6", "rwkv7"}

// largeStates are those of them whose states take more memory than some tokens do:
// their pools have room for the states of four sequences besides.
var largeStates = map[string]bool{"mamba": true, "jamba": true, "mamba2": true, "granitehybrid": true, "falcon-h1": true, "nemotron-h": true, "qwen3next": true, "qwen35moe": true, "rwkv4": true, "rwkv5": true, "rwkv6": true, "rwkv7": true}

// The answers of models with states, and of one that keeps latents, are those of a lone sequence: cold, with a
// prefix that is known, and after a restart from a session.
func TestStates(t *testing.T) {
	for _, name := range append([]string{"deepseek2"}, stateful...) {
		t.Run(name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(5, 2))
			ref := openTiny(t, name, 64)
			vocab := ref.Config().Vocab
			q := Request{Tokens: randomTokens(r, 80, vocab), MaxTokens: 20}
			want := alone(t, ref, q)

			cfg := sched.Config{Split: true, MaxTokens: 32, MaxSeqs: 8}
			e := start(t, openTiny(t, name, 60), Options{Sched: &cfg})
			expect(t, "cold", e, q, &want, 0)
			expect(t, "again", e, q, &want, len(q.Tokens)-1)
			all := append(slices.Clone(q.Tokens), want.tokens...)
			var file bytes.Buffer
			n, err := e.SaveSession(t.Context(), &file, Session{Tokens: all})
			if err != nil || n == 0 {
				t.Fatalf("saved %d of %d tokens: %v", n, len(all), err)
			}
			if err := e.Check(t.Context()); err != nil {
				t.Error(err)
			}
			next := Request{Tokens: append(all, 3, 1, 2), MaxTokens: 8}
			e = start(t, openTiny(t, name, 60), Options{Sched: &cfg})
			if _, err := e.LoadSession(t.Context(), &file, Session{}); err != nil {
				t.Fatal(err)
			}
			want = alone(t, ref, next)
			expect(t, "restarted", e, next, &want, n)
		})
	}
}

// Guesses change nothing either: what was computed behind wrong ones is undone, from
// the state before them, also where there is next to no memory to keep that.
func TestStatesWithDrafts(t *testing.T) {
	for i, name := range stateful {
		r := rand.New(rand.NewPCG(9, 4))
		ref := openTiny(t, name, 64)
		reqs := workload(r, 12, ref.Config().Vocab, 50, 24)
		want := replies(t, ref, reqs)
		for k, s := range settings(t, r) {
			if (k+i)%4 != 0 {
				continue
			}
			t.Run(name+" "+s.name, func(t *testing.T) {
				d := &spec.Drafting{New: prophets(reqs, want, 4), Most: 1 + r.IntN(8), Always: k%3 > 0}
				if k%2 == 0 {
					d.Slow = costly(reqs, want, 3)
				}
				right := guessing(t, name, s, d, s.share(reqs), want, r)
				if d.Always && !s.preempt && s.o.Sched.MaxTokens > 40 && right == 0 {
					t.Error("no guess was right")
				}
			})
		}
	}
}

// Workloads that share prefixes and preempt each other, over the models with
// states.
func TestStatesOneAnswer(t *testing.T) {
	for _, name := range stateful {
		r := rand.New(rand.NewPCG(7, 4))
		ref := openTiny(t, name, 64)
		reqs := workload(r, 16, ref.Config().Vocab, 70, 20)
		want := replies(t, ref, reqs)
		for _, s := range settings(t, r) {
			t.Run(name+" "+s.name, func(t *testing.T) {
				e := start(t, openTiny(t, name, s.pages), s.o)
				for range 2 {
					play(t, e, s.share(reqs), want, r, 0)
				}
				if sc := e.Stats().Sched; s.preempt && e.pool.TokenBytes() > 0 && sc.Recomputes == 0 && sc.SwapIns == 0 {
					t.Errorf("nobody was preempted: %+v", sc)
				}
			})
		}
	}
}
