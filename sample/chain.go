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

// steps has, by step, llama.cpp's names and other ones that it takes, and its letter.
var steps = []struct {
	names  string
	letter byte
}{
	StepPenalties:   {"penalties", 'e'},
	StepDRY:         {"dry", 'd'},
	StepTopNSigma:   {"top_n_sigma top-n-sigma topnsigma top-nsigma", 's'},
	StepTopK:        {"top_k top-k topk", 'k'},
	StepTypicalP:    {"typ_p typ-p typp typ typical_p typical-p typical", 'y'},
	StepTopP:        {"top_p top-p topp nucleus", 'p'},
	StepMinP:        {"min_p min-p minp", 'm'},
	StepXTC:         {"xtc", 'x'},
	StepTemperature: {"temperature temp", 't'},
}

// String returns the name of a step.
func (s Step) String() string {
	if int(s) < len(steps) {
		name, _, _ := strings.Cut(steps[s].names, " ")
		return name
	}
	return fmt.Sprintf("step %d", uint8(s))
}

// ParseStep returns the step of a name that llama.cpp takes.
func ParseStep(name string) (Step, error) {
	for i, x := range steps {
		if slices.Contains(strings.Fields(x.names), strings.ToLower(name)) {
			return Step(i), nil
		}
	}
	return 0, fmt.Errorf("sample: samplers: expected %s, found %q", strings.Join(StepNames(DefaultOrder()), ", "), name)
}

// ParseOrder returns the steps of names, nil for none.
func ParseOrder(names []string) (order []Step, err error) {
	if names != nil {
		order = make([]Step, len(names))
	}
	for i, name := range names {
		if order[i], err = ParseStep(name); err != nil {
			return nil, err
		}
	}
	return order, nil
}

// ParseSteps returns the steps of a string of llama.cpp's letters, such as "kpt".
func ParseSteps(letters string) ([]Step, error) {
	out := make([]Step, 0, len(letters))
next:
	for _, r := range letters {
		for i, x := range steps {
			if r == rune(x.letter) {
				out = append(out, Step(i))
				continue next
			}
		}
		var known []byte
		for _, x := range steps {
			known = append(known, x.letter)
		}
		return nil, fmt.Errorf("sample: samplers: expected letters of %s, found %q", known, letters)
	}
	return out, nil
}

// StepNames returns the names of steps.
func StepNames(order []Step) []string {
	names := make([]string, len(order))
	for i, s := range order {
		names[i] = s.String()
	}
	return names
}

// DefaultOrder is the order of the steps where Params has none.
func DefaultOrder() []Step {
	order := make([]Step, len(steps))
	for i := range order {
		order[i] = Step(i)
	}
	return order
}

// settle switches off what does not count, and sets Order to the steps that are
// left where they must run one by one over all candidates. It is nil where shorter
// ways give the same: for steps in the default order that were there before
// there were others.
func (p *Params) settle() {
	if p.XTCThreshold == 0 {
		p.XTCThreshold = DefaultXTCThreshold
	}
	order := p.Order
	if order == nil {
		order = DefaultOrder()
	}
	if p.Mirostat > 0 {
		order = []Step{StepTemperature}
		p.TemperatureRange = 0
	}
	for step := range steps {
		if !slices.Contains(order, Step(step)) {
			p.off(Step(step))
		}
	}
	order = slices.DeleteFunc(slices.Clone(order), func(s Step) bool { return !p.active(s) })
	p.Order = nil
	if !ascends(order) || p.TopNSigma > 0 || p.active(StepXTC) || p.TemperatureRange > 0 {
		p.Order = order
	}
}

// ascends reports whether steps come in the default order, each once.
func ascends(order []Step) bool {
	for i := 1; i < len(order); i++ {
		if order[i] <= order[i-1] {
			return false
		}
	}
	return true
}

// active reports whether a step changes anything.
func (p *Params) active(step Step) bool {
	switch step {
	case StepPenalties:
		return p.penalizes()
	case StepDRY:
		return p.DRY.Multiplier > 0
	case StepTopNSigma:
		return p.TopNSigma > 0
	case StepTopK:
		return p.TopK > 0
	case StepTypicalP:
		return on(p.TypicalP)
	case StepTopP:
		return on(p.TopP)
	case StepMinP:
		return p.MinP > 0
	case StepXTC:
		return p.XTCProbability > 0 && p.XTCThreshold <= 0.5
	}
	return p.Temperature != 1 || p.TemperatureRange > 0
}

// off makes a step one that changes nothing.
func (p *Params) off(step Step) {
	switch step {
	case StepPenalties:
		p.RepetitionPenalty, p.PresencePenalty, p.FrequencyPenalty = 1, 0, 0
	case StepDRY:
		p.DRY.Multiplier = 0
	case StepTopNSigma:
		p.TopNSigma = 0
	case StepTopK:
		p.TopK = 0
	case StepTypicalP:
		p.TypicalP = 0
	case StepTopP:
		p.TopP = 0
	case StepMinP:
		p.MinP = 0
	case StepXTC:
		p.XTCProbability = 0
	case StepTemperature:
		p.Temperature, p.TemperatureRange = 1, 0
	}
}

// chained says whether the steps run one by one over all candidates.
func (p *Params) chained() bool { return p.Order != nil || p.Mirostat > 0 }

// chain picks among logits after bias and mask.
func (s *Sampler) chain(w []float32) int32 {
	if s.p.Mirostat > 0 && s.p.Temperature == 0 {
		return argmax(w)
	}
	top := s.survey(w)
	if isInf(top) {
		return argmax(w)
	}
	c := s.above(s.cands[:0], w, -math.MaxFloat32)
	s.cands = c
	if s.p.Mirostat > 0 {
		return s.mirostat(c)
	}
	for place, step := range s.p.Order {
		if step == StepTemperature && s.p.Temperature == 0 && s.p.TemperatureRange == 0 {
			tok := best(c)
			s.left = append(s.order[:0], newCand(0, int(tok)))
			return tok
		}
		c = s.apply(step, place, c)
	}
	s.left = c
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

// apply runs a step at a place of the chain over candidates, which are and stay in
// the order of their ids. At least one is left.
func (s *Sampler) apply(step Step, place int, c []cand) []cand {
	top, p := topLogit(c), &s.p
	switch step {
	case StepPenalties:
		change(c, s.hist.counts, s.penalized)
	case StepDRY:
		change(c, s.repeated(), s.heldOff)
	case StepTopNSigma:
		return minP(c, topNSigma(c, top, p.TopNSigma))
	case StepTopK:
		if p.TopK < len(c) {
			s.order = append(s.order[:0], c...)
			selectFirst(s.order, p.TopK)
			return notAfter(c, last(s.order[:p.TopK]))
		}
	case StepTypicalP:
		return s.typical(c, top, float64(p.TypicalP))
	case StepTopP:
		return s.first(c, top, float64(p.TopP)*sumWeights(c, top))
	case StepMinP:
		return minP(c, minLogit(top, p.MinP))
	case StepXTC:
		return s.excludeTop(c, top, place)
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
func (s *Sampler) excludeTop(c []cand, top float32, place int) []cand {
	p := &s.p
	if len(c) < 2 || uniform(p.Seed^xtcStream+uint64(place), s.step) > float64(p.XTCProbability) {
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
