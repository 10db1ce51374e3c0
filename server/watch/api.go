package watch

import (
	"net/http"
	"strconv"
	"sync"
	"time"

	"ridge/hub"
	"ridge/server/fault"
	"ridge/server/run"
	"ridge/server/wire"
)

// API are the routes under /ridge/.
type API struct {
	*wire.Door
	Version  string          // of the program
	Draining func() bool     // whether the server takes no more requests
	Hub      *hub.Options    // where models are pulled; nil: not by clients
	Patterns func() []string // of all routes of the server
	Keys     func() []Key    // that the server has; nil for none
	Bodies   map[string]any  // what routes of other APIs read, by their patterns: values of the types

	started time.Time
	past    log
	live    sync.Map // id of a request → *sender
	sizes   sizes
	machine machines
	shapes  shapes
}

// New returns the API.
func New(d *wire.Door) *API {
	return &API{Door: d, Draining: func() bool { return false }, started: time.Now()}
}

// Routes are the API's, by their patterns.
func (s *API) Routes() map[string]wire.Handler {
	return map[string]wire.Handler{
		"GET /ridge/status": s.status, "GET /ridge/events": s.events, "GET /ridge/steps": s.steps,
		"GET /ridge/kv": s.kv, "GET /ridge/roofline": s.roofline, "GET /ridge/requests": s.requests, "GET /ridge/keys": s.keys,
		"GET /ridge/models": s.models, "GET /ridge/adapters": s.adapters, "GET /ridge/openapi.json": s.openapi,
		"POST /ridge/load": s.load, "POST /ridge/unload": s.unload,
	}
}

// model is the loaded model that a request's query names, the first one if it names
// none.
func (s *API) model(r *http.Request) (*run.Model, error) {
	name := r.URL.Query().Get("model")
	for _, m := range s.Models.Loaded() {
		if name == "" || m.Named(name) {
			return m, nil
		}
	}
	if name == "" {
		return nil, fault.NotFound("no model is loaded")
	}
	return nil, fault.ModelNotFound(name)
}

// last is the number in a query's field "last".
func last(r *http.Request, usual, most int) (int, error) {
	text := r.URL.Query().Get("last")
	if text == "" {
		return usual, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		return 0, fault.BadRequest("last", "expected a number of 1 or more, found %s", fault.Excerpt([]byte(text)))
	}
	return min(n, most), nil
}
