package sample

import "math"

// drawn fills in the log-probabilities of r.Token and of the n most probable tokens in
// the distribution that it was drawn from: w are the adjusted logits, s.left what the
// cuts left of them, nothing if there was no cut. Where nothing was drawn the token is
// certain.
func (s *Sampler) drawn(w []float32, n int, r *Result) {
	if r.Token < 0 {
		return
	}
	t, top, total := s.p.Temperature, maximum(w), 0.0
	if s.p.chained() {
		t = 1 // a step divided by it
	}
	logProb := func(l float32) float32 {
		return float32((float64(l)-float64(top))/float64(t) - math.Log(total))
	}
	c := s.left
	switch {
	case len(c) == 0 && (s.greedy() || isInf(top)):
		r.Top = certain(r.Token)
		return
	case len(c) == 0:
		total = s.weigh(w, top, t)
		c = s.best(s.cands[:0], w, n)
		s.cands = c
		r.LogProb = logProb(w[r.Token])
	default:
		top = topLogit(c)
		for i := range c {
			c[i].key = -float64(c[i].logit) // the draw left weights there
			total += tempered(c[i].logit, top, t)
		}
		for _, x := range c {
			if x.id == r.Token {
				r.LogProb = logProb(x.logit)
			}
		}
		n = min(n, len(c))
		selectFirst(c, n)
	}
	c = c[:min(n, len(c))]
	sortAll(c)
	r.Top = make([]TokenProb, 0, len(c))
	for _, x := range c {
		if tempered(x.logit, top, t) > 0 {
			r.Top = append(r.Top, TokenProb{x.id, logProb(x.logit)})
		}
	}
}

// certain are the log-probabilities where one token alone can come.
func certain(token int32) []TokenProb { return []TokenProb{{Token: token}} }

// ScoreForced is what Sample would say, under one row of logits and with the
// parameters p, of a token in whose place nothing else could come. Nothing about the
// sampler counts but its vocabulary.
func (s *Sampler) ScoreForced(row []float32, token int32, p *Params) Result {
	if p.Drawn {
		return Result{Token: token, Top: certain(token)}
	}
	return s.score(row, token, p.LogProbs, p.ProbIDs)
}
