package run

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
	"strings"

	"ridge/engine"
	"ridge/server/fault"
	"ridge/text/constraint"
	"ridge/text/grammar"
	"ridge/text/grammar/schema"
)

// Format is what the text of an answer must look like. The zero value allows
// anything.
type Format struct {
	Kind    string // "", "json", "schema", "regex", "choice", "gbnf" or "tag"
	Field   string // of the request that asks for it
	Source  []byte
	Choices []string
	Jump    *bool // forced text is not drawn; nil: as the model has it
}

// compile compiles f for m, or finds it among what was compiled before.
func (f Format) compile(m *Model) (*grammar.Grammar, error) {
	g, err := m.grammars.Get(f.key(), func() (*grammar.Grammar, error) {
		v := m.vocabulary()
		switch f.Kind {
		case "json":
			return schema.JSON(v, true, f.options())
		case "schema":
			return schema.Compile(v, f.Source, f.options())
		case "regex":
			return grammar.Regex(v, string(f.Source))
		case "choice":
			return grammar.Choice(v, f.Choices)
		case "tag":
			return schema.StructuralTag(v, f.Source, f.options())
		}
		return grammar.GBNF(v, string(f.Source))
	})
	return g, grammarError(f.Field, err)
}

// grammarError says of what is wrong with a grammar which field it came from.
func grammarError(field string, err error) error {
	var g *grammar.Error
	if errors.As(err, &g) {
		return fault.BadRequest(field, "%v", g)
	}
	return err
}

// key names what f compiles to.
func (f Format) key() string {
	return f.Kind + "\x00" + strconv.Itoa(int(f.options().Whitespace)) + "\x00" + string(f.Source) + "\x00" + strings.Join(f.Choices, "\x00")
}

// part is f as a part of a union. A structural tag cannot be one: it is free
// text.
func (f Format) part() (schema.Part, error) {
	switch f.Kind {
	case "json":
		return schema.Part{Object: true}, nil
	case "schema":
		return schema.Part{Schema: f.Source}, nil
	case "regex":
		return schema.Part{Regex: string(f.Source)}, nil
	case "choice":
		return schema.Part{Choice: f.Choices}, nil
	case "gbnf":
		return schema.Part{GBNF: string(f.Source)}, nil
	}
	return schema.Part{}, fault.Unsupported(f.Field, "structural_tag cannot be combined with tools that the model may call or not; the calls can be tags of it")
}

// maxGrammars is how many compiled grammars a model keeps.
const maxGrammars = 64

// constrain makes the maskers of a plan whose text must be of g. Reasoning
// comes first, free, if the model is in it or may choose to begin it.
func (p *Plan) constrain(g *grammar.Grammar) error {
	masks, err := constraint.After(g, p.Model.tok, p.Model.syntax, p.text, p.parse == nil || p.parse.KeepReasoning)
	if err == nil {
		p.Request.NewMasker = func() engine.Masker { return masks() }
	}
	return err
}

// compact returns JSON without white space, as a key for caches.
func compact(raw []byte) []byte {
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return raw
	}
	return b.Bytes()
}
