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
// then from the API's own defaults.
type Sampling struct {
	Temperature       *float64 // 0 to 100; 0 takes the most probable token
	TopP              *float64 // 0 to 1
	TopK              *int     // -1 or more; 0 and -1 for all
	MinP              *float64 // 0 to 1
	TypicalP          *float64 // 0 to 1
	RepetitionPenalty *float64 // 0.01 to 100
	PresencePenalty   *float64 // -100 to 100
	FrequencyPenalty  *float64 // -100 to 100
	PenaltyLastN      *int     // tokens that penalties look at; 0 for none, -1 for all

	Seed *uint64 // nil for a random one

	BiasIDs   map[int32]float32  // added to logits, by token
	BiasTexts map[string]float32 // by a text whose tokens get it
}

// or fills in what s lacks.
func (s Sampling) or(d Sampling) Sampling {
	s.Temperature = cmp.Or(s.Temperature, d.Temperature)
	s.TopP = cmp.Or(s.TopP, d.TopP)
	s.TopK = cmp.Or(s.TopK, d.TopK)
	s.MinP = cmp.Or(s.MinP, d.MinP)
	s.TypicalP = cmp.Or(s.TypicalP, d.TypicalP)
	s.RepetitionPenalty = cmp.Or(s.RepetitionPenalty, d.RepetitionPenalty)
	s.PresencePenalty = cmp.Or(s.PresencePenalty, d.PresencePenalty)
	s.FrequencyPenalty = cmp.Or(s.FrequencyPenalty, d.FrequencyPenalty)
	s.PenaltyLastN = cmp.Or(s.PenaltyLastN, d.PenaltyLastN)
	s.Seed = cmp.Or(s.Seed, d.Seed)
	return s
}

// params turns s into what the sampler takes.
func (s Sampling) params(m *Model, api Sampling) (sample.Params, error) {
	d := s.or(m.defaults).or(api)
	p := sample.Params{PenaltyLastN: -1}
	if d.PenaltyLastN != nil {
		p.PenaltyLastN = *d.PenaltyLastN
	}
	if p.PenaltyLastN == 0 { // off, as llama-server has it; 0 means a default to the sampler
		d.RepetitionPenalty, d.PresencePenalty, d.FrequencyPenalty = nil, nil, nil
	}
	for _, f := range []struct {
		name   string
		v      *float64
		dst    *float32
		lo, hi float64
	}{
		{"temperature", d.Temperature, &p.Temperature, 0, 100},
		{"top_p", d.TopP, &p.TopP, 0, 1},
		{"min_p", d.MinP, &p.MinP, 0, 1},
		{"typical_p", d.TypicalP, &p.TypicalP, 0, 1},
		{"repetition_penalty", d.RepetitionPenalty, &p.RepetitionPenalty, 0.01, 100},
		{"presence_penalty", d.PresencePenalty, &p.PresencePenalty, -100, 100},
		{"frequency_penalty", d.FrequencyPenalty, &p.FrequencyPenalty, -100, 100},
	} {
		if f.v == nil {
			continue
		}
		if !(*f.v >= f.lo && *f.v <= f.hi) {
			return p, fault.BadRequest(f.name, "expected %g to %g, found %g", f.lo, f.hi, *f.v)
		}
		*f.dst = float32(*f.v)
	}
	if d.TopP != nil && *d.TopP == 0 {
		p.TopP = math.SmallestNonzeroFloat32 // the sampler's 0 is off
	}
	if d.TopK != nil {
		if p.TopK = *d.TopK; p.TopK < -1 {
			return p, fault.BadRequest("top_k", "expected -1 or more, found %d", p.TopK)
		}
		p.TopK = max(0, p.TopK)
	}
	if d.Seed != nil {
		p.Seed = *d.Seed
	} else {
		var b [8]byte
		_, _ = rand.Read(b[:]) // never fails
		p.Seed = binary.LittleEndian.Uint64(b[:])
	}
	return p, s.bias(m, &p)
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
