package server

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
	"strings"

	"ridge/engine"
	"ridge/text/grammar"
	"ridge/text/grammar/schema"
)

// format is what the text of an answer must look like. The zero value allows
// anything.
type format struct {
	kind    string // "", "json", "schema", "regex", "choice", "gbnf" or "tag"
	field   string // of the request that asks for it
	source  []byte
	choices []string
	jump    bool // forced text is not drawn
	asked   bool // the request says so, or says no
}

// structured are the fields of vLLM, llama-server and their predecessors that
// ask for structured output, beside OpenAI's response_format.
type structured struct {
	ResponseFormat json.RawMessage `json:"response_format"`
	Structured     *struct {
		JSON       json.RawMessage `json:"json"`
		JSONObject bool            `json:"json_object"`
		Regex      string          `json:"regex"`
		Choice     []string        `json:"choice"`
		Grammar    string          `json:"grammar"`
		Tag        json.RawMessage `json:"structural_tag"`
		JumpAhead  *bool           `json:"jump_ahead"`
	} `json:"structured_outputs"`
	JumpAhead     *bool           `json:"jump_ahead"` // beside any of the fields
	GuidedJSON    json.RawMessage `json:"guided_json"`
	GuidedRegex   string          `json:"guided_regex"`
	GuidedChoice  []string        `json:"guided_choice"`
	GuidedGrammar string          `json:"guided_grammar"`
	Grammar       string          `json:"grammar"`     // llama-server: GBNF
	JSONSchema    json.RawMessage `json:"json_schema"` // llama-server
	Regex         string          `json:"regex"`       // SGLang
	EBNF          string          `json:"ebnf"`        // SGLang
}

// format returns the one format that the fields ask for.
func (s *structured) format() (format, error) {
	var found []format
	add := func(field, kind string, source []byte) {
		if len(source) > 0 && string(source) != "null" {
			found = append(found, format{kind: kind, field: field, source: source})
		}
	}
	f, err := responseFormat("response_format", s.ResponseFormat)
	if err != nil {
		return f, err
	}
	if f.kind != "" {
		found = append(found, f)
	}
	add("guided_json", "schema", unquoted(s.GuidedJSON))
	add("json_schema", "schema", unquoted(s.JSONSchema))
	add("guided_regex", "regex", []byte(s.GuidedRegex))
	add("regex", "regex", []byte(s.Regex))
	add("guided_grammar", "gbnf", []byte(s.GuidedGrammar))
	add("grammar", "gbnf", []byte(s.Grammar))
	add("ebnf", "gbnf", []byte(s.EBNF))
	if s.GuidedChoice != nil {
		found = append(found, format{kind: "choice", field: "guided_choice", choices: s.GuidedChoice})
	}
	if o := s.Structured; o != nil {
		add("structured_outputs.structural_tag", "tag", unquoted(o.Tag))
		add("structured_outputs.json", "schema", unquoted(o.JSON))
		add("structured_outputs.regex", "regex", []byte(o.Regex))
		add("structured_outputs.grammar", "gbnf", []byte(o.Grammar))
		if o.JSONObject {
			add("structured_outputs.json_object", "json", []byte("{}"))
		}
		if o.Choice != nil {
			found = append(found, format{kind: "choice", field: "structured_outputs.choice", choices: o.Choice})
		}
	}
	if len(found) > 1 {
		return f, badRequest(found[1].field, "expected at most one field that says what the answer looks like, found %s too", found[0].field)
	}
	if len(found) == 1 {
		f = found[0]
	}
	jump := s.JumpAhead
	if jump == nil && s.Structured != nil {
		jump = s.Structured.JumpAhead
	}
	if jump != nil {
		f.jump, f.asked = *jump, true
	}
	return f, nil
}

// unquoted is JSON that may have come as a text with JSON in it.
func unquoted(raw json.RawMessage) json.RawMessage {
	var text string
	if json.Unmarshal(raw, &text) == nil && text != "" {
		return json.RawMessage(text)
	}
	return raw
}

// responseFormat reads OpenAI's response_format, and llama-server's additions,
// from a field of that form.
func responseFormat(field string, raw json.RawMessage) (format, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return format{}, nil
	}
	var f struct {
		Type       string          `json:"type"`
		Schema     json.RawMessage `json:"schema"`
		Name       string          `json:"name"`
		JSONSchema *struct {
			Name   string          `json:"name"`
			Schema json.RawMessage `json:"schema"`
			Strict *bool           `json:"strict"`
		} `json:"json_schema"`
	}
	if err := json.Unmarshal(raw, &f); err != nil {
		return format{}, badRequest(field, "expected an object with a type, found %s", excerpt(raw))
	}
	switch f.Type {
	case "text":
		return format{}, nil
	case "json_object":
		if len(f.Schema) > 0 && string(f.Schema) != "null" {
			return format{kind: "schema", field: field, source: f.Schema}, nil
		}
		return format{kind: "json", field: field}, nil
	case "json_schema":
		schema := f.Schema
		if f.JSONSchema != nil {
			schema = f.JSONSchema.Schema
		}
		if len(schema) == 0 || string(schema) == "null" {
			return format{}, badRequest(field+".json_schema.schema", "expected a JSON schema, found nothing")
		}
		return format{kind: "schema", field: field, source: schema}, nil
	case "structural_tag":
		return format{kind: "tag", field: field, source: raw}, nil
	}
	return format{}, badRequest(field+".type", "expected text, json_object, json_schema or structural_tag, found %q", f.Type)
}

// compile compiles f for m, or finds it among what was compiled before.
func (f format) compile(m *Model) (*grammar.Grammar, error) {
	g, err := m.grammars.Get(f.key(), func() (*grammar.Grammar, error) {
		v := m.vocabulary()
		switch f.kind {
		case "json":
			return schema.JSON(v, true, f.options())
		case "schema":
			return schema.Compile(v, f.source, f.options())
		case "regex":
			return grammar.Regex(v, string(f.source))
		case "choice":
			return grammar.Choice(v, f.choices)
		case "tag":
			return schema.StructuralTag(v, f.source, f.options())
		}
		return grammar.GBNF(v, string(f.source))
	})
	return g, grammarError(f.field, err)
}

// grammarError says of what is wrong with a grammar which field it came from.
func grammarError(field string, err error) error {
	var g *grammar.Error
	if errors.As(err, &g) {
		return badRequest(field, "%v", g)
	}
	return err
}

// key names what f compiles to.
func (f format) key() string {
	return f.kind + "\x00" + strconv.Itoa(int(f.options().Whitespace)) + "\x00" + string(f.source) + "\x00" + strings.Join(f.choices, "\x00")
}

// part is f as a part of a union. A structural tag cannot be one: it is free
// text.
func (f format) part() (schema.Part, error) {
	switch f.kind {
	case "json":
		return schema.Part{Object: true}, nil
	case "schema":
		return schema.Part{Schema: f.source}, nil
	case "regex":
		return schema.Part{Regex: string(f.source)}, nil
	case "choice":
		return schema.Part{Choice: f.choices}, nil
	case "gbnf":
		return schema.Part{GBNF: string(f.source)}, nil
	}
	return schema.Part{}, unsupported(f.field, "structural_tag cannot be combined with tools that the model may call or not; the calls can be tags of it")
}

// maxGrammars is how many compiled grammars a model keeps.
const maxGrammars = 64

// constrain makes the maskers of a plan whose text must be of g. Reasoning
// comes first, free, if the model is in it or may choose to begin it.
func (p *plan) constrain(g *grammar.Grammar) error {
	m, prompt := p.m, p.text
	newState := func() engine.Masker { return g.NewState() }
	if p.parse == nil || p.parse.KeepReasoning || m.syntax.ThinkClose == "" || m.syntax.ClosedThinking(prompt) {
		p.req.NewMasker = newState
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
		p.req.NewMasker = newGate
		return nil
	}
	open, ok := m.tok.ID(m.syntax.ThinkOpen)
	if !ok {
		p.req.NewMasker = newState
		return nil
	}
	p.req.NewMasker = func() engine.Masker {
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
