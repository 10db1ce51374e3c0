package server

import (
	"encoding/json"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"ridge/text/chat"
)

// ollamaOptions are the options of a request.
type ollamaOptions struct {
	Temperature *float64   `json:"temperature"`
	TopK        *integer   `json:"top_k"`
	TopP        *float64   `json:"top_p"`
	MinP        *float64   `json:"min_p"`
	TypicalP    *float64   `json:"typical_p"`
	RepeatLastN *integer   `json:"repeat_last_n"`
	Repeat      *float64   `json:"repeat_penalty"`
	Presence    *float64   `json:"presence_penalty"`
	Frequency   *float64   `json:"frequency_penalty"`
	Seed        *seed      `json:"seed"`
	Stop        stringList `json:"stop"`
	NumPredict  *integer   `json:"num_predict"`
}

// ollamaCommon are the fields that generate and chat share.
type ollamaCommon struct {
	Model       string          `json:"model"`
	Stream      *bool           `json:"stream"`
	Format      json.RawMessage `json:"format"`
	Options     *ollamaOptions  `json:"options"`
	KeepAlive   json.RawMessage `json:"keep_alive"`
	Think       json.RawMessage `json:"think"`
	Logprobs    bool            `json:"logprobs"`
	TopLogprobs *integer        `json:"top_logprobs"`
}

// apply puts the fields into a request.
func (b *ollamaCommon) apply(c *chatRequest) error {
	c.defaults, c.parallel = ollamaDefaults, true
	c.probs, c.top = b.Logprobs, b.TopLogprobs.value(0)
	if c.top < 0 || c.top > maxTopProbs {
		return badRequest("top_logprobs", "expected 0 to %d, found %d", maxTopProbs, c.top)
	}
	if o := b.Options; o != nil {
		last := integer(64)
		set(&o.RepeatLastN, &last)
		c.sampling = sampling{Temperature: o.Temperature, TopKField: o.TopK, TopP: o.TopP, MinP: o.MinP, TypicalP: o.TypicalP, RepeatLastN: o.RepeatLastN,
			RepetitionPenalty: o.Repeat, PresencePenalty: o.Presence, FrequencyPenalty: o.Frequency, Seed: o.Seed}
		c.Stop = o.Stop
		if n := o.NumPredict; n != nil && *n >= 0 { // negative: no bound
			c.MaxTokens = n
		}
	}
	var text string
	switch {
	case !present(b.Format):
	case json.Unmarshal(b.Format, &text) == nil:
		switch text {
		case "":
		case "json":
			c.format = format{kind: "json", field: "format"}
		default:
			return badRequest("format", "expected \"json\" or a JSON schema, found %q", text)
		}
	default:
		c.format = format{kind: "schema", field: "format", source: b.Format}
	}
	return b.thinking(c)
}

// thinking sets how much the model should reason, in the variables that
// templates know.
func (b *ollamaCommon) thinking(c *chatRequest) error {
	if !present(b.Think) {
		return nil
	}
	var on bool
	var level string
	switch {
	case json.Unmarshal(b.Think, &on) == nil:
		c.args = map[string]any{"enable_thinking": on}
	case json.Unmarshal(b.Think, &level) == nil:
		args, err := effortArgs(level, nil)
		if err != nil {
			return badRequest("think", "expected true, false, low, medium or high, found %q", level)
		}
		c.args = args
	default:
		return badRequest("think", "expected true, false, low, medium or high, found %s", excerpt(b.Think))
	}
	return nil
}

// keepAlive reads how long a model stays loaded: "5m", seconds, 0 or below 0
// for ever.
func keepAlive(raw json.RawMessage) (d time.Duration, ok bool, err error) {
	if !present(raw) {
		return 0, false, nil
	}
	var text string
	var n float64
	switch {
	case json.Unmarshal(raw, &n) == nil:
	case json.Unmarshal(raw, &text) == nil:
		if n, err = strconv.ParseFloat(text, 64); err != nil {
			if d, err = time.ParseDuration(text); err != nil {
				return 0, false, badRequest("keep_alive", "expected a duration such as \"5m\", or seconds, found %q", text)
			}
			return d, true, nil
		}
	default:
		return 0, false, badRequest("keep_alive", "expected a duration such as \"5m\", or seconds, found %s", excerpt(raw))
	}
	if n < 0 || n > math.MaxInt64/1e9 {
		return -1, true, nil
	}
	return time.Duration(n * float64(time.Second)), true, nil
}

type ollamaMessage struct {
	Role      string            `json:"role"`
	Content   string            `json:"content"`
	Thinking  string            `json:"thinking,omitempty"`
	Images    []json.RawMessage `json:"images,omitempty"`
	ToolCalls []ollamaCall      `json:"tool_calls,omitempty"`
	ToolName  string            `json:"tool_name,omitempty"`
	ToolID    string            `json:"tool_call_id,omitempty"`
}

type ollamaCall struct {
	ID       string `json:"id,omitempty"`
	Function struct {
		Index     int             `json:"index"`
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	} `json:"function"`
}

// ollamaReply is a line of an answer.
type ollamaReply struct {
	Model      string         `json:"model"`
	Created    string         `json:"created_at"`
	Response   *string        `json:"response,omitempty"` // generate
	Thinking   string         `json:"thinking,omitempty"` // generate
	Message    *ollamaMessage `json:"message,omitempty"`  // chat
	Done       bool           `json:"done"`
	DoneReason string         `json:"done_reason,omitempty"`
	Context    []int32        `json:"context,omitempty"`
	Logprobs   []chatProb     `json:"logprobs,omitempty"`
	*ollamaTimes
}

type ollamaTimes struct {
	Total       int64 `json:"total_duration"`
	Load        int64 `json:"load_duration"`
	PromptCount int   `json:"prompt_eval_count"`
	PromptTime  int64 `json:"prompt_eval_duration"`
	Count       int   `json:"eval_count"`
	Time        int64 `json:"eval_duration"`
	Forced      int   `json:"jump_ahead_tokens,omitempty"` // of eval_count, not drawn
}

func now() string { return time.Now().UTC().Format(time.RFC3339Nano) }

// ollamaChat is POST /api/chat.
func (s *Server) ollamaChat(w http.ResponseWriter, r *http.Request) error {
	var b struct {
		Messages []ollamaMessage   `json:"messages"`
		Tools    []json.RawMessage `json:"tools"`
		ollamaCommon
	}
	if err := decodeBody(r, &b); err != nil {
		return err
	}
	o := &ollamaOutput{s: s, r: r, b: &b.ollamaCommon, chat: true}
	if len(b.Messages) == 0 {
		return o.loadOnly(w)
	}
	c := &chatRequest{}
	var err error
	if c.messages, err = ollamaMessages(b.Messages); err == nil {
		c.tools, err = readTools(b.Tools)
	}
	if err == nil {
		err = b.apply(c)
	}
	if err != nil {
		return err
	}
	return o.answer(w, c.plan)
}

// ollamaMessages turns a conversation into what templates take.
func ollamaMessages(in []ollamaMessage) ([]chat.Message, error) {
	if len(in) > maxMessages {
		return nil, badRequest("messages", "expected at most %d messages, found %d", maxMessages, len(in))
	}
	var out []chat.Message
	calls := 0
	for i, m := range in {
		if len(m.Images) > 0 {
			return nil, unsupported("messages", "message %d: images: this model takes no images", i)
		}
		switch m.Role {
		case "system", "user", "assistant", "tool":
		default:
			return nil, badRequest("messages", "message %d: role: expected system, user, assistant or tool, found %q", i, m.Role)
		}
		x := chat.Message{Role: m.Role, Content: m.Content, Reasoning: m.Thinking, Name: m.ToolName, ToolCallID: m.ToolID}
		for _, c := range m.ToolCalls {
			// Some templates refuse calls without an id of nine letters.
			calls++
			id := c.ID
			if id == "" {
				id = "call" + pad(calls, 5)
			}
			x.ToolCalls = append(x.ToolCalls, toolCall(id, c.Function.Name, c.Function.Arguments))
		}
		if m.Role == "tool" && x.ToolCallID == "" {
			x.ToolCallID = "call" + pad(calls, 5)
		}
		out = append(out, x)
	}
	return out, nil
}

func pad(n, width int) string {
	s := strconv.Itoa(n)
	return strings.Repeat("0", max(0, width-len(s))) + s
}

// ollamaGenerate is POST /api/generate.
func (s *Server) ollamaGenerate(w http.ResponseWriter, r *http.Request) error {
	var b struct {
		Prompt   string            `json:"prompt"`
		Suffix   string            `json:"suffix"`
		System   string            `json:"system"`
		Template string            `json:"template"`
		Context  []int32           `json:"context"`
		Raw      bool              `json:"raw"`
		Images   []json.RawMessage `json:"images"`
		ollamaCommon
	}
	if err := decodeBody(r, &b); err != nil {
		return err
	}
	o := &ollamaOutput{s: s, r: r, b: &b.ollamaCommon}
	if b.Prompt == "" && b.Suffix == "" && len(b.Context) == 0 {
		return o.loadOnly(w)
	}
	c := &chatRequest{}
	err := b.apply(c)
	switch {
	case err != nil:
	case len(b.Images) > 0:
		err = unsupported("images", "this model takes no images")
	case b.Template != "":
		err = unsupported("template", "templates in Go's language are not run; use raw with a prompt of your own")
	}
	if err != nil {
		return err
	}
	if b.Raw || b.Suffix != "" {
		return o.answer(w, func(m *Model) (*plan, error) { return rawPlan(m, c, b.Prompt, b.Suffix) })
	}
	if b.System != "" {
		c.messages = append(c.messages, chat.Message{Role: "system", Content: b.System})
	}
	c.messages = append(c.messages, chat.Message{Role: "user", Content: b.Prompt})
	return o.answer(w, func(m *Model) (*plan, error) {
		p, err := c.plan(m)
		if err != nil || len(b.Context) == 0 {
			return p, err
		}
		if err := m.checkIDs("context", b.Context); err != nil {
			return nil, err
		}
		rest := p.req.Tokens
		if len(rest) > 0 && rest[0] == m.tok.BOS() {
			rest = rest[1:]
		}
		p.req.Tokens = append(append([]int32(nil), b.Context...), rest...)
		return p, nil
	})
}

// rawPlan continues text without a template, or fills it in.
func rawPlan(m *Model, c *chatRequest, text, suffix string) (*plan, error) {
	in := prompt{text: text}
	if suffix != "" {
		var err error
		if in.tokens, err = m.fill(text, suffix); err != nil {
			return nil, err
		}
	}
	raw := &completionRequest{format: c.format, probs: c.probs, top: c.top, sampling: c.sampling, defaults: c.defaults, common: c.common}
	return raw.plan(m, &in)
}

// ollamaOutput writes the answer of generate or chat.
type ollamaOutput struct {
	s    *Server
	r    *http.Request
	b    *ollamaCommon
	chat bool

	m     *Model
	start time.Time
	calls []*call
}

func (o *ollamaOutput) reply(text, thinking string, calls []*call) *ollamaReply {
	rep := &ollamaReply{Model: o.b.Model, Created: now()}
	if !o.chat {
		rep.Response, rep.Thinking = &text, thinking
		return rep
	}
	rep.Message = &ollamaMessage{Role: "assistant", Content: text, Thinking: thinking}
	for i, c := range calls {
		x := ollamaCall{ID: callID(c.id)}
		x.Function.Index, x.Function.Name, x.Function.Arguments = i, c.name, json.RawMessage(c.args.String())
		rep.Message.ToolCalls = append(rep.Message.ToolCalls, x)
	}
	return rep
}

// loadOnly answers a request without a prompt: it loads the model, or unloads
// it.
func (o *ollamaOutput) loadOnly(w http.ResponseWriter) error {
	m, err := o.s.model(o.r, o.b.Model)
	if err != nil {
		return err
	}
	defer m.release()
	keep, ok, err := keepAlive(o.b.KeepAlive)
	if err != nil {
		return err
	}
	rep := o.reply("", "", nil)
	rep.Done, rep.DoneReason = true, "load"
	if ok {
		m.keep(keep)
		if keep == 0 {
			rep.DoneReason = "unload"
		}
	}
	writeJSON(w, http.StatusOK, rep)
	return nil
}

// answer runs a plan and writes lines, or one object.
func (o *ollamaOutput) answer(w http.ResponseWriter, makePlan func(*Model) (*plan, error)) error {
	keep, ok, err := keepAlive(o.b.KeepAlive)
	if err != nil {
		return err
	}
	o.start = time.Now()
	m, err := o.s.model(o.r, o.b.Model)
	if err != nil {
		return err
	}
	defer m.release()
	load := time.Since(o.start)
	o.m = m.Model
	if ok {
		m.keep(keep)
	}
	p, err := makePlan(m.Model)
	if err != nil {
		return err
	}
	var t totals
	var a answer
	e := o.s.newEvents(w, o.r)
	e.kind = "application/x-ndjson"
	streams := o.b.Stream == nil || *o.b.Stream
	err = o.s.run(o.r.Context(), p, &t, func(d *delta) error {
		a.add(d)
		if !streams {
			return nil
		}
		return o.line(e, &a, d, p)
	}, nil)
	if err != nil {
		return lineError(e, err)
	}
	rep := o.last(&a, &t, p, streams)
	rep.ollamaTimes.Load, rep.Total = load.Nanoseconds(), time.Since(o.start).Nanoseconds()
	if streams {
		_ = e.line(rep) // a client that is gone is noticed by others
		return nil
	}
	writeJSON(w, http.StatusOK, rep)
	return nil
}

// line writes what a delta adds. Calls are written when they are whole.
func (o *ollamaOutput) line(e *events, a *answer, d *delta, p *plan) error {
	text, thinking := "", ""
	var calls []*call
	for _, part := range d.parts {
		switch part.Kind {
		case chat.PartText:
			text += part.Text
		case chat.PartReasoning:
			thinking += part.Text
		case chat.PartCallEnd:
			if part.Valid {
				calls = append(calls, a.calls[len(o.calls)+len(calls)])
			} else {
				text += part.Text
			}
		}
	}
	var probs []chatProb
	if p.probs && len(d.tokens) > 0 {
		probs = o.m.chatProbs(d.tokens).Content
	}
	if text == "" && thinking == "" && len(calls) == 0 && probs == nil {
		return nil
	}
	rep := o.reply(text, thinking, calls)
	if rep.Message != nil {
		for i := range rep.Message.ToolCalls {
			rep.Message.ToolCalls[i].Function.Index += len(o.calls)
		}
	}
	o.calls = append(o.calls, calls...)
	rep.Logprobs = probs
	return e.line(rep)
}

// last is the line that ends an answer, or all of it.
func (o *ollamaOutput) last(a *answer, t *totals, p *plan, streams bool) *ollamaReply {
	rep := o.reply("", "", nil)
	if !streams {
		var whole []*call
		text := a.text.String()
		for _, c := range a.calls {
			if c.valid {
				whole = append(whole, c)
			} else {
				text += c.raw
			}
		}
		rep = o.reply(text, a.reasoning.String(), whole)
		if p.probs {
			rep.Logprobs = o.m.chatProbs(a.tokens).Content
		}
	}
	rep.Done, rep.DoneReason = true, finishStop
	if a.finish == finishLength {
		rep.DoneReason = finishLength
	}
	if !o.chat {
		rep.Context = append(append([]int32(nil), p.req.Tokens...), ids(a.tokens)...)
	}
	rep.ollamaTimes = &ollamaTimes{PromptCount: t.prompt, PromptTime: t.prefill.Nanoseconds(), Count: t.tokens, Time: t.decode.Nanoseconds(), Forced: t.forced}
	return rep
}

// lineError is streamError for streams of lines.
func lineError(e *events, err error) error {
	if !e.started {
		return err
	}
	note(e.ctx, func(l *requestLog) { l.err = err })
	_ = e.line(asAPIError(err).ollama()) // the stream ends here either way
	return nil
}
