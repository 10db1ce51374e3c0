package openai

import (
	"encoding/json"
	"net/http"
	"time"

	"ridge/server/caller"
	"ridge/server/fault"
	"ridge/server/offer"
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
	Progress     bool            `json:"return_progress"` // in a stream, while the prompt is computed
	asideResponses
	ThinkingBudget
}

// request turns the body into what all dialects share, and says what the tools are to
// the client. find returns items of earlier responses.
func (b *responsesRequest) request(earlier []chat.Message, find func(string) (json.RawMessage, bool)) (*run.Chat, *offer.Tools, error) {
	for field, given := range map[string]bool{"conversation": wire.Present(b.Conversation), "prompt": wire.Present(b.PromptRef)} {
		if given {
			return nil, nil, fault.Unsupported(field, "not supported by this server")
		}
	}
	if err := b.mayWait(); err != nil {
		return nil, nil, err
	}
	c := &run.Chat{Defaults: wire.Defaults, Parallel: b.Parallel == nil || *b.Parallel,
		Sampling: run.Sampling{Temperature: b.Temperature, TopP: b.TopP, Seed: b.Seed.Pointer()}}
	c.Deadline, c.Budget = b.Deadline.Milliseconds(), b.budget()
	if c.MaxTokens = b.MaxOutput.Pointer(); c.MaxTokens != nil && *c.MaxTokens < 1 {
		return nil, nil, fault.BadRequest("max_output_tokens", "expected 1 or more, found %d", *c.MaxTokens)
	}
	if b.Instructions != nil && *b.Instructions != "" {
		c.Messages = append(c.Messages, chat.Message{Role: "system", Content: *b.Instructions})
	}
	c.Messages = append(c.Messages, earlier...)
	items, err := b.items()
	if err != nil {
		return nil, nil, err
	}
	offered, err := b.readTools(c, items)
	if err != nil {
		return nil, nil, err
	}
	r := &itemReader{out: c.Messages, given: len(c.Messages), offered: offered, left: &c.Left, called: map[string]string{}, find: find}
	for i, item := range items {
		if err := r.read(i, item); err != nil {
			return nil, nil, err
		}
	}
	if c.Messages = r.out; len(c.Messages) == 0 {
		return nil, nil, fault.BadRequest("input", "expected at least one message, found none")
	}
	if b.Text != nil {
		if c.Format, err = wire.ResponseFormat("text.format", b.Text.Format); err != nil {
			return nil, nil, err
		}
	}
	if b.Reasoning != nil {
		if c.Args, err = wire.EffortArgs(b.Reasoning.Effort, nil); err != nil {
			return nil, nil, err
		}
	}
	for _, i := range b.Include {
		c.Probs = c.Probs || i == "message.output_text.logprobs"
	}
	if c.Top = b.TopLogprobs.Value(0); c.Top < 0 || c.Top > run.MaxTopProbs {
		return nil, nil, fault.BadRequest("top_logprobs", "expected 0 to %d, found %d", run.MaxTopProbs, c.Top)
	}
	return c, offered, nil
}

// items are the items of the input. A text is a message of the user.
func (b *responsesRequest) items() ([]json.RawMessage, error) {
	var text string
	if json.Unmarshal(b.Input, &text) == nil && wire.Present(b.Input) {
		item, err := wire.EncodeJSON(map[string]any{"type": "message", "role": "user", "content": []any{map[string]string{"type": "input_text", "text": text}}})
		return []json.RawMessage{item}, err
	}
	var items []json.RawMessage
	if !wire.Present(b.Input) || json.Unmarshal(b.Input, &items) != nil {
		return nil, fault.BadRequest("input", "expected a string or a list of at most %d items, found %s", wire.MaxMessages, fault.Excerpt(b.Input))
	}
	if len(items) > wire.MaxMessages {
		return nil, fault.BadRequest("input", "expected a string or a list of at most %d items, found %d", wire.MaxMessages, len(items))
	}
	return items, nil
}

// readTools reads the tools, those that items of the input bring, and the choice of
// them.
func (b *responsesRequest) readTools(c *run.Chat, items []json.RawMessage) (*offer.Tools, error) {
	offered := &offer.Tools{}
	if err := offerTools(b.Tools, offered, &c.Left); err != nil {
		return nil, err
	}
	for i, item := range items {
		var x struct {
			Type  string            `json:"type"`
			Tools []json.RawMessage `json:"tools"`
		}
		if json.Unmarshal(item, &x) != nil || x.Type != "additional_tools" && x.Type != "tool_search_output" {
			continue
		}
		if err := offerMore(x.Tools, offered, &c.Left); err != nil {
			return nil, fault.BadRequest("input", "item %d: %v", i, err)
		}
	}
	var err error
	if c.Tools, err = offered.Functions(); err != nil {
		return nil, err
	}
	c.Choice, err = b.ToolChoice.choice(offered)
	return offered, err
}

func (s *API) getResponse(w http.ResponseWriter, r *http.Request) error {
	id, owner := r.PathValue("id"), caller.Owner(r.Context())
	if rep := s.running.poll(id, owner); rep != nil {
		wire.WriteJSON(w, http.StatusOK, rep)
		return nil
	}
	x, err := s.memory.get(id, owner)
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

// planned is a request that was read and has a plan.
type planned struct {
	*run.Plan
	chat    *run.Chat
	offered *offer.Tools
	model   *run.Loan // must be released
}

// responsesPlan reads a request, and makes a plan of it. change, if not nil, may
// change the conversation before.
func (s *API) responsesPlan(r *http.Request, b *responsesRequest, change func(*run.Chat)) (*planned, error) {
	owner := caller.Owner(r.Context())
	var earlier []chat.Message
	if b.Previous != "" {
		x, err := s.memory.get(b.Previous, owner)
		if err != nil {
			return nil, err
		}
		earlier = x.Messages
	}
	c, offered, err := b.request(earlier, func(id string) (json.RawMessage, bool) { return s.memory.item(id, owner) })
	if err != nil {
		return nil, err
	}
	if change != nil {
		change(c)
	}
	p, m, err := s.Plan(r, b.Model, c)
	return &planned{p, c, offered, m}, err
}

// countInput is POST /v1/responses/input_tokens.
func (s *API) countInput(w http.ResponseWriter, r *http.Request) error {
	var b responsesRequest
	if err := wire.DecodeBody(r, &b); err != nil {
		return err
	}
	p, err := s.responsesPlan(r, &b, nil)
	if err != nil {
		return err
	}
	defer p.model.Release()
	wire.WriteJSON(w, http.StatusOK, map[string]any{"object": "response.input_tokens", "input_tokens": len(p.Request.Tokens)})
	return nil
}

// responses is POST /v1/responses.
func (s *API) responses(w http.ResponseWriter, r *http.Request) error {
	var b responsesRequest
	if err := wire.DecodeBody(r, &b); err != nil {
		return err
	}
	p, err := s.responsesPlan(r, &b, nil)
	if err != nil {
		return err
	}
	defer p.model.Release()
	wire.NoteUnenforced(w, r, p.Plan)
	o := &responsesOutput{s: s, r: r, p: p.Plan, b: &b, c: p.chat, offered: p.offered, rep: newResponse(&b, p.model.Model)}
	if b.Background {
		return o.background(w)
	}
	ctx, done := s.running.begin(r.Context(), &o.rep)
	defer done()
	o.r = r.WithContext(ctx)
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
		Store: b.Store == nil || *b.Store, Background: b.Background, Temperature: b.Temperature, TopP: b.TopP, Text: map[string]any{"format": map[string]string{"type": "text"}},
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
	case len(c.only) == 1 && c.mode == "required":
		rep.ToolChoice = map[string]string{"type": c.only[0].Kind, "name": c.only[0].Name}
	case c.mode != "":
		rep.ToolChoice = c.mode
	}
	return rep
}
