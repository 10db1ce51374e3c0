package main

import (
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"ridge"
)

// gentleBelow is the number of weights below which a model repeats itself so often,
// when its most probable tokens are taken, that its chats get a penalty.
const gentleBelow = 1_000_000_000

// The penalty. With it long answers of smollm2 end, more of them than with half the
// tokens or with 1.05. It costs that model short answers of ridge eval answers, which is
// the price, and qwen2.5-coder:0.5b, the default, none; beyond 1.1 answers get worse.
// docs/models.md has the figures.
const (
	smallPenalty = 1.1
	smallLastN   = 128
)

// choosing are the flags that say how tokens are chosen: whoever gives one decides
// about all of them.
var choosing = []string{"temp", "top-k", "top-p", "min-p", "typical", "repeat-penalty", "repeat-last-n", "presence-penalty", "frequency-penalty",
	"top-n-sigma", "xtc-probability", "dynatemp-range", "dry-multiplier", "mirostat", "samplers"}

// isSmall reports whether a model is one whose chats get the penalty: it has few
// weights, and its files recommend nothing.
func isSmall(m *ridge.Model) bool { return m.Parameters() < gentleBelow && m.Recommended().From == "" }

// gentle gives g the penalty of small models, if no flag says how tokens are chosen.
func gentle(fs *pflag.FlagSet, g *ridge.Generation) {
	if !slices.ContainsFunc(choosing, fs.Changed) {
		g.Sampling.RepetitionPenalty, g.Sampling.PenaltyLastN = smallPenalty, smallLastN
	}
}

// samplingText is how tokens are chosen, for people: the temperature and what is
// not off.
func (s *session) samplingText() string {
	var parts []string
	penalty := false
	for _, p := range setParams {
		v := p.get(s)
		off := v == "0" || v == "1" && p.name != "mirostat" || v == "[]" || v == "default"
		switch p.name {
		case "num_predict", "seed", "stop":
			continue
		case "temperature":
			off = false
		case "repeat_penalty":
			penalty = !off
		case "repeat_last_n":
			off = !penalty
		}
		if !off && !s.idle(p.name) {
			parts = append(parts, p.name+" "+v)
		}
	}
	return strings.Join(parts, ", ")
}

// idle reports whether a parameter is one of a sampler that is off, but for the one
// that turns it on.
func (s *session) idle(name string) bool {
	p := &s.g.Sampling
	switch name {
	case "xtc_threshold":
		return p.XTCProbability == 0
	case "dynatemp_exponent":
		return p.TemperatureRange == 0
	case "dry_base", "dry_allowed_length", "dry_penalty_last_n":
		return p.DRY.Multiplier == 0
	case "mirostat_tau", "mirostat_eta":
		return p.Mirostat == 0
	}
	return false
}
