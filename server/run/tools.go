package run

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"strings"

	"ridge/engine"
	"ridge/server/fault"
	"ridge/text/chat"
	"ridge/text/constraint"
)

// ToolChoice says whether the model may, must or must not call tools.
type ToolChoice struct {
	Mode string   // "auto", "none", "required"
	Only []string // the tools that may be called; nil for all
}

// Tool is a function that the model may call.
type Tool struct {
	chat.Tool
	raw json.RawMessage // as templates get it
}

// maxTools bounds the tools of a request.
const maxTools = 512

// ReadTools checks the tools of a request in the form of chat completions. where says
// what errors call each; nil for "tool I".
func ReadTools(raws []json.RawMessage, where func(i int) string) ([]Tool, error) {
	if where == nil {
		where = func(i int) string { return "tool " + strconv.Itoa(i) }
	}
	if len(raws) > maxTools {
		return nil, fault.BadRequest("tools", "expected at most %d, found %d", maxTools, len(raws))
	}
	var out []Tool
	seen := map[string]bool{}
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
			return nil, fault.BadRequest("tools", "%s: expected a function, found %s", where(i), fault.Excerpt(raw))
		}
		if t.Type != "function" && (t.Type != "" || t.Function == nil) {
			return nil, fault.Unsupported("tools", "%s: expected the type function, found %q", where(i), t.Type)
		}
		if t.Function == nil || t.Function.Name == "" {
			return nil, fault.BadRequest("tools", "%s: function.name: expected a name, found nothing", where(i))
		}
		if seen[t.Function.Name] {
			return nil, fault.BadRequest("tools", "%s: expected names that differ, found %q again", where(i), t.Function.Name)
		}
		seen[t.Function.Name] = true
		p := t.Function.Parameters
		if string(p) == "null" {
			p = nil
		}
		if len(p) > 0 && strings.TrimSpace(string(p))[0] != '{' {
			return nil, fault.BadRequest("tools", "%s: function.parameters: expected a JSON schema, found %s", where(i), fault.Excerpt(p))
		}
		out = append(out, Tool{chat.Tool{Name: t.Function.Name, Parameters: p, Strict: t.Function.Strict != nil && *t.Function.Strict}, raw})
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
			if t.Name == name {
				out, found = append(out, t), true
			}
		}
		if !found {
			return nil, fault.BadRequest("tool_choice", "expected one of the tools, found %q", name)
		}
	}
	return out, nil
}

// constrainTools holds the model to the tools' schemas: from the first token
// if it must call one, else from the tag on that begins a call, if a tool is
// strict.
func (p *Plan) constrainTools(ctx context.Context, tools []Tool, c ToolChoice, f Format, parallel bool) error {
	strict := false
	for _, t := range tools {
		strict = strict || t.Strict
	}
	switch {
	case c.Mode == "required":
		p.parse.OnlyCalls = true
		return p.calls(ctx, tools, parallel && len(c.Only) != 1, Format{Jump: f.Jump})
	case strict:
		return p.strictTools(ctx, tools, f, parallel)
	}
	return nil
}

// calls holds the model to calls of tools or, if there is one, to a text of the
// format, whichever it begins. What of a schema cannot be enforced is an error if
// its tool is strict, and reported if not.
func (p *Plan) calls(ctx context.Context, tools []Tool, parallel bool, or Format) error {
	if or.Kind == "tag" { // it is free text
		return fault.Unsupported(or.Field, "structural_tag cannot be combined with tools that the model may call or not; the calls can be tags of it")
	}
	g, err := p.Model.hold.Calls(ctx, functions(tools), parallel, or.constraint())
	if err != nil && or.Kind != "" {
		if _, e := or.compile(ctx, p.Model); e != nil {
			return e // with the format's field
		}
	}
	if err != nil {
		return grammarError("tools", err)
	}
	return p.constrain(g)
}

func (p *Plan) strictTools(ctx context.Context, tools []Tool, f Format, parallel bool) error {
	gates, left, err := p.Model.hold.Strict(ctx, functions(tools), parallel, f.jumps())
	switch {
	case errors.Is(err, constraint.ErrCallForm):
		return fault.Unsupported("tools", "strict: %v unless tool_choice is required or names a function", constraint.ErrCallForm)
	case err != nil:
		return grammarError("tools", err)
	}
	p.Unenforced = left
	p.addMasker(func() engine.Masker { return gates() })
	return nil
}

func functions(tools []Tool) (out []chat.Tool) {
	for _, t := range tools {
		out = append(out, t.Tool)
	}
	return out
}
