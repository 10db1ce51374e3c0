package sample

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// Step is a step of a chain.
type Step uint8

// The steps, in their default order.
const (
	StepPenalties Step = iota
	StepDRY
	StepTopNSigma
	StepTopK
	StepTypicalP
	StepTopP
	StepMinP
	StepXTC
	StepTemperature
)

// stepNames are llama.cpp's names, and other ones that it takes.
var stepNames = [][]string{
	{"penalties"}, {"dry"}, {"top_n_sigma", "top-n-sigma"}, {"top_k", "top-k"}, {"typ_p", "typical_p", "typical", "typical-p", "typ"},
	{"top_p", "top-p", "nucleus"}, {"min_p", "min-p"}, {"xtc"}, {"temperature", "temp"},
}

// String returns the name of a step.
func (s Step) String() string {
	if int(s) < len(stepNames) {
		return stepNames[s][0]
	}
	return fmt.Sprintf("step %d", uint8(s))
}

// ParseStep returns the step of a name that llama.cpp takes.
func ParseStep(name string) (Step, error) {
	var known []string
	for i, names := range stepNames {
		if slices.Contains(names, name) {
			return Step(i), nil
		}
		known = append(known, names[0])
	}
	return 0, fmt.Errorf("sample: step: expected one of %s, found %q", strings.Join(known, ", "), name)
}

// DefaultOrder is the order of the steps where Params has none.
func DefaultOrder() []Step {
	steps := make([]Step, len(stepNames))
	for i := range steps {
		steps[i] = Step(i)
	}
	return steps
}

// chained says whether the steps run one by one over all candidates. Without the
// samplers that need it, shorter ways give the same.
func (p *Params) chained() bool {
	return p.Order != nil || p.TopNSigma > 0 || p.XTCProbability > 0 || p.TemperatureRange > 0 || p.Mirostat > 0
}

// chain picks among logits after bias and mask.
func (s *Sampler) chain(w []float32) int32 {
	top := s.survey(w)
	if isInf(top) {
		return argmax(w)
	}
	c := s.above(s.cands[:0], w, -math.MaxFloat32)
	s.cands = c
	order := s.p.Order
	if order == nil {
		order = DefaultOrder()
	}
	if s.p.Mirostat > 0 {
		// Filters would take from it what it counts with.
		for _, step := range []Step{StepPenalties, StepDRY} {
			if slices.Contains(order, step) {
				s.apply(step, c)
			}
		}
		return s.mirostat(c)
	}
	for _, step := range order {
		if step == StepTemperature && s.p.Temperature == 0 && s.p.TemperatureRange == 0 {
			return best(c)
		}
		c = s.apply(step, c)
	}
	return s.draw(c, topLogit(c), 1)
}

// best returns the id of the largest logit, the lowest id among equals.
func best(c []cand) int32 {
	first := c[0]
	for _, x := range c[1:] {
		if before(&x, &first) {
			first = x
		}
	}
	return first.id
}

// apply runs a step over candidates, which are and stay in the order of their
// ids. At least one is left.
func (s *Sampler) apply(step Step, c []cand) []cand {
	top, p := topLogit(c), &s.p
	switch step {
	case StepPenalties:
		change(c, s.hist.counts, s.penalized)
	case StepDRY:
		if p.DRY.Multiplier > 0 {
			change(c, s.findRepeats(), func(l float32, n int32) float32 { return l - p.DRY.penalty(n) })
		}
	case StepTopNSigma:
		if p.TopNSigma > 0 {
			return minP(c, topNSigma(c, top, p.TopNSigma))
		}
	case StepTopK:
		if p.TopK > 0 && p.TopK < len(c) {
			s.order = append(s.order[:0], c...)
			sortAll(s.order)
			return notAfter(c, s.order[p.TopK-1])
		}
	case StepTypicalP:
		if on(p.TypicalP) {
			return s.typical(c, top, float64(p.TypicalP))
		}
	case StepTopP:
		if on(p.TopP) {
			return s.first(c, top, float64(p.TopP)*sumWeights(c, top))
		}
	case StepMinP:
		if p.MinP > 0 {
			return minP(c, minLogit(top, p.MinP))
		}
	case StepXTC:
		return s.excludeTop(c, top)
	case StepTemperature:
		s.temper(c, top)
	}
	return c
}

// change replaces the logits of the candidates in list, which has tokens by id.
func change(c []cand, list []count, to func(l float32, n int32) float32) {
	i := 0
	for _, x := range list {
		for i < len(c) && c[i].id < x.id {
			i++
		}
		if i < len(c) && c[i].id == x.id {
			c[i] = newCand(to(c[i].logit, x.n), int(x.id))
		}
	}
}

func sumWeights(c []cand, top float32) (total float64) {
	for i := range c {
		total += weight(c[i].logit, top)
	}
	return total
}

// topNSigma returns the least logit that is at most n standard deviations below
// the largest.
func topNSigma(c []cand, top, n float32) float32 {
	mean, square := 0.0, 0.0
	for i := range c {
		mean += float64(c[i].logit)
	}
	mean /= float64(len(c))
	for i := range c {
		d := float64(c[i].logit) - mean
		square += float64(d * d)
	}
	return float32(float64(top) - float64(n)*math.Sqrt(square/float64(len(c))))
}

// xtcStream tells the random numbers of XTC from those of the draw.
const xtcStream = 0x5eed_0f_11c5

// excludeTop leaves out all but the least probable of the candidates that are
// probable enough, as often as asked for.
func (s *Sampler) excludeTop(c []cand, top float32) []cand {
	p := &s.p
	if p.XTCProbability <= 0 || p.XTCThreshold > 0.5 || len(c) < 2 {
		return c
	}
	if uniform(s.p.Seed^xtcStream, s.step) > float64(p.XTCProbability) {
		return c
	}
	least := float64(p.XTCThreshold) * sumWeights(c, top)
	enough := func(x *cand) bool { return weight(x.logit, top) >= least }
	keep := -1
	for i := range c {
		if enough(&c[i]) && (keep < 0 || before(&c[keep], &c[i])) {
			keep = i
		}
	}
	n := 0
	for i := range c {
		if i == keep || !enough(&c[i]) {
			c[n] = c[i]
			n++
		}
	}
	return c[:n]
}

// temper divides the logits by the temperature, which may follow their entropy.
func (s *Sampler) temper(c []cand, top float32) {
	t := float64(s.p.Temperature)
	if r := float64(s.p.TemperatureRange); r > 0 && len(c) > 1 {
		lo, hi := max(0, t-r), t+r
		total, entropy := sumWeights(c, top), 0.0
		for i := range c {
			if x := weight(c[i].logit, top) / total; x > 0 {
				entropy -= float64(x * math.Log(x))
			}
		}
		power := float64(s.p.TemperatureExponent)
		if power == 0 {
			power = 1
		}
		t = lo + (hi-lo)*math.Pow(entropy/math.Log(float64(len(c))), power)
	}
	if t == 1 {
		return
	}
	t = max(t, 1e-6) // so that the best one takes all, and nothing overflows
	for i := range c {
		c[i] = newCand(float32((float64(c[i].logit)-float64(top))/t), int(c[i].id))
	}
}
