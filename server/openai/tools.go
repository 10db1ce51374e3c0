package openai

import (
	"encoding/json"

	"ridge/server/fault"
	"ridge/server/offer"
	"ridge/server/run"
)

// toolChoiceField says whether the model may, must or must not call tools.
type toolChoiceField struct {
	mode string
	only []offer.Tool // as the client calls them; nil for all
}

// choice is the field for the tools that the model is offered.
func (c *toolChoiceField) choice(offered *offer.Tools) (run.ToolChoice, error) {
	return offered.Choice(c.mode, c.only)
}

// UnmarshalJSON reads OpenAI's forms, of chat completions and of responses.
func (c *toolChoiceField) UnmarshalJSON(b []byte) error {
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
		return fault.BadRequest("tool_choice", "expected auto, none, required or a function, found %q", mode)
	}
	var o struct {
		Type    string
		Mode    string
		Tools   []json.RawMessage
		Allowed struct {
			Mode  string
			Tools []json.RawMessage
		} `json:"allowed_tools"`
	}
	if err := json.Unmarshal(b, &o); err != nil {
		return fault.BadRequest("tool_choice", "expected a string or an object, found %s", fault.Excerpt(b))
	}
	if o.Type == "allowed_tools" {
		c.mode = o.Mode + o.Allowed.Mode
		if c.mode != "auto" && c.mode != "required" {
			return fault.BadRequest("tool_choice.allowed_tools.mode", "expected auto or required, found %q", c.mode)
		}
		c.only = []offer.Tool{}
		for _, t := range append(o.Tools, o.Allowed.Tools...) {
			c.only = append(c.only, toolNamed(t))
		}
		return nil
	}
	t := toolNamed(b)
	switch t.Kind {
	case "":
		return fault.Unsupported("tool_choice.type", "expected function or allowed_tools, found %q", o.Type)
	case offer.Function, customTool:
		if t.Name == "" {
			return fault.BadRequest("tool_choice."+t.Kind+".name", "expected the name of a function, found nothing")
		}
	}
	c.mode, c.only = "required", []offer.Tool{t}
	return nil
}

// toolNamed is the tool that an object in one of OpenAI's forms names. Of tools
// without a name the type is the name.
func toolNamed(raw json.RawMessage) offer.Tool {
	var t struct {
		Type, Namespace, Name string
		Function, Custom      struct{ Name string }
	}
	_ = json.Unmarshal(raw, &t) // what is no object has no name
	out := offer.Tool{Kind: t.Type, Namespace: t.Namespace, Name: t.Name + t.Function.Name + t.Custom.Name}
	if out.Name == "" && out.Kind != offer.Function && out.Kind != customTool {
		out.Name = out.Kind
	}
	return out
}
