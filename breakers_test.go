package ridge

import (
	"context"
	"encoding/json"
	"os"
	"slices"
	"testing"

	"ridge/hub"
	"ridge/sample"
)

// What DRY takes from the scores of tokens after a text, with breakers that are
// texts, is what llama.cpp takes (testdata/llama_cpp_dry.py).
func TestBreakersAgainstLlamaCpp(t *testing.T) {
	b, err := os.ReadFile("testdata/llama_cpp_dry.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Breakers      []string
		Allowed, Last int
		Tokens        []int32
		Held          [][2]float64
	}
	if err := json.Unmarshal(b, &cases); err != nil || len(cases) < 40 {
		t.Fatalf("%d cases: %v", len(cases), err)
	}
	m, err := Open(context.Background(), "tiny", Options{Hub: hub.Options{Dir: t.TempDir(), Offline: true}})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	vocab := m.Config().Vocab
	for _, c := range cases {
		p := sample.Params{DRY: sample.DRY{Multiplier: 0.5, Base: 1.5, AllowedLength: c.Allowed, LastN: c.Last}}
		if c.Allowed == 0 {
			p.DRY.AllowedLength = -1
		}
		if p.DRY.Breakers, err = m.Breakers(c.Breakers...); err != nil {
			t.Fatal(err)
		}
		s, err := sample.New(p, vocab)
		if err != nil {
			t.Fatal(err)
		}
		for _, id := range c.Tokens {
			s.Accept(id)
		}
		held := map[int32]float32{}
		for _, h := range c.Held {
			held[int32(h[0])] = float32(h[1])
		}
		// A token is picked before one with a logit of 0 if its own is more than what is
		// taken from it.
		logits := make([]float32, vocab)
		for _, id := range c.Tokens {
			other := (id + 1) % int32(vocab)
			for i := range logits {
				logits[i] = -1000
			}
			for _, d := range []float32{-0.01, 0.01} {
				logits[id], logits[other] = held[id]+d, held[other]
				if got := s.Sample(logits).Token == id; got != (d > 0) {
					t.Errorf("breakers %q, %d, %v: token %d is not held off by %v", c.Breakers, c.Allowed, c.Tokens, id, held[id])
				}
			}
		}
	}
}

// What is said exactly does not become what the files recommend.
func TestExactSampling(t *testing.T) {
	m := checkpoint(t, `{"do_sample": true, "temperature": 2.5, "repetition_penalty": 1.25}`)
	greedy, _ := ids(t, checkpoint(t, `{}`), Generation{})
	got, _ := ids(t, m, Generation{Exact: true})
	if !slices.Equal(got, greedy) {
		t.Errorf("got %v, want %v", got, greedy)
	}
}
