package sample

import "math"

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

// candidates returns the tokens that the filters leave, and the largest of
// their logits. The order of the tokens depends on the logits only.
func (s *Sampler) candidates(w []float32) (c []cand, top float32) {
	c = s.cands[:0]
	total := 0.0 // of the weights, if c lacks tokens that count in it
	switch {
	case s.p.TopK > 0 && s.p.TopK < s.vocab:
		c = topK(c, w, s.p.TopK)
	case on(s.p.TypicalP):
		c = above(c, w, float32(math.Inf(-1)))
	default:
		c, total = s.prefilter(c, w)
	}
	s.cands = c
	top = topLogit(c)
	if len(c) == 0 || isInf(top) {
		return c, top
	}
	if on(s.p.TypicalP) {
		c = typical(c, top, float64(s.p.TypicalP))
		top = topLogit(c)
	}
	if on(s.p.TopP) {
		c = topP(c, top, float64(s.p.TopP), total)
	}
	if s.p.MinP > 0 {
		c = minP(c, minLogit(top, s.p.MinP))
	}
	return c, top
}

// prefilter collects the tokens that top-p and min-p can leave, without
// ordering the vocabulary, and returns the weight of all tokens if top-p
// needs it.
//
// Tokens lighter than (1-p)·total/vocab weigh less than (1-p)·total together,
// so the others hold the share p: none of the lighter ones is among the most
// probable tokens that top-p keeps.
func (s *Sampler) prefilter(c []cand, w []float32) ([]cand, float64) {
	top := maximum(w)
	least, total := float32(math.Inf(-1)), 0.0
	if isInf(top) {
		return above(c, w, least), 0
	}
	if on(s.p.TopP) {
		total = s.weigh(w, top, 1)
		const slack = 1e-3 // far more than rounding
		cut := float64(top) + math.Log((1-float64(s.p.TopP))*total/float64(s.vocab)) - slack
		least = float32(cut)
	}
	if s.p.MinP > 0 {
		least = max(least, minLogit(top, s.p.MinP))
	}
	return above(c, w, least), total
}

// weight is the unnormalized probability of a logit: 1 for the largest, 0 for
// NaN.
func weight(l, top float32) float64 {
	d := float64(l) - float64(top)
	if d != d {
		return 0
	}
	return exp(d)
}

// above appends the tokens with logits of at least least, and above -Inf.
func above(c []cand, w []float32, least float32) []cand {
	least = max(least, -math.MaxFloat32)
	for i, l := range w {
		if l >= least {
			c = append(c, newCand(l, i))
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

// topP returns the most probable candidates up to the share p of total, or of
// their own weight if total is 0.
func topP(c []cand, top float32, p, total float64) []cand {
	if total == 0 {
		for i := range c {
			total += weight(c[i].logit, top)
		}
	}
	return c[:take(c, top, p*total)]
}

// typical returns the candidates whose surprise is closest to the entropy, up
// to the share p.
func typical(c []cand, top float32, p float64) []cand {
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
	c = c[:take(c, top, p*total)]
	for i := range c {
		c[i].key = -float64(c[i].logit)
	}
	return c
}
