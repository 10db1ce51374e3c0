package server

import (
	"encoding/json"
	"strconv"
	"strings"

	"ridge/engine"
	"ridge/text/grammar"
	"ridge/text/grammar/schema"
	"ridge/text/tokenizer"
)

// toolChoice says whether the model may, must or must not call tools.
type toolChoice struct {
	mode string   // "auto", "none", "required"
	only []string // the tools that may be called; nil for all
}

// UnmarshalJSON reads OpenAI's forms, of chat completions and of responses.
func (c *toolChoice) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		return nil
	}
	var mode string
	if json.Unmarshal(b, &mode) == nil {
		switch mode {
		case "auto", "none", "required":
			c.mode = mode
			return nil
		case "any":
			c.mode = "required"
			return nil
		}
		return badRequest("tool_choice", "expected auto, none, required or a function, found %q", mode)
	}
	var o struct {
		Type     string
		Name     string
		Mode     string
		Tools    []json.RawMessage
		Function struct{ Name string }
		Allowed  struct {
			Mode  string
			Tools []json.RawMessage
		} `json:"allowed_tools"`
	}
	if err := json.Unmarshal(b, &o); err != nil {
		return badRequest("tool_choice", "expected a string or an object, found %s", excerpt(b))
	}
	switch o.Type {
	case "function":
		name := o.Function.Name + o.Name
		if name == "" {
			return badRequest("tool_choice.function.name", "expected the name of a function, found nothing")
		}
		c.mode, c.only = "required", []string{name}
		return nil
	case "allowed_tools":
		tools := append(o.Tools, o.Allowed.Tools...)
		c.mode = o.Mode + o.Allowed.Mode
		if c.mode != "auto" && c.mode != "required" {
			return badRequest("tool_choice.allowed_tools.mode", "expected auto or required, found %q", c.mode)
		}
		c.only = []string{}
		for _, t := range tools {
			c.only = append(c.only, toolName(t))
		}
		return nil
	}
	return unsupported("tool_choice.type", "expected function or allowed_tools, found %q", o.Type)
}

// toolName is the name of a tool in OpenAI's forms.
func toolName(raw json.RawMessage) string {
	var t struct {
		Name     string
		Function struct{ Name string }
	}
	_ = json.Unmarshal(raw, &t) // checkTools has seen it
	if t.Function.Name != "" {
		return t.Function.Name
	}
	return t.Name
}

// tool is a function that the model may call.
type tool struct {
	name       string
	parameters json.RawMessage
	strict     bool
	raw        json.RawMessage // as templates get it
}

// functionTool is a tool in the form of chat completions, with its keys in the
// order that templates were written for.
func functionTool(name, description string, parameters json.RawMessage, strict bool) (json.RawMessage, error) {
	type function struct {
		Name        string          `json:"name"`
		Description string          `json:"description,omitempty"`
		Parameters  json.RawMessage `json:"parameters,omitempty"`
		Strict      bool            `json:"strict,omitempty"`
	}
	if !present(parameters) {
		parameters = nil
	}
	return encodeJSON(struct {
		Type     string   `json:"type"`
		Function function `json:"function"`
	}{"function", function{name, description, parameters, strict}})
}

// maxTools bounds the tools of a request.
const maxTools = 512

// readTools checks the tools of a request in the form of chat completions.
func readTools(raws []json.RawMessage) ([]tool, error) {
	if len(raws) > maxTools {
		return nil, badRequest("tools", "expected at most %d, found %d", maxTools, len(raws))
	}
	var out []tool
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
			return nil, badRequest("tools", "tool %d: expected a function, found %s", i, excerpt(raw))
		}
		if t.Type != "function" && (t.Type != "" || t.Function == nil) {
			return nil, unsupported("tools", "tool %d: expected the type function, found %q", i, t.Type)
		}
		if t.Function == nil || t.Function.Name == "" {
			return nil, badRequest("tools", "tool %d: function.name: expected a name, found nothing", i)
		}
		for _, o := range out {
			if o.name == t.Function.Name {
				return nil, badRequest("tools", "tool %d: expected names that differ, found %q again", i, o.name)
			}
		}
		p := t.Function.Parameters
		if string(p) == "null" {
			p = nil
		}
		if len(p) > 0 && strings.TrimSpace(string(p))[0] != '{' {
			return nil, badRequest("tools", "tool %d: function.parameters: expected a JSON schema, found %s", i, excerpt(p))
		}
		out = append(out, tool{name: t.Function.Name, parameters: p, strict: t.Function.Strict != nil && *t.Function.Strict, raw: raw})
	}
	return out, nil
}

// choose leaves the tools that may be called.
func (c toolChoice) choose(tools []tool) ([]tool, error) {
	if c.mode == "none" {
		return nil, nil
	}
	if len(tools) == 0 {
		if c.mode == "required" {
			return nil, badRequest("tool_choice", "expected tools to choose from, found none")
		}
		return nil, nil
	}
	if c.only == nil {
		return tools, nil
	}
	var out []tool
	for _, name := range c.only {
		found := false
		for _, t := range tools {
			if t.name == name {
				out, found = append(out, t), true
			}
		}
		if !found {
			return nil, badRequest("tool_choice", "expected one of the tools, found %q", name)
		}
	}
	return out, nil
}

// maxForcedCalls bounds the calls of an answer that must be calls.
const maxForcedCalls = 16

// constrainTools holds the model to the tools' schemas: from the first token
// if it must call one, else from the tag on that begins a call, if a tool is
// strict.
func (p *plan) constrainTools(tools []tool, c toolChoice, f format, parallel bool) error {
	strict := false
	for _, t := range tools {
		strict = strict || t.strict
	}
	switch {
	case c.mode == "required":
		return p.forceTools(tools, f, parallel && len(c.only) != 1)
	case strict:
		return p.strictTools(tools, f, parallel)
	}
	return nil
}

func (p *plan) forceTools(tools []tool, f format, parallel bool) error {
	o := p.m.calling(parallel)
	o.Options = f.options()
	g, err := p.m.compileTools(tools, o, nil)
	if err != nil {
		return err
	}
	p.parse.OnlyCalls = true
	return p.constrain(g)
}

// formatOrTools holds the model to calls of tools or to a text of the format,
// whichever it begins.
func (p *plan) formatOrTools(f format, tools []tool, parallel bool) error {
	o := p.m.calling(parallel)
	o.Options = f.options()
	g, err := p.m.compileTools(tools, o, &f)
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

func (p *plan) strictTools(tools []tool, form format, parallel bool) error {
	f := p.m.syntax.Call
	if f.Begin == "" || !p.m.plainText(f.Begin+f.End+f.Between) {
		return unsupported("tools", "strict: this model writes calls in a form that cannot be held to a schema unless tool_choice is required or names a function")
	}
	tag := strings.TrimRight(f.Begin, " \n")
	o := schema.ToolOptions{Options: form.options(), NameKey: f.NameKey, ArgumentsKey: f.ArgumentsKey, End: f.End, Between: f.Between + f.Begin, MinCalls: 1, MaxCalls: 1}
	if parallel {
		o.MaxCalls = -1
	}
	g, err := p.m.compileTools(tools, o, nil)
	if err != nil {
		return err
	}
	gateOptions := grammar.GateOptions{Text: tag, Optional: true}
	if id, ok := p.m.tok.ID(tag); ok {
		gateOptions.Tokens = []int32{id}
	}
	if _, err := grammar.NewGate(g, gateOptions); err != nil {
		return err
	}
	p.addMasker(func() engine.Masker {
		gate, err := grammar.NewGate(g, gateOptions)
		if err != nil {
			return failedMasker{err}
		}
		return gate
	})
	return nil
}

// compileTools compiles the grammar of calls, or of calls and of the texts of a
// format. A schema that cannot be enforced is an error if its tool is strict;
// the arguments of others are any object then.
func (m *Model) compileTools(tools []tool, o schema.ToolOptions, or *format) (*grammar.Grammar, error) {
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
