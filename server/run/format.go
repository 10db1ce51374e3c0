package run

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
	"strings"

	"ridge/engine"
	"ridge/server/fault"
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
	m, prompt := p.Model, p.text
	newState := func() engine.Masker { return g.NewState() }
	if p.parse == nil || p.parse.KeepReasoning || m.syntax.ThinkClose == "" || m.syntax.ClosedThinking(prompt) {
		p.Request.NewMasker = newState
		return nil
	}
	gateOptions := grammar.GateOptions{Text: m.syntax.ThinkClose}
	if id, ok := m.tok.ID(m.syntax.ThinkClose); ok {
		gateOptions.Tokens = []int32{id}
	}
	newGate := func() engine.Masker {
		gate, err := grammar.NewGate(g, gateOptions)
		if err != nil {
			return failedMasker{err}
		}
		return gate
	}
	if _, err := grammar.NewGate(g, gateOptions); err != nil {
		return err
	}
	if m.syntax.Thinks(prompt) {
		p.Request.NewMasker = newGate
		return nil
	}
	open, ok := m.tok.ID(m.syntax.ThinkOpen)
	if !ok {
		p.Request.NewMasker = newState
		return nil
	}
	p.Request.NewMasker = func() engine.Masker {
		return &branch{chosen: g.NewState(), doors: map[int32]engine.Masker{open: newGate()}}
	}
	return nil
}

// failedMasker allows nothing.
type failedMasker struct{ err error }

func (m failedMasker) Mask(logits []float32) {
	for i := range logits {
		logits[i] = negInf
	}
}
func (m failedMasker) Accept(int32) error { return m.err }
func (m failedMasker) Err() error         { return m.err }

// branch lets the first token decide which masker holds for the rest: a door's
// token that of the door, any other one the one chosen so far.
type branch struct {
	chosen engine.Masker
	doors  map[int32]engine.Masker // nil once the first token has come
	logits []float32
}

// Mask forbids the tokens that neither way allows.
func (b *branch) Mask(logits []float32) {
	if b.doors == nil {
		b.chosen.Mask(logits)
		return
	}
	b.logits = b.logits[:0]
	var ids []int32
	for id := range b.doors {
		if int(id) < len(logits) {
			ids, b.logits = append(ids, id), append(b.logits, logits[id])
		}
	}
	b.chosen.Mask(logits)
	for i, id := range ids {
		logits[id] = b.logits[i]
	}
}

// Accept goes through a door or on.
func (b *branch) Accept(token int32) error {
	door, ok := b.doors[token]
	b.doors = nil
	if ok {
		b.chosen = door
		return nil
	}
	return b.chosen.Accept(token)
}

// Done reports whether nothing can follow.
func (b *branch) Done() bool {
	d, ok := b.chosen.(interface{ Done() bool })
	return ok && b.doors == nil && d.Done()
}

// Err returns why nothing is allowed.
func (b *branch) Err() error {
	if e, ok := b.chosen.(interface{ Err() error }); ok {
		return e.Err()
	}
	return nil
}

// compact returns JSON without white space, as a key for caches.
func compact(raw []byte) []byte {
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return raw
	}
	return b.Bytes()
}
