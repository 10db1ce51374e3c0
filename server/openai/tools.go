package openai

import (
	"encoding/json"

	"ridge/server/fault"
	"ridge/server/run"
)

// toolChoiceField says whether the model may, must or must not call tools.
type toolChoiceField run.ToolChoice

// UnmarshalJSON reads OpenAI's forms, of chat completions and of responses.
func (c *toolChoiceField) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		return nil
	}
	var mode string
	if json.Unmarshal(b, &mode) == nil {
		switch mode {
		case "auto", "none", "required":
			c.Mode = mode
			return nil
		case "any":
			c.Mode = "required"
			return nil
		}
		return fault.BadRequest("tool_choice", "expected auto, none, required or a function, found %q", mode)
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
		return fault.BadRequest("tool_choice", "expected a string or an object, found %s", fault.Excerpt(b))
	}
	switch o.Type {
	case "function":
		name := o.Function.Name + o.Name
		if name == "" {
			return fault.BadRequest("tool_choice.function.name", "expected the name of a function, found nothing")
		}
		c.Mode, c.Only = "required", []string{name}
		return nil
	case "allowed_tools":
		tools := append(o.Tools, o.Allowed.Tools...)
		c.Mode = o.Mode + o.Allowed.Mode
		if c.Mode != "auto" && c.Mode != "required" {
			return fault.BadRequest("tool_choice.allowed_tools.mode", "expected auto or required, found %q", c.Mode)
		}
		c.Only = []string{}
		for _, t := range tools {
			c.Only = append(c.Only, toolName(t))
		}
		return nil
	}
	return fault.Unsupported("tool_choice.type", "expected function or allowed_tools, found %q", o.Type)
}

// toolName is the name of a tool in OpenAI's forms.
func toolName(raw json.RawMessage) string {
	var t struct {
		Name     string
		Function struct{ Name string }
	}
	_ = json.Unmarshal(raw, &t) // what is no object has no name
	if t.Function.Name != "" {
		return t.Function.Name
	}
	return t.Name
}
