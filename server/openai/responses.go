package openai

import (
	"encoding/json"
	"net/http"
	"time"

	"ridge/server/caller"
	"ridge/server/fault"
	"ridge/server/run"
	"ridge/server/wire"
	"ridge/text/chat"
)

// responsesRequest is the body of POST /v1/responses.
type responsesRequest struct {
	Model        string            `json:"model"`
	Input        json.RawMessage   `json:"input"`
	Instructions *string           `json:"instructions"`
	MaxOutput    *wire.Integer     `json:"max_output_tokens"`
	Stream       bool              `json:"stream"`
	Temperature  *float64          `json:"temperature"`
	TopP         *float64          `json:"top_p"`
	Tools        []json.RawMessage `json:"tools"`
	ToolChoice   toolChoiceField   `json:"tool_choice"`
	Parallel     *bool             `json:"parallel_tool_calls"`
	Text         *struct {
		Format json.RawMessage `json:"format"`
	} `json:"text"`
	Reasoning *struct {
		Effort  string  `json:"effort"`
		Summary *string `json:"summary"`
	} `json:"reasoning"`
	Previous     string          `json:"previous_response_id"`
	Store        *bool           `json:"store"`
	Background   bool            `json:"background"`
	Conversation json.RawMessage `json:"conversation"`
	PromptRef    json.RawMessage `json:"prompt"`
	Include      []string        `json:"include"`
	TopLogprobs  *wire.Integer   `json:"top_logprobs"`
	Metadata     json.RawMessage `json:"metadata"`
	Seed         *wire.Seed      `json:"seed"`
	Deadline     *wire.Integer   `json:"deadline_ms"`
	ThinkingBudget
}

// inputItem is an item of a request's input.
type inputItem struct {
	Type      string          `json:"type"`
	Role      string          `json:"role"`
	Content   json.RawMessage `json:"content"`
	CallID    string          `json:"call_id"`
	Name      string          `json:"name"`
	Arguments string          `json:"arguments"`
	Output    json.RawMessage `json:"output"`
}

// request turns the body into what all dialects share.
func (b *responsesRequest) request(earlier []chat.Message) (*run.Chat, error) {
	for field, given := range map[string]bool{"background": b.Background, "conversation": wire.Present(b.Conversation), "prompt": wire.Present(b.PromptRef)} {
		if given {
			return nil, fault.Unsupported(field, "not supported by this server")
		}
	}
	c := &run.Chat{Defaults: wire.Defaults, Choice: run.ToolChoice(b.ToolChoice), Parallel: b.Parallel == nil || *b.Parallel,
		Sampling: run.Sampling{Temperature: b.Temperature, TopP: b.TopP, Seed: b.Seed.Pointer()}}
	c.Deadline, c.Budget = b.Deadline.Milliseconds(), b.budget()
	if c.MaxTokens = b.MaxOutput.Pointer(); c.MaxTokens != nil && *c.MaxTokens < 1 {
		return nil, fault.BadRequest("max_output_tokens", "expected 1 or more, found %d", *c.MaxTokens)
	}
	if b.Instructions != nil && *b.Instructions != "" {
		c.Messages = append(c.Messages, chat.Message{Role: "system", Content: *b.Instructions})
	}
	c.Messages = append(c.Messages, earlier...)
	var err error
	if c.Messages, err = b.readInput(c.Messages); err != nil {
		return nil, err
	}
	if err := b.readTools(c); err != nil {
		return nil, err
	}
	if b.Text != nil {
		if c.Format, err = wire.ResponseFormat("text.format", b.Text.Format); err != nil {
			return nil, err
		}
	}
	if b.Reasoning != nil {
		if c.Args, err = wire.EffortArgs(b.Reasoning.Effort, nil); err != nil {
			return nil, err
		}
	}
	for _, i := range b.Include {
		c.Probs = c.Probs || i == "message.output_text.logprobs"
	}
	if c.Top = b.TopLogprobs.Value(0); c.Top < 0 || c.Top > run.MaxTopProbs {
		return nil, fault.BadRequest("top_logprobs", "expected 0 to %d, found %d", run.MaxTopProbs, c.Top)
	}
	return c, nil
}

// readInput appends the input's messages.
func (b *responsesRequest) readInput(out []chat.Message) ([]chat.Message, error) {
	var text string
	if json.Unmarshal(b.Input, &text) == nil && wire.Present(b.Input) {
		return append(out, chat.Message{Role: "user", Content: text}), nil
	}
	var items []inputItem
	if !wire.Present(b.Input) || json.Unmarshal(b.Input, &items) != nil || len(items) > wire.MaxMessages {
		return nil, fault.BadRequest("input", "expected a string or a list of at most %d items, found %s", wire.MaxMessages, fault.Excerpt(b.Input))
	}
	names := map[string]string{}
	for i, x := range items {
		switch {
		case x.Type == "message" || x.Type == "" && x.Role != "":
			m, err := (&message{Role: x.Role, Content: x.Content}).message(i)
			if err != nil {
				return nil, err
			}
			out = append(out, m)
		case x.Type == "function_call":
			if x.Name == "" {
				return nil, fault.BadRequest("input", "item %d: name: expected a name, found nothing", i)
			}
			names[x.CallID] = x.Name
			args, _ := wire.EncodeJSON(x.Arguments) // strings encode
			call := wire.ToolCall(x.CallID, x.Name, args)
			if n := len(out); n > 0 && out[n-1].Role == "assistant" {
				out[n-1].ToolCalls = append(out[n-1].ToolCalls[:len(out[n-1].ToolCalls):len(out[n-1].ToolCalls)], call)
				continue
			}
			out = append(out, chat.Message{Role: "assistant", ToolCalls: []chat.ToolCall{call}})
		case x.Type == "function_call_output":
			text, err := wire.ContentText(x.Output, i)
			if err != nil {
				return nil, err
			}
			out = append(out, chat.Message{Role: "tool", Content: text, ToolCallID: x.CallID, Name: names[x.CallID]})
		case x.Type == "reasoning": // of an earlier answer; templates drop it anyway
		default:
			return nil, fault.Unsupported("input", "item %d: type: expected message, function_call, function_call_output or reasoning, found %q", i, x.Type)
		}
	}
	if len(out) == 0 {
		return nil, fault.BadRequest("input", "expected at least one message, found none")
	}
	return out, nil
}

func (b *responsesRequest) readTools(c *run.Chat) error {
	var raws []json.RawMessage
	for i, raw := range b.Tools {
		var t struct {
			Type        string          `json:"type"`
			Name        string          `json:"name"`
			Description string          `json:"description"`
			Parameters  json.RawMessage `json:"parameters"`
			Strict      *bool           `json:"strict"`
		}
		if err := json.Unmarshal(raw, &t); err != nil {
			return fault.BadRequest("tools", "tool %d: expected a function, found %s", i, fault.Excerpt(raw))
		}
		if t.Type != "function" {
			return fault.Unsupported("tools", "tool %d: expected the type function, found %q", i, t.Type)
		}
		f, err := chat.Tool{Name: t.Name, Description: t.Description, Parameters: t.Parameters, Strict: t.Strict != nil && *t.Strict}.JSON()
		if err != nil {
			return fault.BadRequest("tools", "tool %d: %v", i, err)
		}
		raws = append(raws, f)
	}
	var err error
	c.Tools, err = run.ReadTools(raws)
	return err
}

func (s *API) getResponse(w http.ResponseWriter, r *http.Request) error {
	x, err := s.memory.get(r.PathValue("id"), caller.Owner(r.Context()))
	if err != nil {
		return err
	}
	wire.WriteJSON(w, http.StatusOK, x.Reply)
	return nil
}

func (s *API) deleteResponse(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("id")
	if err := s.memory.drop(id, caller.Owner(r.Context())); err != nil {
		return err
	}
	wire.WriteJSON(w, http.StatusOK, map[string]any{"id": id, "object": "response", "deleted": true})
	return nil
}

// responsesPlan reads a request, and makes a plan of it. The model must be
// released.
func (s *API) responsesPlan(r *http.Request, b *responsesRequest) (*run.Plan, *run.Chat, *run.Loan, error) {
	if err := wire.DecodeBody(r, b); err != nil {
		return nil, nil, nil, err
	}
	var earlier []chat.Message
	if b.Previous != "" {
		x, err := s.memory.get(b.Previous, caller.Owner(r.Context()))
		if err != nil {
			return nil, nil, nil, err
		}
		earlier = x.Messages
	}
	c, err := b.request(earlier)
	if err != nil {
		return nil, nil, nil, err
	}
	p, m, err := s.Plan(r, b.Model, c)
	return p, c, m, err
}

// countInput is POST /v1/responses/input_tokens.
func (s *API) countInput(w http.ResponseWriter, r *http.Request) error {
	var b responsesRequest
	p, _, m, err := s.responsesPlan(r, &b)
	if err != nil {
		return err
	}
	defer m.Release()
	wire.WriteJSON(w, http.StatusOK, map[string]any{"object": "response.input_tokens", "input_tokens": len(p.Request.Tokens)})
	return nil
}

// responses is POST /v1/responses.
func (s *API) responses(w http.ResponseWriter, r *http.Request) error {
	var b responsesRequest
	p, c, m, err := s.responsesPlan(r, &b)
	if err != nil {
		return err
	}
	defer m.Release()
	wire.NoteUnenforced(w, p)
	o := &responsesOutput{s: s, r: r, p: p, b: &b, c: c, rep: newResponse(&b, m.Model)}
	if b.Stream {
		return o.stream(w)
	}
	return o.whole(w)
}

// responsesReply is the object response.
type responsesReply struct {
	ID           string            `json:"id"`
	Object       string            `json:"object"`
	Created      int64             `json:"created_at"`
	Status       string            `json:"status"`
	Background   bool              `json:"background"`
	Error        any               `json:"error"`
	Incomplete   any               `json:"incomplete_details"`
	Instructions *string           `json:"instructions"`
	MaxOutput    *wire.Integer     `json:"max_output_tokens"`
	Model        string            `json:"model"`
	Output       []any             `json:"output"`
	Parallel     bool              `json:"parallel_tool_calls"`
	Previous     *string           `json:"previous_response_id"`
	Reasoning    map[string]any    `json:"reasoning"`
	Store        bool              `json:"store"`
	Temperature  *float64          `json:"temperature"`
	Text         map[string]any    `json:"text"`
	ToolChoice   any               `json:"tool_choice"`
	Tools        []json.RawMessage `json:"tools"`
	TopP         *float64          `json:"top_p"`
	Truncation   string            `json:"truncation"`
	Usage        any               `json:"usage"`
	Metadata     json.RawMessage   `json:"metadata"`
}

func newResponse(b *responsesRequest, m *run.Model) responsesReply {
	rep := responsesReply{
		ID: caller.NewID("resp_"), Object: "response", Created: time.Now().Unix(), Status: "in_progress", Instructions: b.Instructions, MaxOutput: b.MaxOutput,
		Model: m.Info().Name, Output: []any{}, Parallel: b.Parallel == nil || *b.Parallel, Reasoning: map[string]any{"effort": nil, "summary": nil},
		Store: b.Store == nil || *b.Store, Temperature: b.Temperature, TopP: b.TopP, Text: map[string]any{"format": map[string]string{"type": "text"}},
		ToolChoice: "auto", Tools: append([]json.RawMessage{}, b.Tools...), Truncation: "disabled", Metadata: json.RawMessage("{}"),
	}
	if b.Previous != "" {
		rep.Previous = &b.Previous
	}
	if wire.Present(b.Metadata) {
		rep.Metadata = b.Metadata
	}
	if b.Text != nil && wire.Present(b.Text.Format) {
		rep.Text["format"] = b.Text.Format
	}
	if b.Reasoning != nil && b.Reasoning.Effort != "" {
		rep.Reasoning["effort"] = b.Reasoning.Effort
	}
	switch c := b.ToolChoice; {
	case len(c.Only) == 1 && c.Mode == "required":
		rep.ToolChoice = map[string]string{"type": "function", "name": c.Only[0]}
	case c.Mode != "":
		rep.ToolChoice = c.Mode
	}
	return rep
}
