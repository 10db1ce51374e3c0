package ridge

import (
	"ridge/model"
	"ridge/sample"
	"ridge/text/chat"
)

// Recommended returns how the model's files say that tokens should be chosen: a
// generation_config.json, or the metadata of a GGUF file.
func (m *Model) Recommended() model.Sampling { return m.m.Defaults().Sampling }

// Form returns the form of conversations that stands in for a chat template, with
// no name if the model has a template.
func (m *Model) Form() chat.Form { return m.form }

// sampling fills in what p does not say and the model's files do.
func (m *Model) sampling(p sample.Params) sample.Params {
	r := m.Recommended()
	if p.RepetitionPenalty == 0 && r.RepetitionPenalty != nil {
		p.RepetitionPenalty = float32(*r.RepetitionPenalty)
		if p.PenaltyLastN == 0 && r.PenaltyLastN != nil {
			p.PenaltyLastN = *r.PenaltyLastN
		}
	}
	if p.Temperature != 0 || p.TopK != 0 || p.TopP != 0 || p.MinP != 0 || p.TypicalP != 0 {
		return p
	}
	for _, f := range []struct {
		dst *float32
		v   *float64
	}{{&p.Temperature, r.Temperature}, {&p.TopP, r.TopP}, {&p.MinP, r.MinP}, {&p.TypicalP, r.TypicalP}} {
		if f.v != nil {
			*f.dst = float32(*f.v)
		}
	}
	if r.TopK != nil {
		p.TopK = max(0, *r.TopK)
	}
	return p
}
