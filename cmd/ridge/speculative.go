package main

import (
	"context"
	"fmt"

	"github.com/spf13/pflag"

	"ridge"
	"ridge/hub"
	"ridge/model"
	"ridge/spec"
)

// speculativeFlags say whether next tokens are guessed.
type speculativeFlags struct {
	how     string
	model   string
	most    int
	width   int
	match   string
	stretch float64
	always  bool // verify all guesses
}

// speculativeNames are the flags of other programs: vLLM's, llama-server's, SGLang's.
var speculativeNames = map[string]string{
	"speculative-config": "speculative", "spec-type": "speculative",
	"num-speculative-tokens": "draft-max", "model-draft": "draft-model", "speculative-model": "draft-model", "draft": "draft-max", "draft-n": "draft-max", "spec-draft-n-max": "draft-max",
	"speculative-eagle-topk": "draft-width",
}

func (f *speculativeFlags) add(fs *pflag.FlagSet) {
	fs.StringVar(&f.how, "speculative", "auto", `guess next tokens and compute several at once; answers stay the same, byte by byte: auto, which guesses where that is expected to gain, off, ngram, the same with times of steps measured at the start, suffix, which guesses from earlier texts of the tenant, too, recycle, from what the model held likely before, lookahead, which computes a window of guesses beside each token, jacobi, the same without n-grams, rest=FILE, from texts that ridge spec build has stored, draft=MODEL, which has a small model guess, too, such as tiny for smollm2, cascade=MODEL, whose guesses n-grams guess, skip=FILE, which has the model itself guess without parts of its layers that ridge spec search has found, exit=LAYERS, with its first layers, head=PATH, a head that was trained for the model (Medusa, EAGLE), or mtp, the layer of the model's own files that predicts further tokens; also vLLM's {"method":"ngram","num_speculative_tokens":5}`)
	fs.StringVar(&f.model, "draft-model", "", "the same as --speculative draft=MODEL")
	fs.IntVar(&f.most, "draft-max", 0, "how deep tokens are guessed behind each one, at most (default 8)")
	fs.IntVar(&f.width, "draft-width", 0, "guesses of a model that drafts which go on at each place, at most (default 3); 1 for a chain")
	fs.StringVar(&f.match, "draft-match", "strings", "how a model that drafts with another vocabulary guesses: strings, its text is spelled anew, or tokens, it guesses those that both have")
	fs.Float64Var(&f.stretch, "draft-stretch", 0, "steps with guesses may take so many times as long as without, such as 1.1, for even times between tokens (default: as long as it gains)")
}

// setting reads the flags.
func (f *speculativeFlags) setting() (spec.Setting, error) {
	how := f.how
	if f.model != "" {
		how = "draft=" + f.model
	}
	s, err := spec.Parse(how)
	if err != nil {
		return s, fmt.Errorf("--speculative: %w", err)
	}
	if f.most < 0 || f.most > spec.MaxRows {
		return s, fmt.Errorf("--draft-max: expected 1 to %d, found %d", spec.MaxRows, f.most)
	}
	if f.most > 0 {
		s.Most = f.most
	}
	if f.width < 0 || f.width > spec.MaxWidth {
		return s, fmt.Errorf("--draft-width: expected 1 to %d, found %d", spec.MaxWidth, f.width)
	}
	if f.stretch != 0 && !(f.stretch >= 1) {
		return s, fmt.Errorf("--draft-stretch: expected at least 1, found %v", f.stretch)
	}
	if f.match != "" && f.match != "strings" && f.match != "tokens" { // commands without the flag say nothing
		return s, fmt.Errorf("--draft-match: expected strings or tokens, found %q", f.match)
	}
	s.ByTokens = f.match == "tokens"
	s.Always, s.Width, s.Stretch = f.always, f.width, f.stretch
	return s, nil
}

// drafting returns who guesses for a model that is served, nil for nobody.
func (f *speculativeFlags) drafting(ctx context.Context, m *model.Model) (*spec.Drafting, error) {
	s, err := f.setting()
	if err != nil {
		return nil, err
	}
	return ridge.Drafting(ctx, s, m, hub.Options{Offline: true})
}
