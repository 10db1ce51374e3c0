package sample

import (
	"math"
	"slices"
)

// Trace says what a token was drawn from.
type Trace struct {
	Entropy float64 // of the model's own distribution, in nats
	Kept    int     // tokens that could be drawn, after the mask and all cuts
	// Cuts names, for each of Result.Top, what took it out: a step, or "grammar" for a
	// mask and "logit_bias" for one of -Inf; "" if it could be drawn.
	Cuts   []string
	Forced bool // the mask left one token
}

// What takes tokens out beside steps.
const (
	cutMask     = "grammar"
	cutBias     = "logit_bias"
	cutMirostat = "mirostat"
)

// trace says what r was drawn from: w are the adjusted logits, s.left what the cuts
// left of them, nothing if there was no cut.
func (s *Sampler) trace(row, w []float32, r *Result) *Trace {
	t := &Trace{Entropy: entropy(row), Cuts: make([]string, len(r.Top))}
	allowed := 0
	for _, l := range w {
		if l >= -math.MaxFloat32 {
			allowed++
		}
	}
	t.Forced = s.masker != nil && allowed == 1
	left := make([]int32, 0, len(s.left)) // by id
	for _, c := range s.left {
		left = append(left, c.id)
	}
	greedy := s.greedy()
	if greedy {
		left = append(left[:0], r.Token)
	}
	if t.Kept = len(left); t.Kept == 0 {
		t.Kept = allowed
	}
	var by map[int32]string
	for i, x := range r.Top {
		kept := len(left) == 0
		if !kept {
			_, kept = slices.BinarySearch(left, x.Token)
		}
		switch {
		case x.Token == r.Token:
		case !(w[x.Token] >= -math.MaxFloat32):
			t.Cuts[i] = s.masked(x.Token)
		case !kept:
			if by == nil {
				by = s.removed(w, r.Top)
			}
			t.Cuts[i] = by[x.Token]
		}
	}
	return t
}

// greedy says whether the most probable token is taken, without a chain.
func (s *Sampler) greedy() bool {
	return !s.p.chained() && (s.p.Temperature == 0 || s.p.TopK == 1) || s.p.Mirostat > 0 && s.p.Temperature == 0
}

// masked names what forbids a token.
func (s *Sampler) masked(id int32) string {
	for _, b := range s.bias {
		if b.id == id && math.IsInf(float64(b.val), -1) {
			return cutBias
		}
	}
	return cutMask
}

// removed runs the steps one by one over all candidates, whatever shorter way the
// token was drawn in, and names for each token of list the step that takes it out.
// Those that none does, since the ways may round differently at a border, are given
// the last step that cuts.
func (s *Sampler) removed(w []float32, list []TokenProb) map[int32]string {
	by := map[int32]string{}
	note := func(c []cand, what string) {
		for _, x := range list {
			if _, known := by[x.Token]; !known && !slices.ContainsFunc(c, func(c cand) bool { return c.id == x.Token }) {
				by[x.Token] = what
			}
		}
	}
	rest := StepTemperature.String()
	if s.p.Mirostat > 0 {
		rest = cutMirostat
	} else {
		s.survey(w)
		c := s.above(nil, w, -math.MaxFloat32)
		order := s.p.Order
		if order == nil {
			order = []Step{StepTopK, StepTypicalP, StepTopP, StepMinP}
		}
		for place, step := range order {
			if !s.p.active(step) {
				continue
			}
			if step == StepTemperature {
				if s.p.Temperature == 0 && s.p.TemperatureRange == 0 {
					rest = step.String()
					break
				}
			} else if step != StepPenalties && step != StepDRY {
				rest = step.String()
			}
			c = s.apply(step, place, c)
			note(c, step.String())
		}
		if s.greedy() && s.p.Temperature == 0 {
			rest = StepTemperature.String()
		}
	}
	note(nil, rest)
	return by
}

// TraceForced is the trace of a token that was not drawn, as Score found it in a row of
// logits: nothing else could come.
func (s *Sampler) TraceForced(row []float32, r *Result) *Trace {
	t := &Trace{Entropy: entropy(row), Kept: 1, Forced: true, Cuts: make([]string, len(r.Top))}
	for i, x := range r.Top {
		if x.Token != r.Token {
			t.Cuts[i] = cutMask
		}
	}
	return t
}

// entropy of the distribution that logits stand for, in nats; 0 if the largest is not
// finite.
func entropy(row []float32) float64 {
	top := maximum(row)
	if isInf(top) {
		return 0
	}
	total, dot := 0.0, 0.0
	for _, l := range row {
		if e := weight(l, top); e > 0 { // not for NaN
			total += e
			dot += float64(e * (float64(l) - float64(top)))
		}
	}
	return max(0, math.Log(total)-dot/total)
}
