package sample

import "math"

// mirostat is the state of Mirostat: mu is the surprise, in bits, that tokens may
// have at most.
type mirostat struct {
	mu       float64
	picked   int32   // the last token, -1 for none
	surprise float64 // its, in bits
}

// estimateWith is how many of the most probable tokens version 1 estimates the
// exponent of Zipf's law with.
const estimateWith = 100

// init begins a text.
func (m *mirostat) init(p *Params) {
	if p.MirostatTau == 0 {
		p.MirostatTau = DefaultMirostatTau
	}
	if p.MirostatEta == 0 {
		p.MirostatEta = DefaultMirostatEta
	}
	m.mu, m.picked = 2*float64(p.MirostatTau), -1
}

// accept corrects mu by what the token that was picked was a surprise of.
func (m *mirostat) accept(p *Params, tok int32) {
	if p.Mirostat == 0 || tok != m.picked {
		return
	}
	m.mu -= float64(p.MirostatEta) * (m.surprise - float64(p.MirostatTau))
	m.picked = -1
}

// mirostat picks among candidates, in the order of their ids.
func (s *Sampler) mirostat(c []cand) int32 {
	s.temper(c, topLogit(c))
	top := topLogit(c)
	total := sumWeights(c, top)
	if s.p.Mirostat == 1 {
		s.order = append(s.order[:0], c...)
		sortAll(s.order)
		if k := s.zipf(s.order, top); k < len(c) {
			c = notAfter(c, s.order[k-1])
		}
	} else {
		// -log2(weight/total) <= mu
		c = minP(c, min(top, float32(float64(top)+math.Log(total)-float64(s.miro.mu*math.Ln2))))
	}
	s.left = c
	left := sumWeights(c, top)
	tok := s.draw(c, top, 1)
	for i := range c {
		if c[i].id == tok {
			s.miro.picked, s.miro.surprise = tok, -math.Log2(weight(c[i].logit, top)/left)
		}
	}
	return tok
}

// zipf returns how many of the sorted candidates version 1 leaves: those that
// make up a surprise of mu where probabilities follow Zipf's law.
func (s *Sampler) zipf(sorted []cand, top float32) int {
	var tb, tt float64
	for i := 0; i < min(estimateWith, len(sorted))-1; i++ {
		t := math.Log(float64(i+2) / float64(i+1))
		b := float64(sorted[i].logit) - float64(sorted[i+1].logit) // log of the ratio of probabilities
		tb += float64(t * b)
		tt += float64(t * t)
	}
	if tt == 0 {
		return 1
	}
	slope := tb / tt
	eps := slope - 1
	k := math.Pow(eps*math.Exp2(s.miro.mu)/(1-math.Pow(float64(s.vocab), -eps)), 1/slope)
	if !(k >= 1) {
		return 1
	}
	return int(min(k, float64(len(sorted))))
}
