package sched

import (
	"math"
	"math/bits"
	"slices"
)

// Terms of the time of a step: once, per row, per row of logits, per key read
// in a step of answers alone, and in one with prompts, where rows share keys, and
// what a row of logits costs beyond the others if it is scored.
const terms = 6

const (
	rowUnit = 16
	keyUnit = 1 << 14
)

// features returns the terms of a step, in units that bring them to similar
// sizes.
func (s Shape) features() [terms]float64 {
	x := [terms]float64{1, float64(s.Rows) / rowUnit, float64(s.Outputs+s.Scored) / rowUnit}
	x[5] = float64(s.Scored) / rowUnit
	x[3+s.kind()] = float64(s.Context) / keyUnit
	return x
}

// kind is 0 for a step in which each row gives logits, 1 for one with prompts.
func (s Shape) kind() int {
	if s.Rows > s.Outputs {
		return 1
	}
	return 0
}

const (
	rowBuckets = 12
	buckets    = 2 * rowBuckets
	remembered = 12 // steps of each bucket
	refit      = 32 // steps between fits
)

// bucket returns the place of steps with about as many rows: 1, 2, 3 to 4, 5 to
// 8 and so on.
func (s Shape) bucket() int {
	return s.kind()*rowBuckets + min(bits.Len(uint(max(s.Rows-1, 0))), rowBuckets-1)
}

// sample is a step that was measured.
type sample struct {
	shape Shape
	ms    float64
	at    int // steps seen before it
}

// ring is the last steps of a bucket.
type ring struct {
	s [remembered]sample
	n int // steps ever
}

func (r *ring) put(s sample) {
	r.s[r.n%remembered] = s
	r.n++
}

func (r *ring) all() []sample { return r.s[:min(r.n, remembered)] }

// fit finds the terms, none of them negative, that the remembered steps agree
// with best, then the factors of the buckets. It minimizes the squares of
// relative errors, reweighted three times so that of steps that are far off only
// the direction counts (Huber's weights, on the logarithm of the ratio), and
// that those of long ago count less: each bucket remembers steps of its own, so
// that thousands of steps that are all alike push nothing out.
func (m *CostModel) fit() {
	const passes = 3
	for range passes {
		var a [terms][terms]float64
		var b [terms]float64
		for i := range m.memory {
			for _, s := range m.memory[i].all() {
				x := s.shape.features()
				w := m.trust(&s, m.dot(x))
				for j := range terms {
					for k := range terms {
						a[j][k] += w * x[j] * x[k]
					}
					b[j] += w * x[j] * s.ms
				}
			}
		}
		descend(&m.w, &a, &b)
	}
	for i := range m.memory {
		m.bend[i] = m.bendOf(m.memory[i].all())
	}
}

// trust is the weight of a sample for which the terms at hand predict so many
// milliseconds.
func (m *CostModel) trust(s *sample, predicted float64) float64 {
	const (
		near = 0.2 // logarithm of a ratio up to which errors count in full
		long = 500 // steps after which a sample counts half
	)
	w := 1 / (1 + float64(m.n-s.at)/long)
	if predicted <= 0 {
		return w / (s.ms * s.ms)
	}
	if off := math.Abs(math.Log(predicted / s.ms)); off > near {
		w *= near / off
	}
	return w / (s.ms * predicted)
}

// descend minimizes w·a·w - 2·b·w over non-negative w, from w on, one
// coordinate at a time.
func descend(w *[terms]float64, a *[terms][terms]float64, b *[terms]float64) {
	const rounds = 200
	for range rounds {
		moved := false
		for i := range terms {
			if a[i][i] == 0 {
				continue // no step has told yet
			}
			g := b[i]
			for j := range terms {
				g -= a[i][j] * w[j]
			}
			old := w[i]
			w[i] = max(old+g/a[i][i], 0)
			moved = moved || math.Abs(w[i]-old) > 1e-5*old
		}
		if !moved {
			return
		}
	}
}

// bendOf returns the logarithm of the factor for steps like those given. A few
// steps move it part of the way.
func (m *CostModel) bendOf(like []sample) float64 {
	const few = 2
	var logs [remembered]float64
	n := 0
	for _, s := range like {
		if p := m.dot(s.shape.features()); p > 0 {
			logs[n] = math.Log(s.ms / p)
			n++
		}
	}
	if n == 0 {
		return 0
	}
	return median(logs[:n]) * float64(n) / float64(n+few)
}

// follow sets the factor for all from the last steps.
func (m *CostModel) follow() {
	var logs [recent]float64
	n := 0
	for _, s := range m.last[:min(m.n, recent)] {
		if p := m.dot(s.shape.features()); p > 0 {
			logs[n] = math.Log(s.ms/p) - m.bend[s.shape.bucket()]
			n++
		}
	}
	m.now = 0
	if n > 0 {
		m.now = median(logs[:n])
	}
}

// median sorts x, which must not be empty.
func median(x []float64) float64 {
	slices.Sort(x)
	return (x[(len(x)-1)/2] + x[len(x)/2]) / 2
}
