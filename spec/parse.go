package spec

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Kind is a way to guess.
type Kind string

// The kinds.
const (
	Off       Kind = "off"
	Auto      Kind = "auto"      // n-grams
	NGrams    Kind = "ngram"     // what the text went on with before, see NGram
	Suffix    Kind = "suffix"    // n-grams, and earlier texts of the tenant, see Suffixes
	Recycled  Kind = "recycle"   // n-grams, and what the model held likely before, see Recycling
	Stored    Kind = "rest"      // n-grams, and texts of a file, see Datastore
	Draft     Kind = "draft"     // n-grams, and a model, see Small and NewForeign
	Cascade   Kind = "cascade"   // the same, whose guesses n-grams guess, see Small.Cascade
	Skipped   Kind = "skip"      // n-grams, and the model without parts of its layers, see package spec/skip
	Exit      Kind = "exit"      // the same without its last layers
	Trained   Kind = "head"      // n-grams, and a head that was trained for the model, see Drafting.Ask
	Lookahead Kind = "lookahead" // n-grams, and those of a window of guesses, see package spec/lookahead
	Jacobi    Kind = "jacobi"    // n-grams, and a window without n-grams of its own
)

// Setting is what somebody asks for.
type Setting struct {
	Kind   Kind
	Model  string // that drafts, with Draft; with Trained the head, "" for layers of the model's own
	File   string // of a Datastore, with Stored, or of parts of layers, with Skipped
	Layers int    // that draft, with Exit
	Most   int    // guesses behind a token, 0 for the usual number
	Width  int    // of a model's trees, 0 for the usual one
	// ByTokens has a model with another vocabulary guess tokens that both have, see NewForeign.
	ByTokens bool
	Stretch  float64 // see Drafting
	// Always has all guesses verified, see Drafting.
	Always bool
}

// names are those of kinds, ours and other programs': llama-server's --spec-type, vLLM's
// methods.
var names = map[string]Kind{
	"off": Off, "none": Off, "": Off, "auto": Auto, "ngram": NGrams, "[ngram]": NGrams, "suffix": Suffix, "recycle": Recycled, "rest": Stored,
	"draft": Draft, "draft_model": Draft, "cascade": Cascade, "skip": Skipped, "exit": Exit, "lookahead": Lookahead, "jacobi": Jacobi,
	"head": Trained, "medusa": Trained, "eagle": Trained, "eagle3": Trained,
	"mtp": Trained, "deepseek_mtp": Trained, "glm4_moe_mtp": Trained, "qwen3_next_mtp": Trained, "mimo_mtp": Trained,
}

// forms are what Parse reads, for errors.
const forms = "auto, off, ngram, suffix, recycle, lookahead, jacobi, rest=FILE, draft=MODEL, cascade=MODEL, skip=FILE, exit=LAYERS, head=PATH or mtp"

// Parse reads a setting: auto, off, ngram, suffix, recycle, lookahead, jacobi, rest=FILE,
// draft=MODEL, cascade=MODEL, skip=FILE, exit=LAYERS, head=PATH or mtp, a name that
// llama-server's --spec-type has for n-grams, or the JSON of vLLM's --speculative-config,
// such as {"method":"ngram","num_speculative_tokens":5}.
func Parse(text string) (s Setting, err error) {
	name, value, given := strings.TrimSpace(text), "", false
	if strings.HasPrefix(name, "{") {
		if name, s, err = parseConfig(name); err != nil {
			return s, err
		}
	} else {
		name, value, given = strings.Cut(name, "=")
	}
	kind, known := names[name]
	if !known && strings.HasPrefix(name, "ngram-") {
		kind, known = NGrams, true
	}
	if !known {
		return s, fmt.Errorf("spec: expected %s, found %q", forms, name)
	}
	if s.Kind = kind; given {
		if err := s.take(name, value); err != nil {
			return s, err
		}
	}
	return s, s.complete(name)
}

// take takes what is written behind the name of a kind.
func (s *Setting) take(name, value string) (err error) {
	switch s.Kind {
	case Draft, Cascade, Trained:
		s.Model = value
	case Stored, Skipped:
		s.File = value
	case Exit:
		if s.Layers, err = strconv.Atoi(value); err != nil || s.Layers < 1 {
			return fmt.Errorf("spec: exit: expected exit=LAYERS, how many layers draft, found %q", value)
		}
	default:
		return fmt.Errorf("spec: %s: expected no value, found %q", name, value)
	}
	return nil
}

// complete reports what a kind lacks, or has too much.
func (s *Setting) complete(name string) error {
	own := strings.HasSuffix(name, "mtp") // layers of the model's own
	model := s.Kind == Draft || s.Kind == Cascade
	switch {
	case s.Kind == Trained && own == (s.Model != ""):
		return fmt.Errorf("spec: %s: expected a path of a head, and none for layers of the model's own, found %q", name, s.Model)
	case s.Kind != Trained && model != (s.Model != ""):
		return fmt.Errorf("spec: %s: expected a model where one drafts and nowhere else, found %q", name, s.Model)
	case s.Kind == Stored && s.File == "":
		return fmt.Errorf("spec: rest: expected rest=FILE, a file that ridge spec build has written, found none")
	case s.Kind == Skipped && s.File == "":
		return fmt.Errorf("spec: skip: expected skip=FILE, a file that ridge spec search has written, found none")
	case s.Kind == Exit && s.Layers == 0:
		return fmt.Errorf("spec: exit: expected exit=LAYERS, how many layers draft, found none")
	}
	return nil
}

// parseConfig reads vLLM's JSON. How long the n-grams are at most and at least is
// read and changes nothing: the longest that there is counts, whatever its length.
func parseConfig(text string) (method string, s Setting, err error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal([]byte(text), &fields); err != nil {
		return "", s, fmt.Errorf("spec: expected JSON such as {\"method\":\"ngram\"}: %w", err)
	}
	known := []string{"method", "model", "num_speculative_tokens", "prompt_lookup_max", "prompt_lookup_min"}
	for name := range fields {
		if !slices.Contains(known, name) {
			return "", s, fmt.Errorf("spec: expected %s, found the field %q", strings.Join(known, ", "), name)
		}
	}
	for name, to := range map[string]any{"method": &method, "model": &s.Model, "num_speculative_tokens": &s.Most} {
		if raw := fields[name]; raw != nil {
			if err := json.Unmarshal(raw, to); err != nil {
				return "", s, fmt.Errorf("spec: %s: %w", name, err)
			}
		}
	}
	if s.Model == "[ngram]" { // as earlier versions had it
		method, s.Model = "ngram", ""
	}
	return method, s, nil
}

// Vocabulary returns a number that tells a vocabulary of n tokens, given by their
// texts, from others.
func Vocabulary(n int, piece func(id int32) []byte) uint64 {
	h := fnv.New64a()
	for id := range int32(n) {
		h.Write(piece(id))
		h.Write([]byte{0})
	}
	return h.Sum64()
}

// Drafting returns who guesses, nil for nobody. Where guesses were asked for by name,
// steps that verify some are measured first; Auto delays no start.
func (s Setting) Drafting() *Drafting {
	if s.Kind == Off || s.Kind == "" {
		return nil
	}
	d := &Drafting{Most: s.Most, Stretch: s.Stretch, Always: s.Always, New: func(tokens int) Drafter { return NewNGram(min(tokens, 1<<12)) }}
	if s.Kind != Auto {
		d.Patience = 2 * time.Second
	}
	if s.Kind == Draft || s.Kind == Trained {
		const usual = 3
		if d.Width = s.Width; d.Width == 0 {
			d.Width = usual
		}
	}
	if s.Kind == Suffix {
		d.Texts = NewSuffixes().Drafter
	}
	return d
}
