package server

import (
	"encoding/json"
	"net/http"
	"slices"
	"time"
)

// openAIChat is the body of a chat completion.
type openAIChat struct {
	Messages       []openAIMessage            `json:"messages"`
	Tools          []json.RawMessage          `json:"tools"`
	ToolChoice     toolChoice                 `json:"tool_choice"`
	Parallel       *bool                      `json:"parallel_tool_calls"`
	Functions      []json.RawMessage          `json:"functions"`     // deprecated
	FunctionCall   json.RawMessage            `json:"function_call"` // deprecated
	MaxCompletion  *integer                   `json:"max_completion_tokens"`
	Logprobs       *bool                      `json:"logprobs"`
	TopLogprobs    *integer                   `json:"top_logprobs"`
	Effort         string                     `json:"reasoning_effort"`
	TemplateArgs   map[string]json.RawMessage `json:"chat_template_kwargs"`
	Template       string                     `json:"chat_template"`
	Documents      json.RawMessage            `json:"documents"`
	Continue       bool                       `json:"continue_final_message"`
	AddPrompt      *bool                      `json:"add_generation_prompt"`
	ReasoningForm  string                     `json:"reasoning_format"` // llama-server: none leaves it in the text
	IncludeThought *bool                      `json:"include_reasoning"`
	Separate       *bool                      `json:"separate_reasoning"` // SGLang
	Modalities     []string                   `json:"modalities"`
	Audio          json.RawMessage            `json:"audio"`
	WebSearch      json.RawMessage            `json:"web_search_options"`
	sampling
	common
	structured
}

// request turns the body into what all dialects share.
func (b *openAIChat) request() (*chatRequest, error) {
	c := &chatRequest{choice: b.ToolChoice, parallel: b.Parallel == nil || *b.Parallel, sampling: b.sampling, defaults: openAIDefaults, common: b.common,
		template: b.Template, goOn: b.Continue, noGenerate: b.AddPrompt != nil && !*b.AddPrompt}
	var err error
	if c.messages, err = readMessages(b.Messages); err != nil {
		return nil, err
	}
	if slices.ContainsFunc(b.Modalities, func(m string) bool { return m != "text" }) || present(b.Audio) {
		return nil, unsupported("modalities", "this model answers with text only")
	}
	if present(b.WebSearch) {
		return nil, unsupported("web_search_options", "this server does not search")
	}
	tools := b.Tools
	for _, f := range b.Functions {
		t, _ := encodeJSON(map[string]any{"type": "function", "function": f}) // raw JSON encodes
		tools = append(tools, t)
	}
	if c.tools, err = readTools(tools); err != nil {
		return nil, err
	}
	if present(b.FunctionCall) && c.choice.mode == "" {
		var f struct{ Name string }
		if json.Unmarshal(b.FunctionCall, &f) == nil && f.Name != "" {
			c.choice = toolChoice{mode: "required", only: []string{f.Name}}
		} else if err := c.choice.UnmarshalJSON(b.FunctionCall); err != nil {
			return nil, err
		}
	}
	if c.format, err = b.structured.format(); err != nil {
		return nil, err
	}
	if c.args, err = effortArgs(b.Effort, templateArgs(b.TemplateArgs)); err != nil {
		return nil, err
	}
	if present(b.Documents) {
		if c.args == nil {
			c.args = map[string]any{}
		}
		c.args["documents"] = b.Documents
	}
	if b.Continue && b.Messages[len(b.Messages)-1].Role != "assistant" {
		return nil, badRequest("continue_final_message", "expected a last message of the assistant, found one of %s", b.Messages[len(b.Messages)-1].Role)
	}
	if b.MaxCompletion != nil {
		c.MaxTokens = b.MaxCompletion
	}
	set(&c.MaxTokens, c.NPredict)
	if c.MaxTokens != nil && *c.MaxTokens < 1 && *c.MaxTokens != -1 {
		return nil, badRequest("max_tokens", "expected 1 or more, found %d", *c.MaxTokens)
	}
	c.probs = b.Logprobs != nil && *b.Logprobs
	if c.top = b.TopLogprobs.value(0); c.top < 0 || c.top > maxTopProbs {
		return nil, badRequest("top_logprobs", "expected 0 to %d, found %d", maxTopProbs, c.top)
	}
	if c.top > 0 && !c.probs {
		return nil, badRequest("top_logprobs", "needs logprobs to be true")
	}
	c.noParse = b.ReasoningForm == "none" || b.Separate != nil && !*b.Separate
	return c, nil
}

// present reports whether a field is there and not null.
func present(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }

// chatCompletions is POST /v1/chat/completions.
func (s *Server) chatCompletions(w http.ResponseWriter, r *http.Request) error {
	var b openAIChat
	if err := decodeBody(r, &b); err != nil {
		return err
	}
	c, err := b.request()
	if err != nil {
		return err
	}
	m, err := s.model(r, b.Model)
	if err != nil {
		return err
	}
	defer m.release()
	p, err := c.plan(m.Model)
	if err != nil {
		return err
	}
	o := &chatOutput{s: s, r: r, m: m.Model, p: p, hide: b.IncludeThought != nil && !*b.IncludeThought, alias: b.IncludeThought != nil && *b.IncludeThought, tokenIDs: b.TokenIDs, asIDs: b.TokensAsIDs, promptProbs: b.PromptLogprobs != nil,
		reply: chatReply{ID: newID("chatcmpl-"), Created: time.Now().Unix(), Model: m.name, Fingerprint: m.fingerprint()}}
	if b.StreamOptions != nil {
		o.usage, o.running = b.StreamOptions.IncludeUsage, b.StreamOptions.ContinuousUsage
	}
	if b.Stream {
		return o.stream(w)
	}
	return o.whole(w)
}

// chatOutput writes the answer of a chat completion.
type chatOutput struct {
	s     *Server
	r     *http.Request
	m     *Model
	p     *plan
	reply chatReply

	usage, running bool // in a stream: at the end, and in every chunk
	hide           bool // leave out reasoning
	alias          bool // and say it under its newer name, too: OpenRouter's clients ask for that, and vLLM's
	tokenIDs       bool
	asIDs          bool // tokens are named by their ids
	promptProbs    bool
	t              totals
	live           usage // so far
	calls          []int // per choice
	begun          bool  // the chunks with the role are out
}

// whole writes the answer in one piece.
func (o *chatOutput) whole(w http.ResponseWriter) error {
	answers, err := o.s.collect(o.r.Context(), o.p, &o.t)
	if err != nil {
		return err
	}
	rep := &o.reply
	rep.Object, rep.Timings = "chat.completion", o.t.timings()
	for i := range answers {
		a := &answers[i]
		ch := chatChoice{Index: i, Message: a.message(), Finish: &a.finish, StopReason: o.p.stopReason(a.stopText, a.stopToken)}
		if o.hide {
			ch.Message.Reasoning = ""
		}
		if o.alias {
			ch.Message.Alias = ch.Message.Reasoning
		}
		if o.p.probs {
			ch.Logprobs = o.chatProbs(a.tokens)
		}
		if o.tokenIDs {
			ch.TokenIDs = ids(a.tokens)
		}
		rep.Choices = append(rep.Choices, ch)
		if o.promptProbs && a.prompt != nil {
			rep.PromptLogprobs = o.m.promptProbs(o.p, a.prompt)
		}
	}
	if o.tokenIDs {
		rep.PromptTokenIDs = o.p.req.Tokens
	}
	rep.Usage, err = encodeJSON(o.t.usage())
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, rep)
	return nil
}

func ids(tokens []tokenInfo) []int32 {
	out := []int32{}
	for _, t := range tokens {
		out = append(out, t.id)
	}
	return out
}

// stream writes the answer as it comes.
func (o *chatOutput) stream(w http.ResponseWriter) error {
	e := o.s.newEvents(w, o.r)
	o.reply.Object = "chat.completion.chunk"
	o.calls = make([]int, max(1, o.p.req.N))
	err := o.s.run(o.r.Context(), o.p, &o.t, func(d *delta) error { return o.delta(e, d) }, func() error { return o.s.alive(e, o.r, o.m) })
	if err == nil && o.usage {
		rep := o.reply
		rep.Choices, rep.Timings = []chatChoice{}, o.t.timings()
		if rep.Usage, err = encodeJSON(o.t.usage()); err == nil {
			err = e.data(&rep)
		}
	}
	return o.s.endStream(e, o.r, err)
}

// delta writes a chunk.
func (o *chatOutput) delta(e *events, d *delta) error {
	if d.prompt != nil {
		o.live.Prompt, o.live.PromptMore.Cached = d.prompt.Tokens, d.prompt.Cached
		o.live.Total = o.live.Prompt
	}
	if !o.begun { // a sign of life may have started the stream before
		o.begun = true
		if err := o.begin(e, d); err != nil {
			return err
		}
	}
	o.live.Completion += len(d.tokens)
	o.live.Total = o.live.Prompt + o.live.Completion
	msg := deltaOf(d.parts, &o.calls[d.choice])
	if o.hide {
		msg.Reasoning = ""
	}
	if o.alias {
		msg.Alias = msg.Reasoning
	}
	ch := chatChoice{Index: d.choice, Delta: msg}
	if o.p.probs && len(d.tokens) > 0 {
		ch.Logprobs = o.chatProbs(d.tokens)
	}
	if o.tokenIDs && len(d.tokens) > 0 {
		ch.TokenIDs = ids(d.tokens)
	}
	calls := msg.ToolCalls
	msg.ToolCalls = nil
	if msg.Content != nil || msg.Reasoning != "" || ch.Logprobs != nil || ch.TokenIDs != nil {
		if err := o.chunk(e, ch); err != nil {
			return err
		}
	}
	for i := range calls { // one in a chunk: not all clients expect more
		if err := o.chunk(e, chatChoice{Index: d.choice, Delta: &chatDelta{ToolCalls: calls[i : i+1]}}); err != nil {
			return err
		}
	}
	if d.finish == "" {
		return nil
	}
	return o.chunk(e, chatChoice{Index: d.choice, Delta: &chatDelta{}, Finish: &d.finish, StopReason: o.p.stopReason(d.stopText, d.stopToken)})
}

// begin writes a chunk with the role for each choice. The first one has what
// the client wants to know of the prompt.
func (o *chatOutput) begin(e *events, d *delta) error {
	for i := range o.calls {
		rep := o.reply
		if i == 0 && o.tokenIDs {
			rep.PromptTokenIDs = o.p.req.Tokens
		}
		if i == 0 && o.promptProbs && d.prompt != nil {
			rep.PromptLogprobs = o.m.promptProbs(o.p, d.prompt)
		}
		empty := ""
		if err := o.send(e, rep, chatChoice{Index: i, Delta: &chatDelta{Role: "assistant", Content: &empty}}); err != nil {
			return err
		}
	}
	return nil
}

// chatProbs are the log-probabilities of tokens as the client wants them named.
func (o *chatOutput) chatProbs(tokens []tokenInfo) *chatProbs {
	probs := o.m.chatProbs(tokens)
	if o.asIDs {
		for i := range probs.Content {
			c := &probs.Content[i]
			c.Token = tokenName(tokens[i].id)
			for k := range c.Top {
				c.Top[k].Token = tokenName(tokens[i].top[k].Token)
			}
		}
	}
	return probs
}

func (o *chatOutput) chunk(e *events, ch chatChoice) error { return o.send(e, o.reply, ch) }

func (o *chatOutput) send(e *events, rep chatReply, ch chatChoice) error {
	rep.Choices = []chatChoice{ch}
	switch {
	case o.usage && o.running:
		b, err := encodeJSON(o.live)
		if err != nil {
			return err
		}
		rep.Usage = b
	case o.usage:
		rep.Usage = json.RawMessage("null")
	}
	return e.data(&rep)
}

// alive shows a client that waits that it was not forgotten, and where in the
// queue it is; the next one is at 1.
func (s *Server) alive(e *events, r *http.Request, m *Model) error {
	id := requestID(r.Context())
	for _, q := range m.backend.Stats().Sequences {
		if q.ID == id && q.Position >= 0 {
			return e.comment("queue position " + itoa(q.Position+1))
		}
	}
	return e.comment("ping")
}

// endStream writes the end of a stream, or of what went wrong in it.
func (s *Server) endStream(e *events, r *http.Request, err error) error {
	if err != nil {
		return s.streamError(e, r, err)
	}
	_ = e.done() // a client that is gone is noticed by others
	return nil
}

// streamError reports an error in a stream that has begun; else it returns it, to
// be answered with its own status.
func (s *Server) streamError(e *events, r *http.Request, err error) error {
	if !e.started {
		return err
	}
	note(r.Context(), func(l *requestLog) { l.err = err })
	if r.Context().Err() != nil && asAPIError(err).Status == statusClientGone {
		s.metrics.gone.Inc()
		return nil
	}
	_ = e.data(asAPIError(err).openAI()) // the stream ends here either way
	return nil
}
