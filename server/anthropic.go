package server

import (
	"encoding/json"
	"net/http"
	"strings"

	"ridge/text/chat"
)

// anthropicRequest is the body of POST /v1/messages.
type anthropicRequest struct {
	Model       string             `json:"model"`
	MaxTokens   *integer           `json:"max_tokens"`
	Messages    []anthropicMessage `json:"messages"`
	System      json.RawMessage    `json:"system"`
	Stop        []string           `json:"stop_sequences"`
	Stream      bool               `json:"stream"`
	Temperature *float64           `json:"temperature"`
	TopP        *float64           `json:"top_p"`
	TopK        *integer           `json:"top_k"`
	Tools       []anthropicTool    `json:"tools"`
	ToolChoice  *struct {
		Type            string `json:"type"`
		Name            string `json:"name"`
		DisableParallel bool   `json:"disable_parallel_tool_use"`
	} `json:"tool_choice"`
	Thinking *struct {
		Type   string   `json:"type"`
		Budget *integer `json:"budget_tokens"`
	} `json:"thinking"`
	Output *struct {
		Format json.RawMessage `json:"format"`
		Effort string          `json:"effort"`
	} `json:"output_config"`
	OutputFormat json.RawMessage `json:"output_format"`
}

type anthropicMessage struct {
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`
}

type anthropicTool struct {
	Type        string          `json:"type"`
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Schema      json.RawMessage `json:"input_schema"`
	Strict      bool            `json:"strict"`
}

// block is a block of content, of a request and of an answer.
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

// request turns the body into what all dialects share. Counting tokens needs
// no max_tokens.
func (b *anthropicRequest) request(count bool) (*chatRequest, error) {
	c := &chatRequest{defaults: openAIDefaults, parallel: true, sampling: sampling{Temperature: b.Temperature, TopP: b.TopP, TopKField: b.TopK}}
	if b.MaxTokens == nil && !count {
		return nil, badRequest("max_tokens", "expected a number, found nothing")
	}
	if b.MaxTokens != nil && *b.MaxTokens < 1 {
		return nil, badRequest("max_tokens", "expected 1 or more, found %d", *b.MaxTokens)
	}
	c.MaxTokens, c.Stop, c.Stream = b.MaxTokens, b.Stop, b.Stream
	var err error
	if c.messages, err = b.conversation(); err != nil {
		return nil, err
	}
	if err := b.readTools(c); err != nil {
		return nil, err
	}
	if t := b.Thinking; t != nil {
		switch t.Type {
		case "enabled", "adaptive", "disabled":
			c.args = map[string]any{"enable_thinking": t.Type != "disabled"}
		default:
			return nil, badRequest("thinking.type", "expected enabled, adaptive or disabled, found %q", t.Type)
		}
	}
	form, field := b.OutputFormat, "output_format"
	if o := b.Output; o != nil {
		if present(o.Format) {
			form, field = o.Format, "output_config.format"
		}
		if o.Effort == "max" {
			o.Effort = "xhigh"
		}
		if o.Effort != "" {
			if c.args, err = effortArgs(o.Effort, c.args); err != nil {
				return nil, err
			}
		}
	}
	c.format, err = responseFormat(field, form)
	return c, err
}

// conversation turns system and messages into what templates take.
func (b *anthropicRequest) conversation() ([]chat.Message, error) {
	if len(b.Messages) == 0 {
		return nil, badRequest("messages", "expected at least one message, found none")
	}
	if len(b.Messages) > maxMessages {
		return nil, badRequest("messages", "expected at most %d messages, found %d", maxMessages, len(b.Messages))
	}
	var out []chat.Message
	system, err := contentText(b.System, -1)
	if err != nil {
		return nil, badRequest("system", "expected a string or a list of text blocks, found %s", excerpt(b.System))
	}
	if system != "" {
		out = append(out, chat.Message{Role: "system", Content: system})
	}
	names := map[string]string{}
	for i, m := range b.Messages {
		switch m.Role {
		case "user", "assistant", "system":
		default:
			return nil, badRequest("messages", "message %d: role: expected user or assistant, found %q", i, m.Role)
		}
		var text string
		if json.Unmarshal(m.Content, &text) == nil {
			out = append(out, chat.Message{Role: m.Role, Content: text})
			continue
		}
		var blocks []block
		if json.Unmarshal(m.Content, &blocks) != nil {
			return nil, badRequest("messages", "message %d: content: expected a string or a list of blocks, found %s", i, excerpt(m.Content))
		}
		if out, err = readBlocks(out, i, m.Role, blocks, names); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// readBlocks appends the messages that the blocks of one message become:
// results of tools are turns of their own to templates.
func readBlocks(out []chat.Message, i int, role string, blocks []block, names map[string]string) ([]chat.Message, error) {
	msg := chat.Message{Role: role}
	var texts []string
	for j, x := range blocks {
		switch x.Type {
		case "text":
			texts = append(texts, x.Text)
		case "thinking":
			msg.Reasoning += x.Thinking
		case "redacted_thinking":
		case "tool_use":
			if role != "assistant" || x.Name == "" {
				return nil, badRequest("messages", "message %d: block %d: expected a tool_use with a name in a turn of the assistant", i, j)
			}
			names[x.ID] = x.Name
			msg.ToolCalls = append(msg.ToolCalls, toolCall(x.ID, x.Name, x.Input))
		case "tool_result":
			text, err := contentText(x.Content, i)
			if err != nil {
				return nil, err
			}
			if x.IsError {
				text = "Error: " + text
			}
			out = append(out, chat.Message{Role: "tool", Content: text, ToolCallID: x.ToolUseID, Name: names[x.ToolUseID]})
		case "image":
			return nil, unsupported("messages", "message %d: block %d: this model takes no images", i, j)
		case "document":
			return nil, unsupported("messages", "message %d: block %d: documents are not read; send their text", i, j)
		default:
			return nil, unsupported("messages", "message %d: block %d: type: expected text, thinking, tool_use or tool_result, found %q", i, j, x.Type)
		}
	}
	if msg.Content = strings.Join(texts, "\n"); msg.Content != "" || len(msg.ToolCalls) > 0 || msg.Reasoning != "" {
		out = append(out, msg)
	}
	return out, nil
}

func (b *anthropicRequest) readTools(c *chatRequest) error {
	var raws []json.RawMessage
	for i, t := range b.Tools {
		if t.Type != "" && t.Type != "custom" {
			return unsupported("tools", "tool %d: expected the type custom, found %q", i, t.Type)
		}
		raw, err := functionTool(t.Name, t.Description, t.Schema, t.Strict)
		if err != nil {
			return badRequest("tools", "tool %d: %v", i, err)
		}
		raws = append(raws, raw)
	}
	var err error
	if c.tools, err = readTools(raws); err != nil {
		return err
	}
	t := b.ToolChoice
	if t == nil {
		return nil
	}
	c.parallel = !t.DisableParallel
	switch t.Type {
	case "auto", "none":
		c.choice.mode = t.Type
	case "any":
		c.choice.mode = "required"
	case "tool":
		c.choice = toolChoice{mode: "required", only: []string{t.Name}}
	default:
		return badRequest("tool_choice.type", "expected auto, any, tool or none, found %q", t.Type)
	}
	return nil
}

// countTokens is POST /v1/messages/count_tokens.
func (s *Server) countTokens(w http.ResponseWriter, r *http.Request) error {
	p, m, _, err := s.anthropicPlan(r, true)
	if err != nil {
		return err
	}
	defer m.release()
	writeJSON(w, http.StatusOK, map[string]int{"input_tokens": len(p.req.Tokens)})
	return nil
}

func (s *Server) anthropicPlan(r *http.Request, count bool) (*plan, *loan, *anthropicRequest, error) {
	var b anthropicRequest
	if err := decodeBody(r, &b); err != nil {
		return nil, nil, nil, err
	}
	c, err := b.request(count)
	if err != nil {
		return nil, nil, nil, err
	}
	m, err := s.model(r, b.Model)
	if err != nil {
		return nil, nil, nil, err
	}
	p, err := c.plan(m.Model)
	if err != nil {
		m.release()
		return nil, nil, nil, err
	}
	return p, m, &b, nil
}

// messages is POST /v1/messages.
func (s *Server) messages(w http.ResponseWriter, r *http.Request) error {
	p, m, b, err := s.anthropicPlan(r, false)
	if err != nil {
		return err
	}
	defer m.release()
	o := &anthropicOutput{s: s, r: r, p: p, rep: anthropicReply{ID: newID("msg_"), Type: "message", Role: "assistant", Model: b.Model, Content: []any{}}}
	if o.rep.Model == "" {
		o.rep.Model = p.m.name
	}
	if b.Stream {
		return o.stream(w)
	}
	return o.whole(w)
}
