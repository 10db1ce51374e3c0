package sched

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// truth is a machine that the cost model learns.
func truth(s Shape, scale float64) time.Duration {
	ms := 8 + 0.6*float64(s.Rows) + 0.3*float64(s.Outputs) + 20e-6*float64(s.Context)
	return time.Duration(scale * ms * float64(time.Millisecond))
}

// serving returns shapes as they occur: answers, and often a piece of a prompt.
func serving(rng *rand.Rand) Shape {
	s := Shape{}
	for range 1 + rng.IntN(32) {
		s = s.With(rng.IntN(2000), 1, 1)
	}
	if rng.IntN(3) == 0 {
		s = s.With(rng.IntN(4000), 1+rng.IntN(500), rng.IntN(2))
	}
	return s
}

func TestCostModelLearns(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	m := NewCostModel()
	if m.Ready() || m.Predict(Shape{Rows: 1}) != 0 || m.Prompt(100, 0, 10) != 0 {
		t.Error("a model that knows nothing predicts")
	}
	noise := func() float64 { return math.Exp(0.05 * rng.NormFloat64()) }
	for range 400 {
		s := serving(rng)
		d := time.Duration(float64(truth(s, 1)) * noise())
		if rng.IntN(50) == 0 {
			d *= 10 // somebody else had the machine
		}
		m.Observe(s, d)
	}
	worst := 0.0
	for range 200 {
		s := serving(rng)
		worst = max(worst, math.Abs(float64(m.Predict(s))/float64(truth(s, 1))-1))
	}
	step, row, output, keys := m.Terms()
	a := m.Accuracy()
	t.Logf("%v a step, %v a row, %v an output, %v a thousand keys; worst %.1f%% off, mean %.1f%%, bias %.1f%%", step, row, output, keys, 100*worst, 100*a.Mean, 100*a.Bias)
	if worst > 0.25 {
		t.Errorf("predictions are off by up to %.0f%%", 100*worst)
	}
	// A prompt in pieces is the sum of its steps.
	sum := time.Duration(0)
	for at := 0; at < 1000; at += 128 {
		sum += truth(Shape{}.With(at, min(128, 1000-at), 0), 1)
	}
	if d := float64(m.Prompt(1000, 0, 128)) / float64(sum); d < 0.85 || d > 1.15 {
		t.Errorf("a prompt of 1000 takes %v, predicted %v", sum, m.Prompt(1000, 0, 128))
	}
	// The machine becomes half as fast.
	for range 1500 {
		s := serving(rng)
		m.Observe(s, time.Duration(float64(truth(s, 2))*noise()))
	}
	if a := m.Accuracy(); a.Mean > 0.1 {
		t.Errorf("after a change of speed predictions are off by %.0f%%", 100*a.Mean)
	}
}

// Steps that are all alike teach nothing about others and must not make the
// model forget them.
func TestCostModelKeepsWhatItKnows(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 2))
	m := NewCostModel()
	for range 200 {
		s := serving(rng)
		m.Observe(s, truth(s, 1))
	}
	same := Shape{}.With(500, 1, 1)
	for range 20_000 {
		m.Observe(same, time.Duration(float64(truth(same, 1))*math.Exp(0.1*rng.NormFloat64())))
	}
	s := Shape{}.With(1000, 256, 1)
	if d := float64(m.Predict(s)) / float64(truth(s, 1)); d < 0.9 || d > 1.1 {
		t.Errorf("a chunk takes %v, predicted %v", truth(s, 1), m.Predict(s))
	}
}

// A clock that goes wrong once does little harm.
func TestCostModelBoundsOddSteps(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 9))
	m := NewCostModel()
	for range 200 {
		s := serving(rng)
		m.Observe(s, truth(s, 1))
	}
	s := Shape{}.With(1000, 1, 1)
	for _, odd := range []time.Duration{time.Microsecond, time.Minute} {
		m.Observe(s, odd)
		if d := float64(m.Predict(s)) / float64(truth(s, 1)); d < 0.3 || d > 1.7 {
			t.Errorf("after a step of %v a step is predicted to take %.2f times what it does", odd, d)
		}
	}
}

func TestShapeAddsUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		start, n := rapid.IntRange(0, 100).Draw(t, "start"), rapid.IntRange(1, 50).Draw(t, "n")
		cut := rapid.IntRange(0, n).Draw(t, "cut")
		s := Shape{Rows: 3, Outputs: 1, Context: 10}
		whole, parts := s.With(start, n, 1), s.With(start, cut, 0).With(start+cut, n-cut, 1)
		keys := int64(10)
		for i := range n {
			keys += int64(start + i + 1)
		}
		if whole != parts || whole.Context != keys || whole.add(start, n, 1, -1) != s {
			t.Fatalf("%+v, %+v, want %d keys", whole, parts, keys)
		}
	})
}

// Of a prompt whose rows are scored from some token on, each part counts its own.
func TestScoredRows(t *testing.T) {
	q := &Seq{Prompt: 10, Scored: 6} // tokens 3 to 8
	for _, c := range [][3]int{{0, 3, 0}, {0, 4, 1}, {0, 10, 6}, {8, 2, 1}, {9, 1, 0}, {10, 1, 0}, {4, 2, 2}} {
		r := Run{Seq: q, Start: c[0], N: c[1]}
		s := Shape{Rows: 1}.withRun(&r)
		if s.Scored != c[2] || s.withoutRun(&r) != (Shape{Rows: 1}) {
			t.Errorf("%d tokens from %d on: %d rows are scored, want %d", c[1], c[0], s.Scored, c[2])
		}
	}
}

func TestBins(t *testing.T) {
	last := -1
	for n := 1; n < 1<<20; n++ {
		b := bin(n)
		if b < last || b > last+2 || binEnd(b) < n || n > 1 && b > last && binEnd(last) != n-1 {
			t.Fatalf("length %d is in bin %d, which ends at %d; the last was %d", n, b, binEnd(b), last)
		}
		last = b
	}
	if b := bin(math.MaxInt); b != lengthBins-1 {
		t.Errorf("the largest length is in bin %d", b)
	}
}

// Quantiles are right, grow with what was generated, and are told apart by
// tenant and prompt.
func TestLengthModel(t *testing.T) {
	m := NewLengthModel()
	rng := rand.New(rand.NewPCG(5, 6))
	ask := func(tenant string, prompt, generated int) *Seq {
		return &Seq{Tenant: tenant, Prompt: prompt, Wanted: prompt + generated, MaxNew: 4000}
	}
	if m.Expect(ask("", 10, 0)) != 4000 {
		t.Error("without knowledge, expect the longest")
	}
	over := map[int]int{}
	const answers = 6000
	for i := range answers {
		long := i%2 == 0
		prompt, median := 20, 30.0
		if long {
			prompt, median = 500, 400.0
		}
		n := 1 + int(median*math.Exp(0.5*rng.NormFloat64()))
		if i > answers/2 {
			for _, q := range []int{25, 50, 90} {
				if n > m.Quantile(ask("x", prompt, 0), q) {
					over[q]++
				}
			}
		}
		m.Observe(ask("x", prompt, n))
	}
	for q, n := range over {
		if share := 100 * n / (answers / 2); share < 100-q-12 || share > 100-q+12 {
			t.Errorf("%d%% of answers exceed the quantile of %d%%", share, q)
		}
	}
	short, long := m.Expect(ask("x", 20, 0)), m.Expect(ask("x", 500, 0))
	if short < 20 || short > 45 || long < 300 || long > 520 {
		t.Errorf("expected %d and %d tokens, want about 30 and 400", short, long)
	}
	last := 0
	for g := 0; g < 1500; g += 50 {
		e := m.Expect(ask("x", 500, g))
		if e <= g || e < last {
			t.Errorf("after %d tokens %d are expected, %d before", g, e, last)
		}
		last = e
	}
	deciles, n, _ := m.Calibration()
	if n != answers-1 {
		t.Errorf("%d answers judged", n)
	}
	for i, d := range deciles {
		if d < n/20 || d > n/5 {
			t.Errorf("tenth %d has %d of %d answers", i, d, n)
		}
	}
}
