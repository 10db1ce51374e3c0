package server

import (
	"context"
	"net/http"
	"time"
)

// events writes a stream of server-sent events, or of JSON lines. Headers go
// out with the first event, so that what fails before it has a status of its
// own.
type events struct {
	w       http.ResponseWriter
	ctx     context.Context
	rc      *http.ResponseController
	timeout time.Duration
	until   time.Time // the deadline of writes
	kind    string    // content type
	started bool
	b       bytesBuffer
}

func (s *Server) newEvents(w http.ResponseWriter, r *http.Request) *events {
	return &events{w: w, ctx: r.Context(), rc: http.NewResponseController(w), timeout: s.o.WriteTimeout, kind: "text/event-stream; charset=utf-8"}
}

func (e *events) start() {
	if e.started {
		return
	}
	e.started = true
	note(e.ctx, func(l *requestLog) { l.stream = true })
	h := e.w.Header()
	h.Set("Content-Type", e.kind)
	h.Set("Cache-Control", "no-cache")
	h.Set("X-Accel-Buffering", "no")
	e.w.WriteHeader(http.StatusOK)
}

// flush sends what was written. A client that takes nothing for a while, the
// timeout or up to an eighth less, is given up.
func (e *events) flush() error {
	e.start()
	// To move the deadline costs half of what a write does: not for each token.
	if now := time.Now(); e.until.Sub(now) < e.timeout-e.timeout/8 {
		e.until = now.Add(e.timeout)
		_ = e.rc.SetWriteDeadline(e.until) // writers of tests have no deadlines
	}
	_, err := e.w.Write(e.b)
	e.b = e.b[:0]
	if err == nil {
		err = e.rc.Flush()
	}
	return err
}

// data sends an event without a name.
func (e *events) data(v any) error {
	b, err := encodeJSON(v)
	if err != nil {
		return err
	}
	e.b = append(append(append(e.b, "data: "...), b...), "\n\n"...)
	return e.flush()
}

// named sends an event with a name.
func (e *events) named(name string, v any) error {
	e.b = append(append(append(e.b, "event: "...), name...), '\n')
	return e.data(v)
}

// line sends a JSON line.
func (e *events) line(v any) error {
	b, err := encodeJSON(v)
	if err != nil {
		return err
	}
	e.b = append(append(e.b, b...), '\n')
	return e.flush()
}

// comment sends what clients ignore and proxies take for life.
func (e *events) comment(text string) error {
	e.b = append(append(append(e.b, ": "...), text...), "\n\n"...)
	return e.flush()
}

// done sends the end that OpenAI's clients wait for.
func (e *events) done() error {
	e.b = append(e.b, "data: [DONE]\n\n"...)
	return e.flush()
}
