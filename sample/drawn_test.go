package sample

import (
	"maps"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// What is listed of the distribution that a token is drawn from is what the naive
// chain leaves, and changes nothing about what is drawn.
func TestDrawnAgainstNaive(t *testing.T) {
	names := slices.Sorted(maps.Keys(shapes))
	rapid.Check(t, func(t *rapid.T) {
		vocab := rapid.SampledFrom([]int{1, 2, 5, 40, 300, 1500}).Draw(t, "vocab")
		p := genParams(t, vocab)
		plain := mustSampler(t, p, vocab)
		p.LogProbs, p.Drawn = rapid.IntRange(1, vocab).Draw(t, "listed"), true
		s := mustSampler(t, p, vocab)
		shape := shapes[rapid.SampledFrom(names).Draw(t, "shape")]
		seed := rapid.Uint64().Draw(t, "logits")
		logits := make([]float32, vocab)
		n := &naive{p: p}
		for step := range 4 {
			shape(logits, func(i int) float64 { return uniform(seed, uint64(step*2*vocab+vocab+i)) })
			want, r := n.run(logits), s.Sample(logits)
			if q := plain.Sample(logits); q.Token != r.Token {
				t.Fatalf("%d is drawn, %d without a list", r.Token, q.Token)
			}
			if r.Token < 0 {
				continue
			}
			s.Accept(r.Token)
			plain.Accept(r.Token)
			n.hist = append(n.hist, r.Token)
			if n.margin > 1e-5 {
				checkDrawn(t, r, want, p.LogProbs)
			}
		}
	})
}

func mustSampler(t *rapid.T, p Params, vocab int) *Sampler {
	s, err := New(p, vocab)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// checkDrawn compares what is listed with probabilities by token.
func checkDrawn(t interface{ Fatalf(string, ...any) }, r Result, want map[int32]float64, listed int) {
	near := func(id int32, logProb float32) bool {
		return math.Abs(math.Exp(float64(logProb))-want[id]) <= 1e-5*math.Max(want[id], 1e-3)
	}
	if !near(r.Token, r.LogProb) {
		t.Fatalf("token %d has %v, want the logarithm of %v", r.Token, r.LogProb, want[r.Token])
	}
	possible := 0
	for _, x := range want {
		if x > 1e-300 {
			possible++
		}
	}
	if len(r.Top) > min(listed, len(want)) || len(r.Top) < min(listed, possible) {
		t.Fatalf("%d are listed, want %d of %d (%d)", len(r.Top), listed, possible, len(want))
	}
	for i, x := range r.Top {
		if !near(x.Token, x.LogProb) || i > 0 && x.LogProb > r.Top[i-1].LogProb {
			t.Fatalf("%d: token %d has %v after %v, want the logarithm of %v", i, x.Token, x.LogProb, r.Top[max(0, i-1)], want[x.Token])
		}
	}
}

// Tokens that are named are listed in the order of their names, with the numbers that
// they have among the most probable ones.
func TestNamedProbs(t *testing.T) {
	logits := []float32{1, float32(math.Inf(-1)), 3, 2, float32(math.NaN())}
	all := mustNew(t, Params{LogProbs: 5}, 5).Sample(logits)
	ids := []int32{3, 1, 0, 4, 3}
	p := Params{LogProbs: 1, ProbIDs: ids}
	s := mustNew(t, p, 5)
	r := s.Sample(logits)
	forced := s.ScoreForced(logits, r.Token, &p)
	if r.Token != 2 || r.LogProb != all.LogProb || len(r.Top) != len(ids) || forced.LogProb != r.LogProb || !slices.Equal(forced.Top, r.Top) {
		t.Fatalf("%+v, forced %+v, want %+v", r, forced, all)
	}
	for i, id := range ids {
		want := float32(math.Inf(-1))
		for _, x := range all.Top {
			if x.Token == id {
				want = x.LogProb
			}
		}
		if r.Top[i] != (TokenProb{id, want}) {
			t.Errorf("%d: %v, want %d with %v", i, r.Top[i], id, want)
		}
	}
	if got := s.ScoreForced(logits, 3, &Params{LogProbs: 2, Drawn: true}); got.Token != 3 || got.LogProb != 0 || !slices.Equal(got.Top, []TokenProb{{Token: 3}}) {
		t.Errorf("a forced token is certain: %+v", got)
	}
	for _, bad := range []Params{
		{ProbIDs: ids}, {Drawn: true}, {LogProbs: 1, ProbIDs: []int32{5}}, {LogProbs: 1, ProbIDs: []int32{-1}},
		{LogProbs: 1, ProbIDs: ids, Drawn: true}, {LogProbs: 1, Drawn: true, Trace: true}, {LogProbs: 1, ProbIDs: ids, Trace: true},
	} {
		if _, err := New(bad, 5); err == nil {
			t.Errorf("%+v is taken", bad)
		}
	}
}
