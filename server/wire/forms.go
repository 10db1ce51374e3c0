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

// ContentText is the text of a message's content: a string, or a list of
// parts.
func ContentText(raw json.RawMessage, i int) (string, error) {
	var text string
	if len(raw) == 0 || json.Unmarshal(raw, &text) == nil {
		return text, nil
	}
	var parts []struct {
		Type    string
		Text    string
		Refusal string
	}
	if json.Unmarshal(raw, &parts) != nil {
		return "", fault.BadRequest("messages", "message %d: content: expected a string or a list of parts, found %s", i, fault.Excerpt(raw))
	}
	var texts []string
	for j, p := range parts {
		switch p.Type {
		case "text", "input_text", "output_text":
			texts = append(texts, p.Text)
		case "refusal":
			texts = append(texts, p.Refusal)
		case "image_url", "image", "input_image":
			return "", fault.Unsupported("messages", "message %d: part %d: this model takes no images", i, j)
		case "input_audio", "audio", "video_url", "video":
			return "", fault.Unsupported("messages", "message %d: part %d: this model takes no audio or video", i, j)
		case "file", "input_file", "document":
			return "", fault.Unsupported("messages", "message %d: part %d: files are not read; send their text", i, j)
		default:
			return "", fault.BadRequest("messages", "message %d: part %d: type: expected text, found %q", i, j, p.Type)
		}
	}
	return strings.Join(texts, "\n"), nil
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
	case "none", "minimal", "low", "medium", "high", "xhigh":
	default:
		return nil, fault.BadRequest("reasoning_effort", "expected none, minimal, low, medium, high or xhigh, found %q", effort)
	}
	out := map[string]any{"reasoning_effort": effort, "enable_thinking": effort != "none" && effort != "minimal"}
	for k, v := range args {
		out[k] = v
	}
	return out, nil
}
