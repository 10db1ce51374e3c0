package server

import (
	"crypto/rand"
	"encoding/binary"
	"math"

	"ridge/sample"
	"ridge/text/tokenizer"
)

// sampling are the fields that choose tokens, with the names of OpenAI, vLLM
// and llama-server. What is absent comes from the model's file, then from the
// API's own defaults.
type sampling struct {
	Temperature       *float64 `json:"temperature"`
	TopP              *float64 `json:"top_p"`
	TopK              *int     `json:"-"`
	MinP              *float64 `json:"min_p"`
	TypicalP          *float64 `json:"typical_p"`
	RepetitionPenalty *float64 `json:"repetition_penalty"`
	PresencePenalty   *float64 `json:"presence_penalty"`
	FrequencyPenalty  *float64 `json:"frequency_penalty"`
	Seed              *seed    `json:"seed"`
	LogitBias         *biases  `json:"logit_bias"`

	TopKField     *integer `json:"top_k"`
	RepeatPenalty *float64 `json:"repeat_penalty"`
	RepeatLastN   *integer `json:"repeat_last_n"`
}

// or fills in what s lacks.
func (s sampling) or(d sampling) sampling {
	if s.TopKField != nil {
		k := s.TopKField.value(0)
		s.TopK = &k
	}
	if s.RepetitionPenalty == nil {
		s.RepetitionPenalty = s.RepeatPenalty
	}
	set(&s.Temperature, d.Temperature)
	set(&s.TopP, d.TopP)
	set(&s.TopK, d.TopK)
	set(&s.MinP, d.MinP)
	set(&s.TypicalP, d.TypicalP)
	set(&s.RepetitionPenalty, d.RepetitionPenalty)
	set(&s.PresencePenalty, d.PresencePenalty)
	set(&s.FrequencyPenalty, d.FrequencyPenalty)
	set(&s.RepeatLastN, d.RepeatLastN)
	set(&s.Seed, d.Seed)
	return s
}

func set[T any](dst **T, v *T) {
	if *dst == nil {
		*dst = v
	}
}

func ptr[T any](v T) *T { return &v }

// Defaults of the APIs, for what neither the request nor the model's file
// says. OpenAI and Anthropic sample from the whole distribution; Ollama's are
// those of its options.
var (
	openAIDefaults = sampling{Temperature: ptr(1.0)}
	ollamaDefaults = sampling{Temperature: ptr(0.8), TopK: ptr(40), TopP: ptr(0.9)}
)

// params turns s into what the sampler takes.
func (s sampling) params(m *Model, api sampling) (sample.Params, error) {
	d := s.or(m.defaults).or(api)
	p := sample.Params{PenaltyLastN: d.RepeatLastN.value(-1)}
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
			return p, badRequest(f.name, "expected %g to %g, found %g", f.lo, f.hi, *f.v)
		}
		*f.dst = float32(*f.v)
	}
	if d.TopP != nil && *d.TopP == 0 {
		p.TopP = math.SmallestNonzeroFloat32 // the sampler's 0 is off
	}
	if d.TopK != nil {
		if p.TopK = *d.TopK; p.TopK < -1 {
			return p, badRequest("top_k", "expected -1 or more, found %d", p.TopK)
		}
		p.TopK = max(0, p.TopK)
	}
	if s.Seed != nil && !s.Seed.random {
		p.Seed = s.Seed.value
	} else {
		var b [8]byte
		_, _ = rand.Read(b[:]) // never fails
		p.Seed = binary.LittleEndian.Uint64(b[:])
	}
	return p, s.bias(m, &p)
}

// bias puts the logit biases into p.
func (s sampling) bias(m *Model, p *sample.Params) error {
	if s.LogitBias == nil || len(s.LogitBias.ids)+len(s.LogitBias.texts) == 0 {
		return nil
	}
	p.LogitBias = map[int32]float32{}
	for id, v := range s.LogitBias.ids {
		if int(id) >= m.tok.VocabSize() {
			return badRequest("logit_bias", "expected token ids below %d, found %d", m.tok.VocabSize(), id)
		}
		p.LogitBias[id] = v
	}
	for text, v := range s.LogitBias.texts {
		for _, id := range m.tok.Encode(nil, text, tokenizer.EncodeOptions{ParseSpecial: true}) {
			p.LogitBias[id] = v
		}
	}
	return nil
}
