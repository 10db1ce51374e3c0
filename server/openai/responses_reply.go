package openai

import (
	"encoding/json"
	"net/http"
	"strings"

	"ridge/engine"
	"ridge/server/caller"
	"ridge/server/fault"
	"ridge/server/offer"
	"ridge/server/probs"
	"ridge/server/run"
	"ridge/server/wire"
	"ridge/text/chat"
)

// outputText is a part of a message in a response.
type outputText struct {
	Type        string            `json:"type"`
	Text        string            `json:"text"`
	Annotations []any             `json:"annotations"`
	Logprobs    []probs.ChatToken `json:"logprobs"`
}

type reasoningText struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

// outputItem is an item of a response that is text: a message or reasoning.
type outputItem struct {
	ID      string          `json:"id"`
	Type    string          `json:"type"`
	Status  string          `json:"status,omitempty"`
	Role    string          `json:"role,omitempty"`
	Content []any           `json:"content"`
	Summary json.RawMessage `json:"summary,omitempty"`
}

// responsesOutput writes the answer of POST /v1/responses.
type responsesOutput struct {
	s       *API
	r       *http.Request
	p       *run.Plan
	b       *responsesRequest
	c       *run.Chat
	offered *offer.Tools
	rep     responsesReply
	t       run.Totals

	e      *wire.Events    // nil if the answer is written whole
	number int             // of the next event
	item   *outputItem     // that is open, or
	call   *callItem       // that is
	text   strings.Builder // of it
	probs  []probs.ChatToken
	finish string
	said   chat.Message // the answer as a turn of the conversation

	begun    bool             // the first events are out
	progress *engine.Progress // nil before the computation of the prompt begins
	clock    wire.PromptClock
}

func (o *responsesOutput) whole(w http.ResponseWriter) error {
	if err := o.run(); err != nil {
		return err
	}
	wire.WriteJSON(w, http.StatusOK, &o.rep)
	return nil
}

func (o *responsesOutput) stream(w http.ResponseWriter) error {
	o.e = o.s.Events(w, o.r)
	o.p.Request.Progress = true
	err := o.run()
	if err == nil {
		_ = o.event("response."+o.rep.Status, map[string]any{"response": &o.rep}) // a client that is gone is noticed by others
		return nil
	}
	return o.e.Failed(err, func(api *fault.Error) error {
		o.rep.Incomplete, o.rep.Store = nil, false
		if api.Code == errCancelled.Code {
			o.rep.Status = "cancelled"
			return o.event("response.incomplete", map[string]any{"response": &o.rep})
		}
		o.rep.Status = "failed"
		o.rep.Error = map[string]any{"code": "server_error", "message": api.Message}
		return o.event("response.failed", map[string]any{"response": &o.rep})
	})
}

// run runs the plan and keeps the answer, if it should be kept. Items are put
// together the same way whether or not somebody is told about them.
func (o *responsesOutput) run() error {
	var wait func() error
	if o.e != nil {
		wait = o.alive
	}
	err := o.s.Run(o.r.Context(), o.p, &o.t, o.delta, wait)
	if err != nil {
		return err
	}
	if err := o.closeItem(); err != nil {
		return err
	}
	return o.complete()
}

// event tells the client, if it wants to be told.
func (o *responsesOutput) event(typ string, fields map[string]any) error {
	if o.e == nil {
		return nil
	}
	fields["type"], fields["sequence_number"] = typ, o.number
	o.number++
	return o.e.Named(typ, fields)
}

func (o *responsesOutput) delta(d *run.Delta) error {
	if p := d.Progress; p != nil {
		o.progress = p
		if o.b.Progress || o.begun && o.e.Quiet() {
			if err := o.begin("in_progress"); err != nil {
				return err
			}
			return o.alive()
		}
	}
	if err := o.begin("in_progress"); err != nil || d.Progress != nil {
		return err
	}
	if o.c.Probs && len(d.Tokens) > 0 {
		o.probs = append(o.probs, probs.NewChat(o.p.Model, d.Tokens).Content...)
	}
	for _, p := range d.Parts {
		if err := o.part(&p); err != nil {
			return err
		}
	}
	if d.Finish != "" {
		o.finish = d.Finish
	}
	return nil
}

// begin sends the first events, if they were not sent, and that of a state, queued or
// in_progress, when it is reached.
func (o *responsesOutput) begin(state string) error {
	if o.e == nil || o.rep.Status == state && o.begun {
		return nil
	}
	o.rep.Status = state
	if !o.begun {
		o.begun = true
		if err := o.event("response.created", map[string]any{"response": &o.rep}); err != nil {
			return err
		}
	}
	return o.event("response."+state, map[string]any{"response": &o.rep})
}

// alive shows a client that waits that it was not forgotten: with an event, since some
// count comments as silence. It says how far the prompt is, or where in the queue the
// request.
func (o *responsesOutput) alive() error {
	if o.progress == nil && !o.begun {
		if err := o.begin("queued"); err != nil {
			return err
		}
	}
	f := map[string]any{"response": &o.rep}
	if p := o.progress; p != nil {
		f["progress"] = map[string]int{"prompt_tokens": p.Tokens, "computed_tokens": p.Computed}
		if o.b.Progress { // llama-server's form
			f["prompt_progress"] = o.clock.Tell(p.Tokens, p.Cached, p.Computed)
		}
	} else if at := o.s.Position(o.r.Context(), o.p.Model); at > 0 {
		f["queue_position"] = at
	}
	return o.event("response."+o.rep.Status, f)
}

func (o *responsesOutput) part(p *chat.Part) error {
	switch p.Kind {
	case chat.PartText:
		return o.piece("message", "response.output_text.delta", p.Text)
	case chat.PartReasoning:
		return o.piece("reasoning", "response.reasoning_text.delta", p.Text)
	case chat.PartCall:
		return o.openCall(p.Name, p.ID)
	case chat.PartArguments:
		return o.arguments(p.Text)
	case chat.PartCallEnd:
		return o.closeItem()
	}
	return nil
}

// piece adds text to the item of its kind, which it opens if need be.
func (o *responsesOutput) piece(kind, event, text string) error {
	if o.item == nil || o.item.Type != kind {
		if err := o.closeItem(); err != nil {
			return err
		}
		item := &outputItem{ID: caller.NewID("msg_"), Type: kind, Status: "in_progress", Role: "assistant", Content: []any{}}
		if kind == "reasoning" {
			item.ID, item.Role, item.Summary = caller.NewID("rs_"), "", json.RawMessage("[]")
		}
		if err := o.openItem(item); err != nil {
			return err
		}
	}
	o.text.WriteString(text)
	f := o.place(map[string]any{"delta": text})
	if kind == "message" {
		f["logprobs"] = []any{}
	}
	return o.event(event, f)
}

// place adds where in the output something is.
func (o *responsesOutput) place(f map[string]any) map[string]any {
	f["item_id"], f["output_index"], f["content_index"] = o.item.ID, len(o.rep.Output), 0
	return f
}

func (o *responsesOutput) openItem(item *outputItem) error {
	o.item = item
	o.text.Reset()
	if err := o.event("response.output_item.added", map[string]any{"output_index": len(o.rep.Output), "item": item}); err != nil {
		return err
	}
	return o.event("response.content_part.added", o.place(map[string]any{"part": o.content("")}))
}

// content is the one part of an item.
func (o *responsesOutput) content(text string) any {
	if o.item.Type == "reasoning" {
		return reasoningText{"reasoning_text", text}
	}
	return outputText{"output_text", text, []any{}, append([]probs.ChatToken{}, o.probs...)}
}

// closeItem ends the open item.
func (o *responsesOutput) closeItem() error {
	status := "completed"
	if o.finish == run.FinishLength {
		status = "incomplete"
	}
	if o.call != nil {
		return o.closeCall(status)
	}
	item := o.item
	if item == nil {
		return nil
	}
	text := o.text.String()
	part := o.content(text)
	item.Status, item.Content = status, []any{part}
	typ, f := "response.output_text.done", o.place(map[string]any{"text": text})
	if item.Type == "reasoning" {
		typ = "response.reasoning_text.done"
	} else {
		f["logprobs"] = o.probs
		o.said.Content += text
		o.probs = nil
	}
	err := o.event(typ, f)
	if err == nil {
		err = o.event("response.content_part.done", o.place(map[string]any{"part": part}))
	}
	if err == nil {
		err = o.event("response.output_item.done", map[string]any{"output_index": len(o.rep.Output), "item": item})
	}
	o.rep.Output = append(o.rep.Output, item)
	o.item = nil
	return err
}

// complete fills in what is known at the end, and remembers the answer. One that
// should be remembered and cannot be is an error.
func (o *responsesOutput) complete() error {
	o.rep.Status = "completed"
	if o.finish == run.FinishLength {
		o.rep.Status, o.rep.Incomplete = "incomplete", map[string]string{"reason": "max_output_tokens"}
	}
	o.rep.Usage = responseUsage(&o.t)
	if !o.rep.Store {
		return nil
	}
	return o.keep()
}

// keep stores the answer.
func (o *responsesOutput) keep() error {
	msgs := o.c.Messages
	if o.b.Instructions != nil && *o.b.Instructions != "" {
		msgs = msgs[1:] // instructions hold for one request
	}
	o.said.Role = "assistant"
	msgs = append(append([]chat.Message(nil), msgs...), o.said)
	return o.s.memory.put(&remembered{ID: o.rep.ID, Owner: caller.Owner(o.r.Context()), Messages: msgs, Input: o.b.kept()}, &o.rep)
}

// responseUsage counts tokens as responses have it.
func responseUsage(t *run.Totals) map[string]any {
	details := map[string]int{"reasoning_tokens": t.Reasoning}
	if t.Forced > 0 {
		details["jump_ahead_tokens"] = t.Forced
	}
	if t.Guessed > 0 {
		details["accepted_prediction_tokens"], details["rejected_prediction_tokens"] = t.Right, t.Guessed-t.Right
	}
	prompt := map[string]int{"cached_tokens": t.Cached}
	if t.Known > 0 {
		prompt["known_tokens"] = t.Known
	}
	return map[string]any{
		"input_tokens": t.Prompt, "input_tokens_details": prompt,
		"output_tokens": t.Tokens, "output_tokens_details": details, "total_tokens": t.Prompt + t.Tokens,
	}
}
