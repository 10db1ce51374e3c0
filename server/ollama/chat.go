package ollama

import (
	"cmp"
	"context"
	"encoding/json"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"ridge/server/fault"
	"ridge/server/probs"
	"ridge/server/run"
	"ridge/server/wire"
	"ridge/text/chat"
)

// defaults are those of Ollama's options, for what neither the request nor
// the model's file says.
var defaults = run.Sampling{Temperature: new(0.8), TopK: new(40), TopP: new(0.9)}

// common are the fields that generate and chat share.
type common struct {
	Model       string          `json:"model"`
	Stream      *bool           `json:"stream"`
	Format      json.RawMessage `json:"format"`
	Options     *options        `json:"options"`
	KeepAlive   json.RawMessage `json:"keep_alive"`
	Think       json.RawMessage `json:"think"`
	Logprobs    bool            `json:"logprobs"`
	TopLogprobs *wire.Integer   `json:"top_logprobs"`
	Deadline    *wire.Integer   `json:"deadline_ms"`           // an addition
	Budget      *wire.Integer   `json:"thinking_token_budget"` // another
}

// apply puts the fields into a request.
func (b *common) apply(c *run.Chat) error {
	c.Defaults, c.Parallel = defaults, true
	c.Probs, c.Top = b.Logprobs, b.TopLogprobs.Value(0)
	c.Deadline, c.Budget = b.Deadline.Milliseconds(), b.Budget.Pointer()
	if c.Top < 0 || c.Top > run.MaxTopProbs {
		return fault.BadRequest("top_logprobs", "expected 0 to %d, found %d", run.MaxTopProbs, c.Top)
	}
	if o := b.Options; o != nil {
		c.Sampling = o.sampling()
		c.Sampling.PenaltyLastN = cmp.Or(c.Sampling.PenaltyLastN, new(64))
		c.Stop = o.Stop
		if n := o.NumPredict; n != nil && *n >= 0 { // negative: no bound
			c.MaxTokens = n.Pointer()
		}
		c.MaxDraft = o.DraftCount.Pointer()
	}
	var text string
	switch {
	case !wire.Present(b.Format):
	case json.Unmarshal(b.Format, &text) == nil:
		switch text {
		case "":
		case "json":
			c.Format = run.Format{Kind: "json", Field: "format"}
		default:
			return fault.BadRequest("format", "expected \"json\" or a JSON schema, found %q", text)
		}
	default:
		c.Format = run.Format{Kind: "schema", Field: "format", Source: b.Format}
	}
	return b.thinking(c)
}

// thinking sets how much the model should reason, in the variables that
// templates know.
func (b *common) thinking(c *run.Chat) error {
	if !wire.Present(b.Think) {
		return nil
	}
	var on bool
	var level string
	switch {
	case json.Unmarshal(b.Think, &on) == nil:
		c.Args = map[string]any{"enable_thinking": on}
	case json.Unmarshal(b.Think, &level) == nil:
		args, err := wire.EffortArgs(level, nil)
		if err != nil {
			return fault.BadRequest("think", "expected true, false, low, medium or high, found %q", level)
		}
		c.Args = args
	default:
		return fault.BadRequest("think", "expected true, false, low, medium or high, found %s", fault.Excerpt(b.Think))
	}
	return nil
}

// keepAlive reads how long a model stays loaded: "5m", seconds, 0 or below 0
// for ever.
func keepAlive(raw json.RawMessage) (d time.Duration, ok bool, err error) {
	if !wire.Present(raw) {
		return 0, false, nil
	}
	var text string
	var n float64
	switch {
	case json.Unmarshal(raw, &n) == nil:
	case json.Unmarshal(raw, &text) == nil:
		if n, err = strconv.ParseFloat(text, 64); err != nil {
			if d, err = time.ParseDuration(text); err != nil {
				return 0, false, fault.BadRequest("keep_alive", "expected a duration such as \"5m\", or seconds, found %q", text)
			}
			return d, true, nil
		}
	default:
		return 0, false, fault.BadRequest("keep_alive", "expected a duration such as \"5m\", or seconds, found %s", fault.Excerpt(raw))
	}
	if n < 0 || n > math.MaxInt64/1e9 {
		return -1, true, nil
	}
	return time.Duration(n * float64(time.Second)), true, nil
}

type message struct {
	Role      string            `json:"role"`
	Content   string            `json:"content"`
	Thinking  string            `json:"thinking,omitempty"`
	Images    []json.RawMessage `json:"images,omitempty"`
	ToolCalls []toolCall        `json:"tool_calls,omitempty"`
	ToolName  string            `json:"tool_name,omitempty"`
	ToolID    string            `json:"tool_call_id,omitempty"`
}

type toolCall struct {
	ID       string `json:"id,omitempty"`
	Function struct {
		Index     int             `json:"index"`
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	} `json:"function"`
}

// reply is a line of an answer.
type reply struct {
	Model      string            `json:"model"`
	Created    string            `json:"created_at"`
	Response   *string           `json:"response,omitempty"` // generate
	Thinking   string            `json:"thinking,omitempty"` // generate
	Message    *message          `json:"message,omitempty"`  // chat
	Done       bool              `json:"done"`
	DoneReason string            `json:"done_reason,omitempty"`
	Context    []int32           `json:"context,omitempty"`
	Logprobs   []probs.ChatToken `json:"logprobs,omitempty"`
	*times
}

type times struct {
	Total       int64 `json:"total_duration"`
	Load        int64 `json:"load_duration"`
	PromptCount int   `json:"prompt_eval_count"`
	PromptTime  int64 `json:"prompt_eval_duration"`
	Count       int   `json:"eval_count"`
	Time        int64 `json:"eval_duration"`
	Forced      int   `json:"jump_ahead_tokens,omitempty"` // of eval_count, not drawn
}

func now() string { return time.Now().UTC().Format(time.RFC3339Nano) }

// chatRequest is the body of /api/chat.
type chatRequest struct {
	Messages []message         `json:"messages"`
	Tools    []json.RawMessage `json:"tools"`
	common
}

// chat is POST /api/chat.
func (s *API) chat(w http.ResponseWriter, r *http.Request) error {
	var b chatRequest
	if err := wire.DecodeBody(r, &b); err != nil {
		return err
	}
	o := &output{s: s, r: r, b: &b.common, chat: true}
	if len(b.Messages) == 0 {
		return o.loadOnly(w)
	}
	c := &run.Chat{}
	var err error
	if c.Messages, err = readMessages(b.Messages); err == nil {
		c.Tools, err = run.ReadTools(b.Tools, nil)
	}
	if err == nil {
		err = b.apply(c)
	}
	if err != nil {
		return err
	}
	return o.answer(w, c.Plan)
}

// readMessages turns a conversation into what templates take.
func readMessages(in []message) ([]chat.Message, error) {
	if len(in) > wire.MaxMessages {
		return nil, fault.BadRequest("messages", "expected at most %d messages, found %d", wire.MaxMessages, len(in))
	}
	var out []chat.Message
	calls := 0
	for i, m := range in {
		if len(m.Images) > 0 {
			return nil, fault.Unsupported("messages", "message %d: images: this model takes no images", i)
		}
		switch m.Role {
		case "system", "user", "assistant", "tool":
		default:
			return nil, fault.BadRequest("messages", "message %d: role: expected system, user, assistant or tool, found %q", i, m.Role)
		}
		x := chat.Message{Role: m.Role, Content: m.Content, Reasoning: m.Thinking, Name: m.ToolName, ToolCallID: m.ToolID}
		for _, c := range m.ToolCalls {
			// Some templates refuse calls without an id of nine letters.
			calls++
			id := c.ID
			if id == "" {
				id = "call" + pad(calls, 5)
			}
			x.ToolCalls = append(x.ToolCalls, wire.ToolCall(id, c.Function.Name, c.Function.Arguments))
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

// generateRequest is the body of /api/generate.
type generateRequest struct {
	Prompt   string            `json:"prompt"`
	Suffix   string            `json:"suffix"`
	System   string            `json:"system"`
	Template string            `json:"template"`
	Context  []int32           `json:"context"`
	Raw      bool              `json:"raw"`
	Images   []json.RawMessage `json:"images"`
	common
}

// generate is POST /api/generate.
func (s *API) generate(w http.ResponseWriter, r *http.Request) error {
	var b generateRequest
	if err := wire.DecodeBody(r, &b); err != nil {
		return err
	}
	o := &output{s: s, r: r, b: &b.common}
	if b.Prompt == "" && b.Suffix == "" && len(b.Context) == 0 {
		return o.loadOnly(w)
	}
	c := &run.Chat{}
	err := b.apply(c)
	switch {
	case err != nil:
	case len(b.Images) > 0:
		err = fault.Unsupported("images", "this model takes no images")
	case b.Template != "":
		err = fault.Unsupported("template", "templates in Go's language are not run; use raw with a prompt of your own")
	}
	if err != nil {
		return err
	}
	if b.Raw || b.Suffix != "" {
		return o.answer(w, func(ctx context.Context, m *run.Model) (*run.Plan, error) {
			return rawPlan(ctx, m, c, b.Prompt, b.Suffix)
		})
	}
	if b.System != "" {
		c.Messages = append(c.Messages, chat.Message{Role: "system", Content: b.System})
	}
	c.Messages = append(c.Messages, chat.Message{Role: "user", Content: b.Prompt})
	return o.answer(w, func(ctx context.Context, m *run.Model) (*run.Plan, error) {
		p, err := c.Plan(ctx, m)
		if err != nil || len(b.Context) == 0 {
			return p, err
		}
		if err := m.CheckIDs("context", b.Context); err != nil {
			return nil, err
		}
		rest := p.Request.Tokens
		if len(rest) > 0 && rest[0] == m.Tokenizer().BOS() {
			rest = rest[1:]
		}
		p.Request.Tokens = append(append([]int32(nil), b.Context...), rest...)
		return p, nil
	})
}

// rawPlan continues text without a template, or fills it in.
func rawPlan(ctx context.Context, m *run.Model, c *run.Chat, text, suffix string) (*run.Plan, error) {
	in := run.Prompt{Text: text}
	if suffix != "" {
		var err error
		if in.Tokens, err = m.Fill(text, suffix); err != nil {
			return nil, err
		}
	}
	raw := &run.Completion{Format: c.Format, Probs: c.Probs, Top: c.Top, Sampling: c.Sampling, Defaults: c.Defaults, Options: c.Options}
	return raw.Plan(ctx, m, &in)
}

// output writes the answer of generate or chat.
type output struct {
	s    *API
	r    *http.Request
	b    *common
	chat bool

	m     *run.Model
	start time.Time
	calls []*run.Call
}

func (o *output) reply(text, thinking string, calls []*run.Call) *reply {
	rep := &reply{Model: o.b.Model, Created: now()}
	if !o.chat {
		rep.Response, rep.Thinking = &text, thinking
		return rep
	}
	rep.Message = &message{Role: "assistant", Content: text, Thinking: thinking}
	for i, c := range calls {
		x := toolCall{ID: wire.CallID(c.ID)}
		x.Function.Index, x.Function.Name, x.Function.Arguments = i, c.Name, json.RawMessage(c.Args.String())
		rep.Message.ToolCalls = append(rep.Message.ToolCalls, x)
	}
	return rep
}

// loadOnly answers a request without a prompt: it loads the model, or unloads
// it.
func (o *output) loadOnly(w http.ResponseWriter) error {
	m, err := o.s.Model(o.r, o.b.Model)
	if err != nil {
		return err
	}
	defer m.Release()
	keep, ok, err := keepAlive(o.b.KeepAlive)
	if err != nil {
		return err
	}
	rep := o.reply("", "", nil)
	rep.Done, rep.DoneReason = true, "load"
	if ok {
		m.Keep(keep)
		if keep == 0 {
			rep.DoneReason = "unload"
		}
	}
	wire.WriteJSON(w, http.StatusOK, rep)
	return nil
}

// answer runs a plan and writes lines, or one object.
func (o *output) answer(w http.ResponseWriter, makePlan func(context.Context, *run.Model) (*run.Plan, error)) error {
	keep, ok, err := keepAlive(o.b.KeepAlive)
	if err != nil {
		return err
	}
	o.start = time.Now()
	m, err := o.s.Model(o.r, o.b.Model)
	if err != nil {
		return err
	}
	defer m.Release()
	load := time.Since(o.start)
	o.m = m.Model
	if ok {
		m.Keep(keep)
	}
	if err := o.b.Options.window(o.r.Context(), m.Model); err != nil {
		return err
	}
	p, err := makePlan(o.r.Context(), m.Model)
	if err != nil {
		return err
	}
	wire.NoteUnenforced(w, o.r, p)
	var t run.Totals
	var a run.Answer
	e := o.s.Lines(w, o.r)
	streams := o.b.Stream == nil || *o.b.Stream
	err = o.s.Run(o.r.Context(), p, &t, func(d *run.Delta) error {
		a.Add(d)
		if !streams {
			return nil
		}
		return o.line(e, &a, d, p)
	}, nil)
	if err != nil {
		return lineError(e, err)
	}
	rep := o.last(&a, &t, p, streams)
	rep.times.Load, rep.Total = load.Nanoseconds(), time.Since(o.start).Nanoseconds()
	if streams {
		_ = e.Line(rep) // a client that is gone is noticed by others
		return nil
	}
	wire.WriteJSON(w, http.StatusOK, rep)
	return nil
}

// line writes what a delta adds. Calls are written when they are whole.
func (o *output) line(e *wire.Events, a *run.Answer, d *run.Delta, p *run.Plan) error {
	text, thinking := "", ""
	var calls []*run.Call
	for _, part := range d.Parts {
		switch part.Kind {
		case chat.PartText:
			text += part.Text
		case chat.PartReasoning:
			thinking += part.Text
		case chat.PartCallEnd:
			if part.Valid {
				calls = append(calls, a.Calls[len(o.calls)+len(calls)])
			} else {
				text += part.Text
			}
		}
	}
	var scores []probs.ChatToken
	if p.Probs && len(d.Tokens) > 0 {
		scores = probs.NewChat(o.m, d.Tokens).Content
	}
	if text == "" && thinking == "" && len(calls) == 0 && scores == nil {
		return nil
	}
	rep := o.reply(text, thinking, calls)
	if rep.Message != nil {
		for i := range rep.Message.ToolCalls {
			rep.Message.ToolCalls[i].Function.Index += len(o.calls)
		}
	}
	o.calls = append(o.calls, calls...)
	rep.Logprobs = scores
	return e.Line(rep)
}

// last is the line that ends an answer, or all of it.
func (o *output) last(a *run.Answer, t *run.Totals, p *run.Plan, streams bool) *reply {
	rep := o.reply("", "", nil)
	if !streams {
		var whole []*run.Call
		text := a.Text.String()
		for _, c := range a.Calls {
			if c.Valid {
				whole = append(whole, c)
			} else {
				text += c.Raw
			}
		}
		rep = o.reply(text, a.Reasoning.String(), whole)
		if p.Probs {
			rep.Logprobs = probs.NewChat(o.m, a.Tokens).Content
		}
	}
	rep.Done, rep.DoneReason = true, run.FinishStop
	if a.Finish == run.FinishLength {
		rep.DoneReason = run.FinishLength
	}
	if !o.chat {
		rep.Context = append(append([]int32(nil), p.Request.Tokens...), wire.IDs(a.Tokens)...)
	}
	rep.times = &times{PromptCount: t.Prompt, PromptTime: t.Prefill.Nanoseconds(), Count: t.Tokens, Time: t.Decode.Nanoseconds(), Forced: t.Forced}
	return rep
}

// lineError reports an error in a stream of lines that has begun; else it returns
// it, to be answered with its own status.
func lineError(e *wire.Events, err error) error {
	return e.Failed(err, func(api *fault.Error) error { return e.Line(Error(api)) })
}
