package wire

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"ridge/internal/aside"
	"ridge/server/caller"
	"ridge/server/fault"
	"ridge/server/run"
)

// Door is what the dialects have of the server: the models, what runs plans, and
// how answers are written.
type Door struct {
	*run.Runner
	Models       *run.Library
	WriteTimeout time.Duration // for a client to take a piece of an answer
	RefuseMedia  bool          // requests with pictures and the like get an error, not a line in their place
}

// Handler answers a request, or returns the error that the client is to be told
// of in the dialect of the path. It has written nothing then.
type Handler func(w http.ResponseWriter, r *http.Request) error

// Model finds the model that a request names. It must be released.
func (d *Door) Model(r *http.Request, name string) (*run.Loan, error) {
	var m *run.Loan
	err := aside.Back(r.Context(), func() (err error) {
		m, err = d.Models.Acquire(r.Context(), name)
		return err
	})
	if err != nil {
		return nil, err
	}
	if err := aside.Wait(r.Context()); err != nil {
		m.Release()
		return nil, err
	}
	caller.Note(r.Context(), func(l *caller.Record) { l.Model = m.Info().Name })
	return m, nil
}

// Lend reads a request's body and finds the model that it names then. The model
// must be released.
func (d *Door) Lend(r *http.Request, body any, name *string) (*run.Loan, error) {
	if err := DecodeBody(r, body); err != nil {
		return nil, err
	}
	return d.Model(r, *name)
}

// Plan finds the model that a request names, and plans an answer of it. The model
// must be released.
func (d *Door) Plan(r *http.Request, name string, c *run.Chat) (*run.Plan, *run.Loan, error) {
	for _, l := range c.Left {
		if d.RefuseMedia && l.Picture {
			return nil, nil, fault.Unsupported("messages", "%s: this model takes no images, audio, video or files", l.Where)
		}
	}
	m, err := d.Model(r, name)
	if err != nil {
		return nil, nil, err
	}
	p, err := c.Plan(r.Context(), m.Model)
	if err != nil {
		m.Release()
		return nil, nil, err
	}
	return p, m, nil
}

// Alive shows a client that waits that it was not forgotten, and where in the
// queue it is; the next one is at 1.
func (d *Door) Alive(e *Events, m *run.Model) error {
	if at := d.Position(e.ctx, m); at > 0 {
		return e.Comment("queue position " + strconv.Itoa(at))
	}
	return e.Comment("ping")
}

// Position is where in the queue the request of ctx is: the next one is at 1, and one
// that does not wait at 0.
func (d *Door) Position(ctx context.Context, m *run.Model) int {
	id := caller.RequestID(ctx)
	for _, q := range m.Stats().Sequences {
		if q.ID == id && q.Position >= 0 {
			return q.Position + 1
		}
	}
	return 0
}

// Wait is what to do while nothing comes: a sign of life in streams, nothing if e
// is nil.
func (d *Door) Wait(e *Events, m *run.Model) func() error {
	if e == nil {
		return nil
	}
	return func() error { return d.Alive(e, m) }
}
