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
	Skipped   Kind = "skip"      // n-grams, and the model without parts of its layers, see package spec/skip
	Exit      Kind = "exit"      // the same without its last layers
	Trained   Kind = "head"      // n-grams, and a head that was trained for the model, see Drafting.Ask
	Lookahead Kind = "lookahead" // n-grams, and those of a window of guesses, see package spec/lookahead
	Jacobi    Kind = "jacobi"    // n-grams, and a window without n-grams of its own
	Cascade   Kind = "cascade"   // the same, whose guesses n-grams guess, see Small.Cascade
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

// names are other programs' names: llama-server's --spec-type, vLLM's methods.
var names = map[string]Kind{"off": Off, "none": Off, "": Off, "auto": Auto, "ngram": NGrams, "suffix": Suffix, "recycle": Recycled, "rest": Stored, "[ngram]": NGrams, "draft_model": Draft, "cascade": Cascade, "skip": Skipped, "lookahead": Lookahead, "jacobi": Jacobi,
	"head": Trained, "medusa": Trained, "eagle": Trained, "eagle3": Trained, "mtp": Trained, "deepseek_mtp": Trained, "glm4_moe_mtp": Trained, "qwen3_next_mtp": Trained, "mimo_mtp": Trained}

// Parse reads a setting: off, auto, ngram, suffix, recycle, lookahead, jacobi, rest=FILE, draft=MODEL, cascade=MODEL, skip=FILE, exit=LAYERS, head=PATH or mtp, a name that llama-server's --spec-type
// has for n-grams, or the JSON of vLLM's --speculative-config, such as
// {"method":"ngram","num_speculative_tokens":5}.
func Parse(text string) (s Setting, err error) {
	name := strings.TrimSpace(text)
	if strings.HasPrefix(name, "{") {
		if name, s, err = parseConfig(name); err != nil {
			return s, err
		}
	} else if model, is := strings.CutPrefix(name, "draft="); is {
		name, s.Model = "draft_model", model
	} else if head, is := strings.CutPrefix(name, "head="); is {
		name, s.Model = "head", head
	} else if model, is := strings.CutPrefix(name, "cascade="); is {
		name, s.Model = "cascade", model
	} else if file, is := strings.CutPrefix(name, "rest="); is {
		name, s.File = "rest", file
	} else if file, is := strings.CutPrefix(name, "skip="); is {
		name, s.File = "skip", file
	} else if layers, is := strings.CutPrefix(name, "exit="); is {
		if s.Layers, err = strconv.Atoi(layers); err != nil || s.Layers < 1 {
			return s, fmt.Errorf("spec: exit: expected exit=LAYERS, how many layers draft, found %q", layers)
		}
		s.Kind = Exit
		return s, nil
	}
	kind, known := names[name]
	if !known && strings.HasPrefix(name, "ngram-") {
		kind, known = NGrams, true
	}
	if !known {
		return s, fmt.Errorf("spec: expected auto, off, ngram, suffix, recycle, lookahead, jacobi, rest=FILE, draft=MODEL, cascade=MODEL, skip=FILE, exit=LAYERS, head=PATH or mtp, found %q", name)
	}
	if kind == Trained {
		if own := strings.HasSuffix(name, "mtp"); own != (s.Model == "") {
			return s, fmt.Errorf("spec: %s: expected a path of a head, and none for layers of the model's own, found %q", name, s.Model)
		}
	} else if (kind == Draft || kind == Cascade) != (s.Model != "") {
		return s, fmt.Errorf("spec: %s: expected a model where one drafts and nowhere else, found %q", kind, s.Model)
	}
	if kind == Stored && s.File == "" {
		return s, fmt.Errorf("spec: %s: expected rest=FILE, a file that ridge spec build has written, found none", kind)
	}
	if kind == Skipped && s.File == "" {
		return s, fmt.Errorf("spec: %s: expected skip=FILE, a file that ridge spec search has written, found none", kind)
	}
	s.Kind = kind
	return s, nil
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
