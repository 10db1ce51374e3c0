package run

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"

	"ridge/engine"
	"ridge/server/fault"
	"ridge/text/constraint"
	"ridge/text/grammar"
	"ridge/text/grammar/schema"
	"ridge/text/tokenizer"
)

// ToolChoice says whether the model may, must or must not call tools.
type ToolChoice struct {
	Mode string   // "auto", "none", "required"
	Only []string // the tools that may be called; nil for all
}

// Tool is a function that the model may call.
type Tool struct {
	name       string
	parameters json.RawMessage
	strict     bool
	raw        json.RawMessage // as templates get it
}

// FunctionTool is a tool in the form of chat completions, with its keys in the
// order that templates were written for.
func FunctionTool(name, description string, parameters json.RawMessage, strict bool) (json.RawMessage, error) {
	type function struct {
		Name        string          `json:"name"`
		Description string          `json:"description,omitempty"`
		Parameters  json.RawMessage `json:"parameters,omitempty"`
		Strict      bool            `json:"strict,omitempty"`
	}
	if string(parameters) == "null" {
		parameters = nil
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false) // templates print it
	err := e.Encode(struct {
		Type     string   `json:"type"`
		Function function `json:"function"`
	}{"function", function{name, description, parameters, strict}})
	return bytes.TrimSpace(b.Bytes()), err
}

// maxTools bounds the tools of a request.
const maxTools = 512

// ReadTools checks the tools of a request in the form of chat completions.
func ReadTools(raws []json.RawMessage) ([]Tool, error) {
	if len(raws) > maxTools {
		return nil, fault.BadRequest("tools", "expected at most %d, found %d", maxTools, len(raws))
	}
	var out []Tool
	for i, raw := range raws {
		var t struct {
			Type     string `json:"type"`
			Function *struct {
				Name       string          `json:"name"`
				Parameters json.RawMessage `json:"parameters"`
				Strict     *bool           `json:"strict"`
			} `json:"function"`
		}
		if err := json.Unmarshal(raw, &t); err != nil {
			return nil, fault.BadRequest("tools", "tool %d: expected a function, found %s", i, fault.Excerpt(raw))
		}
		if t.Type != "function" && (t.Type != "" || t.Function == nil) {
			return nil, fault.Unsupported("tools", "tool %d: expected the type function, found %q", i, t.Type)
		}
		if t.Function == nil || t.Function.Name == "" {
			return nil, fault.BadRequest("tools", "tool %d: function.name: expected a name, found nothing", i)
		}
		for _, o := range out {
			if o.name == t.Function.Name {
				return nil, fault.BadRequest("tools", "tool %d: expected names that differ, found %q again", i, o.name)
			}
		}
		p := t.Function.Parameters
		if string(p) == "null" {
			p = nil
		}
		if len(p) > 0 && strings.TrimSpace(string(p))[0] != '{' {
			return nil, fault.BadRequest("tools", "tool %d: function.parameters: expected a JSON schema, found %s", i, fault.Excerpt(p))
		}
		out = append(out, Tool{name: t.Function.Name, parameters: p, strict: t.Function.Strict != nil && *t.Function.Strict, raw: raw})
	}
	return out, nil
}

// choose leaves the tools that may be called.
func (c ToolChoice) choose(tools []Tool) ([]Tool, error) {
	if c.Mode == "none" {
		return nil, nil
	}
	if len(tools) == 0 {
		if c.Mode == "required" {
			return nil, fault.BadRequest("tool_choice", "expected tools to choose from, found none")
		}
		return nil, nil
	}
	if c.Only == nil {
		return tools, nil
	}
	var out []Tool
	for _, name := range c.Only {
		found := false
		for _, t := range tools {
			if t.name == name {
				out, found = append(out, t), true
			}
		}
		if !found {
			return nil, fault.BadRequest("tool_choice", "expected one of the tools, found %q", name)
		}
	}
	return out, nil
}

// maxForcedCalls bounds the calls of an answer that must be calls.
const maxForcedCalls = 16

// constrainTools holds the model to the tools' schemas: from the first token
// if it must call one, else from the tag on that begins a call, if a tool is
// strict.
func (p *Plan) constrainTools(tools []Tool, c ToolChoice, f Format, parallel bool) error {
	strict := false
	for _, t := range tools {
		strict = strict || t.strict
	}
	switch {
	case c.Mode == "required":
		return p.forceTools(tools, f, parallel && len(c.Only) != 1)
	case strict:
		return p.strictTools(tools, f, parallel)
	}
	return nil
}

func (p *Plan) forceTools(tools []Tool, f Format, parallel bool) error {
	o := p.Model.calling(parallel)
	o.Options = f.options()
	g, err := p.Model.compileTools(tools, o, nil)
	if err != nil {
		return err
	}
	p.parse.OnlyCalls = true
	return p.constrain(g)
}

// formatOrTools holds the model to calls of tools or to a text of the format,
// whichever it begins.
func (p *Plan) formatOrTools(f Format, tools []Tool, parallel bool) error {
	o := p.Model.calling(parallel)
	o.Options = f.options()
	g, err := p.Model.compileTools(tools, o, &f)
	if err != nil {
		return err
	}
	return p.constrain(g)
}

// calling says how the model writes calls that a grammar holds it to.
func (m *Model) calling(parallel bool) schema.ToolOptions {
	f := m.syntax.Call
	o := schema.ToolOptions{NameKey: f.NameKey, ArgumentsKey: f.ArgumentsKey, Begin: f.Begin, End: f.End, Between: f.Between, MinCalls: 1, MaxCalls: 1}
	if !m.plainText(f.Begin + f.End + f.Between) {
		// The tags are tokens of their own that a grammar cannot write: the
		// calls stand alone.
		o.Begin, o.End, o.Between = "", "", ", "
		if parallel {
			o.Before, o.After = "[", "]"
		}
	}
	if parallel {
		o.MaxCalls = maxForcedCalls
	}
	return o
}

func (p *Plan) strictTools(tools []Tool, form Format, parallel bool) error {
	f := p.Model.syntax.Call
	if f.Begin == "" || !p.Model.plainText(f.Begin+f.End+f.Between) {
		return fault.Unsupported("tools", "strict: this model writes calls in a form that cannot be held to a schema unless tool_choice is required or names a function")
	}
	tag := strings.TrimRight(f.Begin, " \n")
	o := schema.ToolOptions{Options: form.options(), NameKey: f.NameKey, ArgumentsKey: f.ArgumentsKey, End: f.End, Between: f.Between + f.Begin, MinCalls: 1, MaxCalls: 1}
	if parallel {
		o.MaxCalls = -1
	}
	g, err := p.Model.compileTools(tools, o, nil)
	if err != nil {
		return err
	}
	gateOptions := grammar.GateOptions{Text: tag, Optional: true}
	if id, ok := p.Model.tok.ID(tag); ok {
		gateOptions.Tokens = []int32{id}
	}
	gates, err := constraint.Gates(g, gateOptions)
	if err == nil {
		p.addMasker(func() engine.Masker { return gates() })
	}
	return err
}

// compileTools compiles the grammar of calls, or of calls and of the texts of a
// format. A schema that cannot be enforced is an error if its tool is strict;
// the arguments of others are any object then.
func (m *Model) compileTools(tools []Tool, o schema.ToolOptions, or *Format) (*grammar.Grammar, error) {
	compile := func(list []schema.Tool) (*grammar.Grammar, error) { return schema.Tools(m.vocabulary(), list, o) }
	var key strings.Builder
	if or != nil {
		text, err := or.part()
		if err != nil {
			return nil, err
		}
		key.WriteString("or\x00" + or.key())
		compile = func(list []schema.Tool) (*grammar.Grammar, error) {
			return schema.Union(m.vocabulary(), []schema.Part{text, {Tools: list, Calling: o}}, o.Options)
		}
	}
	key.WriteString("tools\x00" + strings.Join([]string{strconv.Itoa(int(o.Whitespace)), o.NameKey, o.ArgumentsKey, o.Before, o.After, o.Begin, o.End, o.Between}, "\x00"))
	key.WriteByte(byte(o.MaxCalls))
	for _, t := range tools {
		key.WriteString("\x00" + t.name + "\x00" + string(compact(t.parameters)))
		if t.strict {
			key.WriteByte(1)
		}
	}
	g, err := m.grammars.Get(key.String(), func() (*grammar.Grammar, error) {
		list := make([]schema.Tool, len(tools))
		for i, t := range tools {
			list[i] = schema.Tool{Name: t.name, Parameters: t.parameters}
		}
		g, err := compile(list)
		if err == nil {
			return g, nil
		}
		loose := false
		for i, t := range tools {
			if t.strict {
				continue
			}
			if _, e := schema.Compile(nil, orObject(t.parameters), schema.Options{}); e != nil {
				list[i].Parameters, loose = nil, true
			}
		}
		if !loose {
			return nil, err
		}
		return compile(list)
	})
	if err != nil && or != nil {
		if _, e := or.compile(m); e != nil {
			return nil, e // with the format's field
		}
	}
	return g, grammarError("tools", err)
}

func orObject(schema json.RawMessage) []byte {
	if len(schema) == 0 {
		return []byte(`{"type": "object"}`)
	}
	return schema
}

// plainText reports whether text can be written without control tokens.
func (m *Model) plainText(text string) bool {
	for _, id := range m.tok.Encode(nil, text, tokenizer.EncodeOptions{ParseSpecial: true}) {
		if m.tok.IsControl(id) {
			return false
		}
	}
	return true
}
