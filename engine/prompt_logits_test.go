package engine

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"ridge/model"
	"ridge/sched"
)

// rowsOf returns the logits that predict tokens 1, 2, … of a prompt, computed
// with nothing but the model.
func rowsOf(t testing.TB, m *model.Model, tokens []int32) [][]float32 {
	t.Helper()
	seq := m.Pool().NewSeq()
	defer m.Pool().Free(seq)
	if err := m.Forward(&model.Step{Runs: []model.Run{{Seq: seq, Tokens: tokens, Outputs: len(tokens)}}}); err != nil {
		t.Fatal(err)
	}
	rows := make([][]float32, len(tokens))
	for at := 1; at < len(tokens); at++ {
		rows[at] = slices.Clone(m.Logits(at - 1))
	}
	return rows
}

// scored is a prompt whose logits are wanted, and what came of it.
type scored struct {
	req  Request
	want [][]float32
	mu   sync.Mutex
	got  [][]float32
	bad  string
}

func (s *scored) take(at int, logits []float32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.got[at] != nil {
		s.bad = "a token came twice"
	}
	s.got[at] = slices.Clone(logits)
}

// Logits of prompts are the same bits however the prompts are cut, beside what,
// under preemption, and with a part of them in the prefix tree.
func TestPromptLogits(t *testing.T) {
	m := openTiny(t, "llama", 41)
	r := rand.New(rand.NewPCG(5, 5))
	prefix := randomTokens(r, 60, 128)
	var all []*scored
	for i := range 24 {
		s := &scored{req: Request{Tokens: append(slices.Clone(prefix[:r.IntN(60)]), randomTokens(r, 1+r.IntN(30), 128)...), MaxTokens: -1}}
		if i%4 == 3 {
			s.req.MaxTokens, s.req.PromptLogProbs = 6, 2
		}
		s.req.ScoreFrom = r.IntN(len(s.req.Tokens) + 1)
		s.req.PromptLogits, s.want = s.take, rowsOf(t, m, s.req.Tokens)
		all = append(all, s)
	}
	for _, cfg := range []sched.Config{
		{Split: true, MaxTokens: 512},
		{Split: true, MaxTokens: 13, MaxSeqs: 13},
		{Order: sched.ByRank, Split: true, MaxTokens: 64, Policy: sched.MLFQ(1, 0, nil, 64), Preemptive: true},
	} {
		e := start(t, m, Options{Sched: &cfg})
		for range 2 {
			var streams []*Stream
			for _, s := range all {
				s.got = make([][]float32, len(s.want))
				streams = append(streams, submit(t, e, s.req))
			}
			for i, s := range all {
				_, info := read(t, streams[i], 1)
				first := max(s.req.ScoreFrom, 1)
				for at := range s.want {
					if want := s.want[at]; at >= first && !slices.Equal(s.got[at], want) || at < first && s.got[at] != nil {
						t.Fatalf("prompt %d of %d tokens from %d: token %d differs", i, len(s.want), first, at)
					}
				}
				if s.bad != "" || info.Cached > first-1 {
					t.Errorf("prompt %d: %s; %d tokens were not computed, want at most %d", i, s.bad, info.Cached, first-1)
				}
			}
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}
}

// What is before the scored tokens comes from the prefix tree, to the token.
func TestScoreFromUsesPrefix(t *testing.T) {
	m := openTiny(t, "llama", 40)
	e := start(t, m, Options{})
	tokens := randomTokens(rand.New(rand.NewPCG(6, 6)), 50, 128)
	ask(t, e, Request{Tokens: tokens[:37], MaxTokens: -1})
	_, info := ask(t, e, Request{Tokens: tokens, MaxTokens: -1, ScoreFrom: 37, PromptLogits: func(int, []float32) {}})
	if info.Cached != 36 {
		t.Errorf("%d tokens came from the tree, want 36", info.Cached)
	}
}

func TestPromptLogitsFail(t *testing.T) {
	m := openTiny(t, "llama", 40)
	e := start(t, m, Options{})
	tokens := randomTokens(rand.New(rand.NewPCG(7, 7)), 20, 128)
	for _, n := range []int{1, 3} {
		r := Request{Tokens: tokens, MaxTokens: 5, N: n, PromptLogits: func(at int, _ []float32) {
			if at == 7 {
				panic("no more")
			}
		}}
		got, _ := ask(t, e, r)
		for i := range got {
			if got[i].last.Finish != FinishError || got[i].last.Err == nil || !strings.Contains(got[i].last.Err.Error(), "no more") {
				t.Errorf("choice %d of %d: %+v", i, n, got[i].last)
			}
		}
	}
	for _, r := range []Request{
		{Tokens: tokens, ScoreFrom: -1},
		{Tokens: tokens, ScoreFrom: 21},
		{Tokens: tokens, Embed: PoolingMean, PromptLogits: func(int, []float32) {}},
	} {
		if _, err := e.Submit(t.Context(), r); !errors.As(err, new(*RequestError)) {
			t.Errorf("%+v: %v", r, err)
		}
	}
}
