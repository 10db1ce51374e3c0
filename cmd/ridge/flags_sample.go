package main

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"ridge"
	"ridge/model"
	"ridge/sample"
)

// sampleFlags are the flags that choose tokens.
type sampleFlags struct {
	p      sample.Params
	bias   []string
	stop   []string
	max    int
	ignore bool
	loops  bool

	breakers []string
}

func (f *sampleFlags) add(c *cobra.Command) {
	fs := c.Flags()
	fs.Float32Var(&f.p.Temperature, "temp", 0, "temperature; 0 takes the most probable token (default: what the model's files recommend, as of all of these, else 0)")
	fs.IntVar(&f.p.TopK, "top-k", 0, "choose among the k most probable tokens; 0 for all")
	fs.Float32Var(&f.p.TopP, "top-p", 1, "choose among the tokens that make up this probability")
	fs.Float32Var(&f.p.MinP, "min-p", 0, "drop tokens less probable than this times the best one")
	fs.Float32Var(&f.p.TypicalP, "typical", 1, "locally typical sampling: probability to keep")
	fs.Float32Var(&f.p.RepetitionPenalty, "repeat-penalty", 1, "divide the scores of tokens that occurred (1.1 in chats of small models whose files recommend nothing, if no flag says how tokens are chosen)")
	fs.IntVar(&f.p.PenaltyLastN, "repeat-last-n", 64, "tokens that the penalties look back on; 0 for none, -1 for all")
	fs.Float32Var(&f.p.PresencePenalty, "presence-penalty", 0, "subtract from the scores of tokens that occurred")
	fs.Float32Var(&f.p.FrequencyPenalty, "frequency-penalty", 0, "subtract per occurrence")
	fs.Float32Var(&f.p.TopNSigma, "top-n-sigma", 0, "drop tokens whose scores are more than so many standard deviations below the best; 0 for none")
	fs.Float32Var(&f.p.XTCProbability, "xtc-probability", 0, "how often all but the least probable of the tokens of --xtc-threshold are dropped")
	fs.Float32Var(&f.p.XTCThreshold, "xtc-threshold", sample.DefaultXTCThreshold, "probability from which on --xtc-probability drops tokens; above 0.5 none")
	fs.Float32Var(&f.p.TemperatureRange, "dynatemp-range", 0, "let the temperature follow the entropy, by up to so much in both directions")
	fs.Float32Var(&f.p.TemperatureExponent, "dynatemp-exp", 1, "exponent of the entropy in that")
	fs.Float32Var(&f.p.DRY.Multiplier, "dry-multiplier", 0, "subtract from the scores of tokens that go on with a text that was there before: so much, times --dry-base for each token beyond --dry-allowed-length")
	fs.Float32Var(&f.p.DRY.Base, "dry-base", sample.DefaultDRYBase, "base of that")
	fs.IntVar(&f.p.DRY.AllowedLength, "dry-allowed-length", sample.DefaultDRYAllowedLength, "tokens of a text that is held off, at least")
	fs.IntVar(&f.p.DRY.LastN, "dry-penalty-last-n", sample.DefaultPenaltyLastN, "tokens that it looks back on; 0 for none, -1 for all")
	fs.StringArrayVar(&f.breakers, "dry-sequence-breaker", nil, "text that no repeated text goes beyond, in place of line ends, ':', '\"' and '*'; may be repeated; \"none\" for none")
	fs.IntVar(&f.p.Mirostat, "mirostat", 0, "1 or 2: hold the surprise of tokens near --mirostat-ent, in place of filters and penalties; 0 for off")
	fs.Float32Var(&f.p.MirostatEta, "mirostat-lr", sample.DefaultMirostatEta, "learning rate of mirostat, eta")
	fs.Float32Var(&f.p.MirostatTau, "mirostat-ent", sample.DefaultMirostatTau, "surprise that mirostat aims at in bits, tau")
	fs.Var((*samplersFlag)(&f.p.Order), "samplers", "the steps that choose tokens in their order, separated by ';'; what is left out is off (default: "+strings.Join(sample.StepNames(sample.DefaultOrder()), ";")+")")
	fs.Uint64Var(&f.p.Seed, "seed", 0, "seed of the random choices; the same seed gives the same text")
	fs.StringArrayVar(&f.bias, "logit-bias", nil, "TOKEN=VALUE added to the score of a token id; may be repeated")
	fs.StringArrayVar(&f.stop, "stop", nil, "text that ends the answer; may be repeated")
	fs.IntVarP(&f.max, "max-tokens", "n", 0, "tokens of the answer at most (default: what the context holds)")
	fs.BoolVar(&f.loops, "end-loops", true, "end an answer that only repeats itself: the same text 8 times or more, over at least 400 tokens; off with --ignore-eos")
	fs.BoolVar(&f.ignore, "ignore-eos", false, "go on after the model ends its answer")
}

// recommend takes over what a model's files recommend where no flag says otherwise.
func (f *sampleFlags) recommend(fs *pflag.FlagSet, r model.Sampling, g *ridge.Generation) {
	p := &g.Sampling
	for _, x := range []struct {
		flag string
		dst  *float32
		v    *float64
	}{
		{"temp", &p.Temperature, r.Temperature}, {"top-p", &p.TopP, r.TopP}, {"min-p", &p.MinP, r.MinP}, {"typical", &p.TypicalP, r.TypicalP},
		{"repeat-penalty", &p.RepetitionPenalty, r.RepetitionPenalty}, {"xtc-probability", &p.XTCProbability, r.XTCProbability}, {"xtc-threshold", &p.XTCThreshold, r.XTCThreshold},
		{"mirostat-ent", &p.MirostatTau, r.MirostatTau}, {"mirostat-lr", &p.MirostatEta, r.MirostatEta},
	} {
		if x.v != nil && !fs.Changed(x.flag) {
			*x.dst = float32(*x.v)
		}
	}
	if r.TopK != nil && !fs.Changed("top-k") {
		p.TopK = max(0, *r.TopK)
	}
	if r.PenaltyLastN != nil && !fs.Changed("repeat-last-n") {
		p.PenaltyLastN = *r.PenaltyLastN
	}
	if r.Mirostat != nil && !fs.Changed("mirostat") {
		p.Mirostat = *r.Mirostat
	}
	if r.Samplers != nil && !fs.Changed("samplers") {
		p.Order, _ = sample.ParseOrder(r.Samplers) // a model with others was not opened
	}
}

func (f *sampleFlags) generation() (ridge.Generation, error) {
	g := ridge.Generation{MaxTokens: f.max, Sampling: f.p, Stop: f.stop, IgnoreEOS: f.ignore, EndLoops: f.loops && !f.ignore, Stats: new(ridge.Stats), Breakers: f.breakers}
	if f.max < 0 {
		return g, fmt.Errorf("--max-tokens: expected 0 or more, found %d", f.max)
	}
	if slices.Equal(f.breakers, []string{"none"}) {
		g.Breakers = []string{}
	}
	for _, b := range f.bias {
		var id int32
		var v float32
		if _, err := fmt.Sscanf(b, "%d=%g", &id, &v); err != nil {
			return g, fmt.Errorf("--logit-bias: expected TOKEN=VALUE such as 42=-5, found %q", b)
		}
		if g.Sampling.LogitBias == nil {
			g.Sampling.LogitBias = map[int32]float32{}
		}
		g.Sampling.LogitBias[id] = v
	}
	return g, nil
}

// samplersFlag is the order of the samplers as a flag has it.
type samplersFlag []sample.Step

func (f *samplersFlag) String() string { return strings.Join(sample.StepNames(*f), ";") }

// Set reads names.
func (f *samplersFlag) Set(v string) error {
	order, err := parseSamplers(v)
	if err == nil {
		*f = order
	}
	return err
}

// Type names the kind of value in the help.
func (f *samplersFlag) Type() string { return "names" }

// parseSamplers reads names of samplers, separated by semicolons.
func parseSamplers(v string) ([]sample.Step, error) {
	order, err := sample.ParseOrder(strings.Split(v, ";"))
	if err != nil {
		return nil, errors.New(strings.TrimPrefix(err.Error(), "sample: samplers: "))
	}
	if len(order) > sample.MaxSteps {
		return nil, fmt.Errorf("expected at most %d, found %d", sample.MaxSteps, len(order))
	}
	return order, nil
}

// exact returns p with what its zeros mean in flags and in /set, where every default
// is written out: off or 0, never the sampler's default.
func exact(p sample.Params) sample.Params {
	if p.PenaltyLastN == 0 {
		p.RepetitionPenalty, p.PresencePenalty, p.FrequencyPenalty = 1, 0, 0
	}
	if p.DRY.LastN == 0 {
		p.DRY.Multiplier = 0
	}
	if p.DRY.AllowedLength == 0 {
		p.DRY.AllowedLength = -1
	}

	for _, v := range []*float32{&p.TopP, &p.XTCThreshold, &p.TemperatureExponent, &p.MirostatTau, &p.MirostatEta} {
		if *v == 0 {
			*v = math.SmallestNonzeroFloat32
		}
	}
	return p
}
