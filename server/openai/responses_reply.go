package openai

import (
	"encoding/json"
	"net/http"
	"strings"

	"ridge/server/caller"
	"ridge/server/fault"
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

// outputItem is an item of a response: a message, reasoning or a call.
type outputItem struct {
	ID        string          `json:"id"`
	Type      string          `json:"type"`
	Status    string          `json:"status,omitempty"`
	Role      string          `json:"role,omitempty"`
	Content   any             `json:"content,omitempty"` // []any; there even if it is empty, but not in calls
	Summary   json.RawMessage `json:"summary,omitempty"`
	CallID    string          `json:"call_id,omitempty"`
	Name      string          `json:"name,omitempty"`
	Arguments *string         `json:"arguments,omitempty"`
}

// responsesOutput writes the answer of POST /v1/responses.
type responsesOutput struct {
	s   *API
	r   *http.Request
	p   *run.Plan
	b   *responsesRequest
	c   *run.Chat
	rep responsesReply
	t   run.Totals

	e      *wire.Events // nil if the answer is written whole
	number int          // of the next event
	item   *outputItem
	text   strings.Builder // of the open item
	probs  []probs.ChatToken
	finish string
	said   chat.Message // the answer as a turn of the conversation
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
	err := o.run()
	if err == nil {
		_ = o.event("response."+o.rep.Status, map[string]any{"response": &o.rep}) // a client that is gone is noticed by others
		return nil
	}
	return o.e.Failed(err, func(api *fault.Error) error {
		o.rep.Status, o.rep.Incomplete, o.rep.Store = "failed", nil, false
		o.rep.Error = map[string]any{"code": "server_error", "message": api.Message}
		return o.event("response.failed", map[string]any{"response": &o.rep})
	})
}

// run runs the plan and keeps the answer, if it should be kept. Items are put
// together the same way whether or not somebody is told about them.
func (o *responsesOutput) run() error {
	err := o.s.Run(o.r.Context(), o.p, &o.t, o.delta, o.s.Wait(o.e, o.p.Model))
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
	if d.Prompt != nil {
		for _, typ := range []string{"response.created", "response.in_progress"} {
			if err := o.event(typ, map[string]any{"response": &o.rep}); err != nil {
				return err
			}
		}
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

func (o *responsesOutput) part(p *chat.Part) error {
	switch p.Kind {
	case chat.PartText:
		return o.piece("message", "response.output_text.delta", p.Text)
	case chat.PartReasoning:
		return o.piece("reasoning", "response.reasoning_text.delta", p.Text)
	case chat.PartCall:
		if err := o.closeItem(); err != nil {
			return err
		}
		args := ""
		return o.openItem(&outputItem{ID: caller.NewID("fc_"), Type: "function_call", Status: "in_progress", CallID: wire.CallID(p.ID), Name: p.Name, Arguments: &args})
	case chat.PartArguments:
		return o.piece("function_call", "response.function_call_arguments.delta", p.Text)
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
	f["item_id"], f["output_index"] = o.item.ID, len(o.rep.Output)
	if o.item.Type != "function_call" {
		f["content_index"] = 0
	}
	return f
}

func (o *responsesOutput) openItem(item *outputItem) error {
	o.item = item
	o.text.Reset()
	if err := o.event("response.output_item.added", map[string]any{"output_index": len(o.rep.Output), "item": item}); err != nil {
		return err
	}
	if item.Type == "function_call" {
		return nil
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
	item := o.item
	if item == nil {
		return nil
	}
	text := o.text.String()
	if item.Status = "completed"; o.finish == run.FinishLength {
		item.Status = "incomplete"
	}
	var err error
	switch item.Type {
	case "function_call":
		item.Arguments = &text
		args, _ := wire.EncodeJSON(text) // strings encode
		o.said.ToolCalls = append(o.said.ToolCalls, wire.ToolCall(item.CallID, item.Name, args))
		err = o.event("response.function_call_arguments.done", o.place(map[string]any{"arguments": text, "name": item.Name}))
	default:
		part := o.content(text)
		item.Content = []any{part}
		typ, f := "response.output_text.done", o.place(map[string]any{"text": text})
		if item.Type == "reasoning" {
			typ = "response.reasoning_text.done"
		} else {
			f["logprobs"] = o.probs
			o.said.Content += text
			o.probs = nil
		}
		if err = o.event(typ, f); err == nil {
			err = o.event("response.content_part.done", o.place(map[string]any{"part": part}))
		}
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
	details := map[string]int{"reasoning_tokens": o.t.Reasoning}
	if o.t.Forced > 0 {
		details["jump_ahead_tokens"] = o.t.Forced
	}
	o.rep.Usage = map[string]any{
		"input_tokens": o.t.Prompt, "input_tokens_details": map[string]int{"cached_tokens": o.t.Cached},
		"output_tokens": o.t.Tokens, "output_tokens_details": details, "total_tokens": o.t.Prompt + o.t.Tokens,
	}
	if !o.rep.Store {
		return nil
	}
	msgs := o.c.Messages
	if o.b.Instructions != nil && *o.b.Instructions != "" {
		msgs = msgs[1:] // instructions hold for one request
	}
	o.said.Role = "assistant"
	msgs = append(append([]chat.Message(nil), msgs...), o.said)
	return o.s.memory.put(&remembered{ID: o.rep.ID, Owner: caller.Owner(o.r.Context()), Messages: msgs}, &o.rep)
}
