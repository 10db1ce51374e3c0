package openai

import (
	"encoding/json"

	"ridge/server/fault"
	"ridge/server/offer"
	"ridge/server/wire"
	"ridge/text/chat"
)

// message is a message of a request.
type message struct {
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
		Custom struct {
			Name  string `json:"name"`
			Input string `json:"input"`
		} `json:"custom"`
	} `json:"tool_calls"`
	FunctionCall *struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	} `json:"function_call"`
}

// readMessages turns the messages of a chat completion into a conversation. What the
// model does not get of them is added to left.
func readMessages(in []message, offered *offer.Tools, left *[]fault.Left) ([]chat.Message, error) {
	if len(in) == 0 {
		return nil, fault.BadRequest("messages", "expected at least one message, found none")
	}
	if len(in) > wire.MaxMessages {
		return nil, fault.BadRequest("messages", "expected at most %d messages, found %d", wire.MaxMessages, len(in))
	}
	out := make([]chat.Message, 0, len(in))
	names := map[string]string{} // of tools, by the id of their call
	for i := range in {
		m, err := in[i].message(i, offered, left)
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

func (m *message) message(i int, offered *offer.Tools, left *[]fault.Left) (chat.Message, error) {
	out := chat.Message{Role: m.Role, Name: m.Name, ToolCallID: m.ToolCallID, Reasoning: m.Reasoning + m.Reasoning2}
	switch m.Role {
	case "system", "user", "assistant", "tool":
	case "developer":
		out.Role = "system"
	case "function":
		out.Role = "tool"
	case "":
		return out, fault.BadRequest("messages", "message %d: role: expected system, developer, user, assistant or tool, found nothing", i)
	default:
		return out, fault.BadRequest("messages", "message %d: role: expected system, developer, user, assistant or tool, found %q", i, m.Role)
	}
	var err error
	if out.Content, err = wire.ContentText(m.Content, i, left); err != nil {
		return out, err
	}
	if out.Content == "" {
		out.Content = m.Refusal
	}
	for j, c := range m.ToolCalls {
		switch c.Type {
		case "", offer.Function:
			out.ToolCalls = append(out.ToolCalls, wire.ToolCall(c.ID, c.Function.Name, c.Function.Arguments))
		case customTool:
			out.ToolCalls = append(out.ToolCalls, textCall(c.ID, offered.Flat(offer.Tool{Kind: customTool, Name: c.Custom.Name}), c.Custom.Input))
		default:
			return out, fault.Unsupported("messages", "message %d: tool call %d: expected the type function or custom, found %q", i, j, c.Type)
		}
	}
	if f := m.FunctionCall; f != nil {
		out.ToolCalls = append(out.ToolCalls, wire.ToolCall("", f.Name, f.Arguments))
	}
	if len(m.ToolCalls) > 0 && m.Role != "assistant" {
		return out, fault.BadRequest("messages", "message %d: tool_calls: only the assistant calls tools", i)
	}
	return out, nil
}
