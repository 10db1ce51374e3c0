package server

import (
	"encoding/json"
	"strings"

	"ridge/text/chat"
)

// openAIMessage is a message of a request.
type openAIMessage struct {
	Role       string          `json:"role"`
	Content    json.RawMessage `json:"content"`
	Name       string          `json:"name"`
	ToolCallID string          `json:"tool_call_id"`
	Refusal    string          `json:"refusal"`
	Reasoning  string          `json:"reasoning_content"`
	Reasoning2 string          `json:"reasoning"`
	ToolCalls  []struct {
		ID       string `json:"id"`
		Type     string `json:"type"`
		Function struct {
			Name      string          `json:"name"`
			Arguments json.RawMessage `json:"arguments"`
		} `json:"function"`
	} `json:"tool_calls"`
	FunctionCall *struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	} `json:"function_call"`
}

// maxMessages bounds a conversation.
const maxMessages = 10000

// readMessages turns the messages of a chat completion into a conversation.
func readMessages(in []openAIMessage) ([]chat.Message, error) {
	if len(in) == 0 {
		return nil, badRequest("messages", "expected at least one message, found none")
	}
	if len(in) > maxMessages {
		return nil, badRequest("messages", "expected at most %d messages, found %d", maxMessages, len(in))
	}
	out := make([]chat.Message, 0, len(in))
	names := map[string]string{} // of tools, by the id of their call
	for i := range in {
		m, err := in[i].message(i)
		if err != nil {
			return nil, err
		}
		for _, c := range m.ToolCalls {
			names[c.ID] = c.Name
		}
		if m.Role == "tool" && m.Name == "" {
			m.Name = names[m.ToolCallID] // templates ask for it
		}
		out = append(out, m)
	}
	return out, nil
}

func (m *openAIMessage) message(i int) (chat.Message, error) {
	out := chat.Message{Role: m.Role, Name: m.Name, ToolCallID: m.ToolCallID, Reasoning: m.Reasoning + m.Reasoning2}
	switch m.Role {
	case "system", "user", "assistant", "tool":
	case "developer":
		out.Role = "system"
	case "function":
		out.Role = "tool"
	case "":
		return out, badRequest("messages", "message %d: role: expected system, developer, user, assistant or tool, found nothing", i)
	default:
		return out, badRequest("messages", "message %d: role: expected system, developer, user, assistant or tool, found %q", i, m.Role)
	}
	var err error
	if out.Content, err = contentText(m.Content, i); err != nil {
		return out, err
	}
	if out.Content == "" {
		out.Content = m.Refusal
	}
	for j, c := range m.ToolCalls {
		if c.Type != "" && c.Type != "function" {
			return out, unsupported("messages", "message %d: tool call %d: expected the type function, found %q", i, j, c.Type)
		}
		out.ToolCalls = append(out.ToolCalls, toolCall(c.ID, c.Function.Name, c.Function.Arguments))
	}
	if f := m.FunctionCall; f != nil {
		out.ToolCalls = append(out.ToolCalls, toolCall("", f.Name, f.Arguments))
	}
	if len(m.ToolCalls) > 0 && m.Role != "assistant" {
		return out, badRequest("messages", "message %d: tool_calls: only the assistant calls tools", i)
	}
	return out, nil
}

// toolCall is a call of an earlier turn. Arguments that are no JSON, as models
// write now and then, are kept in a form that templates take.
func toolCall(id, name string, args json.RawMessage) chat.ToolCall {
	var text string
	if json.Unmarshal(args, &text) == nil && strings.TrimSpace(text) != "" {
		var obj map[string]json.RawMessage
		if json.Unmarshal([]byte(text), &obj) != nil {
			b, _ := encodeJSON(map[string]string{"arguments": text}) // strings encode
			args = b
		}
	}
	return chat.ToolCall{ID: id, Name: name, Arguments: args}
}

// contentText is the text of a message's content: a string, or a list of
// parts.
func contentText(raw json.RawMessage, i int) (string, error) {
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
		return "", badRequest("messages", "message %d: content: expected a string or a list of parts, found %s", i, excerpt(raw))
	}
	var texts []string
	for j, p := range parts {
		switch p.Type {
		case "text", "input_text", "output_text":
			texts = append(texts, p.Text)
		case "refusal":
			texts = append(texts, p.Refusal)
		case "image_url", "image", "input_image":
			return "", unsupported("messages", "message %d: part %d: this model takes no images", i, j)
		case "input_audio", "audio", "video_url", "video":
			return "", unsupported("messages", "message %d: part %d: this model takes no audio or video", i, j)
		case "file", "input_file", "document":
			return "", unsupported("messages", "message %d: part %d: files are not read; send their text", i, j)
		default:
			return "", badRequest("messages", "message %d: part %d: type: expected text, found %q", i, j, p.Type)
		}
	}
	return strings.Join(texts, "\n"), nil
}
