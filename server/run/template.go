package run

import (
	"context"
	"errors"
	"time"

	"ridge/internal/aside"
	"ridge/server/fault"
	"ridge/text/chat"
)

// templates lets clients bring chat templates of their own, in a request or with
// a model that they create. A template is a program: all of them together get one
// place to run in, with bounded time and memory.
type templates struct {
	place *aside.Lane
}

// Bounds of a client's template: for compiling it, finding out what it takes and
// rendering a conversation.
const (
	templateTime   = time.Second
	templateBytes  = 16 << 20
	templateSource = 256 << 10
	templateWait   = 10 * time.Second // for the place
)

// do runs f, which may do what the limits allow. It ends when ctx does. field is
// where the template comes from.
func (t *templates) do(ctx context.Context, field, source string, f func(chat.Limits) error) error {
	if t == nil {
		return fault.Unsupported(field, "this server runs no templates of clients; start it with --allow-request-template to let them bring some")
	}
	if len(source) > templateSource {
		return fault.BadRequest(field, "expected a template of at most %d bytes, found %d", templateSource, len(source))
	}
	busy := fault.TooMany(templateWait, "templates of other requests are being rendered")
	waiting, stop := context.WithTimeoutCause(ctx, templateWait, busy)
	defer stop()
	var err error
	if e := t.place.Do(waiting, func(context.Context) {
		err = f(chat.Limits{Time: templateTime, Until: time.Now().Add(templateTime), Bytes: templateBytes, Done: ctx.Done()})
	}); e != nil {
		return e
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// Admit reports why a request that is submitted now would be refused, whatever it
// asks for. It is for work that is to be done before.
func (m *Model) Admit() error {
	if b, ok := m.backend.(interface{ Admit() error }); ok {
		return b.Admit()
	}
	return nil
}

// ownPrompt renders a conversation with a template that a client brought.
func (c *Chat) ownPrompt(ctx context.Context, m *Model, in chat.Input, tok chat.Tokenizer) (p chat.Prompt, err error) {
	err = m.templates.do(ctx, "chat_template", c.Template, func(l chat.Limits) error {
		if c.Template == "" {
			p, err = m.tmpl.Within(l).Prompt(in, tok)
			return err
		}
		tmpl, err := m.compile("chat_template", c.Template, l)
		if err != nil {
			return fault.BadRequest("chat_template", "%v", err)
		}
		p, err = tmpl.Prompt(in, tok)
		return err
	})
	return p, err
}

// promptError is what a client is told whose conversation became no prompt.
func promptError(err error) error {
	var api *fault.Error
	switch {
	case errors.As(err, &api), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case errors.Is(err, chat.ErrContinue):
		return fault.BadRequest("continue_final_message", "%v", chat.ErrContinue)
	case errors.Is(err, chat.ErrRefused):
		return fault.BadRequest("messages", "%v", err)
	}
	return fault.BadRequest("messages", "the chat template does not take this conversation: %v", err)
}
