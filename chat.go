package ridge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"

	"ridge/engine"
	"ridge/text/chat"
	"ridge/text/constraint"
)

// Chat answers a conversation.
func (m *Model) Chat(ctx context.Context, messages []chat.Message, g Generation) iter.Seq2[Token, error] {
	return m.ChatInput(ctx, chat.Input{Messages: messages, AddGenerationPrompt: true}, g)
}

// ChatInput answers a conversation of which in says more than its messages:
// variables of the template, that the last message is to be continued, and the
// like. Its tools are those of g.
func (m *Model) ChatInput(ctx context.Context, in chat.Input, g Generation) iter.Seq2[Token, error] {
	return m.generate(ctx, &g, func(r *run) error {
		raws, err := raw(g.Tools)
		if err != nil {
			return err
		}
		if len(in.Tools) > 0 {
			return errors.New("ridge: tools: expected them in the generation, found some in the input")
		}
		in.Tools = raws
		p, err := m.tmpl.Prompt(in, m.tok)
		if err != nil {
			return err
		}
		r.req.Tokens = p.Tokens
		r.o.Syntax, r.o.Marks = m.syntax, m.marks
		r.o.Parse = &chat.ParseOptions{Prompt: p.Opening(m.syntax, in.Continue), KeepReasoning: g.KeepReasoning, Tools: raws, OnlyCalls: g.MustCall, Continue: in.Continue}
		return r.constrain(ctx, r.o.Parse.Prompt)
	})
}

// ChatTokens renders a conversation with the model's template, as ChatInput
// does, and returns its token ids.
func (m *Model) ChatTokens(in chat.Input) ([]int32, error) {
	p, err := m.tmpl.Prompt(in, m.tok)
	return p.Tokens, err
}

// Reply is a whole answer to a conversation.
type Reply struct {
	Message chat.Message // to be put after the others
	Finish  Finish
}

// Reply answers a conversation and returns the answers whole, g.N of them.
func (m *Model) Reply(ctx context.Context, messages []chat.Message, g Generation) ([]Reply, error) {
	out := make([]Reply, max(1, g.N))
	for t, err := range m.Chat(ctx, messages, g) {
		if err != nil {
			return nil, err
		}
		r := &out[t.Choice]
		r.Message.Role = "assistant"
		r.Message.Content += t.Text
		r.Message.Reasoning += t.Reasoning
		r.Message.ToolCalls = append(r.Message.ToolCalls, t.Calls...)
		if t.Finish != "" {
			r.Finish = t.Finish
		}
	}
	return out, nil
}

// raw returns tools as templates take them.
func raw(tools []chat.Tool) (out []json.RawMessage, err error) {
	for i, t := range tools {
		b, err := t.Raw()
		if err != nil {
			return nil, fmt.Errorf("ridge: tool %d: %w", i, err)
		}
		out = append(out, b)
	}
	return out, nil
}

// callID is the id of an answer's n-th call, if the model gave it none. Some
// templates want nine letters and digits.
func callID(n int) string { return fmt.Sprintf("call%05d", n) }

// constrain makes the maskers of the answers to a prompt with the given text.
func (r *run) constrain(ctx context.Context, prompt string) error {
	g, hold := r.g, r.m.hold
	f := g.Format
	if g.JumpAhead {
		f = f.JumpAhead()
	}
	strict := false
	for _, t := range g.Tools {
		strict = strict || t.Strict
	}
	var masks func() constraint.Masker
	var err error
	switch {
	case g.MustCall && len(g.Tools) == 0:
		return errors.New("ridge: calls: expected tools to choose from, found none")
	case g.NewMask != nil && (!f.Any() || g.MustCall || strict):
		return errors.New("ridge: mask: expected no other constraint, found a format or tools whose calls are constrained")
	case g.NewMask != nil:
		r.req.NewMasker = g.NewMask
	case g.MustCall:
		none := constraint.Format{}
		if g.JumpAhead {
			none = none.JumpAhead() // the spacing of calls
		}
		masks, err = r.calls(ctx, prompt, none)
	case !f.Any() && len(g.Tools) > 0:
		masks, err = r.calls(ctx, prompt, f)
	case !f.Any():
		held, e := hold.Format(ctx, f)
		if e != nil {
			return e
		}
		r.note(held.Unenforced())
		masks, err = hold.After(held, prompt, r.o.Parse == nil || g.KeepReasoning)
	case strict:
		var left []constraint.Unenforced
		masks, left, err = hold.Strict(ctx, g.Tools, !g.OneCall, g.JumpAhead)
		r.note(left)
	}
	if err == nil && masks != nil {
		r.req.NewMasker = func() engine.Masker { return masks() }
	}
	r.req.JumpAhead = g.JumpAhead && r.req.NewMasker != nil
	if held := g.KeepReasoning && !f.Any(); err == nil && r.o.Parse != nil && g.ReasoningTokens != 0 && !held {
		r.bound(prompt)
	}
	return err
}

// bound closes the reasoning of answers to prompt after so many tokens as it may have.
func (r *run) bound(prompt string) {
	budget := r.m.hold.Budget(max(r.g.ReasoningTokens, 0), prompt)
	if budget == nil {
		return
	}
	other := r.req.NewMasker
	r.req.NewMasker = func() engine.Masker {
		if other == nil {
			return budget()
		}
		return constraint.Both(other(), budget())
	}
}

// note keeps what of schemas is not enforced.
func (r *run) note(left []constraint.Unenforced) {
	for _, u := range left {
		r.g.Stats.Unenforced = append(r.g.Stats.Unenforced, u.String())
	}
}

// calls makes the maskers of answers that are calls, or texts of a format.
func (r *run) calls(ctx context.Context, prompt string, or constraint.Format) (func() constraint.Masker, error) {
	calls, err := r.m.hold.Calls(ctx, r.g.Tools, !r.g.OneCall, or)
	if err != nil {
		return nil, err
	}
	r.note(calls.Unenforced())
	return r.m.hold.After(calls, prompt, r.g.KeepReasoning)
}
