package openai

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"

	"ridge/engine"
	"ridge/server/caller"
	"ridge/server/fault"
	"ridge/server/offer"
	"ridge/server/probs"
	"ridge/server/run"
	"ridge/server/wire"
	"ridge/text/chat"
)

// ChatRequest is the body of a chat completion.
type ChatRequest struct {
	Messages      []message                  `json:"messages"`
	Tools         []json.RawMessage          `json:"tools"`
	ToolChoice    toolChoiceField            `json:"tool_choice"`
	Parallel      *bool                      `json:"parallel_tool_calls"`
	Functions     []json.RawMessage          `json:"functions"`     // deprecated
	FunctionCall  json.RawMessage            `json:"function_call"` // deprecated
	MaxCompletion *wire.Integer              `json:"max_completion_tokens"`
	Logprobs      *bool                      `json:"logprobs"`
	TopLogprobs   *wire.Integer              `json:"top_logprobs"`
	Effort        string                     `json:"reasoning_effort"`
	TemplateArgs  map[string]json.RawMessage `json:"chat_template_kwargs"`
	Template      string                     `json:"chat_template"`
	Documents     json.RawMessage            `json:"documents"`
	Continue      bool                       `json:"continue_final_message"`
	AddPrompt     *bool                      `json:"add_generation_prompt"`
	ThinkingBudget
	ReasoningForm  string       `json:"reasoning_format"` // llama-server: none leaves it in the text
	IncludeThought *bool        `json:"include_reasoning"`
	Separate       *bool        `json:"separate_reasoning"` // SGLang
	Modalities     []string     `json:"modalities"`
	Audio          wire.Refused `json:"audio"`
	wire.SamplingFields
	Common
	Structured
}

// request turns the body into what all dialects share, and says what the tools are to
// the client.
func (b *ChatRequest) request() (*run.Chat, *offer.Tools, error) {
	c := &run.Chat{Parallel: b.Parallel == nil || *b.Parallel, Sampling: b.Sampling(), Defaults: wire.Defaults, Options: b.Options(),
		Template: b.Template, Continue: b.Continue, NoGenerate: b.AddPrompt != nil && !*b.AddPrompt}
	if err := b.check(); err != nil {
		return nil, nil, err
	}
	offered, err := b.readTools(c)
	if err != nil {
		return nil, nil, err
	}
	if c.Messages, err = readMessages(b.Messages, offered, &c.Left); err != nil {
		return nil, nil, err
	}
	if slices.ContainsFunc(b.Modalities, func(m string) bool { return m != "text" }) {
		return nil, nil, fault.Unsupported("modalities", "this model answers with text only")
	}
	if c.Format, err = b.Structured.Format(); err != nil {
		return nil, nil, err
	}
	if c.Args, err = wire.EffortArgs(b.Effort, templateArgs(b.TemplateArgs)); err != nil {
		return nil, nil, err
	}
	if wire.Present(b.Documents) {
		if c.Args == nil {
			c.Args = map[string]any{}
		}
		c.Args["documents"] = b.Documents
	}
	if b.Continue && b.Messages[len(b.Messages)-1].Role != "assistant" {
		return nil, nil, fault.BadRequest("continue_final_message", "expected a last message of the assistant, found one of %s", b.Messages[len(b.Messages)-1].Role)
	}
	if b.Continue && b.AddPrompt != nil && *b.AddPrompt {
		return nil, nil, fault.BadRequest("continue_final_message", "expected one of continue_final_message and add_generation_prompt, found both true")
	}
	c.Budget = b.budget()
	if b.MaxCompletion != nil {
		c.MaxTokens = b.MaxCompletion.Pointer()
	}
	if c.MaxTokens != nil && *c.MaxTokens < 1 && *c.MaxTokens != -1 {
		return nil, nil, fault.BadRequest("max_tokens", "expected 1 or more, found %d", *c.MaxTokens)
	}
	c.Probs = b.Logprobs != nil && *b.Logprobs
	if c.Top = b.TopLogprobs.Value(0); c.Top < 0 || c.Top > run.MaxTopProbs {
		return nil, nil, fault.BadRequest("top_logprobs", "expected 0 to %d, found %d", run.MaxTopProbs, c.Top)
	}
	if c.Top > 0 && !c.Probs {
		return nil, nil, fault.BadRequest("top_logprobs", "needs logprobs to be true")
	}
	c.KeepReasoning = b.ReasoningForm == "none" || b.Separate != nil && !*b.Separate
	return c, offered, nil
}

// readTools reads the tools and the choice of them.
func (b *ChatRequest) readTools(c *run.Chat) (*offer.Tools, error) {
	tools := b.Tools
	if b.legacy() {
		c.Parallel = false // an answer has one function_call
	}
	for _, f := range b.Functions {
		t, _ := wire.EncodeJSON(map[string]any{"type": "function", "function": f}) // raw JSON encodes
		tools = append(tools, t)
	}
	offered := &offer.Tools{}
	err := offerTools(tools, offered, &c.Left)
	if err == nil {
		c.Tools, err = offered.Functions()
	}
	if err != nil {
		return nil, err
	}
	choice := b.ToolChoice
	if wire.Present(b.FunctionCall) && choice.mode == "" {
		var f struct{ Name string }
		if json.Unmarshal(b.FunctionCall, &f) == nil && f.Name != "" {
			choice = toolChoiceField{"required", []offer.Tool{{Kind: offer.Function, Name: f.Name}}}
		} else if err := choice.UnmarshalJSON(b.FunctionCall); err != nil {
			return nil, err
		}
	}
	c.Choice, err = choice.choice(offered)
	return offered, err
}

// legacy reports whether the request is of the time before tools.
func (b *ChatRequest) legacy() bool { return len(b.Functions) > 0 && len(b.Tools) == 0 }

// Prompt is the prompt of a chat completion.
func (b *ChatRequest) Prompt(ctx context.Context, m *run.Model) (chat.Prompt, error) {
	c, _, err := b.request()
	if err != nil {
		return chat.Prompt{}, err
	}
	return c.Prompt(ctx, m)
}

// chatCompletions is POST /v1/chat/completions.
func (s *API) chatCompletions(w http.ResponseWriter, r *http.Request) error {
	var b ChatRequest
	if err := wire.DecodeBody(r, &b); err != nil {
		return err
	}
	c, offered, err := b.request()
	if err != nil {
		return err
	}
	p, m, err := s.Plan(r, b.Model, c)
	if err != nil {
		return err
	}
	defer m.Release()
	wire.NoteUnenforced(w, r, p)
	o := &chatOutput{s: s, r: r, m: m.Model, p: p, offered: offered, functions: b.legacy(), hide: b.IncludeThought != nil && !*b.IncludeThought, alias: b.IncludeThought != nil && *b.IncludeThought, tokenIDs: b.TokenIDs, asIDs: b.TokensAsIDs, promptProbs: b.PromptLogprobs != nil, tellProgress: b.ReturnProgress,
		reply: chatReply{ID: caller.NewID("chatcmpl-"), Created: time.Now().Unix(), Model: m.Info().Name, Fingerprint: m.Fingerprint()}}
	if b.StreamOptions != nil {
		o.usage, o.running = b.StreamOptions.IncludeUsage, b.StreamOptions.ContinuousUsage
	}
	if b.Stream {
		return o.stream(w)
	}
	return o.whole(w)
}

// countChat is llama-server's count of the tokens of a conversation's prompt.
func (s *API) countChat(w http.ResponseWriter, r *http.Request) error {
	var b ChatRequest
	m, err := s.Lend(r, &b, &b.Model)
	if err != nil {
		return err
	}
	defer m.Release()
	p, err := b.Prompt(r.Context(), m.Model)
	if err != nil {
		return err
	}
	wire.WriteJSON(w, http.StatusOK, map[string]any{"object": "response.input_tokens", "input_tokens": len(p.Tokens)})
	return nil
}

// chatOutput writes the answer of a chat completion.
type chatOutput struct {
	s     *API
	r     *http.Request
	m     *run.Model
	p     *run.Plan
	reply chatReply

	usage, running bool // in a stream: at the end, and in every chunk
	hide           bool // leave out reasoning
	functions      bool // the request is in the form before tools: function_call
	alias          bool // and say it under its newer name, too: OpenRouter's clients ask for that, and vLLM's
	tokenIDs       bool
	asIDs          bool // tokens are named by their ids
	promptProbs    bool
	t              run.Totals
	live           usage        // so far
	calls          []callStream // per choice
	offered        *offer.Tools
	tellProgress   bool // in chunks of its own
	clock          wire.PromptClock
	begun          bool // the chunks with the role are out
}

// whole writes the answer in one piece.
func (o *chatOutput) whole(w http.ResponseWriter) error {
	answers, err := o.s.Collect(o.r.Context(), o.p, &o.t)
	if err != nil {
		return err
	}
	rep := &o.reply
	rep.Object, rep.Timings = "chat.completion", wire.NewTimings(&o.t)
	for i := range answers {
		a := &answers[i]
		ch := chatChoice{Index: i, Message: newMessage(a, o.offered), Finish: &a.Finish, StopReason: stopReason(o.p, a.StopText, a.StopToken)}
		if o.hide {
			ch.Message.Reasoning = ""
		}
		if o.alias {
			ch.Message.Alias = ch.Message.Reasoning
		}
		if o.functions {
			ch.Message.asFunction()
			ch.Finish = o.finish(a.Finish)
		}
		if o.p.Probs {
			ch.Logprobs = o.chatProbs(a.Tokens)
		}
		if o.tokenIDs {
			ch.TokenIDs = wire.IDs(a.Tokens)
		}
		ch.Trace = probs.NewTraces(o.m, a.Tokens, a.Ender)
		rep.Choices = append(rep.Choices, ch)
		if o.promptProbs && a.Prompt != nil {
			rep.PromptLogprobs = promptProbs(o.m, o.p, a.Prompt)
		}
	}
	if o.tokenIDs {
		rep.PromptTokenIDs = o.p.Request.Tokens
	}
	rep.Usage, err = wire.EncodeJSON(newUsage(&o.t))
	if err != nil {
		return err
	}
	wire.WriteJSON(w, http.StatusOK, rep)
	return nil
}

// stream writes the answer as it comes.
func (o *chatOutput) stream(w http.ResponseWriter) error {
	e := o.s.Events(w, o.r)
	o.reply.Object = "chat.completion.chunk"
	o.p.Request.Progress = !o.promptProbs // which are in the first chunk
	o.calls = make([]callStream, max(1, o.p.Request.N))
	err := o.s.Run(o.r.Context(), o.p, &o.t, func(d *run.Delta) error { return o.delta(e, d) }, func() error { return o.s.Alive(e, o.m) })
	if err == nil && o.usage {
		rep := o.reply
		rep.Choices, rep.Timings = []chatChoice{}, wire.NewTimings(&o.t)
		if rep.Usage, err = wire.EncodeJSON(newUsage(&o.t)); err == nil {
			err = e.Data(&rep)
		}
	}
	return endStream(e, o.r, err)
}

// delta writes a chunk.
func (o *chatOutput) delta(e *wire.Events, d *run.Delta) error {
	if p := d.Progress; p != nil {
		o.live.Prompt, o.live.PromptMore.Cached, o.live.PromptMore.Cut, o.live.Total = p.Tokens, p.Cached, o.p.Truncated, p.Tokens
		if o.begun && o.tellProgress {
			return o.progress(e, p)
		}
		if o.begun && e.Quiet() {
			return e.Comment(fmt.Sprintf("prompt: %d of %d tokens", p.Computed, p.Tokens))
		}
	}
	if d.Prompt != nil {
		o.live.Prompt, o.live.PromptMore.Cut = d.Prompt.Tokens, o.p.Truncated
		o.live.PromptMore.Cached, o.live.PromptMore.Known = d.Prompt.Cached, d.Prompt.Known
		o.live.Total = o.live.Prompt
	}
	if !o.begun { // a sign of life may have started the stream before
		o.begun = true
		if err := o.begin(e, d); err != nil {
			return err
		}
	}
	if d.Progress != nil {
		if o.tellProgress {
			return o.progress(e, d.Progress)
		}
		return nil
	}
	o.live.Completion += len(d.Tokens)
	o.live.Total = o.live.Prompt + o.live.Completion
	msg := o.calls[d.Choice].delta(d.Parts, o.offered)
	if o.hide {
		msg.Reasoning = ""
	}
	if o.alias {
		msg.Alias = msg.Reasoning
	}
	ch := chatChoice{Index: d.Choice, Delta: msg}
	if o.p.Probs && len(d.Tokens) > 0 {
		ch.Logprobs = o.chatProbs(d.Tokens)
	}
	if o.tokenIDs && len(d.Tokens) > 0 {
		ch.TokenIDs = wire.IDs(d.Tokens)
	}
	ch.Trace = probs.NewTraces(o.m, d.Tokens, nil)
	calls := msg.ToolCalls
	msg.ToolCalls = nil
	if msg.Content != nil || msg.Reasoning != "" || ch.Logprobs != nil || ch.TokenIDs != nil || ch.Trace != nil {
		if err := o.chunk(e, ch); err != nil {
			return err
		}
	}
	for i := range calls { // one in a chunk: not all clients expect more
		piece := &chatDelta{ToolCalls: calls[i : i+1]}
		if o.functions {
			piece = &chatDelta{Function: calls[i].Function}
		}
		if err := o.chunk(e, chatChoice{Index: d.Choice, Delta: piece}); err != nil {
			return err
		}
	}
	if d.Finish == "" {
		return nil
	}
	return o.chunk(e, chatChoice{Index: d.Choice, Delta: &chatDelta{}, Finish: o.finish(d.Finish), StopReason: stopReason(o.p, d.StopText, d.StopToken), Trace: probs.NewTraces(o.m, nil, d.Ender)})
}

// progress writes a chunk that says how far the prompt is.
func (o *chatOutput) progress(e *wire.Events, p *engine.Progress) error {
	rep := o.reply
	rep.Choices = []chatChoice{{Delta: &chatDelta{}}}
	rep.Progress = o.clock.Tell(p.Tokens, p.Cached, p.Computed)
	return e.Data(&rep)
}

// finish is the reason for the end of an answer as the client knows it.
func (o *chatOutput) finish(why string) *string {
	if o.functions && why == run.FinishToolCalls {
		why = "function_call"
	}
	return &why
}

// begin writes a chunk with the role for each choice. The first one has what
// the client wants to know of the prompt.
func (o *chatOutput) begin(e *wire.Events, d *run.Delta) error {
	for i := range o.calls {
		rep := o.reply
		if i == 0 && o.tokenIDs {
			rep.PromptTokenIDs = o.p.Request.Tokens
		}
		if i == 0 && o.promptProbs && d.Prompt != nil {
			rep.PromptLogprobs = promptProbs(o.m, o.p, d.Prompt)
		}
		empty := ""
		if err := o.send(e, rep, chatChoice{Index: i, Delta: &chatDelta{Role: "assistant", Content: &empty}}); err != nil {
			return err
		}
	}
	return nil
}

// chatProbs are the log-probabilities of tokens as the client wants them named, or
// llama-server's probabilities of what they were drawn from.
func (o *chatOutput) chatProbs(tokens []run.Token) any {
	if o.p.Request.Sampling.Drawn {
		return map[string]any{"content": probs.NewDrawn(o.m, tokens)}
	}
	out := probs.NewChat(o.m, tokens)
	if o.asIDs {
		for i := range out.Content {
			c := &out.Content[i]
			c.Token = tokenName(tokens[i].ID)
			for k := range c.Top {
				c.Top[k].Token = tokenName(tokens[i].Top[k].Token)
			}
		}
	}
	return out
}

func (o *chatOutput) chunk(e *wire.Events, ch chatChoice) error { return o.send(e, o.reply, ch) }

func (o *chatOutput) send(e *wire.Events, rep chatReply, ch chatChoice) error {
	rep.Choices = []chatChoice{ch}
	switch {
	case o.usage && o.running:
		b, err := wire.EncodeJSON(o.live)
		if err != nil {
			return err
		}
		rep.Usage = b
	case o.usage:
		rep.Usage = json.RawMessage("null")
	}
	return e.Data(&rep)
}

// endStream writes the end of a stream, or of what went wrong in it.
func endStream(e *wire.Events, r *http.Request, err error) error {
	if err != nil {
		return StreamError(e, r, err)
	}
	_ = e.Done() // a client that is gone is noticed by others
	return nil
}

// StreamError reports an error in a stream that has begun; else it returns it, to
// be answered with its own status.
func StreamError(e *wire.Events, r *http.Request, err error) error {
	return e.Failed(err, func(api *fault.Error) error {
		if r.Context().Err() != nil && api.Status == fault.StatusClientGone {
			return nil
		}
		return e.Data(Error(api))
	})
}
