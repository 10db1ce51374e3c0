package wire

import (
	"context"
	"net/http"
	"time"

	"ridge/server/caller"
	"ridge/server/fault"
)

// Events writes a stream of server-sent events, or of JSON lines. Headers go
// out with the first event, so that what fails before it has a status of its
// own.
type Events struct {
	w       http.ResponseWriter
	ctx     context.Context
	rc      *http.ResponseController
	timeout time.Duration
	until   time.Time // the deadline of writes
	kind    string    // content type
	started bool
	sent    time.Time // when the last piece was
	b       Buffer
}

// Events returns a stream of server-sent events as the answer to a request.
func (d *Door) Events(w http.ResponseWriter, r *http.Request) *Events {
	return &Events{w: w, ctx: r.Context(), rc: http.NewResponseController(w), timeout: d.WriteTimeout, kind: "text/event-stream; charset=utf-8"}
}

// Lines returns a stream of JSON lines as the answer to a request.
func (d *Door) Lines(w http.ResponseWriter, r *http.Request) *Events {
	e := d.Events(w, r)
	e.kind = "application/x-ndjson"
	return e
}

// Failed takes the error that ends a stream. It returns it if nothing was sent
// yet, to be answered with its own status; else it notes it and calls last, which
// may tell the client in its dialect.
func (e *Events) Failed(err error, last func(*fault.Error) error) error {
	if !e.started {
		return err
	}
	caller.Note(e.ctx, func(l *caller.Record) { l.Err = err })
	_ = last(fault.As(err)) // the stream ends here either way
	return nil
}

func (e *Events) start() {
	if e.started {
		return
	}
	e.started = true
	caller.Note(e.ctx, func(l *caller.Record) { l.Stream = true })
	h := e.w.Header()
	h.Set("Content-Type", e.kind)
	h.Set("Cache-Control", "no-cache")
	h.Set("X-Accel-Buffering", "no")
	e.w.WriteHeader(http.StatusOK)
}

// flush sends what was written. A client that takes nothing for a while, the
// timeout or up to an eighth less, is given up.
func (e *Events) flush() error {
	e.start()
	// To move the deadline costs half of what a write does: not for each token.
	if now := time.Now(); e.until.Sub(now) < e.timeout-e.timeout/8 {
		e.until = now.Add(e.timeout)
		_ = e.rc.SetWriteDeadline(e.until) // writers of tests have no deadlines
	}
	e.sent = time.Now()
	_, err := e.w.Write(e.b)
	e.b = e.b[:0]
	if err == nil {
		err = e.rc.Flush()
	}
	return err
}

// Quiet reports whether nothing was sent for a second: the client may be told how far
// its prompt is.
func (e *Events) Quiet() bool { return time.Since(e.sent) > time.Second }

// Data sends an event without a name.
func (e *Events) Data(v any) error {
	b, err := EncodeJSON(v)
	if err != nil {
		return err
	}
	e.b = append(append(append(e.b, "data: "...), b...), "\n\n"...)
	return e.flush()
}

// Named sends an event with a name.
func (e *Events) Named(name string, v any) error {
	e.b = append(append(append(e.b, "event: "...), name...), '\n')
	return e.Data(v)
}

// Line sends a JSON line.
func (e *Events) Line(v any) error {
	b, err := EncodeJSON(v)
	if err != nil {
		return err
	}
	e.b = append(append(e.b, b...), '\n')
	return e.flush()
}

// Comment sends what clients ignore and proxies take for life.
func (e *Events) Comment(text string) error {
	e.b = append(append(append(e.b, ": "...), text...), "\n\n"...)
	return e.flush()
}

// Done sends the end that OpenAI's clients wait for.
func (e *Events) Done() error {
	e.b = append(e.b, "data: [DONE]\n\n"...)
	return e.flush()
}
