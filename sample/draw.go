package sample

import (
	"math"

	"ridge/internal/logits"
)

// draw picks one of the candidates at temperature t. top is the largest of their
// logits. The random number meets them in the order in which
// they are, that of their ids.
func (s *Sampler) draw(c []cand, top, t float32) int32 {
	total := 0.0
	for i := range c {
		e := tempered(c[i].logit, top, t)
		c[i].key = e // nobody asks for the order of keys any more
		total += e
	}
	target := total * uniform(s.p.Seed, s.step)
	sum, last := 0.0, int32(-1)
	for i := range c {
		e := c[i].key
		if e > 0 {
			last = c[i].id
		}
		if sum += e; sum > target {
			return last
		}
	}
	return last
}

// block is how many tokens are looked at together where all of them are.
const block = 512

// survey sets s.tops to the largest logit of each block, and returns the largest
// of all.
func (s *Sampler) survey(w []float32) (top float32) {
	s.tops, top = s.tops[:0], float32(math.Inf(-1))
	for lo := 0; lo < len(w); lo += block {
		m := maximum(w[lo:min(lo+block, len(w))])
		s.tops = append(s.tops, m)
		top = max(top, m)
	}
	return top
}

// weigh sets s.sums to the weights of all tokens at temperature t, summed up by
// block, and returns their sum. top is the largest logit and finite.
func (s *Sampler) weigh(w []float32, top, t float32) (total float64) {
	s.sums = s.sums[:0]
	for lo := 0; lo < len(w); lo += block {
		sum := logits.Weight(w[lo:min(lo+block, len(w))], top, t)
		s.sums = append(s.sums, sum)
		total += sum
	}
	return total
}

// drawAll picks among all tokens: one pass over the logits, and a second over
// the one block in which the random number falls.
func (s *Sampler) drawAll(w []float32) int32 {
	top := maximum(w)
	if isInf(top) {
		return argmax(w)
	}
	target := s.weigh(w, top, s.p.Temperature) * uniform(s.p.Seed, s.step)
	sums, b := s.sums, 0
	for b < len(sums)-1 && target >= sums[b] {
		target -= sums[b]
		b++
	}
	for sums[b] == 0 { // rounding carried the target past the last weight
		b--
	}
	x := w[b*block : min((b+1)*block, len(w))]
	part := s.part[:len(x)]
	logits.Weights(part, x, top, s.p.Temperature)
	sum, last := 0.0, int32(-1)
	for i, e := range part {
		if e > 0 {
			last = int32(b*block + i)
		}
		if sum += float64(e); sum > target {
			return last
		}
	}
	return last
}

// uniform is a random number in [0, 1): the step-th of the stream of seed
// (SplitMix64, Steele et al., "Fast Splittable Pseudorandom Number
// Generators", with the seed mixed once more).
func uniform(seed, step uint64) float64 {
	const gamma = 0x9e3779b97f4a7c15
	z := mix(mix(seed+gamma) + (step+1)*gamma)
	return float64(z>>11) / (1 << 53)
}

func mix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// distribution are the weights of all tokens under the unadjusted logits.
type distribution struct {
	top  float32 // the largest logit
	logZ float64
}

func (s *Sampler) distributionOf(row []float32) distribution {
	d := distribution{top: maximum(row)}
	total := 0.0
	if !isInf(d.top) {
		total = s.weigh(row, d.top, 1)
	}
	d.logZ = math.Log(total)
	return d
}

// logProb is the log-probability of a token with logit l.
func (d *distribution) logProb(l float32) float32 {
	switch {
	case l != l || math.IsInf(float64(l), -1):
		return float32(math.Inf(-1))
	case math.IsInf(float64(l), 1):
		return 0
	case math.IsInf(float64(d.top), 1):
		return float32(math.Inf(-1))
	}
	return float32(float64(l) - float64(d.top) - d.logZ)
}

// logProbs fills in the log-probabilities of r.Token and of ids, or of the n most
// probable tokens if ids is nil, under the unadjusted logits.
func (s *Sampler) logProbs(row []float32, n int, ids []int32, r *Result) {
	d := s.distributionOf(row)
	if r.Token >= 0 {
		r.LogProb = d.logProb(row[r.Token])
	}
	if ids != nil {
		r.Top = make([]TokenProb, len(ids))
		for i, id := range ids {
			r.Top[i] = TokenProb{id, d.logProb(row[id])}
		}
		return
	}
	s.cands = s.best(s.cands[:0], row, n)
	sortAll(s.cands)
	r.Top = make([]TokenProb, len(s.cands))
	for i, c := range s.cands {
		r.Top[i] = TokenProb{c.id, d.logProb(c.logit)}
	}
}
