package eval

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"ridge/engine"
)

// The quantiles are those of printed tables.
func TestStudent(t *testing.T) {
	for v, want := range map[int]float64{1: 12.7062, 2: 4.3027, 3: 3.1824, 4: 2.7764, 5: 2.5706, 10: 2.2281, 30: 2.0423, 1000: 1.9623} {
		if got := student95(v); math.Abs(got/want-1) > 0.002 {
			t.Errorf("%d degrees of freedom: expected %v, found %v", v, want, got)
		}
	}
}

// The interval of a difference has the true one in it in 95 of 100 texts, also when
// the tokens of a window move together, and is narrow where both models move alike.
func TestIntervalCovers(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 1))
	const truth, texts, windows, rows = 0.1, 2000, 8, 20
	in := 0
	for range texts {
		var wins []window
		var x, y []float64
		for range windows {
			wins = append(wins, window{0, rows, 0})
			together := 0.3 * rng.NormFloat64()
			for range rows {
				hard := 10 * rng.NormFloat64() // alike for both
				y = append(y, hard)
				x = append(x, hard+truth+together+0.2*rng.NormFloat64())
			}
		}
		if d := differences(x, y, wins); d.Low <= truth && truth <= d.High {
			in++
		} else if d.StdErr > 1 {
			t.Fatalf("expected what both have alike to cancel, found a standard error of %v", d.StdErr)
		}
	}
	if share := float64(in) / texts; share < 0.93 || share > 0.97 {
		t.Errorf("expected 95%% of the intervals to have the truth in them, found %.1f%%", 100*share)
	}
}

// Differences are those of the single comparisons, the other order has the other sign,
// and one window is refused.
func TestCompareAll(t *testing.T) {
	base, other := start(t, open(t)), start(t, open(t))
	tokens := text(200, base.Model().Config().Vocab)
	w := Windows{Context: 64, BOS: -1}
	each, pairs, err := CompareAll(context.Background(), base, []*engine.Engine{other, other}, tokens, w)
	if err != nil {
		t.Fatal(err)
	}
	one, err := Compare(context.Background(), base, other, tokens, w)
	if err != nil {
		t.Fatal(err)
	}
	if len(each) != 2 || each[0] != one || each[1] != one || len(pairs) != 1 || pairs[0].KL != (Difference{}) || pairs[0].KL.Verdict() != "no difference" {
		t.Errorf("expected twice %+v and no difference, found %+v and %+v", one, each, pairs)
	}
	if n := one.NLL; math.Abs(n.Mean-(one.Model.NLL-one.Base.NLL)) > 1e-9 || !(n.Low <= n.Mean && n.Mean <= n.High) {
		t.Errorf("expected a difference of %v from the base, found %+v", one.Model.NLL-one.Base.NLL, n)
	}
	wins := []window{{0, 2, 0}, {2, 4, 0}}
	a, b := []float64{3, 4, 5, 6}, []float64{1, 2, 3.5, 4}
	d, back := differences(a, b, wins), differences(b, a, wins)
	if d.Mean != 1.875 || back.Mean != -d.Mean || back.Low != -d.High || d.StdErr == 0 {
		t.Errorf("found %+v and %+v", d, back)
	}
	if _, _, err := CompareAll(context.Background(), base, []*engine.Engine{other, other}, tokens[:64], w); err == nil {
		t.Error("one window: expected an error")
	}
}
