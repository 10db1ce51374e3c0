package openai

import (
	"context"
	"errors"
	"net/http"

	"ridge/server/caller"
	"ridge/server/fault"
	"ridge/server/wire"
)

// mayWait checks a request whose answer the client asks for later.
func (b *responsesRequest) mayWait() error {
	switch {
	case !b.Background:
		return nil
	case b.Store != nil && !*b.Store:
		return fault.BadRequest("background", "expected store to be true with background, found false: the answer is asked for later")
	case b.Stream:
		return fault.BadRequest("background", "expected no stream with background, found one: ask for the answer by GET /v1/responses/{id}")
	}
	return nil
}

// background tells the client of the answer, and makes and stores it when the client
// has gone. It stays one request of the server's, with all its limits: the connection
// ends with it.
func (o *responsesOutput) background(w http.ResponseWriter) error {
	ctx, stop := outlive(o.r.Context())
	defer stop()
	o.rep.Status = "queued"
	ctx, done := o.s.running.begin(ctx, &o.rep)
	defer done()
	o.r = o.r.WithContext(ctx)
	w.Header().Set("Connection", "close") // else its next request would wait for this one's end
	wire.WriteJSON(w, http.StatusOK, &o.rep)
	_ = http.NewResponseController(w).Flush() // a client that has gone asks later
	err := o.run()
	if err == nil {
		return nil
	}
	caller.Note(ctx, func(l *caller.Record) { l.Err = err })
	api := fault.As(err)
	o.rep.Status, o.rep.Error = "failed", map[string]any{"code": "server_error", "message": api.Message}
	if api.Code == errCancelled.Code {
		o.rep.Status, o.rep.Error = "cancelled", nil
	}
	o.rep.Incomplete, o.rep.Output = nil, []any{}
	if failed := o.keep(); failed != nil { // the client has its answer already
		caller.Note(ctx, func(l *caller.Record) { l.Err = errors.Join(err, failed) })
	}
	return nil
}

// outlive returns a context that goes on when the client goes, and ends when the server
// ends the request, or at its deadline.
func outlive(client context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(client))
	unlink := context.AfterFunc(client, func() {
		if cause := context.Cause(client); !errors.Is(cause, context.Canceled) {
			cancel(cause)
		}
	})
	end := func() { unlink(); cancel(nil) }
	if at, ok := client.Deadline(); ok {
		var ended context.CancelFunc
		ctx, ended = context.WithDeadline(ctx, at)
		return ctx, func() { ended(); end() }
	}
	return ctx, end
}

// poll returns how far a response is that is made in the background, nil if there is
// none such.
func (m *running) poll(id, owner string) *responsesReply {
	m.mu.Lock()
	defer m.mu.Unlock()
	x := m.byID[id]
	if x == nil || x.owner != owner || !x.rep.Background {
		return nil
	}
	rep := x.rep
	rep.Status = "in_progress"
	return &rep
}
