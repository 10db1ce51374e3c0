package ridge

import (
	"bufio"
	"context"
	"encoding/json"
	"os"
	"slices"
	"testing"

	"ridge/engine"
	"ridge/internal/testdata"
	"ridge/measure/eval"
	"ridge/text/tokenizer"
)

// peerGolden is what llama.cpp gave for the same files: testdata/peer.json, made
// by testdata/gen_peer.py.
type peerGolden struct {
	Source  string
	Prompts []struct{ ID int }
	Models  map[string]struct {
		Perplexity float64 // of the first windows of wikitext2_test.txt, as its tool prints it
		Windows    int
		// SelfAgreement is for how many prompts llama.cpp chose the same 16
		// tokens with and without its flash attention.
		SelfAgreement int `json:"self_agreement"`
		Greedy        []struct {
			PromptTokens int `json:"prompt_tokens"`
			Tokens       []int32
		}
	}
}

func readPeer(t *testing.T) *peerGolden {
	t.Helper()
	b, err := os.ReadFile("testdata/peer.json")
	if err != nil {
		t.Fatal(err)
	}
	var g peerGolden
	if err := json.Unmarshal(b, &g); err != nil {
		t.Fatal(err)
	}
	return &g
}

// specBench returns the first turn of each prompt, by id.
func specBench(t *testing.T) map[int]string {
	t.Helper()
	f, err := os.Open(testdata.File(t, "spec_bench.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	out := map[int]string{}
	s := bufio.NewScanner(f)
	s.Buffer(nil, 1<<20)
	for s.Scan() {
		var q struct {
			ID    int `json:"question_id"`
			Turns []string
		}
		if err := json.Unmarshal(s.Bytes(), &q); err != nil {
			t.Fatal(err)
		}
		out[q.ID] = q.Turns[0]
	}
	if err := s.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}

// How far greedy choices may be from llama.cpp's. Both engines quantize the
// activations to 8 bits, and a rounding that falls the other way changes what
// follows, so near ties are decided differently, as they are between
// llama.cpp's own settings: see SelfAgreement. What must not happen is a choice
// that the other engine finds clearly worse.
const (
	sameTokens = 16   // of each continuation are compared
	sameChoice = 0.93 // of the tokens, each after llama.cpp's own ones, are the same
	nearTie    = 0.7  // logits by which llama.cpp's choice may be below ours
)

// Greedy choices agree with llama.cpp's on the same file.
func TestGreedyAgainstPeer(t *testing.T) {
	g, prompts := readPeer(t), specBench(t)
	for name, want := range g.Models {
		t.Run(name, func(t *testing.T) {
			m, err := OpenFile(testdata.Model(t, name), Options{Context: 4096})
			if err != nil {
				t.Fatal(err)
			}
			defer m.Close()
			var c choices
			for i, p := range g.Prompts {
				ids := m.Tokenize(prompts[p.ID])
				if len(ids) != want.Greedy[i].PromptTokens {
					t.Fatalf("prompt %d: %d tokens, want %d", p.ID, len(ids), want.Greedy[i].PromptTokens)
				}
				c.compare(t, m, ids, want.Greedy[i].Tokens)
			}
			t.Logf("%d of %d tokens the same, %d of %d continuations; the largest gap is %.2f logits", c.same, c.tokens, c.whole, len(g.Prompts), c.gap)
			if float64(c.same) < sameChoice*float64(c.tokens) {
				t.Errorf("only %d of %d tokens are the same", c.same, c.tokens)
			}
			if c.whole < min(want.SelfAgreement, len(g.Prompts)*9/10)-1 {
				t.Errorf("only %d continuations are the same; llama.cpp agrees with itself in %d", c.whole, want.SelfAgreement)
			}
			if c.gap > nearTie {
				t.Errorf("a token that llama.cpp chose is %.2f logits below ours", c.gap)
			}
		})
	}
}

// choices counts where both engines choose the same token.
type choices struct {
	tokens, same, whole int
	gap                 float32
}

// compare computes the prompt and llama.cpp's tokens after it, and looks what
// ridge would have chosen before each of these.
func (c *choices) compare(t *testing.T, m *Model, prompt, want []int32) {
	t.Helper()
	want = want[:min(len(want), sameTokens)]
	gaps := make([]float32, len(want))
	s, err := m.Engine().Submit(t.Context(), engine.Request{Tokens: slices.Concat(prompt, want), MaxTokens: -1, ScoreFrom: len(prompt), PromptLogits: func(at int, logits []float32) {
		i := at - len(prompt)
		gaps[i] = slices.Max(logits) - logits[want[i]]
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if ev, ok := s.Next(t.Context()); !ok || ev.Err != nil {
		t.Fatal(ev.Err)
	}
	same := 0
	for _, gap := range gaps {
		if gap == 0 {
			same++
		}
		c.gap = max(c.gap, gap)
	}
	c.tokens, c.same = c.tokens+len(want), c.same+same
	if same == len(want) {
		c.whole++
	}
}

// perplexityTolerance is how far the perplexity may be from llama.cpp's.
const perplexityTolerance = 0.01

func TestPerplexityAgainstPeer(t *testing.T) {
	if testing.Short() {
		t.Skip("minutes long")
	}
	text, err := os.ReadFile(testdata.File(t, "wikitext2_test.txt"))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range readPeer(t).Models {
		t.Run(name, func(t *testing.T) {
			m, err := OpenFile(testdata.Model(t, name), Options{Context: 512})
			if err != nil {
				t.Fatal(err)
			}
			defer m.Close()
			w := eval.Windows{BOS: -1}
			if m.Tokenizer().AddsBOS() {
				w.BOS = m.Tokenizer().BOS()
			}
			ids := m.Tokenizer().Encode(nil, string(text), tokenizer.EncodeOptions{AddSpecial: true})[:512*want.Windows]
			got, err := eval.Predict(context.Background(), m.Engine(), ids, w)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("perplexity %.4f, llama.cpp %.4f", got.Perplexity, want.Perplexity)
			if d := got.Perplexity/want.Perplexity - 1; d < -perplexityTolerance || d > perplexityTolerance {
				t.Errorf("perplexity %.4f is %.2f%% from %.4f", got.Perplexity, 100*d, want.Perplexity)
			}
		})
	}
}
