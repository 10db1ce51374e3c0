package openai

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"ridge/server/fault"
	"ridge/server/offer"
	"ridge/server/wire"
	"ridge/text/chat"
)

// inputItem is an item of a request's input: what any of the types has that matters.
type inputItem struct {
	Type      string          `json:"type"`
	ID        string          `json:"id"`
	Role      string          `json:"role"`
	Content   json.RawMessage `json:"content"`
	CallID    string          `json:"call_id"`
	Namespace string          `json:"namespace"`
	Name      string          `json:"name"`
	Label     string          `json:"server_label"`
	Arguments json.RawMessage `json:"arguments"` // a string; of searches for tools an object
	Input     string          `json:"input"`
	Output    json.RawMessage `json:"output"`
	Action    json.RawMessage `json:"action"`
	Operation json.RawMessage `json:"operation"`
	Status    string          `json:"status"`
	Tools     []toolDef       `json:"tools"`
	Encrypted string          `json:"encrypted_content"`
}

// itemReader turns the items of a request's input into a conversation.
type itemReader struct {
	out     []chat.Message
	given   int // of out, those whose calls belong to others
	offered *offer.Tools
	left    *[]fault.Left
	called  map[string]string // names of tools by the ids of their calls
	// find returns an item of an earlier response by its id.
	find func(id string) (json.RawMessage, bool)
}

// read takes an item. n is its number.
func (r *itemReader) read(n int, raw json.RawMessage) error {
	var x inputItem
	if err := json.Unmarshal(raw, &x); err != nil {
		return fault.BadRequest("input", "item %d: expected an item, found %s", n, fault.Excerpt(raw))
	}
	switch x.Type {
	case "message", "":
		if x.Type == "" && x.Role == "" {
			if x.ID != "" {
				return r.reference(n, x.ID)
			}
			return fault.BadRequest("input", "item %d: expected a type or a role, found %s", n, fault.Excerpt(raw))
		}
		m, err := (&message{Role: x.Role, Content: x.Content}).message(n, r.offered, r.left)
		if err == nil {
			r.out = append(r.out, m)
		}
		return err
	case "item_reference":
		return r.reference(n, x.ID)
	case "compaction", "compaction_summary":
		r.out = append(r.out, chat.Message{Role: "user", Content: r.compacted(n, x.Encrypted)})
		return nil
	case "reasoning", "compaction_trigger", "mcp_list_tools", "mcp_approval_response", "additional_tools", "configuration_update":
		return nil // of an earlier answer, or read elsewhere: the model gets none of it
	}
	if strings.HasSuffix(x.Type, "_output") {
		return r.result(n, &x, raw)
	}
	return r.call(n, &x, raw)
}

// reference takes an item that is kept here.
func (r *itemReader) reference(n int, id string) error {
	if id == "" {
		return fault.BadRequest("input", "item %d: item_reference: id: expected an id, found nothing", n)
	}
	raw, ok := r.find(id)
	var x inputItem
	if ok && json.Unmarshal(raw, &x) == nil && x.Type != "item_reference" {
		return r.read(n, raw)
	}
	*r.left = append(*r.left, fault.Left{Where: fmt.Sprintf("item %d", n), What: "item_reference: left out: no item with this id is kept here"})
	r.out = append(r.out, chat.Message{Role: "user", Content: "[an earlier part of the conversation that is not kept here]"})
	return nil
}

// call takes a call that the assistant made, of whatever kind.
func (r *itemReader) call(n int, x *inputItem, raw json.RawMessage) error {
	var args json.RawMessage
	kind := strings.TrimSuffix(x.Type, "_call")
	t := offer.Tool{Kind: kind, Name: kind}
	switch x.Type {
	case "function_call":
		if x.Name == "" {
			return fault.BadRequest("input", "item %d: name: expected a name, found nothing", n)
		}
		t, args = offer.Tool{Kind: offer.Function, Namespace: x.Namespace, Name: x.Name}, x.Arguments
	case "custom_tool_call":
		if x.Name == "" {
			return fault.BadRequest("input", "item %d: name: expected a name, found nothing", n)
		}
		t = offer.Tool{Kind: customTool, Namespace: x.Namespace, Name: x.Name}
		args, _ = wire.EncodeJSON(map[string]string{"input": x.Input}) // strings encode
	case "local_shell_call", "shell_call":
		args = x.Action
	case "apply_patch_call":
		args = x.Operation
	case "tool_search_call":
		args = x.Arguments
	case "mcp_call", "mcp_approval_request":
		t, args = offer.Tool{Namespace: x.Label, Name: x.Name}, x.Arguments
	case "agent_message", "program", "web_search_call", "file_search_call", "code_interpreter_call", "image_generation_call", "computer_call":
		args = sketch(raw)
	default:
		if !strings.HasSuffix(x.Type, "_call") {
			*r.left = append(*r.left, fault.Left{Where: fmt.Sprintf("item %d", n), What: fmt.Sprintf("%q: left out: no such type of item is known here", x.Type)})
			return nil
		}
		args = sketch(raw)
	}
	id, name := x.CallID, r.offered.Flat(t)
	if id == "" {
		id = x.ID
	}
	r.called[id] = name
	if !wire.Present(args) {
		args = nil
	}
	r.add(wire.ToolCall(id, name, args))
	if x.Type == "mcp_call" && wire.Present(x.Output) { // the server's answer is in the same item
		return r.result(n, x, raw)
	}
	return nil
}

// add adds a call to the turn of the assistant that is under way, or to a new one.
func (r *itemReader) add(call chat.ToolCall) {
	last := len(r.out) - 1
	if last < 0 || r.out[last].Role != "assistant" {
		r.out = append(r.out, chat.Message{Role: "assistant", ToolCalls: []chat.ToolCall{call}})
		return
	}
	m := &r.out[last]
	if last < r.given {
		m.ToolCalls, r.given = slices.Clip(m.ToolCalls), last
	}
	m.ToolCalls = append(m.ToolCalls, call)
}

// result takes what came of a call.
func (r *itemReader) result(n int, x *inputItem, raw json.RawMessage) error {
	var text string
	var err error
	switch x.Type {
	case "shell_call_output":
		text = shellOutput(x.Output)
	case "tool_search_output":
		var names []string
		for i := range x.Tools {
			names = append(names, x.Tools[i].names()...)
		}
		text = "tools: " + strings.Join(names, ", ")
	case "apply_patch_call_output":
		_ = json.Unmarshal(x.Output, &text) // may be null
		text = strings.TrimSpace(x.Status + "\n" + text)
	case "computer_call_output":
		text, err = wire.ContentText(listOf(x.Output), n, r.left)
	case "program_output":
		text = string(sketch(raw))
	default:
		text, err = wire.ContentText(x.Output, n, r.left)
	}
	id := x.CallID
	if id == "" {
		id = x.ID
	}
	r.out = append(r.out, chat.Message{Role: "tool", Content: text, ToolCallID: id, Name: r.called[id]})
	return err
}

// names are the model's names of a tool that was found, or of those in it.
func (t *toolDef) names() (out []string) {
	if len(t.Tools) == 0 {
		return []string{t.Name}
	}
	for _, raw := range t.Tools {
		out = append(out, t.Name+"__"+toolNamed(raw).Name)
	}
	return out
}

// listOf is a JSON list of one value.
func listOf(raw json.RawMessage) json.RawMessage {
	if !wire.Present(raw) {
		return raw
	}
	return json.RawMessage("[" + string(raw) + "]")
}

// shellOutput is the output of shell commands as text.
func shellOutput(raw json.RawMessage) string {
	var chunks []struct {
		Stdout  string `json:"stdout"`
		Stderr  string `json:"stderr"`
		Outcome struct {
			Type string `json:"type"`
			Code int    `json:"exit_code"`
		} `json:"outcome"`
	}
	if json.Unmarshal(raw, &chunks) != nil {
		var text string
		if json.Unmarshal(raw, &text) != nil {
			return string(raw)
		}
		return text
	}
	var b strings.Builder
	for _, c := range chunks {
		b.WriteString(c.Stdout)
		b.WriteString(c.Stderr)
		switch {
		case c.Outcome.Type == "timeout":
			b.WriteString("\n[timed out]\n")
		case c.Outcome.Code != 0:
			fmt.Fprintf(&b, "\n[exit code %d]\n", c.Outcome.Code)
		}
	}
	return b.String()
}

// sketch is what an item says beside its ids, as an object.
func sketch(raw json.RawMessage) json.RawMessage {
	var members map[string]json.RawMessage
	_ = json.Unmarshal(raw, &members) // it is an object
	for _, k := range []string{"id", "call_id", "type", "status", "encrypted_content", "fingerprint", "result", "caller"} {
		delete(members, k)
	}
	out, _ := wire.EncodeJSON(members) // raw JSON encodes
	return out
}

// compactPrefix begins what this server writes into encrypted_content.
const compactPrefix = "ridge1:"

// compacted is the text of an item that stands for an earlier part of the
// conversation.
func (r *itemReader) compacted(n int, encrypted string) string {
	if text, ok := strings.CutPrefix(encrypted, compactPrefix); ok {
		if b, err := base64.StdEncoding.DecodeString(text); err == nil {
			return "[summary of the conversation so far]\n" + strings.ToValidUTF8(string(b), "\uFFFD")
		}
	}
	*r.left = append(*r.left, fault.Left{Where: fmt.Sprintf("item %d", n), What: "compaction: left out: another server wrote it, which alone can read it"})
	return "[an earlier part of the conversation that another server has compacted and that cannot be read here]"
}
