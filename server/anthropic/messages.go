package anthropic

import (
	"encoding/json"
	"net/http"
	"strings"

	"ridge/server/caller"
	"ridge/server/fault"
	"ridge/server/run"
	"ridge/server/wire"
	"ridge/text/chat"
)

// request is the body of POST /v1/messages.
type request struct {
	Model       string          `json:"model"`
	MaxTokens   *wire.Integer   `json:"max_tokens"`
	Messages    []message       `json:"messages"`
	System      json.RawMessage `json:"system"`
	Stop        []string        `json:"stop_sequences"`
	Stream      bool            `json:"stream"`
	Temperature *float64        `json:"temperature"`
	TopP        *float64        `json:"top_p"`
	TopK        *wire.Integer   `json:"top_k"`
	Tools       []tool          `json:"tools"`
	ToolChoice  *struct {
		Type            string `json:"type"`
		Name            string `json:"name"`
		DisableParallel bool   `json:"disable_parallel_tool_use"`
	} `json:"tool_choice"`
	Thinking *struct {
		Type   string        `json:"type"`
		Budget *wire.Integer `json:"budget_tokens"`
	} `json:"thinking"`
	Output *struct {
		Format json.RawMessage `json:"format"`
		Effort string          `json:"effort"`
	} `json:"output_config"`
	OutputFormat json.RawMessage `json:"output_format"`
	Deadline     *wire.Integer   `json:"deadline_ms"` // an addition

	// What changes no answer here, and what this server cannot do.
	Metadata     wire.Idle    `json:"metadata"`
	ServiceTier  wire.Idle    `json:"service_tier"`
	CacheControl wire.Idle    `json:"cache_control"` // prefixes are found without being marked
	Geography    wire.Idle    `json:"inference_geo"`
	Container    wire.Refused `json:"container"`
	MCPServers   wire.Refused `json:"mcp_servers"`
}

type message struct {
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`
}

type tool struct {
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
func (b *request) request(count bool) (*run.Chat, error) {
	c := &run.Chat{Defaults: wire.Defaults, Parallel: true, Sampling: run.Sampling{Temperature: b.Temperature, TopP: b.TopP, TopK: b.TopK.Pointer()}}
	if b.MaxTokens == nil && !count {
		return nil, fault.BadRequest("max_tokens", "expected a number, found nothing")
	}
	if b.MaxTokens != nil && *b.MaxTokens < 1 {
		return nil, fault.BadRequest("max_tokens", "expected 1 or more, found %d", *b.MaxTokens)
	}
	c.MaxTokens, c.Stop, c.Stream = b.MaxTokens.Pointer(), b.Stop, b.Stream
	c.Deadline = b.Deadline.Milliseconds()
	var err error
	if c.Messages, err = b.conversation(); err != nil {
		return nil, err
	}
	if err := prefill(c); err != nil {
		return nil, err
	}
	if err := b.readTools(c); err != nil {
		return nil, err
	}
	if t := b.Thinking; t != nil {
		switch t.Type {
		case "enabled", "adaptive", "disabled":
			c.Args = map[string]any{"enable_thinking": t.Type != "disabled"}
			if c.Budget = t.Budget.Pointer(); c.Budget != nil && *c.Budget < 1 {
				return nil, fault.BadRequest("thinking.budget_tokens", "expected 1 or more, found %d", *c.Budget)
			}
		default:
			return nil, fault.BadRequest("thinking.type", "expected enabled, adaptive or disabled, found %q", t.Type)
		}
	}
	form, field := b.OutputFormat, "output_format"
	if o := b.Output; o != nil {
		if wire.Present(o.Format) {
			form, field = o.Format, "output_config.format"
		}
		if o.Effort == "max" {
			o.Effort = "xhigh"
		}
		if o.Effort != "" {
			if c.Args, err = wire.EffortArgs(o.Effort, c.Args); err != nil {
				return nil, err
			}
		}
	}
	c.Format, err = wire.ResponseFormat(field, form)
	return c, err
}

// prefill has the last turn continued, if it is the assistant's.
func prefill(c *run.Chat) error {
	n := len(c.Messages) - 1
	if n < 0 || c.Messages[n].Role != "assistant" || len(c.Messages[n].ToolCalls) > 0 {
		return nil
	}
	last := c.Messages[n]
	space := last.Content[len(strings.TrimRight(last.Content, " \t\r\n")):]
	switch {
	case space != "":
		return fault.BadRequest("messages", "message %d: expected a last turn of the assistant without white space at its end, found %q", n, space)
	case last.Content == "" && last.Reasoning == "":
		c.Messages = c.Messages[:n] // as if it were not there
	default:
		c.Continue = true
	}
	return nil
}

// conversation turns system and messages into what templates take.
func (b *request) conversation() ([]chat.Message, error) {
	if len(b.Messages) == 0 {
		return nil, fault.BadRequest("messages", "expected at least one message, found none")
	}
	if len(b.Messages) > wire.MaxMessages {
		return nil, fault.BadRequest("messages", "expected at most %d messages, found %d", wire.MaxMessages, len(b.Messages))
	}
	var out []chat.Message
	system, err := wire.ContentText(b.System, -1)
	if err != nil {
		return nil, fault.BadRequest("system", "expected a string or a list of text blocks, found %s", fault.Excerpt(b.System))
	}
	if system != "" {
		out = append(out, chat.Message{Role: "system", Content: system})
	}
	names := map[string]string{}
	for i, m := range b.Messages {
		switch m.Role {
		case "user", "assistant", "system":
		default:
			return nil, fault.BadRequest("messages", "message %d: role: expected user or assistant, found %q", i, m.Role)
		}
		var text string
		if json.Unmarshal(m.Content, &text) == nil {
			out = append(out, chat.Message{Role: m.Role, Content: text})
			continue
		}
		var blocks []block
		if json.Unmarshal(m.Content, &blocks) != nil {
			return nil, fault.BadRequest("messages", "message %d: content: expected a string or a list of blocks, found %s", i, fault.Excerpt(m.Content))
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
				return nil, fault.BadRequest("messages", "message %d: block %d: expected a tool_use with a name in a turn of the assistant", i, j)
			}
			names[x.ID] = x.Name
			msg.ToolCalls = append(msg.ToolCalls, wire.ToolCall(x.ID, x.Name, x.Input))
		case "tool_result":
			text, err := wire.ContentText(x.Content, i)
			if err != nil {
				return nil, err
			}
			if x.IsError {
				text = "Error: " + text
			}
			out = append(out, chat.Message{Role: "tool", Content: text, ToolCallID: x.ToolUseID, Name: names[x.ToolUseID]})
		case "image":
			return nil, fault.Unsupported("messages", "message %d: block %d: this model takes no images", i, j)
		case "document":
			return nil, fault.Unsupported("messages", "message %d: block %d: documents are not read; send their text", i, j)
		default:
			return nil, fault.Unsupported("messages", "message %d: block %d: type: expected text, thinking, tool_use or tool_result, found %q", i, j, x.Type)
		}
	}
	if msg.Content = strings.Join(texts, "\n"); msg.Content != "" || len(msg.ToolCalls) > 0 || msg.Reasoning != "" {
		out = append(out, msg)
	}
	return out, nil
}

func (b *request) readTools(c *run.Chat) error {
	var raws []json.RawMessage
	for i, t := range b.Tools {
		if t.Type != "" && t.Type != "custom" {
			return fault.Unsupported("tools", "tool %d: expected the type custom, found %q", i, t.Type)
		}
		raw, err := chat.Tool{Name: t.Name, Description: t.Description, Parameters: t.Schema, Strict: t.Strict}.JSON()
		if err != nil {
			return fault.BadRequest("tools", "tool %d: %v", i, err)
		}
		raws = append(raws, raw)
	}
	var err error
	if c.Tools, err = run.ReadTools(raws); err != nil {
		return err
	}
	t := b.ToolChoice
	if t == nil {
		return nil
	}
	c.Parallel = !t.DisableParallel
	switch t.Type {
	case "auto", "none":
		c.Choice.Mode = t.Type
	case "any":
		c.Choice.Mode = "required"
	case "tool":
		c.Choice = run.ToolChoice{Mode: "required", Only: []string{t.Name}}
	default:
		return fault.BadRequest("tool_choice.type", "expected auto, any, tool or none, found %q", t.Type)
	}
	return nil
}

// countTokens is POST /v1/messages/count_tokens.
func (s *API) countTokens(w http.ResponseWriter, r *http.Request) error {
	p, m, _, err := s.plan(r, true)
	if err != nil {
		return err
	}
	defer m.Release()
	wire.WriteJSON(w, http.StatusOK, map[string]int{"input_tokens": len(p.Request.Tokens)})
	return nil
}

func (s *API) plan(r *http.Request, count bool) (*run.Plan, *run.Loan, *request, error) {
	var b request
	if err := wire.DecodeBody(r, &b); err != nil {
		return nil, nil, nil, err
	}
	c, err := b.request(count)
	if err != nil {
		return nil, nil, nil, err
	}
	p, m, err := s.Plan(r, b.Model, c)
	return p, m, &b, err
}

// messages is POST /v1/messages.
func (s *API) messages(w http.ResponseWriter, r *http.Request) error {
	p, m, b, err := s.plan(r, false)
	if err != nil {
		return err
	}
	defer m.Release()
	wire.NoteUnenforced(w, p)
	o := &output{s: s, r: r, p: p, rep: reply{ID: caller.NewID("msg_"), Type: "message", Role: "assistant", Model: b.Model, Content: []any{}}}
	if o.rep.Model == "" {
		o.rep.Model = p.Model.Info().Name
	}
	if b.Stream {
		return o.stream(w)
	}
	return o.whole(w)
}
