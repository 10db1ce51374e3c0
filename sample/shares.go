package sample

import (
	"math"

	"ridge/internal/logits"
)

// shares has, for each class of weights that are the same but for a quarter of
// a power of two or less, what the candidates of the class weigh together.
type shares [classes]float64

// A class is the exponent of a float32 and the first two bits of its fraction.
// Weights are at most 1.
const (
	classShift = 21
	classes    = 127<<(23-classShift) + 1
)

// heaviest leaves the candidates that can be among the heaviest ones that
// together reach the weight want, and may leave some that are not. If all of
// them do not reach it they all stay, and the result is false.
func (s *Sampler) heaviest(c []cand, top float32, want float64) ([]cand, bool) {
	clear(s.shares[:])
	for rest := c; len(rest) > 0; {
		part := s.part[:min(block, len(rest))]
		for i := range part {
			part[i] = rest[i].logit
		}
		rest = rest[len(part):]
		logits.Weights(part, part, top, 1)
		for _, e := range part {
			s.shares[min(math.Float32bits(e)>>classShift, classes-1)] += float64(e)
		}
	}
	cut, enough := s.shares.lightest(want)
	least, n := minLogit(top, cut)-slack, 0
	for i := range c {
		if c[i].logit >= least {
			c[n] = c[i]
			n++
		}
	}
	return c[:n], enough
}

// lightest returns the least weight of the heaviest classes that reach want
// together; 0 and false if they do not.
func (s *shares) lightest(want float64) (float32, bool) {
	sum := 0.0
	for c := classes - 1; c >= 0; c-- {
		if sum += s[c]; sum >= want {
			return math.Float32frombits(uint32(c) << classShift), true
		}
	}
	return 0, false
}
