package anthropic

import (
	"encoding/json"
	"fmt"
	"strings"

	"ridge/server/fault"
	"ridge/server/wire"
	"ridge/text/chat"
)

// block is a block of content of a request.
type block struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	Thinking  string          `json:"thinking"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input"`
	ToolUseID string          `json:"tool_use_id"`
	Content   json.RawMessage `json:"content"`
	IsError   bool            `json:"is_error"`
}

// blockReader turns messages of blocks into a conversation.
type blockReader struct {
	msgs   []chat.Message
	left   *[]fault.Left
	called map[string]string // names of tools by the ids of their calls

	msg   chat.Message // under way
	texts []string     // of it
}

// message appends the messages that the blocks of one message become: results of
// tools are turns of their own to templates.
func (r *blockReader) message(i int, role string, blocks []json.RawMessage) error {
	r.msg, r.texts = chat.Message{Role: role}, nil
	for j, raw := range blocks {
		if err := r.block(i, j, role, raw); err != nil {
			return err
		}
	}
	r.flush()
	return nil
}

// flush appends the message under way, if it says something.
func (r *blockReader) flush() {
	r.msg.Content = strings.Join(r.texts, "\n")
	if r.msg.Content != "" || len(r.msg.ToolCalls) > 0 || r.msg.Reasoning != "" {
		r.msgs = append(r.msgs, r.msg)
	}
	r.msg, r.texts = chat.Message{Role: r.msg.Role}, nil
}

func (r *blockReader) block(i, j int, role string, raw json.RawMessage) error {
	var x block
	where := fmt.Sprintf("message %d: block %d", i, j)
	if err := json.Unmarshal(raw, &x); err != nil {
		return fault.BadRequest("messages", "%s: expected a block, found %s", where, fault.Excerpt(raw))
	}
	switch x.Type {
	case "text":
		r.texts = append(r.texts, x.Text)
	case "thinking":
		r.msg.Reasoning += x.Thinking
	case "redacted_thinking", "tool_addition", "tool_removal", "fallback", "mcp_tool_listing":
		// nothing that the model reads
	case "tool_use", "server_tool_use", "mcp_tool_use":
		if role != "assistant" || x.Name == "" {
			return fault.BadRequest("messages", "%s: expected a %s with a name in a turn of the assistant", where, x.Type)
		}
		r.called[x.ID] = x.Name
		r.msg.ToolCalls = append(r.msg.ToolCalls, wire.ToolCall(x.ID, x.Name, x.Input))
	case "tool_result":
		text, err := wire.ContentText(x.Content, i, r.left)
		if err != nil {
			return err
		}
		r.result(&x, text)
	case "compaction":
		text, err := wire.ContentText(x.Content, i, r.left)
		if err != nil || text == "" {
			return err
		}
		r.flush()
		r.msgs = append(r.msgs, chat.Message{Role: "user", Content: "[summary of the conversation so far]\n" + text})
	case "image", "document", "search_result", "tool_reference":
		text, err := wire.ContentText(json.RawMessage("["+string(raw)+"]"), i, r.left)
		if err != nil {
			return err
		}
		r.texts = append(r.texts, text)
	case "container_upload":
		*r.left = append(*r.left, fault.Left{Where: where, What: "container_upload: left out: this server keeps no containers"})
	default:
		if strings.HasSuffix(x.Type, "_tool_result") { // of a tool that a server ran
			if role == "assistant" {
				r.flush()
			}
			r.result(&x, serverResult(x.Content))
			return nil
		}
		*r.left = append(*r.left, fault.Left{Where: where, What: fmt.Sprintf("%q: left out: no such type of block is known here", x.Type)})
	}
	return nil
}

// result appends the result of a call. Those of the client come before what the user
// says in the same message.
func (r *blockReader) result(x *block, text string) {
	if x.IsError {
		text = "Error: " + text
	}
	r.msgs = append(r.msgs, chat.Message{Role: "tool", Content: text, ToolCallID: x.ToolUseID, Name: r.called[x.ToolUseID]})
}

// serverResult is what a tool that a server ran has found, without what only that
// server can read.
func serverResult(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	var items []map[string]json.RawMessage
	if json.Unmarshal(raw, &items) != nil {
		var one map[string]json.RawMessage
		if json.Unmarshal(raw, &one) != nil {
			return string(raw)
		}
		items = append(items, one)
	}
	var texts []string
	for _, item := range items {
		if json.Unmarshal(item["text"], &text) == nil && wire.Present(item["text"]) {
			texts = append(texts, text)
			continue
		}
		for k := range item {
			if strings.HasPrefix(k, "encrypted_") || k == "type" {
				delete(item, k)
			}
		}
		b, _ := wire.EncodeJSON(item) // raw JSON encodes
		texts = append(texts, string(b))
	}
	return strings.Join(texts, "\n")
}
