package sched

import (
	"math"
	"time"
)

// Shape is what the time of a step depends on.
type Shape struct {
	Rows    int   // tokens
	Outputs int   // rows that want logits for the token after the last
	Scored  int   // rows of prompts that want logits too, for log-probabilities
	Context int64 // keys read: for each row, the tokens up to its own
}

// With returns s with n more tokens of a sequence that has start before them.
func (s Shape) With(start, n, outputs int) Shape { return s.add(start, n, outputs, 1) }

// withRun returns s with a run.
func (s Shape) withRun(r *Run) Shape {
	s.Scored += r.Seq.scoredIn(r.Start, r.N)
	return s.With(r.Start, r.N, r.Outputs)
}

func (s Shape) withoutRun(r *Run) Shape {
	s.Scored -= r.Seq.scoredIn(r.Start, r.N)
	return s.add(r.Start, r.N, r.Outputs, -1)
}

func (s Shape) add(start, n, outputs, sign int) Shape {
	s.Rows += sign * n
	s.Outputs += sign * outputs
	s.Context += int64(sign) * (int64(n)*int64(start) + int64(n)*int64(n+1)/2)
	return s
}

// Shapes returns the steps whose times a cost model should be given at the
// start, each as the tokens of one sequence that has start before them: few and
// many rows, short and long contexts, up to maxTokens rows and context tokens.
func Shapes(maxTokens, context int) (steps []struct{ Start, N int }) {
	for _, start := range []int{0, context / 4, context / 2} {
		for n := 1; n <= maxTokens; n *= 4 {
			if start+n <= context {
				steps = append(steps, struct{ Start, N int }{start, n})
			}
		}
	}
	return steps
}

// CostModel predicts how long a step takes, in three layers. A sum of a fixed
// time, and times for each row, each row of logits and each key that attention
// reads, fitted to remembered steps (see fit), tells what one kind of step says
// about another. A factor for steps with about as many rows, prompts and answers
// apart, takes up what is not linear: kernels that read weights once for several
// rows, sums that fit into a cache. A factor for all follows a machine that
// becomes slower for a while. Both factors are medians of ratios: of a step that
// something interrupted they take nothing but that it was slow, and short steps
// count as much as long ones.
type CostModel struct {
	w    [terms]float64   // ms per feature
	bend [buckets]float64 // logarithms of factors, by bucket
	now  float64          // logarithm of the factor for all

	memory [buckets]ring // remembered steps
	last   [recent]sample
	n      int // steps seen
	fresh  int // steps since the last fit

	largest int // rows of a step seen

	errs   [judged]float64 // of the last predictions: predicted over measured time, minus one
	judged int             // predictions
}

const (
	recent = 15  // steps whose median gives the factor for all
	judged = 256 // predictions that the errors are of

	readyAfter = 8
)

// NewCostModel returns a model that knows nothing.
func NewCostModel() *CostModel { return &CostModel{} }

// Ready says whether the model has seen enough to predict.
func (m *CostModel) Ready() bool { return m.n >= readyAfter }

const ms = float64(time.Millisecond)

// Predict returns how long a step should take, 0 if the model is not ready or
// the step is empty.
func (m *CostModel) Predict(s Shape) time.Duration {
	if !m.Ready() || s.Rows == 0 {
		return 0
	}
	return time.Duration(m.predict(s) * ms)
}

func (m *CostModel) predict(s Shape) float64 {
	return m.dot(s.features()) * math.Exp(m.bend[s.bucket()]+m.now)
}

func (m *CostModel) dot(x [terms]float64) float64 {
	y := 0.0
	for i, w := range m.w {
		y += w * x[i]
	}
	return y
}

// Reach returns how many rows a step may have for Predict to be more than a
// guess: some times as many as the largest seen.
func (m *CostModel) Reach() int { return 4 * m.largest }

// Prompt returns how long a prompt of the given tokens, of which some are scored,
// takes alone, in steps of at most perStep tokens; 0 if the model is not ready.
func (m *CostModel) Prompt(tokens, scored, perStep int) time.Duration {
	if !m.Ready() || tokens <= 0 {
		return 0
	}
	t := time.Duration(0)
	full := tokens / perStep
	if full > 0 { // whole steps, of average context
		s := Shape{Rows: perStep, Scored: scored * perStep / tokens, Context: int64(perStep) * int64(full*perStep) / 2}
		t = time.Duration(full) * m.Predict(s)
	}
	if rest := tokens % perStep; rest > 0 {
		t += m.Predict(Shape{Scored: scored * rest / tokens}.With(tokens-rest, rest, 1))
	}
	return t
}

// Observe learns from a step that took elapsed.
func (m *CostModel) Observe(s Shape, elapsed time.Duration) {
	if s.Rows <= 0 || elapsed <= 0 {
		return
	}
	y := float64(elapsed) / ms
	if m.Ready() {
		m.errs[m.judged%judged] = m.predict(s)/y - 1
		m.judged++
	}
	seen := sample{shape: s, ms: y, at: m.n}
	m.memory[s.bucket()].put(seen)
	m.last[m.n%recent] = seen
	m.n++
	m.largest = max(m.largest, s.Rows)
	if m.fresh++; m.n >= readyAfter && (m.fresh >= refit || m.n < 4*refit) {
		m.fit()
		m.fresh = 0
	}
	m.follow()
}

// Accuracy says how far off predictions were, each made before its step, of the
// last few hundred steps: as parts of the time that a step took.
type Accuracy struct {
	Mean, Median float64 // of the errors' magnitudes
	Bias         float64 // median of the errors: negative if steps took longer than predicted
	Steps        int     // in these figures; without any they are 0
}

// Accuracy returns the accuracy of the last predictions.
func (m *CostModel) Accuracy() Accuracy {
	a := Accuracy{Steps: min(m.judged, judged)}
	if a.Steps == 0 {
		return a
	}
	var sorted [judged]float64
	x := sorted[:a.Steps]
	copy(x, m.errs[:a.Steps])
	a.Bias = median(x)
	for i, e := range x {
		x[i] = math.Abs(e)
		a.Mean += x[i] / float64(a.Steps)
	}
	a.Median = median(x)
	return a
}

// Terms returns what the model has found: the fixed time of a step, and the
// times per row, per row of logits and per thousand keys that prompts read.
func (m *CostModel) Terms() (step, row, output, keys time.Duration) {
	span := func(i int, x float64) time.Duration { return time.Duration(m.w[i] * x * ms) }
	return span(0, 1), span(1, 1./rowUnit), span(2, 1./rowUnit), span(4, 1000./keyUnit)
}
