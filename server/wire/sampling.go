package wire

import (
	"cmp"
	"encoding/json"
	"math"
	"strings"

	"ridge/sample"
	"ridge/server/fault"
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
	SamplerFields
}

// SamplerFields are llama-server's own samplers.
type SamplerFields struct {
	TopNSigma        *float64   `json:"top_n_sigma"`
	XTCProbability   *float64   `json:"xtc_probability"`
	XTCThreshold     *float64   `json:"xtc_threshold"`
	DynatempRange    *float64   `json:"dynatemp_range"`
	DynatempExponent *float64   `json:"dynatemp_exponent"`
	DRYMultiplier    *float64   `json:"dry_multiplier"`
	DRYBase          *float64   `json:"dry_base"`
	DRYAllowedLength *Integer   `json:"dry_allowed_length"`
	DRYLastN         *Integer   `json:"dry_penalty_last_n"`
	DRYBreakers      StringList `json:"dry_sequence_breakers"`
	Mirostat         *Integer   `json:"mirostat"`
	MirostatTau      *float64   `json:"mirostat_tau"`
	MirostatEta      *float64   `json:"mirostat_eta"`
	Samplers         Samplers   `json:"samplers"`
}

// Into puts what the fields say into s.
func (f *SamplerFields) Into(s *run.Sampling) {
	s.TopNSigma, s.XTCProbability, s.XTCThreshold, s.DynatempRange, s.DynatempExponent = f.TopNSigma, f.XTCProbability, f.XTCThreshold, f.DynatempRange, f.DynatempExponent
	s.DRYMultiplier, s.DRYBase, s.DRYAllowedLength, s.DRYLastN, s.DRYBreakers = f.DRYMultiplier, f.DRYBase, f.DRYAllowedLength.Pointer(), f.DRYLastN.Pointer(), f.DRYBreakers
	s.Mirostat, s.MirostatTau, s.MirostatEta, s.Samplers = f.Mirostat.Pointer(), f.MirostatTau, f.MirostatEta, f.Samplers
}

// Samplers is the order of the samplers: a list of names, or a string of letters.
type Samplers []sample.Step

// UnmarshalJSON reads either.
func (l *Samplers) UnmarshalJSON(b []byte) error {
	var letters string
	var names []string
	var err error
	switch {
	case string(b) == "null":
	case json.Unmarshal(b, &letters) == nil:
		*l, err = sample.ParseSteps(letters)
	case json.Unmarshal(b, &names) == nil:
		*l, err = sample.ParseOrder(names)
	default:
		return WrongType[Samplers](b)
	}
	if err != nil {
		return fault.BadRequest("samplers", "%s", strings.TrimPrefix(err.Error(), "sample: samplers: "))
	}
	return nil
}

// Wants says what the field may be.
func (Samplers) Wants() string { return "a list of names, or a string of letters" }

// Settings are llama-server's names for how tokens are chosen.
func Settings(s run.Sampling) map[string]any {
	number := func(v *float64, off float64) float64 {
		if v == nil {
			return off
		}
		return *v
	}
	count := func(n *int, off int) int {
		if n == nil {
			return off
		}
		return *n
	}
	breakers, order, seed := s.DRYBreakers, s.Samplers, uint64(math.MaxUint32) // a random one
	if breakers == nil {
		breakers = sample.DefaultBreakers()
	}
	if order == nil {
		order = sample.DefaultOrder()
	}
	if s.Seed != nil {
		seed = *s.Seed
	}
	return map[string]any{
		"seed": seed, "temperature": number(s.Temperature, 0), "top_k": count(s.TopK, 0), "top_p": number(s.TopP, 1), "min_p": number(s.MinP, 0), "typical_p": number(s.TypicalP, 1),
		"top_n_sigma": number(s.TopNSigma, -1), "xtc_probability": number(s.XTCProbability, 0), "xtc_threshold": number(s.XTCThreshold, sample.DefaultXTCThreshold),
		"dynatemp_range": number(s.DynatempRange, 0), "dynatemp_exponent": number(s.DynatempExponent, 1),
		"repeat_penalty": number(s.RepetitionPenalty, 1), "repeat_last_n": count(s.PenaltyLastN, -1), "presence_penalty": number(s.PresencePenalty, 0), "frequency_penalty": number(s.FrequencyPenalty, 0),
		"dry_multiplier": number(s.DRYMultiplier, 0), "dry_base": number(s.DRYBase, sample.DefaultDRYBase), "dry_allowed_length": count(s.DRYAllowedLength, sample.DefaultDRYAllowedLength),
		"dry_penalty_last_n": count(s.DRYLastN, sample.DefaultPenaltyLastN), "dry_sequence_breakers": breakers,
		"mirostat": count(s.Mirostat, 0), "mirostat_tau": number(s.MirostatTau, sample.DefaultMirostatTau), "mirostat_eta": number(s.MirostatEta, sample.DefaultMirostatEta),
		"samplers": sample.StepNames(order),
	}
}

// Sampling is what the fields say.
func (f *SamplingFields) Sampling() run.Sampling {
	s := run.Sampling{Temperature: f.Temperature, TopP: f.TopP, TopK: f.TopK.Pointer(), MinP: f.MinP, TypicalP: f.TypicalP, RepetitionPenalty: cmp.Or(f.RepetitionPenalty, f.RepeatPenalty),
		PresencePenalty: f.PresencePenalty, FrequencyPenalty: f.FrequencyPenalty, PenaltyLastN: f.RepeatLastN.Pointer(), Seed: f.Seed.Pointer()}
	f.Into(&s)
	if f.LogitBias != nil {
		s.BiasIDs, s.BiasTexts = f.LogitBias.ids, f.LogitBias.texts
	}
	return s
}
