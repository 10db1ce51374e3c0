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

// classify puts candidates into classes, and returns what they weigh together.
func (s *Sampler) classify(c []cand, top float32) (total float64) {
	clear(s.shares[:])
	s.class = s.class[:0]
	for len(c) > 0 {
		part := s.part[:min(block, len(c))]
		for i := range part {
			part[i] = c[i].logit
		}
		c = c[len(part):]
		logits.Weights(part, part, top, 1)
		for _, e := range part {
			k := min(math.Float32bits(e)>>classShift, classes-1)
			s.class = append(s.class, uint16(k))
			s.shares[k] += float64(e)
		}
	}
	for _, e := range s.shares {
		total += e
	}
	return total
}

// heaviest leaves the heaviest candidates that together reach the weight want,
// in the order in which they are. Those of the class in which it is reached are
// put in order, the others need not be. c was classified.
func (s *Sampler) heaviest(c []cand, top float32, want float64) []cand {
	k := classes - 1
	for ; k >= 0 && s.shares[k] < want; k-- {
		want -= s.shares[k]
	}
	s.order = s.order[:0]
	for i, class := range s.class {
		if int(class) == k {
			s.order = append(s.order, c[i])
		}
	}
	if len(s.order) == 0 {
		return c // they do not reach it
	}
	return notAfter(c, s.order[take(s.order, top, want)-1])
}
