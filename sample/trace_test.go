package sample

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// A trace says of each token which step took it out: the first with which the plain
// chain, cut off behind it, does not have the token any more. It changes nothing about
// what is drawn.
func TestTraceAgainstNaive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		vocab := rapid.IntRange(1, 700).Draw(t, "vocab")
		p := genParams(t, vocab)
		p.LogProbs, p.Trace = min(10, vocab), true
		logits := make([]float32, vocab)
		seed := rapid.Uint64().Draw(t, "logits")
		normal(logits, func(i int) float64 { return uniform(seed, uint64(i)) }, 3)
		s, err := New(p, vocab)
		if err != nil {
			t.Fatal(err)
		}
		got := s.Sample(logits)
		q := p
		q.Trace = false
		plain, err := New(q, vocab)
		if err != nil {
			t.Fatal(err)
		}
		if want := plain.Sample(logits); want.Token != got.Token || !slices.Equal(want.Top, got.Top) {
			t.Fatalf("with a trace %+v, without %+v", got, want)
		}
		if got.Token < 0 {
			return
		}
		tr, entropy := got.Trace, 0.0
		n := naive{p: p}
		for i := range logits {
			if lp := n.logProb(logits, int32(i)); !math.IsInf(lp, 0) {
				entropy -= lp * math.Exp(lp)
			}
		}
		if math.Abs(tr.Entropy-entropy) > 1e-4*(1+entropy) || tr.Forced || len(tr.Cuts) != len(got.Top) {
			t.Fatalf("%+v, want an entropy of %g", tr, entropy)
		}
		// The chain, cut off behind each of its steps.
		only := Params{LogitBias: p.LogitBias, RepetitionPenalty: p.RepetitionPenalty, PresencePenalty: p.PresencePenalty, FrequencyPenalty: p.FrequencyPenalty, Temperature: 1}
		steps := []string{""}
		sets := []map[int32]float64{nil}
		add := func(name string, on bool) {
			if on {
				m := naive{p: only}
				steps, sets = append(steps, name), append(sets, m.run(logits))
				n.margin = min(n.margin, m.margin)
			}
		}
		n.margin = math.Inf(1)
		only.TopK = p.TopK
		add("top_k", p.TopK > 0)
		only.TypicalP = p.TypicalP
		add("typ_p", p.TypicalP > 0)
		only.TopP = p.TopP
		add("top_p", p.TopP > 0)
		only.MinP = p.MinP
		add("min_p", p.MinP > 0)
		only.Temperature = p.Temperature
		add("temperature", p.Temperature == 0)
		if n.margin < 1e-3 {
			return // rounding decides
		}
		// At temperature 0 the most probable token is taken whatever the steps would
		// leave: typical sampling may take it out.
		m := naive{p: only}
		kept := m.run(logits)
		if tr.Kept != len(kept) {
			t.Fatalf("%+v: %d are kept, want %d", p, tr.Kept, len(kept))
		}
		for i, x := range got.Top {
			want := ""
			for k := 1; k < len(steps) && want == ""; k++ {
				if _, in := sets[k][x.Token]; !in {
					want = steps[k]
				}
			}
			if p.LogitBias[x.Token] < -math.MaxFloat32 {
				want = "logit_bias"
			}
			if _, in := kept[x.Token]; in {
				want = ""
			}
			if tr.Cuts[i] != want {
				t.Fatalf("%+v: token %d is cut by %q, want %q", p, x.Token, tr.Cuts[i], want)
			}
		}
	})
}

// onlyTokens is a mask that leaves some tokens.
type onlyTokens []int32

func (o onlyTokens) Mask(logits []float32) {
	for i := range logits {
		if !slices.Contains(o, int32(i)) {
			logits[i] = float32(math.Inf(-1))
		}
	}
}

// Masks, steps that are no filters of the default chain, and forced tokens.
func TestTraceKinds(t *testing.T) {
	logits := []float32{5, 4, 3, 2, 1}
	for _, c := range []struct {
		name string
		p    Params
		mask Masker
		kept int
		cuts []string
	}{
		{"all", Params{Temperature: 1}, nil, 5, []string{"", "", "", "", ""}},
		{"greedy", Params{}, nil, 1, []string{"", "temperature", "temperature", "temperature", "temperature"}},
		{"one", Params{Temperature: 1, TopK: 1}, nil, 1, []string{"", "top_k", "top_k", "top_k", "top_k"}},
		{"mask", Params{Temperature: 1, TopK: 2}, onlyTokens{1, 2, 4}, 2, []string{"grammar", "", "", "grammar", "top_k"}},
		{"bias", Params{Temperature: 1, LogitBias: map[int32]float32{1: float32(math.Inf(-1))}}, onlyTokens{0, 3}, 2, []string{"", "logit_bias", "grammar", "", "grammar"}},
		{"xtc", Params{Temperature: 1, XTCProbability: 1, XTCThreshold: 0.05, TopK: 4}, nil, 2, []string{"xtc", "xtc", "", "", "top_k"}},
		{"order", Params{Temperature: 1, MinP: 0.3, TopK: 1, Order: []Step{StepMinP, StepTopK}}, nil, 1, []string{"", "top_k", "min_p", "min_p", "min_p"}},
		{"sigma", Params{Temperature: 1, TopNSigma: 1}, nil, 2, []string{"", "", "top_n_sigma", "top_n_sigma", "top_n_sigma"}},
		{"greedy chain", Params{TopNSigma: 1}, nil, 1, []string{"", "temperature", "top_n_sigma", "top_n_sigma", "top_n_sigma"}},
		{"mirostat", Params{Temperature: 1, Mirostat: 2, MirostatTau: 0.4}, nil, 1, []string{"", "mirostat", "mirostat", "mirostat", "mirostat"}},
	} {
		c.p.LogProbs, c.p.Trace = 5, true
		s, err := New(c.p, 5)
		if err != nil {
			t.Fatal(err)
		}
		s.SetMasker(c.mask)
		for seed := range 4 {
			s.p.Seed = uint64(seed)
			r := s.Sample(logits)
			if tr := r.Trace; tr.Kept != c.kept || !slices.Equal(tr.Cuts, c.cuts) || tr.Forced {
				t.Errorf("%s: %+v, want %d %q", c.name, tr, c.kept, c.cuts)
			}
			if c.cuts[r.Token] != "" {
				t.Errorf("%s: token %d was drawn", c.name, r.Token)
			}
		}
	}
	s, err := New(Params{Temperature: 1, LogProbs: 5, Trace: true}, 5)
	if err != nil {
		t.Fatal(err)
	}
	s.SetMasker(onlyTokens{3})
	want := []string{"grammar", "grammar", "grammar", "", "grammar"}
	if r := s.Sample(logits); r.Token != 3 || !r.Trace.Forced || r.Trace.Kept != 1 || !slices.Equal(r.Trace.Cuts, want) {
		t.Errorf("%+v", r)
	}
	r := s.Score(logits, 3, 5)
	if tr := s.TraceForced(logits, &r); !tr.Forced || tr.Kept != 1 || !slices.Equal(tr.Cuts, want) || math.Abs(tr.Entropy-0.99997) > 1e-4 {
		t.Errorf("%+v", tr)
	}
	if _, err := New(Params{Trace: true}, 5); err == nil {
		t.Error("a trace without log-probabilities")
	}
}
