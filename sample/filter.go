package sample

import (
	"math"

	"ridge/internal/logits"
)

// cand is a token that may still be picked.
type cand struct {
	key   float64 // what filters order by, least first: usually -logit
	logit float32
	id    int32
}

// before orders candidates by key, then the larger logit, then the smaller
// id: of two different candidates one always comes before the other.
func before(a, b *cand) bool {
	if a.key != b.key {
		return a.key < b.key
	}
	return a.logit > b.logit || a.logit == b.logit && a.id < b.id
}

// candidates returns the tokens that the filters leave, in the order of their
// ids, and the largest of their logits.
func (s *Sampler) candidates(w []float32) (c []cand, top float32) {
	c = s.cands[:0]
	total := 0.0 // of the weights, if c lacks tokens that count in it
	switch {
	case s.p.TopK > 0 && s.p.TopK < s.vocab:
		c = s.topK(c, w, s.p.TopK)
		top = topLogit(c)
	case on(s.p.TypicalP):
		top = s.survey(w)
		c = s.above(c, w, -math.MaxFloat32)
	default:
		top = s.survey(w)
		c, total = s.prefilter(c, w, top)
	}
	s.cands = c
	if len(c) == 0 || isInf(top) {
		return c, top
	}
	if on(s.p.TypicalP) {
		c = s.typical(c, top, float64(s.p.TypicalP))
		top = topLogit(c)
	}
	if on(s.p.TopP) {
		c = s.topP(c, top, float64(s.p.TopP), total)
	}
	if s.p.MinP > 0 {
		c = minP(c, minLogit(top, s.p.MinP))
	}
	return c, top
}

// prefilter collects the tokens that top-p and min-p can leave, without
// ordering the vocabulary, and returns the weight of all tokens if top-p
// needs it; they are classified then. top is the largest logit, and s.tops is that
// of w. It collects none if top is not finite.
//
// Tokens lighter than (1-p)·total/vocab weigh less than (1-p)·total together,
// so the others hold the share p: none of the lighter ones is among the most
// probable tokens that top-p keeps. That may leave thousands. So it is tried
// first with a limit that leaves hundreds and may be too high, which shows when
// they are weighed.
func (s *Sampler) prefilter(c []cand, w []float32, top float32) ([]cand, float64) {
	if isInf(top) {
		return c, 0
	}
	least := float32(-math.MaxFloat32)
	if s.p.MinP > 0 {
		least = minLogit(top, s.p.MinP)
	}
	if !on(s.p.TopP) {
		return s.above(c, w, least), 0
	}
	total, p, vocab := s.weigh(w, top, 1), float64(s.p.TopP), float64(s.vocab)
	tail := 1 - p - rounding
	for parts := min(firstParts, vocab); ; parts = min(16*parts, vocab) {
		limit := least
		if tail > 0 {
			limit = max(limit, minLogit(top, float32(tail*total/parts))-slack)
		}
		c = s.above(c[:0], w, limit)
		if weight := s.classify(c, top); limit == least || parts == vocab || weight >= (p+rounding)*total {
			return c, total
		}
	}
}

// firstParts is what takes the place of the size of the vocabulary at first. For
// a model of 49 thousand tokens and a p of 0.95 it was enough in 19 rows of 20,
// and left 300 tokens on average instead of 2400.
const firstParts = 1024.0

const (
	rounding = 1e-5 // far more than the relative error of sums of weights
	slack    = 1e-3 // of logits: far more than their rounding where it counts
)

// weight is the unnormalized probability of a logit: 1 for the largest.
func weight(l, top float32) float64 { return exp(float64(l) - float64(top)) }

// tempered is the weight at temperature t.
func tempered(l, top, t float32) float64 { return exp((float64(l) - float64(top)) / float64(t)) }

// above appends the tokens with logits of at least least, and above -Inf.
// s.tops is that of w.
func (s *Sampler) above(c []cand, w []float32, least float32) []cand {
	least = max(least, -math.MaxFloat32)
	for b, top := range s.tops {
		if top < least {
			continue
		}
		lo := b * block
		x := w[lo:min(lo+block, len(w))]
		n := logits.AtLeast(s.ids[:len(x)], x, least)
		for _, i := range s.ids[:n] {
			c = append(c, newCand(x[i], lo+int(i)))
		}
	}
	return c
}

func newCand(l float32, id int) cand { return cand{key: -float64(l), logit: l, id: int32(id)} }

func topLogit(c []cand) float32 {
	top := float32(math.Inf(-1))
	for i := range c {
		top = max(top, c[i].logit)
	}
	return top
}

// minLogit is the least logit that min-p keeps.
func minLogit(top, p float32) float32 {
	return float32(float64(top) + math.Log(float64(p)))
}

func minP(c []cand, least float32) []cand {
	n := 0
	for i := range c {
		if c[i].logit >= least {
			c[n] = c[i]
			n++
		}
	}
	return c[:n]
}

// topP leaves the most probable candidates up to the share p of total, or of
// their own weight if total is 0. If it is not they were classified.
func (s *Sampler) topP(c []cand, top float32, p, total float64) []cand {
	if total == 0 {
		total = s.classify(c, top)
	}
	return s.heaviest(c, top, p*total)
}

// typical leaves the candidates whose surprise is closest to the entropy, up
// to the share p.
func (s *Sampler) typical(c []cand, top float32, p float64) []cand {
	total, dot := 0.0, 0.0
	for i := range c {
		e := weight(c[i].logit, top)
		total += e
		dot += float64(e * (float64(c[i].logit) - float64(top)))
	}
	mean := dot / total // log Z - entropy
	for i := range c {
		// |surprise - entropy|; log Z cancels
		c[i].key = math.Abs(mean - (float64(c[i].logit) - float64(top)))
	}
	c = s.first(c, top, p*total)
	for i := range c {
		c[i].key = -float64(c[i].logit)
	}
	return c
}

// first leaves the candidates that come first by their keys and together reach
// the weight want. They stay in the order in which they are: what is drawn with
// a random number must not depend on how the first ones are found.
func (s *Sampler) first(c []cand, top float32, want float64) []cand {
	s.order = append(s.order[:0], c...)
	if n := take(s.order, top, want); n < len(c) {
		return notAfter(c, s.order[n-1])
	}
	return c
}

// notAfter leaves last and the candidates before it, in the order in which they
// are.
func notAfter(c []cand, last cand) []cand {
	n := 0
	for i := range c {
		if !before(&last, &c[i]) {
			c[n] = c[i]
			n++
		}
	}
	return c[:n]
}
