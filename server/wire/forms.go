package wire

import (
	"encoding/json"
	"strings"

	"ridge/server/caller"
	"ridge/server/fault"
	"ridge/server/run"
	"ridge/text/chat"
)

// ResponseFormat reads OpenAI's response_format, and llama-server's additions,
// from a field of that form.
func ResponseFormat(field string, raw json.RawMessage) (run.Format, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return run.Format{}, nil
	}
	var f struct {
		Type       string          `json:"type"`
		Schema     json.RawMessage `json:"schema"`
		Name       string          `json:"name"`
		Strict     *bool           `json:"strict"` // of responses
		JSONSchema *struct {
			Name   string          `json:"name"`
			Schema json.RawMessage `json:"schema"`
			Strict *bool           `json:"strict"`
		} `json:"json_schema"`
	}
	if err := json.Unmarshal(raw, &f); err != nil {
		return run.Format{}, fault.BadRequest(field, "expected an object with a type, found %s", fault.Excerpt(raw))
	}
	switch f.Type {
	case "text":
		return run.Format{}, nil
	case "json_object":
		if len(f.Schema) > 0 && string(f.Schema) != "null" {
			return run.Format{Kind: "schema", Field: field, Source: f.Schema}, nil
		}
		return run.Format{Kind: "json", Field: field}, nil
	case "json_schema":
		schema, strict := f.Schema, f.Strict
		if f.JSONSchema != nil {
			schema, strict = f.JSONSchema.Schema, f.JSONSchema.Strict
		}
		if len(schema) == 0 || string(schema) == "null" {
			return run.Format{}, fault.BadRequest(field+".json_schema.schema", "expected a JSON schema, found nothing")
		}
		return run.Format{Kind: "schema", Field: field, Source: schema, Loose: strict == nil || !*strict}, nil
	case "structural_tag":
		return run.Format{Kind: "tag", Field: field, Source: raw}, nil
	}
	return run.Format{}, fault.BadRequest(field+".type", "expected text, json_object, json_schema or structural_tag, found %q", f.Type)
}

// MaxMessages bounds a conversation.
const MaxMessages = 10000

// ToolCall is a call of an earlier turn. Arguments that are no JSON, as models
// write now and then, are kept in a form that templates take.
func ToolCall(id, name string, args json.RawMessage) chat.ToolCall {
	var text string
	if json.Unmarshal(args, &text) == nil && strings.TrimSpace(text) != "" {
		var obj map[string]json.RawMessage
		if json.Unmarshal([]byte(text), &obj) != nil {
			b, _ := EncodeJSON(map[string]string{"arguments": text}) // strings encode
			args = b
		}
	}
	return chat.ToolCall{ID: id, Name: name, Arguments: args}
}

// CallID is the model's id for a call, or a new one.
func CallID(id string) string {
	if id != "" {
		return id
	}
	return caller.NewID("call_")
}

// EffortArgs adds to args the variables that templates know for a level of effort
// in reasoning.
func EffortArgs(effort string, args map[string]any) (map[string]any, error) {
	switch effort {
	case "":
		return args, nil
	case "none", "minimal", "low", "medium", "high", "xhigh", "max":
	default:
		return nil, fault.BadRequest("reasoning_effort", "expected none, minimal, low, medium, high, xhigh or max, found %q", effort)
	}
	out := map[string]any{"reasoning_effort": effort, "enable_thinking": effort != "none" && effort != "minimal"}
	for k, v := range args {
		out[k] = v
	}
	return out, nil
}
