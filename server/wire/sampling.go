package wire

import (
	"cmp"

	"ridge/server/run"
)

// Defaults is what OpenAI's and Anthropic's APIs give requests where neither
// they nor the model's file say anything: they sample from the whole distribution.
var Defaults = run.Sampling{Temperature: new(1.0)}

// SamplingFields choose tokens, with the names of OpenAI, vLLM and llama-server.
type SamplingFields struct {
	Temperature       *float64 `json:"temperature"`
	TopP              *float64 `json:"top_p"`
	TopK              *Integer `json:"top_k"`
	MinP              *float64 `json:"min_p"`
	TypicalP          *float64 `json:"typical_p"`
	RepetitionPenalty *float64 `json:"repetition_penalty"`
	PresencePenalty   *float64 `json:"presence_penalty"`
	FrequencyPenalty  *float64 `json:"frequency_penalty"`
	Seed              *Seed    `json:"seed"`
	LogitBias         *Biases  `json:"logit_bias"`
	RepeatPenalty     *float64 `json:"repeat_penalty"`
	RepeatLastN       *Integer `json:"repeat_last_n"`
}

// Sampling is what the fields say.
func (f *SamplingFields) Sampling() run.Sampling {
	s := run.Sampling{Temperature: f.Temperature, TopP: f.TopP, TopK: f.TopK.Pointer(), MinP: f.MinP, TypicalP: f.TypicalP, RepetitionPenalty: cmp.Or(f.RepetitionPenalty, f.RepeatPenalty),
		PresencePenalty: f.PresencePenalty, FrequencyPenalty: f.FrequencyPenalty, PenaltyLastN: f.RepeatLastN.Pointer(), Seed: f.Seed.Pointer()}
	if f.LogitBias != nil {
		s.BiasIDs, s.BiasTexts = f.LogitBias.ids, f.LogitBias.texts
	}
	return s
}
