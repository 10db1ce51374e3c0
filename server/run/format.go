package run

import (
	"context"
	"errors"

	"ridge/engine"
	"ridge/server/fault"
	"ridge/text/constraint"
	"ridge/text/grammar"
)

// Format is what the text of an answer must look like. The zero value allows
// anything.
type Format struct {
	Kind    string // "", "json", "schema", "regex", "choice", "gbnf" (also Lark) or "tag"
	Field   string // of the request that asks for it
	Source  []byte
	Choices []string
	Loose   bool  // what of a schema cannot be enforced is left out and reported
	Jump    *bool // forced text is not drawn; nil: as the model has it
}

// constraint returns f as it is compiled.
func (f Format) constraint() (c constraint.Format) {
	switch f.Kind {
	case "json":
		c = constraint.JSON()
	case "schema":
		c = constraint.JSONSchema(f.Source)
	case "regex":
		c = constraint.Regex(string(f.Source))
	case "choice":
		c = constraint.Choice(f.Choices...)
	case "tag":
		c = constraint.StructuralTag(f.Source)
	case "gbnf":
		if c = constraint.GBNF(string(f.Source)); grammar.IsLark(string(f.Source)) {
			c = constraint.Lark(string(f.Source))
		}
	}
	if f.jumps() {
		c = c.JumpAhead()
	}
	if f.Loose {
		c = c.Loose()
	}
	return c
}

// compile compiles f for m, or finds it among what was compiled before.
func (f Format) compile(ctx context.Context, m *Model) (*grammar.Grammar, error) {
	g, err := m.hold.Format(ctx, f.constraint())
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

// constrain makes the maskers of a plan whose text must be of g. Reasoning
// comes first, free, if the model is in it or may choose to begin it.
func (p *Plan) constrain(g *grammar.Grammar) error {
	p.Unenforced = g.Unenforced()
	p.held = p.parse == nil || p.parse.KeepReasoning
	masks, err := p.Model.hold.After(g, p.opening, p.held)
	if err == nil {
		p.Request.NewMasker = func() engine.Masker { return masks() }
	}
	return err
}
