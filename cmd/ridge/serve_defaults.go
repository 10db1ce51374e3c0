package main

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"

	"github.com/spf13/pflag"

	"ridge/server"
	serving "ridge/server/run"
)

// requestDefaults are what requests get that do not say otherwise, of all models or
// of one. They count before what a model's file recommends.
type requestDefaults struct {
	sampling  serving.Sampling
	maxTokens *int
	system    string
	args      map[string]any // of the chat template
}

// defaultNames are the flags, and keys of a configuration, of requestDefaults, with
// their help.
var defaultNames = [][2]string{
	{"temp", "temperature of requests that say none; 0 takes the most probable token"},
	{"top-p", "top_p of requests that say none"},
	{"min-p", "min_p of requests that say none"},
	{"top-k", "top_k of requests that say none; 0 for all tokens"},
	{"typical", "typical_p of requests that say none"},
	{"repeat-penalty", "repeat_penalty of requests that say none"},
	{"repeat-last-n", "repeat_last_n of requests that say none; 0 for none, -1 for all"},
	{"presence-penalty", "presence_penalty of requests that say none"},
	{"frequency-penalty", "frequency_penalty of requests that say none"},
	{"top-n-sigma", "top_n_sigma of requests that say none"},
	{"xtc-probability", "xtc_probability of requests that say none"},
	{"xtc-threshold", "xtc_threshold of requests that say none"},
	{"dynatemp-range", "dynatemp_range of requests that say none"},
	{"dynatemp-exp", "dynatemp_exponent of requests that say none"},
	{"dry-multiplier", "dry_multiplier of requests that say none"},
	{"dry-base", "dry_base of requests that say none"},
	{"dry-allowed-length", "dry_allowed_length of requests that say none"},
	{"dry-penalty-last-n", "dry_penalty_last_n of requests that say none; 0 for none, -1 for all"},
	{"mirostat", "mirostat of requests that say none: 0, 1 or 2"},
	{"mirostat-ent", "mirostat_tau of requests that say none"},
	{"mirostat-lr", "mirostat_eta of requests that say none"},
	{"samplers", "samplers of requests that say none: names in their order, separated by ';'"},
	{"seed", "seed of requests that say none; -1 for a random one each"},
	{"max-tokens", "tokens of answers to requests that say none; -1 for as many as fit"},
	{"think", "on or off: reasoning of models that may or may not, where a request says nothing"},
	{"system", "system message of conversations that have none"},
	{"chat-template-kwargs", "JSON object with variables of the chat template, where a request does not set them"},
}

// defaultNumbers are the defaults that are numbers, with their ranges.
var defaultNumbers = map[string]struct {
	at     func(*serving.Sampling) **float64
	lo, hi float64
}{
	"temp":              {func(s *serving.Sampling) **float64 { return &s.Temperature }, 0, 100},
	"top-p":             {func(s *serving.Sampling) **float64 { return &s.TopP }, 0, 1},
	"min-p":             {func(s *serving.Sampling) **float64 { return &s.MinP }, 0, 1},
	"typical":           {func(s *serving.Sampling) **float64 { return &s.TypicalP }, 0, 1},
	"repeat-penalty":    {func(s *serving.Sampling) **float64 { return &s.RepetitionPenalty }, 0.01, 100},
	"presence-penalty":  {func(s *serving.Sampling) **float64 { return &s.PresencePenalty }, -100, 100},
	"frequency-penalty": {func(s *serving.Sampling) **float64 { return &s.FrequencyPenalty }, -100, 100},
	"top-n-sigma":       {func(s *serving.Sampling) **float64 { return &s.TopNSigma }, -1, 1000},
	"xtc-probability":   {func(s *serving.Sampling) **float64 { return &s.XTCProbability }, 0, 1},
	"xtc-threshold":     {func(s *serving.Sampling) **float64 { return &s.XTCThreshold }, 0, 1},
	"dynatemp-range":    {func(s *serving.Sampling) **float64 { return &s.DynatempRange }, 0, 100},
	"dynatemp-exp":      {func(s *serving.Sampling) **float64 { return &s.DynatempExponent }, 0, 100},
	"dry-multiplier":    {func(s *serving.Sampling) **float64 { return &s.DRYMultiplier }, 0, 1000},
	"dry-base":          {func(s *serving.Sampling) **float64 { return &s.DRYBase }, 1, 1000},
	"mirostat-ent":      {func(s *serving.Sampling) **float64 { return &s.MirostatTau }, 0, 1000},
	"mirostat-lr":       {func(s *serving.Sampling) **float64 { return &s.MirostatEta }, 0, 1000},
}

// defaultCounts are those that are whole numbers, with their ranges.
var defaultCounts = map[string]struct {
	at     func(*requestDefaults) **int
	lo, hi int
}{
	"top-k":              {func(d *requestDefaults) **int { return &d.sampling.TopK }, -1, math.MaxInt32},
	"max-tokens":         {func(d *requestDefaults) **int { return &d.maxTokens }, -1, math.MaxInt32},
	"repeat-last-n":      {func(d *requestDefaults) **int { return &d.sampling.PenaltyLastN }, -1, 1 << 24},
	"dry-allowed-length": {func(d *requestDefaults) **int { return &d.sampling.DRYAllowedLength }, 0, 1 << 24},
	"dry-penalty-last-n": {func(d *requestDefaults) **int { return &d.sampling.DRYLastN }, -1, 1 << 24},
	"mirostat":           {func(d *requestDefaults) **int { return &d.sampling.Mirostat }, 0, 2},
}

// set reads the value of a flag or key.
func (d *requestDefaults) set(name, value string) error {
	if f, ok := defaultNumbers[name]; ok {
		v, err := strconv.ParseFloat(value, 64)
		if err != nil || !(v >= f.lo && v <= f.hi) {
			return fmt.Errorf("expected %g to %g, found %q", f.lo, f.hi, value)
		}
		*f.at(&d.sampling) = &v
		return nil
	}
	if f, ok := defaultCounts[name]; ok {
		v, err := strconv.Atoi(value)
		if err != nil || v < f.lo || v > f.hi {
			if f.hi == math.MaxInt32 {
				return fmt.Errorf("expected a whole number, -1 or more, found %q", value)
			}
			return fmt.Errorf("expected a whole number from %d to %d, found %q", f.lo, f.hi, value)
		}
		*f.at(d) = &v
		return nil
	}
	switch name {
	case "samplers":
		order, err := parseSamplers(value)
		if err != nil {
			return err
		}
		d.sampling.Samplers = order
	case "seed":
		d.sampling.Seed = nil
		if value == "-1" {
			return nil
		}
		v, err := strconv.ParseUint(value, 10, 64)
		if err != nil {
			return fmt.Errorf("expected a whole number, -1 or more, found %q", value)
		}
		d.sampling.Seed = &v
	case "think":
		if value != "on" && value != "off" {
			return fmt.Errorf("expected on or off, found %q", value)
		}
		d.arg("enable_thinking", value == "on")
	case "system":
		d.system = value
	case "chat-template-kwargs":
		var args map[string]json.RawMessage
		if err := json.Unmarshal([]byte(value), &args); err != nil || args == nil {
			return fmt.Errorf("expected a JSON object, found %q", value)
		}
		for k, v := range args {
			d.arg(k, v)
		}
	}
	return nil
}

func (d *requestDefaults) arg(name string, v any) {
	if d.args == nil {
		d.args = map[string]any{}
	}
	d.args[name] = v
}

// put fills in what c does not say.
func (d *requestDefaults) put(c *server.ModelConfig) {
	c.Sampling = c.Sampling.Or(d.sampling)
	if c.MaxTokens == nil {
		c.MaxTokens = d.maxTokens
	}
	if c.System == "" {
		c.System = d.system
	}
	for k, v := range d.args {
		if _, ok := c.TemplateArgs[k]; ok {
			continue
		}
		if c.TemplateArgs == nil {
			c.TemplateArgs = map[string]any{}
		}
		c.TemplateArgs[k] = v
	}
}

// add adds the flags.
func (d *requestDefaults) add(fs *pflag.FlagSet) {
	for _, n := range defaultNames {
		short := map[string]string{"max-tokens": "n"}[n[0]]
		fs.VarP(&defaultFlag{d: d, name: n[0]}, n[0], short, n[1])
	}
}

// defaultFlag is a flag of requestDefaults.
type defaultFlag struct {
	d           *requestDefaults
	name, value string
}

func (f *defaultFlag) String() string { return f.value }

// Set reads a value.
func (f *defaultFlag) Set(v string) error {
	f.value = v
	return f.d.set(f.name, v)
}

// Type names the kind of value in the help.
func (f *defaultFlag) Type() string {
	if _, ok := defaultNumbers[f.name]; ok {
		return "float"
	}
	if _, ok := defaultCounts[f.name]; ok || f.name == "seed" {
		return "int"
	}
	switch f.name {
	case "samplers":
		return "names"
	case "chat-template-kwargs":
		return "json"
	}
	return "string"
}

// loopsFlag is a flag that is on, off or, with no value, as the server finds best.
type loopsFlag struct{ value *bool }

func (f *loopsFlag) String() string {
	if f.value == nil {
		return "auto"
	}
	return strconv.FormatBool(*f.value)
}

// Set reads a value.
func (f *loopsFlag) Set(s string) error {
	if f.value = nil; s == "auto" {
		return nil
	}
	v, err := strconv.ParseBool(s)
	if err != nil {
		return fmt.Errorf("expected auto, true or false, found %q", s)
	}
	f.value = &v
	return nil
}

// Type names the kind of value in the help.
func (f *loopsFlag) Type() string { return "auto|true|false" }
