package anthropic

import (
	"encoding/json"
	"net/http"
	"strings"

	"ridge/engine"
	"ridge/server/caller"
	"ridge/server/fault"
	"ridge/server/run"
	"ridge/server/wire"
	"ridge/text/chat"
)

type reply struct {
	ID       string  `json:"id"`
	Type     string  `json:"type"`
	Role     string  `json:"role"`
	Model    string  `json:"model"`
	Content  []any   `json:"content"`
	Stop     *string `json:"stop_reason"`
	Sequence *string `json:"stop_sequence"`
	Usage    usage   `json:"usage"`
}

// usage counts tokens as Anthropic does: those that were found in the
// cache are not among the input tokens.
type usage struct {
	Input  int `json:"input_tokens"`
	Output int `json:"output_tokens"`
	Create int `json:"cache_creation_input_tokens"`
	Read   int `json:"cache_read_input_tokens"`
	Known  int `json:"cache_known_input_tokens,omitempty"` // of the whole prompt, that another one begins with, too
	Forced int `json:"jump_ahead_tokens,omitempty"`        // of the output, not drawn
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

// output writes the answer of POST /v1/messages.
type output struct {
	s   *API
	r   *http.Request
	p   *run.Plan
	rep reply
	t   run.Totals

	// Of a stream: whether message_start is out, the block that is open, and how
	// many there were.
	begun    bool
	progress *engine.Progress // while the prompt is computed
	open     string
	call     run.Call // that is under way
	blocks   int
	input    int
	cached   int
	known    int
	tokens   int
	finish   *run.Delta
}

// stopReason is why an answer ended, in Anthropic's words.
func (o *output) stopReason(finish, stopText string) (reason string, sequence *string) {
	switch {
	case finish == run.FinishLength && stopText != "": // run.LoopText
		return "max_tokens", &stopText
	case finish == run.FinishLength && o.p.Request.MaxTokens > 0 && o.tokens < o.p.Request.MaxTokens:
		return "model_context_window_exceeded", nil
	case finish == run.FinishLength:
		return "max_tokens", nil
	case finish == run.FinishToolCalls:
		return "tool_use", nil
	case stopText != "":
		return "stop_sequence", &stopText
	}
	return "end_turn", nil
}

func (o *output) whole(w http.ResponseWriter) error {
	answers, err := o.s.Collect(o.r.Context(), o.p, &o.t)
	if err != nil {
		return err
	}
	a := &answers[0]
	o.tokens = o.t.Tokens
	o.rep.Content = append(o.rep.Content, contents(a)...)
	reason, seq := o.stopReason(a.Finish, a.StopText)
	o.rep.Stop, o.rep.Sequence = &reason, seq
	o.rep.Usage = usage{Input: o.t.Prompt - o.t.Cached, Output: o.t.Tokens, Read: o.t.Cached, Known: o.t.Known, Forced: o.t.Forced}
	wire.WriteJSON(w, http.StatusOK, &o.rep)
	return nil
}

// contents are the blocks of an answer in the order of a stream.
func contents(a *run.Answer) (out []any) {
	calls := a.Calls
	for i := 0; i < len(a.Parts); {
		kind := a.Parts[i].Kind
		if kind == chat.PartCall {
			c := calls[0]
			out = append(out, toolBlock{"tool_use", toolUseID(c.ID), c.Name, c.Input()})
			calls = calls[1:]
			i++
			continue
		}
		var text strings.Builder
		for ; i < len(a.Parts) && a.Parts[i].Kind == kind; i++ {
			text.WriteString(a.Parts[i].Text)
		}
		if kind == chat.PartReasoning {
			out = append(out, thinkingBlock{"thinking", text.String(), ""})
		} else {
			out = append(out, textBlock{"text", text.String()})
		}
	}
	return out
}

func toolUseID(id string) string {
	if id != "" {
		return id
	}
	return caller.NewID("toolu_")
}

func (o *output) stream(w http.ResponseWriter) error {
	e := o.s.Events(w, o.r)
	o.p.Request.Progress = true
	err := o.s.Run(o.r.Context(), o.p, &o.t, func(d *run.Delta) error { return o.delta(e, d) }, func() error { return o.ping(e) })
	if err == nil && o.finish != nil {
		err = o.end(e)
	}
	if err == nil {
		return nil
	}
	return e.Failed(err, func(api *fault.Error) error { return e.Named("error", Error(api, caller.RequestID(o.r.Context()))) })
}

// ping shows a client that waits that it was not forgotten, and how far the prompt is.
func (o *output) ping(e *wire.Events) error {
	if !o.begun { // message_start is the first event
		return e.Comment("ping")
	}
	f := map[string]any{"type": "ping"}
	if p := o.progress; p != nil {
		f["progress"] = map[string]int{"prompt_tokens": p.Tokens, "computed_tokens": p.Computed}
	}
	return e.Named("ping", f)
}

// begin writes message_start, if it was not written.
func (o *output) begin(e *wire.Events, tokens, cached int) error {
	if o.begun {
		return nil
	}
	o.begun = true
	o.input, o.cached = tokens-cached, cached
	rep := o.rep
	rep.Usage = usage{Input: o.input, Read: o.cached, Known: o.known, Output: 1}
	return e.Named("message_start", map[string]any{"type": "message_start", "message": &rep})
}

// delta writes the events of a delta.
func (o *output) delta(e *wire.Events, d *run.Delta) error {
	if p := d.Progress; p != nil {
		if o.progress = p; o.begun && e.Quiet() {
			return o.ping(e)
		}
		return o.begin(e, p.Tokens, p.Cached)
	}
	if p := d.Prompt; p != nil {
		o.known = p.Known
		if o.progress = nil; o.begun { // it may have been found in the cache meanwhile
			o.input, o.cached = p.Tokens-p.Cached, p.Cached
		}
		if err := o.begin(e, p.Tokens, p.Cached); err != nil {
			return err
		}
	}
	o.tokens += len(d.Tokens)
	for _, p := range d.Parts {
		if err := o.part(e, &p); err != nil {
			return err
		}
	}
	if d.Finish != "" {
		o.finish = d
	}
	return nil
}

func (o *output) part(e *wire.Events, p *chat.Part) error {
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
		o.call.Args.WriteString(p.Text)
	case chat.PartCallEnd:
		// Clients fail on arguments that are no JSON: they are sent when they are known
		// to be some, as Anthropic does.
		args := o.call.Args.String()
		if !p.Valid && p.Text != "" { // else it was cut off
			o.call.Raw = p.Text
			args = string(o.call.Input())
		}
		o.call = run.Call{}
		if args != "" {
			if err := o.blockDelta(e, map[string]string{"type": "input_json_delta", "partial_json": args}); err != nil {
				return err
			}
		}
		return o.closeBlock(e)
	}
	return nil
}

// piece adds text to the block of its kind, which it opens if need be.
func (o *output) piece(e *wire.Events, kind string, empty any, delta map[string]string) error {
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

func (o *output) openBlock(e *wire.Events, kind string, block any) error {
	o.open = kind
	o.blocks++
	return e.Named("content_block_start", map[string]any{"type": "content_block_start", "index": o.blocks - 1, "content_block": block})
}

func (o *output) blockDelta(e *wire.Events, delta map[string]string) error {
	return e.Named("content_block_delta", map[string]any{"type": "content_block_delta", "index": o.blocks - 1, "delta": delta})
}

func (o *output) closeBlock(e *wire.Events) error {
	if o.open == "" {
		return nil
	}
	if o.open == "thinking" { // clients expect a signature; there is nothing to sign
		if err := o.blockDelta(e, map[string]string{"type": "signature_delta", "signature": ""}); err != nil {
			return err
		}
	}
	o.open = ""
	return e.Named("content_block_stop", map[string]any{"type": "content_block_stop", "index": o.blocks - 1})
}

func (o *output) end(e *wire.Events) error {
	if err := o.closeBlock(e); err != nil {
		return err
	}
	reason, seq := o.stopReason(o.finish.Finish, o.finish.StopText)
	err := e.Named("message_delta", map[string]any{
		"type":  "message_delta",
		"delta": map[string]any{"stop_reason": reason, "stop_sequence": seq},
		"usage": usage{Input: o.input, Read: o.cached, Known: o.known, Output: o.tokens, Forced: o.t.Forced},
	})
	if err != nil {
		return err
	}
	return e.Named("message_stop", map[string]string{"type": "message_stop"})
}
