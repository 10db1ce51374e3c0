// Package sample picks the next token from a model's logits.
//
// A Sampler belongs to one sequence. Its choice depends on nothing but its
// parameters, the tokens it has accepted, and the logits: not on time, not on
// threads, not on other sequences. Steps run in the order of llama.cpp's
// default chain:
//
//	logit bias → mask → penalties → DRY → top-n-sigma → top-k → typical → top-p → min-p → XTC → temperature → draw
//
// so every filter but the last works on the distribution at temperature 1. With
// Params.Order they run in another order, and what it leaves out is off.
package sample

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// Params says how tokens are picked. The zero value is greedy: the token with
// the highest logit, the lowest id among equals.
type Params struct {
	// Temperature divides the logits before the draw. 0 is greedy: bias, mask
	// and penalties apply, filters have nothing to do. In [0, ∞).
	Temperature float32
	// TopK keeps the K tokens with the highest logits. 0 keeps all.
	TopK int
	// TypicalP keeps the tokens whose surprise is closest to the entropy, up
	// to this share of the probability (Meister et al., "Locally Typical
	// Sampling"). In [0, 1]; 0 and 1 keep all.
	TypicalP float32
	// TopP keeps the most probable tokens up to this share of the probability,
	// at least one (Holtzman et al., "The Curious Case of Neural Text
	// Degeneration"). In [0, 1]; 0 and 1 keep all.
	TopP float32
	// MinP keeps tokens at least this fraction as probable as the most
	// probable one. In [0, 1]; 0 keeps all.
	MinP float32
	// TopNSigma keeps tokens whose logits are at most this many standard
	// deviations of all logits below the largest (Tang et al., "Top-nσ"). 0 keeps
	// all.
	TopNSigma float32
	// XTCProbability is how likely it is that, of the tokens with at least
	// XTCThreshold of the probability, all but the least probable are left out
	// ("exclude top choices"). Both in [0, 1]; a probability of 0, or a threshold
	// above 0.5, keeps all. A threshold of 0 means DefaultXTCThreshold.
	XTCProbability, XTCThreshold float32
	// TemperatureRange has the temperature follow the entropy, from Temperature
	// less it (not below 0) where one token is certain to Temperature and it more
	// where all are equal, by the TemperatureExponent-th power of entropy over the most
	// (dynamic temperature). 0 is off; an exponent of 0 means 1.
	TemperatureRange, TemperatureExponent float32
	// Mirostat, 1 or 2, holds the surprise of tokens near MirostatTau bits, which it
	// corrects by MirostatEta of the error (Basu et al., "Mirostat"). As in
	// llama.cpp it takes the place of all filters and penalties: of the other
	// parameters only LogitBias, the mask, Temperature and Seed count then. 0 is off;
	// a tau of 0 means DefaultMirostatTau, an eta of 0 DefaultMirostatEta.
	Mirostat                 int
	MirostatTau, MirostatEta float32
	// DRY holds off what would go on with a text that was there before.
	DRY DRY
	// Order are the steps that run, in their order; nil for all in the default one.
	// What is left out is off, the temperature 1. A step that is there twice runs
	// twice. At most MaxSteps.
	Order []Step

	// RepetitionPenalty divides the logit of a token in the penalty window if
	// it is positive and multiplies it otherwise (Keskar et al., "CTRL").
	// Positive; 0 and 1 are off, above 1 discourages repetition.
	RepetitionPenalty float32
	// PresencePenalty is subtracted from the logit of every token in the
	// window, FrequencyPenalty once for every time it occurs there. Finite;
	// 0 is off, negative values encourage.
	PresencePenalty, FrequencyPenalty float32
	// PenaltyLastN is how many of the last accepted tokens the penalties look
	// at: 0 means DefaultPenaltyLastN, -1 all of them.
	PenaltyLastN int

	// LogitBias is added to the logits of single tokens: finite, or -Inf to
	// forbid the token.
	LogitBias map[int32]float32

	// Seed selects the random numbers. Every seed is fixed, 0 (unset) too:
	// a caller that wants a different answer each time must pick the seed.
	Seed uint64
	// LogProbs asks for the log-probability of the token picked and of this
	// many most probable ones, under the model's own distribution: before
	// bias, mask, penalties and filters, at temperature 1. 0 is off.
	LogProbs int
	// ProbIDs are tokens that are listed, in this order, in the place of the most
	// probable ones; nil for none. They need LogProbs, whose number does not count then.
	ProbIDs []int32
	// Drawn asks for log-probabilities under the distribution that tokens are drawn
	// from, after all steps, instead of the model's own. Tokens that cannot be drawn
	// are not listed. It needs LogProbs.
	Drawn bool
	// Trace asks for what each token was drawn from, see Result.Trace. It needs
	// LogProbs.
	Trace bool
}

// DefaultPenaltyLastN is the penalty window when Params leaves it 0.
const DefaultPenaltyLastN = 64

// What other parameters mean when Params leaves them 0, as in llama.cpp.
const (
	DefaultXTCThreshold = 0.1
	DefaultMirostatTau  = 5
	DefaultMirostatEta  = 0.1
)

// MaxSteps bounds Params.Order.
const MaxSteps = 32

// maxPenaltyLastN bounds the memory of a penalty window.
const maxPenaltyLastN = 1 << 24

// check reports the first parameter that is out of range.
func (p *Params) check(vocab int) error {
	if vocab < 1 || vocab > math.MaxInt32 {
		return fmt.Errorf("sample: vocabulary size: expected 1 to %d, found %d", math.MaxInt32, vocab)
	}
	inf := float32(math.Inf(1))
	for _, f := range []struct {
		name   string
		val    float32
		lo, hi float32
		want   string
	}{
		{"temperature", p.Temperature, 0, inf, "0 or a positive number"},
		{"typical_p", p.TypicalP, 0, 1, "a number in [0, 1]"},
		{"top_p", p.TopP, 0, 1, "a number in [0, 1]"},
		{"min_p", p.MinP, 0, 1, "a number in [0, 1]"},
		{"top_n_sigma", p.TopNSigma, 0, inf, "0 (off) or a positive number"},
		{"xtc_probability", p.XTCProbability, 0, 1, "a number in [0, 1]"},
		{"xtc_threshold", p.XTCThreshold, 0, 1, "0 (0.1) or a number up to 1"},
		{"dynatemp_range", p.TemperatureRange, 0, inf, "0 (off) or a positive number"},
		{"dynatemp_exponent", p.TemperatureExponent, 0, inf, "0 (1) or a positive number"},
		{"mirostat_tau", p.MirostatTau, 0, inf, "0 (5) or a positive number"},
		{"mirostat_eta", p.MirostatEta, 0, inf, "0 (0.1) or a positive number"},
		{"dry_multiplier", p.DRY.Multiplier, 0, inf, "0 (off) or a positive number"},
		{"repetition_penalty", p.RepetitionPenalty, 0, inf, "0 (off) or a positive number"},
		{"presence_penalty", p.PresencePenalty, -inf, inf, "a number"},
		{"frequency_penalty", p.FrequencyPenalty, -inf, inf, "a number"},
	} {
		// Written so that NaN fails.
		if !(f.val >= f.lo && f.val <= f.hi) || math.IsInf(float64(f.val), 0) {
			return fmt.Errorf("sample: %s: expected %s, found %v", f.name, f.want, f.val)
		}
	}
	switch {
	case p.TopK < 0:
		return fmt.Errorf("sample: top_k: expected 0 (off) or a positive number, found %d", p.TopK)
	case p.PenaltyLastN < -1 || p.PenaltyLastN > maxPenaltyLastN:
		return fmt.Errorf("sample: penalty_last_n: expected -1 (all) to %d, found %d", maxPenaltyLastN, p.PenaltyLastN)
	case p.Mirostat < 0 || p.Mirostat > 2:
		return fmt.Errorf("sample: mirostat: expected 0 (off), 1 or 2, found %d", p.Mirostat)
	case p.DRY.Base != 0 && !(p.DRY.Base >= 1 && p.DRY.Base < inf):
		return fmt.Errorf("sample: dry_base: expected 0 (1.75) or a number of at least 1, found %v", p.DRY.Base)
	case p.DRY.AllowedLength < -1 || p.DRY.AllowedLength > maxPenaltyLastN:
		return fmt.Errorf("sample: dry_allowed_length: expected -1 (none) to %d, found %d", maxPenaltyLastN, p.DRY.AllowedLength)
	case p.DRY.LastN < -1 || p.DRY.LastN > maxPenaltyLastN:
		return fmt.Errorf("sample: dry_penalty_last_n: expected -1 (all) to %d, found %d", maxPenaltyLastN, p.DRY.LastN)
	case p.LogProbs < 0 || p.LogProbs > vocab:
		return fmt.Errorf("sample: logprobs: expected 0 to %d, found %d", vocab, p.LogProbs)
	}
	if err := p.checkProbs(vocab); err != nil {
		return err
	}
	if len(p.Order) > MaxSteps {
		return fmt.Errorf("sample: samplers: expected at most %d steps, found %d", MaxSteps, len(p.Order))
	}
	for _, step := range p.Order {
		if int(step) >= len(steps) {
			return fmt.Errorf("sample: samplers: expected steps up to %d, found %d", len(steps)-1, step)
		}
	}
	for _, b := range p.biases() {
		if b.id < 0 || int(b.id) >= vocab {
			return fmt.Errorf("sample: logit_bias: expected token ids 0 to %d, found %d", vocab-1, b.id)
		}
		if b.val != b.val || math.IsInf(float64(b.val), 1) {
			return fmt.Errorf("sample: logit_bias of token %d: expected a number or -Inf, found %v", b.id, b.val)
		}
	}
	return nil
}

// checkProbs reports what cannot be listed with tokens.
func (p *Params) checkProbs(vocab int) error {
	switch {
	case p.LogProbs == 0 && p.Trace:
		return errors.New("sample: trace: expected log-probabilities of some tokens, found none")
	case p.LogProbs == 0 && (p.Drawn || p.ProbIDs != nil):
		return errors.New("sample: kind of log-probabilities: expected log-probabilities of some tokens, found none")
	case p.Drawn && (p.Trace || p.ProbIDs != nil), p.ProbIDs != nil && p.Trace:
		return errors.New("sample: log-probabilities: expected those of a trace, those of some tokens, or those of what is drawn, found two of them")
	}
	for _, id := range p.ProbIDs {
		if id < 0 || int(id) >= vocab {
			return fmt.Errorf("sample: log-probabilities: expected token ids 0 to %d, found %d", vocab-1, id)
		}
	}
	return nil
}

// bias is one entry of LogitBias.
type bias struct {
	id  int32
	val float32
}

// biases returns LogitBias in the order of token ids.
func (p *Params) biases() []bias {
	out := make([]bias, 0, len(p.LogitBias))
	for id, v := range p.LogitBias {
		out = append(out, bias{id, v})
	}
	slices.SortFunc(out, func(a, b bias) int { return int(a.id) - int(b.id) })
	return out
}
