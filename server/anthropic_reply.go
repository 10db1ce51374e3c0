package server

import (
	"encoding/json"
	"net/http"

	"ridge/text/chat"
)

type anthropicReply struct {
	ID       string         `json:"id"`
	Type     string         `json:"type"`
	Role     string         `json:"role"`
	Model    string         `json:"model"`
	Content  []any          `json:"content"`
	Stop     *string        `json:"stop_reason"`
	Sequence *string        `json:"stop_sequence"`
	Usage    anthropicUsage `json:"usage"`
}

// anthropicUsage counts tokens as Anthropic does: those that were found in the
// cache are not among the input tokens.
type anthropicUsage struct {
	Input  int `json:"input_tokens"`
	Output int `json:"output_tokens"`
	Create int `json:"cache_creation_input_tokens"`
	Read   int `json:"cache_read_input_tokens"`
	Forced int `json:"jump_ahead_tokens,omitempty"` // of the output, not drawn
}

type textBlock struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

type thinkingBlock struct {
	Type      string `json:"type"`
	Thinking  string `json:"thinking"`
	Signature string `json:"signature"`
}

type toolBlock struct {
	Type  string          `json:"type"`
	ID    string          `json:"id"`
	Name  string          `json:"name"`
	Input json.RawMessage `json:"input"`
}

// anthropicOutput writes the answer of POST /v1/messages.
type anthropicOutput struct {
	s   *Server
	r   *http.Request
	p   *plan
	rep anthropicReply
	t   totals

	// Of a stream: whether message_start is out, the block that is open, and how
	// many there were.
	begun  bool
	open   string
	blocks int
	input  int
	cached int
	tokens int
	finish *delta
}

// stopReason is why an answer ended, in Anthropic's words.
func (o *anthropicOutput) stopReason(finish, stopText string) (reason string, sequence *string) {
	switch {
	case finish == finishLength && o.p.req.MaxTokens > 0 && o.tokens < o.p.req.MaxTokens:
		return "model_context_window_exceeded", nil
	case finish == finishLength:
		return "max_tokens", nil
	case finish == finishToolCalls:
		return "tool_use", nil
	case stopText != "":
		return "stop_sequence", &stopText
	}
	return "end_turn", nil
}

func (o *anthropicOutput) whole(w http.ResponseWriter) error {
	answers, err := o.s.collect(o.r.Context(), o.p, &o.t)
	if err != nil {
		return err
	}
	a := &answers[0]
	o.tokens = o.t.tokens
	if s := a.reasoning.String(); s != "" {
		o.rep.Content = append(o.rep.Content, thinkingBlock{"thinking", s, ""})
	}
	text := a.text.String()
	var calls []any
	for _, c := range a.calls {
		if !c.valid { // cut off: its input is no object
			text += c.raw
			continue
		}
		calls = append(calls, toolBlock{"tool_use", toolUseID(c.id), c.name, json.RawMessage(c.args.String())})
	}
	if text != "" {
		o.rep.Content = append(o.rep.Content, textBlock{"text", text})
	}
	o.rep.Content = append(o.rep.Content, calls...)
	reason, seq := o.stopReason(a.finish, a.stopText)
	o.rep.Stop, o.rep.Sequence = &reason, seq
	o.rep.Usage = anthropicUsage{Input: o.t.prompt - o.t.cached, Output: o.t.tokens, Read: o.t.cached, Forced: o.t.forced}
	writeJSON(w, http.StatusOK, &o.rep)
	return nil
}

func toolUseID(id string) string {
	if id != "" {
		return id
	}
	return newID("toolu_")
}

func (o *anthropicOutput) stream(w http.ResponseWriter) error {
	e := o.s.newEvents(w, o.r)
	err := o.s.run(o.r.Context(), o.p, &o.t, func(d *delta) error { return o.delta(e, d) }, func() error {
		if !o.begun { // message_start is the first event
			return e.comment("ping")
		}
		return e.named("ping", map[string]string{"type": "ping"})
	})
	if err == nil && o.finish != nil {
		err = o.end(e)
	}
	if err == nil {
		return nil
	}
	if !e.started {
		return err
	}
	note(o.r.Context(), func(l *requestLog) { l.err = err })
	_ = e.named("error", asAPIError(err).anthropic(requestID(o.r.Context()))) // the stream ends here either way
	return nil
}

// delta writes the events of a delta.
func (o *anthropicOutput) delta(e *events, d *delta) error {
	if d.prompt != nil {
		o.begun = true
		o.input, o.cached = d.prompt.Tokens-d.prompt.Cached, d.prompt.Cached
		rep := o.rep
		rep.Usage = anthropicUsage{Input: o.input, Read: o.cached, Output: 1}
		if err := e.named("message_start", map[string]any{"type": "message_start", "message": &rep}); err != nil {
			return err
		}
	}
	o.tokens += len(d.tokens)
	for _, p := range d.parts {
		if err := o.part(e, &p); err != nil {
			return err
		}
	}
	if d.finish != "" {
		o.finish = d
	}
	return nil
}

func (o *anthropicOutput) part(e *events, p *chat.Part) error {
	switch p.Kind {
	case chat.PartText:
		return o.piece(e, "text", textBlock{"text", ""}, map[string]string{"type": "text_delta", "text": p.Text})
	case chat.PartReasoning:
		return o.piece(e, "thinking", thinkingBlock{"thinking", "", ""}, map[string]string{"type": "thinking_delta", "thinking": p.Text})
	case chat.PartCall:
		if err := o.closeBlock(e); err != nil {
			return err
		}
		return o.openBlock(e, "tool_use", toolBlock{"tool_use", toolUseID(p.ID), p.Name, json.RawMessage("{}")})
	case chat.PartArguments:
		return o.blockDelta(e, map[string]string{"type": "input_json_delta", "partial_json": p.Text})
	case chat.PartCallEnd:
		return o.closeBlock(e)
	}
	return nil
}

// piece adds text to the block of its kind, which it opens if need be.
func (o *anthropicOutput) piece(e *events, kind string, empty any, delta map[string]string) error {
	if o.open != kind {
		if err := o.closeBlock(e); err != nil {
			return err
		}
		if err := o.openBlock(e, kind, empty); err != nil {
			return err
		}
	}
	return o.blockDelta(e, delta)
}

func (o *anthropicOutput) openBlock(e *events, kind string, block any) error {
	o.open = kind
	o.blocks++
	return e.named("content_block_start", map[string]any{"type": "content_block_start", "index": o.blocks - 1, "content_block": block})
}

func (o *anthropicOutput) blockDelta(e *events, delta map[string]string) error {
	return e.named("content_block_delta", map[string]any{"type": "content_block_delta", "index": o.blocks - 1, "delta": delta})
}

func (o *anthropicOutput) closeBlock(e *events) error {
	if o.open == "" {
		return nil
	}
	if o.open == "thinking" { // clients expect a signature; there is nothing to sign
		if err := o.blockDelta(e, map[string]string{"type": "signature_delta", "signature": ""}); err != nil {
			return err
		}
	}
	o.open = ""
	return e.named("content_block_stop", map[string]any{"type": "content_block_stop", "index": o.blocks - 1})
}

func (o *anthropicOutput) end(e *events) error {
	if err := o.closeBlock(e); err != nil {
		return err
	}
	reason, seq := o.stopReason(o.finish.finish, o.finish.stopText)
	err := e.named("message_delta", map[string]any{
		"type":  "message_delta",
		"delta": map[string]any{"stop_reason": reason, "stop_sequence": seq},
		"usage": anthropicUsage{Input: o.input, Read: o.cached, Output: o.tokens, Forced: o.t.forced},
	})
	if err != nil {
		return err
	}
	return e.named("message_stop", map[string]string{"type": "message_stop"})
}
