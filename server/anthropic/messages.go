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
	Metadata     wire.Idle `json:"metadata"`
	ServiceTier  wire.Idle `json:"service_tier"`
	CacheControl wire.Idle `json:"cache_control"` // prefixes are found without being marked
	Geography    wire.Idle `json:"inference_geo"`
}

type message struct {
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`
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
	if c.Messages, err = b.conversation(&c.Left); err != nil {
		return nil, err
	}
	if err := prefill(c); err != nil {
		return nil, err
	}
	if err := b.readTools(c); err != nil {
		return nil, err
	}
	c.PinOpening, c.PinPrompt = b.pins()
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

// pins says whether a breakpoint (cache_control) is at the tools or the system
// message, and whether one is at a message.
func (b *request) pins() (opening, prompt bool) {
	marked := func(raw json.RawMessage) bool {
		var blocks []struct {
			Cache json.RawMessage `json:"cache_control"`
		}
		_ = json.Unmarshal(raw, &blocks) // a string has none
		for _, x := range blocks {
			if wire.Present(x.Cache) {
				return true
			}
		}
		return false
	}
	opening = marked(b.System)
	for i := range b.Tools {
		opening = opening || wire.Present(b.Tools[i].Cache)
	}
	for i := range b.Messages {
		prompt = prompt || marked(b.Messages[i].Content)
	}
	return opening, prompt
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

// conversation turns system and messages into what templates take. What the model does
// not get of them is added to left.
func (b *request) conversation(left *[]fault.Left) ([]chat.Message, error) {
	if len(b.Messages) == 0 {
		return nil, fault.BadRequest("messages", "expected at least one message, found none")
	}
	if len(b.Messages) > wire.MaxMessages {
		return nil, fault.BadRequest("messages", "expected at most %d messages, found %d", wire.MaxMessages, len(b.Messages))
	}
	out := &blockReader{left: left, called: map[string]string{}}
	system, err := wire.ContentText(b.System, -1, left)
	if err != nil {
		return nil, fault.BadRequest("system", "expected a string or a list of text blocks, found %s", fault.Excerpt(b.System))
	}
	if system != "" {
		out.msgs = append(out.msgs, chat.Message{Role: "system", Content: system})
	}
	opening := true // until the assistant speaks
	for i, m := range b.Messages {
		if m.Role == "assistant" && opening {
			out.msgs, opening = systemFirst(out.msgs), false
		}
		switch m.Role {
		case "user", "assistant", "system":
		default:
			return nil, fault.BadRequest("messages", "message %d: role: expected user or assistant, found %q", i, m.Role)
		}
		var text string
		if json.Unmarshal(m.Content, &text) == nil {
			out.msgs = append(out.msgs, chat.Message{Role: m.Role, Content: text})
			continue
		}
		var blocks []json.RawMessage
		if json.Unmarshal(m.Content, &blocks) != nil {
			return nil, fault.BadRequest("messages", "message %d: content: expected a string or a list of blocks, found %s", i, fault.Excerpt(m.Content))
		}
		if err = out.message(i, m.Role, blocks); err != nil {
			return nil, err
		}
	}
	if opening {
		out.msgs = systemFirst(out.msgs)
	}
	return out.msgs, nil
}

// systemFirst makes one system message of those of a conversation's opening. Claude Code
// sends what its agents and skills are behind the task: a prompt that had it there would
// be the one of no other task.
func systemFirst(msgs []chat.Message) []chat.Message {
	var texts []string
	rest := make([]chat.Message, 1, len(msgs)+1)
	for _, m := range msgs {
		if m.Role == "system" {
			texts = append(texts, m.Content)
		} else {
			rest = append(rest, m)
		}
	}
	if len(texts) == 0 {
		return msgs
	}
	rest[0] = chat.Message{Role: "system", Content: strings.Join(texts, "\n")}
	return rest
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
	wire.NoteUnenforced(w, r, p)
	o := &output{s: s, r: r, p: p, rep: reply{ID: caller.NewID("msg_"), Type: "message", Role: "assistant", Model: b.Model, Content: []any{}}}
	if o.rep.Model == "" {
		o.rep.Model = p.Model.Info().Name
	}
	if b.Stream {
		return o.stream(w)
	}
	return o.whole(w)
}
