package chat

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"ridge/text/chat/internal/jinja"
)

// check reports what is wrong with the input, before a template sees it.
func (in *Input) check() error {
	if in.Continue && (in.AddGenerationPrompt || len(in.Messages) == 0) {
		return errors.New("chat: continue: expected a last message and no start of a turn after it")
	}
	for i, m := range in.Messages {
		if m.Role == "" {
			return fmt.Errorf("chat: message %d: role: expected a name, found nothing", i)
		}
		for j, c := range m.ToolCalls {
			if c.Name == "" {
				return fmt.Errorf("chat: message %d: tool call %d: name: expected a name, found nothing", i, j)
			}
			if _, _, err := c.arguments(); err != nil {
				return fmt.Errorf("chat: message %d: tool call %d (%s): arguments: %w", i, j, c.Name, err)
			}
		}
	}
	for i, t := range in.Tools {
		if !isObject(t) {
			return fmt.Errorf("chat: tool %d: expected a JSON object, found %s", i, excerpt(t))
		}
	}
	return nil
}

func (in *Input) hasToolCalls() bool {
	for _, m := range in.Messages {
		if len(m.ToolCalls) > 0 {
			return true
		}
	}
	return false
}

func isObject(b []byte) bool {
	b = bytes.TrimSpace(b)
	return len(b) > 0 && b[0] == '{' && json.Valid(b)
}

func excerpt(b []byte) string {
	if len(b) == 0 {
		return "nothing"
	}
	if len(b) > 40 {
		return fmt.Sprintf("%.40q...", b)
	}
	return fmt.Sprintf("%q", b)
}

// arguments returns a call's arguments as an object and as text.
func (c *ToolCall) arguments() (obj json.RawMessage, text string, err error) {
	b := bytes.TrimSpace(c.Arguments)
	if len(b) > 0 && b[0] == '"' {
		if err := json.Unmarshal(b, &text); err != nil {
			return nil, "", fmt.Errorf("expected a JSON object, found %s", excerpt(b))
		}
		b = bytes.TrimSpace([]byte(text))
	} else {
		text = string(b)
	}
	if len(b) == 0 {
		return json.RawMessage("{}"), "{}", nil
	}
	if !isObject(b) {
		return nil, "", fmt.Errorf("expected a JSON object, found %s", excerpt(b))
	}
	return b, text, nil
}

// shape is the form in which a template wants what has more than one form in
// practice. Templates were written against different callers, and fail or
// print nonsense with the other form.
type shape struct {
	argsText       bool // arguments of tool calls as text, else as a mapping
	noContent      byte // content of a turn that has only tool calls: contentEmpty, ...
	toolsUndefined bool // without tools, leave the variable undefined, else none
}

const (
	contentEmpty  = iota // ""
	contentNone          // none
	contentAbsent        // no such key
)

// shapes are tried in this order: what transformers recommends comes first.
var shapes = []shape{
	{noContent: contentEmpty}, {noContent: contentEmpty, argsText: true},
	{noContent: contentNone}, {noContent: contentNone, argsText: true},
	{noContent: contentAbsent}, {noContent: contentAbsent, argsText: true},
}

// object returns the message as templates see it. The order of keys is that
// of transformers, in case a template prints all of it.
func (m *Message) object(sh shape) (jinja.Object, error) {
	// What the assistant wrote has marks where it wrote them; of others only a
	// role may be part of one, as in <|user|>.
	text := func(s string) any { return jinja.Given{Value: s} }
	role := text(m.Role)
	if m.Role == "assistant" {
		text = func(s string) any { return s }
	}
	if isRole(m.Role) {
		role = m.Role
	}
	var o jinja.Object
	if m.Reasoning != "" {
		o = append(o, jinja.Field{Name: "thinking", Value: text(m.Reasoning)})
	}
	o = append(o, jinja.Field{Name: "role", Value: role})
	switch {
	case m.Content != "" || len(m.ToolCalls) == 0 || sh.noContent == contentEmpty:
		o = append(o, jinja.Field{Name: "content", Value: text(m.Content)})
	case sh.noContent == contentNone:
		o = append(o, jinja.Field{Name: "content", Value: nil})
	}
	if len(m.ToolCalls) > 0 {
		calls := make([]any, len(m.ToolCalls))
		for i := range m.ToolCalls {
			c, err := m.ToolCalls[i].object(sh)
			if err != nil {
				return nil, err
			}
			calls[i] = c
		}
		o = append(o, jinja.Field{Name: "tool_calls", Value: calls})
	}
	if m.ToolCallID != "" {
		o = append(o, jinja.Field{Name: "tool_call_id", Value: text(m.ToolCallID)})
	}
	if m.Name != "" {
		o = append(o, jinja.Field{Name: "name", Value: text(m.Name)})
	}
	if m.Reasoning != "" {
		o = append(o, jinja.Field{Name: "reasoning_content", Value: text(m.Reasoning)})
	}
	return o, nil
}

func (c *ToolCall) object(sh shape) (jinja.Object, error) {
	obj, text, err := c.arguments()
	if err != nil {
		return nil, err
	}
	args := any(obj)
	if sh.argsText {
		args = text
	}
	var o jinja.Object
	if c.ID != "" {
		o = append(o, jinja.Field{Name: "id", Value: c.ID})
	}
	return append(o,
		jinja.Field{Name: "type", Value: "function"},
		jinja.Field{Name: "function", Value: jinja.Object{{Name: "name", Value: c.Name}, {Name: "arguments", Value: args}}},
	), nil
}

// isRole reports whether s is a role that templates know. Many print it as part
// of a mark, <|user|>: another one, such as "end", could make a mark of its own.
func isRole(s string) bool {
	switch s {
	case "system", "developer", "user", "assistant", "tool", "function", "ipython", "model", "observation",
		"human", "bot", "environment", "query", "document":
		return true
	}
	return false
}

// vars returns the variables of a rendering.
func (t *Template) vars(in Input, sh shape) (map[string]any, error) {
	msgs := make([]any, len(in.Messages))
	for i := range in.Messages {
		m, err := in.Messages[i].object(sh)
		if err != nil {
			return nil, fmt.Errorf("chat: message %d: %w", i, err)
		}
		msgs[i] = m
	}
	vars := map[string]any{
		"messages":              msgs,
		"add_generation_prompt": in.AddGenerationPrompt,
		"bos_token":             t.opts.BOS,
		"eos_token":             t.opts.EOS,
		"documents":             nil,
	}
	switch {
	case len(in.Tools) > 0:
		tools := make([]any, len(in.Tools))
		for i := range in.Tools {
			tools[i] = jinja.Given{Value: in.Tools[i]}
		}
		vars["tools"] = tools
	case !sh.toolsUndefined:
		vars["tools"] = nil
	}
	for k, v := range in.Extra {
		if k != "bos_token" && k != "eos_token" {
			v = jinja.Given{Value: v}
		}
		vars[k] = v
	}
	return vars, nil
}

func (t *Template) render(in Input, sh shape, l Limits) (rendered, error) {
	vars, err := t.vars(in, sh)
	if err != nil {
		return rendered{}, err
	}
	o := jinja.Options{Limits: l}
	if !in.Now.IsZero() {
		o.Now = func() time.Time { return in.Now }
	}
	s, given, err := t.prog.Trace(vars, o)
	if err != nil {
		return rendered{}, t.wrap(err)
	}
	return rendered{s, given}, nil
}
