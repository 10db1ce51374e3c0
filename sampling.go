package ridge

import (
	"fmt"

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

// sampling is how the tokens of a generation are chosen.
func (m *Model) sampling(g *Generation) (p sample.Params, err error) {
	p = g.Sampling
	if !g.Exact {
		if p, err = recommend(p, m.Recommended()); err != nil {
			return p, err
		}
	}
	if p.DRY.Multiplier > 0 && p.DRY.Breakers == nil {
		texts := g.Breakers
		if texts == nil {
			texts = sample.DefaultBreakers()
		}
		p.DRY.Breakers, err = m.Breakers(texts...)
	}
	return p, err
}

// Breakers returns what no text that DRY finds repeated goes beyond, see
// sample.DRY: up to 32 texts of 1 to 40 bytes.
func (m *Model) Breakers(texts ...string) (*sample.Breakers, error) {
	found, err := m.tok.Overlaps(texts)
	if err != nil {
		return nil, fmt.Errorf("ridge: breakers: %w", err)
	}
	return sample.NewBreakers(m.tok.VocabSize(), found.Tails, found.All()), nil
}

// recommend fills in what p does not say and the model's files do.
func recommend(p sample.Params, r model.Sampling) (sample.Params, error) {
	if p.RepetitionPenalty == 0 && r.RepetitionPenalty != nil {
		p.RepetitionPenalty = float32(*r.RepetitionPenalty)
		if p.PenaltyLastN == 0 && r.PenaltyLastN != nil {
			p.PenaltyLastN = *r.PenaltyLastN
		}
	}
	if p.Temperature != 0 || p.TemperatureRange != 0 || p.TopK != 0 || p.TopP != 0 || p.MinP != 0 || p.TypicalP != 0 ||
		p.TopNSigma != 0 || p.XTCProbability != 0 || p.Mirostat != 0 || p.Order != nil {
		return p, nil
	}
	for _, f := range []struct {
		dst *float32
		v   *float64
	}{
		{&p.Temperature, r.Temperature}, {&p.TopP, r.TopP}, {&p.MinP, r.MinP}, {&p.TypicalP, r.TypicalP}, {&p.XTCProbability, r.XTCProbability}, {&p.XTCThreshold, r.XTCThreshold},
		{&p.MirostatTau, r.MirostatTau}, {&p.MirostatEta, r.MirostatEta},
	} {
		if f.v != nil {
			*f.dst = float32(*f.v)
		}
	}
	if r.TopK != nil {
		p.TopK = max(0, *r.TopK)
	}
	if r.Mirostat != nil {
		p.Mirostat = *r.Mirostat
	}
	order, err := sample.ParseOrder(r.Samplers)
	if err != nil {
		return p, fmt.Errorf("ridge: %s: %w", r.From, err)
	}
	p.Order = order
	return p, nil
}
