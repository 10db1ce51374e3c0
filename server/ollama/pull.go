package ollama

import (
	"context"
	"errors"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"ridge/hub"
	"ridge/server/caller"
	"ridge/server/fault"
	"ridge/server/run"
	"ridge/server/wire"
)

// RemoteRef turns a name that a client may pull, or load, into a reference to
// the hub. Paths and addresses are for the machine's own user only.
func RemoteRef(name string) (string, error) {
	name = strings.TrimSuffix(name, ":latest")
	scheme, rest, hasScheme := strings.Cut(name, ":")
	if strings.EqualFold(name, hub.EmbeddedName) {
		return hub.EmbeddedName, nil
	}
	for _, e := range hub.Catalog() {
		for _, n := range append([]string{e.Name}, e.Aliases...) {
			if strings.EqualFold(n, name) {
				return e.Name, nil
			}
		}
	}
	bad := fault.BadRequest("model", "expected a name of the catalogue, NAME[:TAG], ORG/REPO[:QUANT], hf:ORG/REPO[:QUANT] or pypi:PACKAGE, found %q", name)
	if name == "" || strings.ContainsAny(name, "\\ \t\r\n?#&%") || strings.Contains(name, "..") || strings.Contains(name, "//") || strings.HasPrefix(name, "/") || strings.HasPrefix(name, "~") || strings.HasPrefix(name, ".") {
		return "", bad
	}
	switch strings.ToLower(scheme) {
	case "hf", "pypi":
		return name, nil
	case "ollama":
		if strings.Count(rest, "/") > 1 {
			return "", bad // another registry's host
		}
		return name, nil
	case "http", "https", "file":
		return "", bad
	}
	for _, host := range []string{"hf.co/", "huggingface.co/"} {
		if rest, ok := strings.CutPrefix(name, host); ok {
			return "hf:" + rest, nil
		}
	}
	switch strings.Count(name, "/") {
	case 0:
		return "ollama:" + name, nil
	case 1:
		if !hasScheme || !strings.Contains(scheme, ".") {
			return "hf:" + name, nil
		}
	}
	return "", bad
}

// pullUpdate is a line of a pull.
type pullUpdate struct {
	Status    string `json:"status"`
	Digest    string `json:"digest,omitempty"`
	Total     int64  `json:"total,omitempty"`
	Completed int64  `json:"completed,omitempty"`
}

// pullProgress turns the hub's progress into lines.
type pullProgress struct {
	mu   sync.Mutex
	bars []*pullBar
}

type pullBar struct {
	p           *pullProgress
	name        string
	total, done int64
	changed     bool
}

func (p *pullProgress) Start(name string, total int64) hub.Bar {
	p.mu.Lock()
	defer p.mu.Unlock()
	b := &pullBar{p: p, name: name, total: max(0, total), changed: true}
	p.bars = append(p.bars, b)
	return b
}

func (b *pullBar) Add(n int64) { b.change(func() { b.done += n }) }
func (b *pullBar) Set(n int64) { b.change(func() { b.done = n }) }
func (b *pullBar) Done(err error) {
	if err == nil {
		b.change(func() { b.done = max(b.done, b.total) })
	}
}

func (b *pullBar) change(f func()) {
	b.p.mu.Lock()
	f()
	b.changed = true
	b.p.mu.Unlock()
}

// changes are the lines for what moved since the last call.
func (p *pullProgress) changes() (out []pullUpdate) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, b := range p.bars {
		if b.changed {
			b.changed = false
			out = append(out, pullUpdate{Status: "pulling " + b.name, Digest: b.name, Total: b.total, Completed: b.done})
		}
	}
	return out
}

// maxPulls bounds the downloads at one time.
const maxPulls = 4

// pullModel downloads a model. The download ends when its client leaves; what
// arrived is kept, and the next pull goes on from there.
func (s *API) pullModel(w http.ResponseWriter, r *http.Request) error {
	var b nameRequest
	err := b.read(r)
	var ref string
	if err == nil {
		ref, err = RemoteRef(b.Model)
	}
	if err == nil && s.Hub == nil {
		err = fault.NotImplemented("models are not pulled by clients of this server")
	}
	if err != nil {
		return err
	}
	if s.pulls.Add(1) > maxPulls {
		s.pulls.Add(-1)
		return fault.TooMany(10*time.Second, "%d models are being pulled, as many as may", maxPulls)
	}
	defer s.pulls.Add(-1)
	e := s.Lines(w, r)
	streams := b.Stream == nil || *b.Stream
	err = s.pull(r.Context(), ref, func(u pullUpdate) error {
		if !streams {
			return nil
		}
		return e.Line(u)
	})
	switch {
	case err == nil && streams:
		_ = e.Line(pullUpdate{Status: "success"}) // a client that is gone is noticed by others
	case err == nil:
		wire.WriteJSON(w, http.StatusOK, pullUpdate{Status: "success"})
	default:
		if r.Context().Err() == nil {
			err = pullError(err)
		}
		return lineError(e, err)
	}
	return nil
}

// pullError is what a client is told when a model cannot be pulled.
func pullError(err error) error {
	var api *fault.Error
	switch {
	case errors.As(err, &api):
		return api
	case errors.Is(err, hub.ErrNotFound):
		return fault.NotFound("%s", fault.WithoutPaths(err.Error()))
	case errors.Is(err, hub.ErrNoSpace):
		return &fault.Error{Status: http.StatusInsufficientStorage, Type: "server_error", Code: "disk_full", Message: fault.WithoutPaths(err.Error())}
	}
	return &fault.Error{Status: http.StatusBadGateway, Type: "server_error", Code: "pull_failed", Message: fault.WithoutPaths(err.Error())}
}

func (s *API) pull(ctx context.Context, ref string, say func(pullUpdate) error) error {
	if err := say(pullUpdate{Status: "pulling manifest"}); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	p := &pullProgress{}
	o := *s.Hub
	o.Progress, o.Notify = p, nil
	done := make(chan error, 1)
	go func() {
		_, err := hub.Resolve(ctx, ref, o)
		done <- err
	}()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		var err error
		over := false
		select {
		case err = <-done:
			over = true
		case <-tick.C:
		}
		if err != nil {
			return err
		}
		for _, u := range p.changes() {
			if err := say(u); err != nil {
				cancel()
				if !over {
					<-done
				}
				return err
			}
		}
		if over {
			return nil
		}
	}
}

// delete removes what a client made, or a model's files. A model that was
// loaded on demand is unloaded then; those that the server was started with stay.
func (s *API) delete(w http.ResponseWriter, r *http.Request) error {
	var b nameRequest
	if err := b.read(r); err != nil {
		return err
	}
	if err := s.deleteModel(r, b.Model); err != nil {
		return err
	}
	w.WriteHeader(http.StatusOK)
	return nil
}

func (s *API) deleteModel(r *http.Request, name string) error {
	if s.created.find(name) != nil {
		found, err := s.created.drop(name, caller.Owner(r.Context()))
		if err == nil && !found {
			err = fault.ModelNotFound(name)
		}
		return err
	}
	if s.Models.Unalias(name) {
		return nil
	}
	if s.Hub == nil {
		return fault.NotImplemented("models are not deleted by clients of this server")
	}
	c, ok := s.Models.Find(name)
	if !ok {
		return fault.ModelNotFound(name)
	}
	for _, m := range s.Models.Loaded() {
		if m.Info().Name != c.Name {
			continue
		}
		if s.Models.Expiry(m).IsZero() {
			return &fault.Error{Status: http.StatusConflict, Type: "invalid_request_error", Message: "the model stays loaded, because the server was started with it or a client asked for that"}
		}
		loan, err := s.Models.Acquire(r.Context(), c.Name)
		if err != nil {
			return err
		}
		loan.Keep(0)
		loan.Release()
	}
	return s.remove(c.Name)
}

func (s *API) remove(name string) error {
	err := hub.Remove(name, *s.Hub)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, hub.ErrNotFound), errors.Is(err, os.ErrNotExist):
		return fault.ModelNotFound(name)
	}
	return fault.BadRequest("model", "%v", err)
}

// copyRequest is the body of POST /api/copy.
type copyRequest struct {
	Source      string `json:"source"`
	Destination string `json:"destination"`
}

// copy gives a model another name. With a folder for what clients make it
// is a created model that says nothing of its own, and outlives the server;
// without one the name holds until the server ends.
func (s *API) copy(w http.ResponseWriter, r *http.Request) error {
	var b copyRequest
	if err := wire.DecodeBody(r, &b); err != nil {
		return err
	}
	if b.Destination == "" || len(b.Destination) > 200 {
		return fault.BadRequest("destination", "expected a name of 1 to 200 bytes, found %d", len(b.Destination))
	}
	m, err := s.Model(r, b.Source)
	if err != nil {
		return err
	}
	defer m.Release()
	if s.created.dir == "" {
		err = s.Models.Alias(m.Model, b.Destination)
	} else {
		err = s.copyModel(r, m.Model, b.Destination)
	}
	if err != nil {
		return err
	}
	w.WriteHeader(http.StatusOK)
	return nil
}

func (s *API) copyModel(r *http.Request, m *run.Model, name string) error {
	v := &variant{Name: run.PlainName(name), From: m.Info().Name, Owner: caller.Owner(r.Context()), Modified: time.Now().UTC()}
	if err := checkModelName(v.Name); err != nil {
		return err
	}
	if s.Models.Taken(name) {
		return fault.BadRequest("destination", "a model of this server has the name %q already", name)
	}
	if from := s.created.find(m.Info().Name); m.Base() != nil && from != nil {
		v.inherit(from)
	}
	return s.created.put(v)
}
