package sched

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// engineLike is how long a step of an engine takes: weights are read once for up
// to eight rows, then arithmetic limits; answers read their keys from memory,
// prompts share them.
func engineLike(s Shape, scale float64) time.Duration {
	rows, keys := float64(s.Rows), float64(s.Context)
	ms := 0.08 + max(0.2, 0.025*rows) + 0.01*float64(s.Outputs+s.Scored) + 0.02*float64(s.Scored)
	if s.Rows == s.Outputs {
		ms += 60e-6 * keys
	} else {
		ms += 15e-6 * keys
	}
	return time.Duration(scale * ms * float64(time.Millisecond))
}

// load makes the shapes of a load, one after the other.
type load func(rng *rand.Rand, step int) Shape

func answers(seqs, context int) load {
	return func(_ *rand.Rand, step int) Shape {
		s := Shape{}
		for i := range seqs {
			s = s.With(context+(step+37*i)%300, 1, 1)
		}
		return s
	}
}

func chats(rng *rand.Rand, step int) Shape {
	s := Shape{}
	for i := range 1 + rng.IntN(8) {
		s = s.With(100+(step+91*i)%600, 1, 1)
	}
	if rng.IntN(10) == 0 {
		s = s.With(0, 20+rng.IntN(200), 1)
	}
	return s
}

func longPrompts(rng *rand.Rand, step int) Shape {
	s := Shape{}
	for i := range step % 4 {
		s = s.With(900+17*i, 1, 1)
	}
	if step%3 > 0 || s.Rows == 0 {
		s = s.With(512*(step%8), 512, 0)
	}
	return s
}

// Chats beside prompts whose tokens are scored.
func scoredPrompts(rng *rand.Rand, step int) Shape {
	s := longPrompts(rng, step)
	if step%2 == 0 {
		s = s.With(256*(step%8), 256, 0)
		s.Scored = 256
	}
	return s
}

// Predictions made before the steps are within a quarter of what steps take,
// whatever a machine's speed, its noise, its odd moments and its changes.
func TestPredictionsOfTraces(t *testing.T) {
	loads := map[string]load{"one answer": answers(1, 50), "thirty-two answers": answers(32, 300), "chats": chats, "long prompts": longPrompts, "scored prompts": scoredPrompts}
	for name, shapes := range loads {
		for _, c := range []struct {
			name                        string
			scale, noise, odd, drift    float64 // odd: part of the steps that take 3 to 100 times as long
			regimes                     bool    // the speed is halved and doubled every 400 steps
			calibrated                  bool
			mean, median, first, second float64 // bounds
		}{
			{"quiet", 10, 0.02, 0, 0, false, true, 0.08, 0.05, 0.3, 0.12},
			{"below a millisecond", 0.3, 0.15, 0.02, 0, false, true, 0.25, 0.15, 0.5, 0.25},
			{"odd steps", 1, 0.05, 0.1, 0, false, true, 0.2, 0.1, 0.5, 0.25},
			{"regimes", 1, 0.05, 0.02, 0, true, true, 0.2, 0.1, 0.4, 0.25},
			{"drift", 1, 0.05, 0.02, 0.5, false, true, 0.2, 0.1, 0.4, 0.25},
			{"no first steps", 3, 0.05, 0.02, 0, false, false, 0.2, 0.1, 0.6, 0.25},
		} {
			t.Run(name+"/"+c.name, func(t *testing.T) {
				rng := rand.New(rand.NewPCG(11, 4))
				m := NewCostModel()
				took := func(s Shape, step int) time.Duration {
					f := c.scale * math.Exp(c.noise*rng.NormFloat64()+c.drift*math.Sin(float64(step)/300))
					if c.regimes && step/400%2 == 1 {
						f *= 2
					}
					if rng.Float64() < c.odd {
						f *= 3 + 97*rng.Float64()*rng.Float64()
					}
					return engineLike(s, f)
				}
				if c.calibrated {
					for _, s := range Shapes(512, 4096) {
						s := Shape{}.With(s.Start, s.N, 1)
						m.Observe(s, took(s, 0))
					}
				}
				var errs []float64
				for step := range 1600 {
					s := shapes(rng, step)
					d, p := took(s, step), m.Predict(s)
					m.Observe(s, d)
					if p > 0 {
						errs = append(errs, math.Abs(float64(p)/float64(d)-1))
					}
				}
				mean := func(x []float64) (sum float64) {
					for _, e := range x {
						sum += e / float64(len(x))
					}
					return sum
				}
				first, second, all := mean(errs[:50]), mean(errs[50:300]), mean(errs)
				mid := median(errs)
				t.Logf("mean %.1f%%, median %.1f%%; first 50 %.1f%%, then %.1f%%", 100*all, 100*mid, 100*first, 100*second)
				if all > c.mean || mid > c.median || first > c.first || second > c.second {
					t.Errorf("want at most %v", c)
				}
			})
		}
	}
}

// The figures are those of predictions made before their steps.
func TestAccuracyIsOfPredictionsMadeBefore(t *testing.T) {
	m := NewCostModel()
	if a := m.Accuracy(); a != (Accuracy{}) {
		t.Errorf("of nothing: %+v", a)
	}
	rng := rand.New(rand.NewPCG(2, 3))
	var errs []float64
	for step := range 3 * judged {
		s := chats(rng, step)
		d := engineLike(s, math.Exp(0.1*rng.NormFloat64()))
		if p := m.Predict(s); p > 0 {
			errs = append(errs, float64(p)/float64(d)-1)
		}
		m.Observe(s, d)
	}
	errs = errs[len(errs)-judged:]
	want := Accuracy{Steps: judged, Bias: median(errs)}
	for i, e := range errs {
		errs[i] = math.Abs(e)
		want.Mean += errs[i] / judged
	}
	want.Median = median(errs)
	near := func(a, b float64) bool { return math.Abs(a-b) < 1e-4 }
	if a := m.Accuracy(); !near(a.Mean, want.Mean) || !near(a.Median, want.Median) || !near(a.Bias, want.Bias) || a.Steps != want.Steps {
		t.Errorf("%+v, want %+v", a, want)
	}
}

func TestCostModelAllocatesNothing(t *testing.T) {
	m, rng := NewCostModel(), rand.New(rand.NewPCG(2, 3))
	step := 0
	if n := testing.AllocsPerRun(200, func() {
		s := chats(rng, step)
		m.Observe(s, engineLike(s, 1))
		m.Predict(s)
		m.Accuracy()
		step++
	}); n > 0 {
		t.Errorf("%v allocations a step", n)
	}
}

func BenchmarkCostModel(b *testing.B) {
	m, rng := NewCostModel(), rand.New(rand.NewPCG(2, 3))
	step := 0
	for b.Loop() {
		s := chats(rng, step)
		m.Observe(s, engineLike(s, 1))
		m.Predict(s)
		step++
	}
}
