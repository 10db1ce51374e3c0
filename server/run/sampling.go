package run

import (
	"cmp"
	"crypto/rand"
	"encoding/binary"
	"math"

	"ridge/sample"
	"ridge/server/fault"
	"ridge/text/tokenizer"
)

// Sampling says how tokens are chosen. What is nil comes from the model's file,
// then from the API's own defaults. Package sample has what the numbers mean.
type Sampling struct {
	Temperature       *float64 // 0 to 100; 0 takes the most probable token
	TopP              *float64 // 0 to 1
	TopK              *int     // -1 or more; 0 and -1 for all
	MinP              *float64 // 0 to 1
	TypicalP          *float64 // 0 to 1
	TopNSigma         *float64 // -1 to 1000; 0 and less for all
	XTCProbability    *float64 // 0 to 1
	XTCThreshold      *float64 // 0 to 1; above 0.5 for all
	DynatempRange     *float64 // 0 to 100
	DynatempExponent  *float64 // 0 to 100
	RepetitionPenalty *float64 // 0.01 to 100
	PresencePenalty   *float64 // -100 to 100
	FrequencyPenalty  *float64 // -100 to 100
	PenaltyLastN      *int     // tokens that penalties look at; 0 for none, -1 for all
	DRYMultiplier     *float64 // 0 to 1000
	DRYBase           *float64 // 1 to 1000
	DRYAllowedLength  *int     // 0 or more
	DRYLastN          *int     // tokens that are looked at; 0 for none, -1 for all
	Mirostat          *int     // 0 (off) to 2
	MirostatTau       *float64 // 0 to 1000
	MirostatEta       *float64 // 0 to 1000

	DRYBreakers []string      // nil for sample.DefaultBreakers
	Samplers    []sample.Step // the order of the steps, nil for the default one

	Seed *uint64 // nil for a random one

	BiasIDs   map[int32]float32  // added to logits, by token
	BiasTexts map[string]float32 // by a text whose tokens get it
}

// number is one of the numbers of Sampling.
type number struct {
	name   string // of the field in requests
	at     func(*Sampling) **float64
	dst    func(*sample.Params) *float32
	lo, hi float64
	// least is that 0 is a value, and not the sampler's word for a default or for off.
	least bool
	// other is that mirostat takes its place.
	other bool
}

var numbers = []number{
	{"temperature", func(s *Sampling) **float64 { return &s.Temperature }, func(p *sample.Params) *float32 { return &p.Temperature }, 0, 100, false, false},
	{"top_p", func(s *Sampling) **float64 { return &s.TopP }, func(p *sample.Params) *float32 { return &p.TopP }, 0, 1, true, true},
	{"min_p", func(s *Sampling) **float64 { return &s.MinP }, func(p *sample.Params) *float32 { return &p.MinP }, 0, 1, false, true},
	{"typical_p", func(s *Sampling) **float64 { return &s.TypicalP }, func(p *sample.Params) *float32 { return &p.TypicalP }, 0, 1, false, true},
	{"top_n_sigma", func(s *Sampling) **float64 { return &s.TopNSigma }, func(p *sample.Params) *float32 { return &p.TopNSigma }, -1, 1000, false, true},
	{"xtc_probability", func(s *Sampling) **float64 { return &s.XTCProbability }, func(p *sample.Params) *float32 { return &p.XTCProbability }, 0, 1, false, true},
	{"xtc_threshold", func(s *Sampling) **float64 { return &s.XTCThreshold }, func(p *sample.Params) *float32 { return &p.XTCThreshold }, 0, 1, true, true},
	{"dynatemp_range", func(s *Sampling) **float64 { return &s.DynatempRange }, func(p *sample.Params) *float32 { return &p.TemperatureRange }, 0, 100, false, true},
	{"dynatemp_exponent", func(s *Sampling) **float64 { return &s.DynatempExponent }, func(p *sample.Params) *float32 { return &p.TemperatureExponent }, 0, 100, true, true},
	{"repetition_penalty", func(s *Sampling) **float64 { return &s.RepetitionPenalty }, func(p *sample.Params) *float32 { return &p.RepetitionPenalty }, 0.01, 100, false, true},
	{"presence_penalty", func(s *Sampling) **float64 { return &s.PresencePenalty }, func(p *sample.Params) *float32 { return &p.PresencePenalty }, -100, 100, false, true},
	{"frequency_penalty", func(s *Sampling) **float64 { return &s.FrequencyPenalty }, func(p *sample.Params) *float32 { return &p.FrequencyPenalty }, -100, 100, false, true},
	{"dry_multiplier", func(s *Sampling) **float64 { return &s.DRYMultiplier }, func(p *sample.Params) *float32 { return &p.DRY.Multiplier }, 0, 1000, false, true},
	{"dry_base", func(s *Sampling) **float64 { return &s.DRYBase }, func(p *sample.Params) *float32 { return &p.DRY.Base }, 1, 1000, false, true},
	{"mirostat_tau", func(s *Sampling) **float64 { return &s.MirostatTau }, func(p *sample.Params) *float32 { return &p.MirostatTau }, 0, 1000, true, false},
	{"mirostat_eta", func(s *Sampling) **float64 { return &s.MirostatEta }, func(p *sample.Params) *float32 { return &p.MirostatEta }, 0, 1000, true, false},
}

// count is one of the whole numbers of Sampling.
type count struct {
	name   string
	at     func(*Sampling) **int
	dst    func(*sample.Params) *int
	lo, hi int
	other  bool // mirostat takes its place
}

// maxWindow is how many tokens back a step may be asked to look: more than any
// context has.
const maxWindow = 1 << 24

var counts = []count{
	{"top_k", func(s *Sampling) **int { return &s.TopK }, func(p *sample.Params) *int { return &p.TopK }, -1, math.MaxInt32, true},
	{"repeat_last_n", func(s *Sampling) **int { return &s.PenaltyLastN }, func(p *sample.Params) *int { return &p.PenaltyLastN }, -1, maxWindow, true},
	{"dry_allowed_length", func(s *Sampling) **int { return &s.DRYAllowedLength }, func(p *sample.Params) *int { return &p.DRY.AllowedLength }, 0, maxWindow, true},
	{"dry_penalty_last_n", func(s *Sampling) **int { return &s.DRYLastN }, func(p *sample.Params) *int { return &p.DRY.LastN }, -1, maxWindow, true},
	{"mirostat", func(s *Sampling) **int { return &s.Mirostat }, func(p *sample.Params) *int { return &p.Mirostat }, 0, 2, false},
}

// Or fills in what s lacks.
func (s Sampling) Or(d Sampling) Sampling {
	for _, f := range numbers {
		p := f.at(&s)
		*p = cmp.Or(*p, *f.at(&d))
	}
	for _, f := range counts {
		p := f.at(&s)
		*p = cmp.Or(*p, *f.at(&d))
	}
	if s.DRYBreakers == nil {
		s.DRYBreakers = d.DRYBreakers
	}
	if s.Samplers == nil {
		s.Samplers = d.Samplers
	}
	s.Seed = cmp.Or(s.Seed, d.Seed)
	return s
}

// settle turns s into what the sampler of p takes, with what m's files and the API
// say where s says nothing.
func (s Sampling) settle(p *Plan, api Sampling) (err error) {
	m := p.Model
	p.Sampling = s.Or(m.defaults).Or(api)
	if p.Request.Sampling, err = p.Sampling.params(m); err != nil {
		return err
	}
	if p.Sampling.Seed == nil {
		p.Sampling.Seed = &p.Request.Sampling.Seed
	}
	if p.Request.Sampling.Mirostat > 0 {
		p.Ignored = s.replaced()
	}
	return s.bias(m, &p.Request.Sampling)
}

// replaced names what s says although mirostat takes its place.
func (s *Sampling) replaced() (names []string) {
	add := func(said bool, name string) {
		if said {
			names = append(names, name+" (mirostat takes its place)")
		}
	}
	for _, f := range numbers {
		add(f.other && *f.at(s) != nil, f.name)
	}
	for _, f := range counts {
		add(f.other && *f.at(s) != nil, f.name)
	}
	add(s.Samplers != nil, "samplers")
	return names
}

// params turns s into what the sampler takes.
func (s Sampling) params(m *Model) (sample.Params, error) {
	p := sample.Params{PenaltyLastN: -1, Order: s.Samplers}
	for _, f := range numbers {
		v := *f.at(&s)
		if v == nil {
			continue
		}
		if !(*v >= f.lo && *v <= f.hi) {
			return p, fault.BadRequest(f.name, "expected %g to %g, found %g", f.lo, f.hi, *v)
		}
		dst := f.dst(&p)
		if *dst = float32(*v); *dst == 0 && f.least {
			*dst = math.SmallestNonzeroFloat32
		}
	}
	for _, f := range counts {
		v := *f.at(&s)
		if v == nil {
			continue
		}
		if *v < f.lo || *v > f.hi {
			return p, fault.BadRequest(f.name, "expected %d to %d, found %d", f.lo, f.hi, *v)
		}
		*f.dst(&p) = *v
	}
	if len(s.Samplers) > sample.MaxSteps {
		return p, fault.BadRequest("samplers", "expected at most %d, found %d", sample.MaxSteps, len(s.Samplers))
	}
	p.TopK, p.TopNSigma = max(0, p.TopK), max(0, p.TopNSigma)
	if p.PenaltyLastN == 0 { // off, as llama-server has it; 0 means a default to the sampler
		p.RepetitionPenalty, p.PresencePenalty, p.FrequencyPenalty = 0, 0, 0
	}
	if s.DRYLastN != nil && *s.DRYLastN == 0 { // likewise
		p.DRY.Multiplier = 0
	}
	if s.DRYAllowedLength != nil && *s.DRYAllowedLength == 0 {
		p.DRY.AllowedLength = -1
	}
	if err := s.breakers(m, &p); err != nil {
		return p, err
	}
	if s.Seed != nil {
		p.Seed = *s.Seed
	} else {
		var b [8]byte
		_, _ = rand.Read(b[:])                          // never fails
		p.Seed = binary.LittleEndian.Uint64(b[:]) >> 11 // readers of JSON keep 53 bits
	}
	return p, nil
}

// breakers puts the breakers of DRY into p.
func (s *Sampling) breakers(m *Model, p *sample.Params) error {
	texts := s.DRYBreakers
	if texts == nil {
		texts = sample.DefaultBreakers()
	}
	const field = "dry_sequence_breakers"
	if len(texts) > tokenizer.MaxOverlapTexts {
		return fault.BadRequest(field, "expected at most %d, found %d", tokenizer.MaxOverlapTexts, len(texts))
	}
	for _, t := range texts {
		if len(t) < 1 || len(t) > tokenizer.MaxOverlapBytes {
			return fault.BadRequest(field, "expected texts of 1 to %d bytes, found one of %d", tokenizer.MaxOverlapBytes, len(t))
		}
	}
	if p.DRY.Multiplier == 0 || len(texts) == 0 {
		return nil
	}
	found, err := m.tok.Overlaps(texts)
	if err != nil {
		return err
	}
	p.DRY.Breakers = sample.NewBreakers(m.tok.VocabSize(), found.Tails, found.All())
	return nil
}

// bias puts the logit biases into p.
func (s Sampling) bias(m *Model, p *sample.Params) error {
	if len(s.BiasIDs)+len(s.BiasTexts) == 0 {
		return nil
	}
	p.LogitBias = map[int32]float32{}
	for id, v := range s.BiasIDs {
		if int(id) >= m.tok.VocabSize() {
			return fault.BadRequest("logit_bias", "expected token ids below %d, found %d", m.tok.VocabSize(), id)
		}
		p.LogitBias[id] = v
	}
	for text, v := range s.BiasTexts {
		for _, id := range m.tok.Encode(nil, text, tokenizer.EncodeOptions{ParseSpecial: true}) {
			p.LogitBias[id] = v
		}
	}
	return nil
}
