package sched

import "time"

// Shape is what the time of a step depends on.
type Shape struct {
	Rows    int   // tokens
	Outputs int   // rows that want logits
	Context int64 // keys read: for each row, the tokens up to its own
}

// with returns s with n more tokens of a sequence that has start before them.
func (s Shape) with(start, n, outputs int) Shape { return s.add(start, n, outputs, 1) }

func (s Shape) without(start, n, outputs int) Shape { return s.add(start, n, outputs, -1) }

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

// Terms of the time of a step: once, per row, per output, per key read.
const terms = 4

const (
	forgetting = 0.998 // a step counts half after some 350 others
	startVar   = 1e6   // ms²
	readyAfter = 8
	clip       = 0.5
)

// CostModel predicts how long a step takes: a fixed time, and a time for each
// row, for each row of logits and for each key that attention reads. It is
// fitted by recursive least squares on relative errors, with forgetting, so it
// follows a machine that becomes slower; the effect of a single odd step is
// bounded.
type CostModel struct {
	w [terms]float64        // ms
	p [terms][terms]float64 // covariance of w
	n int                   // steps seen

	largest int // rows of a step seen

	err, bias float64 // running means of relative errors
	weight    float64 // steps in them
}

// NewCostModel returns a model that knows nothing.
func NewCostModel() *CostModel {
	m := &CostModel{}
	for i := range terms {
		m.p[i][i] = startVar
	}
	return m
}

// Ready says whether the model has seen enough to predict.
func (m *CostModel) Ready() bool { return m.n >= readyAfter }

// features returns the terms of a step, in units that bring them to similar
// sizes.
func (s Shape) features() [terms]float64 {
	return [terms]float64{1, float64(s.Rows) / 16, float64(s.Outputs) / 16, float64(s.Context) / (1 << 14)}
}

const ms = float64(time.Millisecond)

// Predict returns how long a step should take, 0 if the model is not ready or
// the step is empty.
func (m *CostModel) Predict(s Shape) time.Duration {
	if !m.Ready() || s.Rows == 0 {
		return 0
	}
	return time.Duration(max(m.dot(s.features()), 0) * ms)
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

// Prompt returns how long a prompt of the given tokens takes alone, in steps of
// at most perStep tokens; 0 if the model is not ready.
func (m *CostModel) Prompt(tokens, perStep int) time.Duration {
	if !m.Ready() || tokens <= 0 {
		return 0
	}
	t := time.Duration(0)
	full := tokens / perStep
	if full > 0 { // whole steps, of average context
		s := Shape{Rows: perStep, Context: int64(perStep) * int64(full*perStep) / 2}
		t = time.Duration(full) * m.Predict(s)
	}
	if rest := tokens % perStep; rest > 0 {
		t += m.Predict(Shape{}.with(tokens-rest, rest, 1))
	}
	return t
}

// Observe learns from a step that took elapsed.
func (m *CostModel) Observe(s Shape, elapsed time.Duration) {
	if s.Rows <= 0 || elapsed <= 0 {
		return
	}
	x := s.features()
	y := float64(elapsed) / ms
	e := 1 - m.dot(x)/y
	if m.Ready() {
		m.note(e)
		e = min(max(e, -clip), clip)
	}
	m.n++
	m.largest = max(m.largest, s.Rows)
	// Everything is divided by the time that the step took, so that errors are
	// relative: short steps count as much as long ones.
	var px [terms]float64
	denom := forgetting
	for i := range terms {
		x[i] /= y
	}
	for i := range terms {
		for j := range terms {
			px[i] += m.p[i][j] * x[j]
		}
		denom += x[i] * px[i]
	}
	for i := range terms {
		m.w[i] += px[i] / denom * e
	}
	grow := 1 / forgetting
	for i := range terms {
		if m.p[i][i] > startVar { // steps that are all alike teach nothing new
			grow = 1
		}
	}
	for i := range terms {
		for j := range terms {
			m.p[i][j] = (m.p[i][j] - px[i]*px[j]/denom) * grow
		}
	}
}

// note keeps running means of relative errors.
func (m *CostModel) note(e float64) {
	const last = 100 // steps
	m.weight = min(m.weight+1, last)
	m.err += (max(e, -e) - m.err) / m.weight
	m.bias += (e - m.bias) / m.weight
}

// Error returns the mean relative error of the last hundred or so predictions,
// each made before its step, and their bias: positive if steps took longer
// than was predicted.
func (m *CostModel) Error() (mean, bias float64) { return m.err, m.bias }

// Terms returns what the model has found: the fixed time of a step, and the
// times per row, per row of logits and per thousand keys read.
func (m *CostModel) Terms() (step, row, output, keys time.Duration) {
	at := func(s Shape) float64 { return m.dot(s.features()) }
	zero := at(Shape{})
	span := func(x float64) time.Duration { return time.Duration(x * ms) }
	return span(zero), span(at(Shape{Rows: 1}) - zero), span(at(Shape{Outputs: 1}) - zero), span(at(Shape{Context: 1000}) - zero)
}
