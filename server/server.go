package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/otel/trace"

	"ridge/hub"
	"ridge/server/adapters"
	"ridge/server/anthropic"
	"ridge/server/fault"
	"ridge/server/internal/keys"
	"ridge/server/llama"
	"ridge/server/ollama"
	"ridge/server/openai"
	"ridge/server/page"
	"ridge/server/run"
	"ridge/server/watch"
	"ridge/server/wire"
)

// What Options are made of lies in package run.
type (
	// Model is a model that is loaded and can answer.
	Model = run.Model
	// ModelConfig says which model is served, and how.
	ModelConfig = run.ModelConfig
	// Source is where models come from that are not loaded.
	Source = run.Source
)

// Options are the choices at starting a server. The zero value of a field
// means its default.
type Options struct {
	Models []*Model // loaded, and kept so; the first answers requests that name none
	Source *Source  // of other models; nil: there are none
	// Adapters are fine-tunes that requests may name in a model's place; nil: there are none.
	Adapters *adapters.Set
	Hub      *hub.Options // where models are pulled and removed; nil: not by clients

	Keys    []string // API keys; with KeyFile, none means that everybody may use the server
	KeyFile string   // file of keys, read again when it changes

	AllowOrigins []string // of pages that may use the server, beside local ones; "*" for all
	AllowHosts   []string // names in Host headers, beside local ones; "*" for all

	MaxBodyBytes   int64         // of a request; 0 means 32 MiB
	BodyMemory     int64         // for the bodies of all requests under way; 0 for any
	MaxFileBytes   int64         // of an uploaded file; 0 means 512 MiB
	BodyTimeout    time.Duration // for a request's body to arrive; 0 means a minute
	WriteTimeout   time.Duration // for a client to take a piece of an answer; 0 means a minute
	RequestTimeout time.Duration // for a whole request; 0 for any time
	FreeAfter      time.Duration // without requests, when memory is given back; 0 means ten seconds
	Deadline       time.Duration // of the first token of requests that name none; 0 for at no time
	Ping           time.Duration // in which a stream is never silent; 0 means 4 seconds

	DataDir string // where files, batches, responses and created models are kept; "": in memory, or not at all
	Version string // of the program

	Traces trace.TracerProvider // where spans of requests go; nil: nowhere

	// Watts is the power that the processor is taken to use, for the energy of
	// requests, where it does not count that itself. 0: nothing is said then.
	Watts float64

	RefuseMedia bool // pictures, sound and files that are no text are errors, not lines that say so

	AllowTemplates bool // clients may bring chat templates, in requests and with models that they create

	LogPrompts bool // write prompts and answers into the log
	Log        *slog.Logger
}

func (o *Options) complete() {
	for _, d := range []struct {
		v *time.Duration
		d time.Duration
	}{{&o.BodyTimeout, time.Minute}, {&o.WriteTimeout, time.Minute}, {&o.Ping, 4 * time.Second}, {&o.FreeAfter, 10 * time.Second}} {
		if *d.v == 0 {
			*d.v = d.d
		}
	}
	if o.MaxBodyBytes == 0 {
		o.MaxBodyBytes = 32 << 20
	}
	if o.MaxFileBytes == 0 {
		o.MaxFileBytes = 512 << 20
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Version == "" {
		o.Version = "unknown"
	}
}

// Server answers requests over HTTP. Its models belong to it: Close closes
// them.
type Server struct {
	o        Options
	log      *slog.Logger
	lib      *run.Library
	keys     *keys.Set
	metrics  *metrics
	tracer   trace.Tracer
	mux      *http.ServeMux
	handler  http.Handler
	draining atomic.Bool
	bodies   bodies
	idle     *idleness
	cut      context.Context // ends when requests under way must
	cutOff   context.CancelCauseFunc
	batches  *batches // nil without a folder for them
	started  time.Time
	inside   *watch.API
	patterns []string // of the routes
}

// New returns a server.
func New(o Options) (*Server, error) {
	o.complete()
	if len(o.Models) == 0 && o.Source == nil {
		return nil, errors.New("server: models: expected at least one, found none")
	}
	s := &Server{o: o, log: o.Log, started: time.Now(), tracer: tracer(o.Traces)}
	s.bodies.most, s.idle = o.BodyMemory, newIdle(o.FreeAfter)
	s.cut, s.cutOff = context.WithCancelCause(context.Background())
	created, err := ollama.OpenStore(s.folder("created"), s.log)
	if err != nil {
		return nil, err
	}
	s.lib = run.NewLibrary(o.Models, o.Source, created)
	if o.AllowTemplates {
		s.lib.AllowTemplates()
	}
	s.metrics = newMetrics(s.lib.Loaded)
	if o.Adapters != nil {
		s.lib.UseAdapters(o.Adapters)
		s.metrics.registry.MustRegister(&adapterCollector{o.Adapters})
	}
	s.keys, err = keys.New(o.Keys, o.KeyFile, func(err error) {
		if err != nil {
			s.log.Error("the key file cannot be used; the keys stay as they were", "error", err)
			return
		}
		s.log.Info("the key file was read again")
	})
	if err != nil {
		return nil, fmt.Errorf("server: %w", err)
	}
	s.mux = http.NewServeMux()
	if err := s.routes(created); err != nil {
		return nil, err
	}
	s.handler = s.guard(s.mux)
	if o.DataDir != "" {
		if s.batches, err = openBatches(s, o.DataDir); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// folder is a folder of the server's, "" if it has none.
func (s *Server) folder(name string) string {
	if s.o.DataDir == "" {
		return ""
	}
	return filepath.Join(s.o.DataDir, name)
}

// Handler returns the handler of all routes.
func (s *Server) Handler() http.Handler { return s.handler }

// handler answers in the dialect of the path, errors too.
type handler wire.Handler

func (h handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if err := h(w, r); err != nil {
		writeError(w, r, err)
	}
}

// routes fills the table of what the server answers to: its own routes and those
// of the dialects.
func (s *Server) routes(created *ollama.Store) error {
	d := &wire.Door{
		Runner: &run.Runner{Watch: s.metrics, Meter: run.NewMeter("/sys", s.o.Watts), Patience: s.o.Ping / 2, LogPrompts: s.o.LogPrompts, Log: s.log, Deadline: s.o.Deadline},
		Models: s.lib, WriteTimeout: s.o.WriteTimeout, RefuseMedia: s.o.RefuseMedia,
	}
	open, err := openai.New(d, s.folder("responses"), s.log)
	if err != nil {
		return err
	}
	extra, err := llama.New(d, s.o.Version, s.folder("sessions"))
	if err != nil {
		return err
	}
	oll := ollama.New(d, created)
	oll.Version, oll.Hub = s.o.Version, s.o.Hub
	inside := watch.New(d)
	inside.Version, inside.Draining, inside.Hub, inside.Keys = s.o.Version, s.draining.Load, s.o.Hub, s.keyList
	inside.Patterns = func() []string { return s.patterns }
	d.Reads, s.inside = inside.Reads, inside
	inside.Bodies = map[string]any{"POST /v1/batches": batchRequest{}}
	for _, bodies := range []map[string]any{openai.Bodies(), anthropic.Bodies(), ollama.Bodies(), llama.Bodies()} {
		maps.Copy(inside.Bodies, bodies)
	}
	for _, routes := range []map[string]wire.Handler{s.own(), inside.Routes(), open.Routes(), anthropic.New(d).Routes(), oll.Routes(), extra.Routes()} {
		for pattern, h := range routes {
			s.patterns = append(s.patterns, pattern)
			s.mux.Handle(pattern, handler(h))
		}
	}
	files := "GET " + page.Prefix + "{file}"
	s.patterns = append(s.patterns, "GET /metrics", files, "GET /{$}") // root answers the last one
	metricsHandler := promhttp.HandlerFor(s.metrics.registry, promhttp.HandlerOpts{ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelError), EnableOpenMetrics: true})
	s.mux.Handle("GET /metrics", stamped(metricsHandler, s.started))
	s.mux.HandleFunc(files, func(w http.ResponseWriter, r *http.Request) {
		if !page.Serve(w, r) {
			s.root(w, r)
		}
	})
	s.mux.HandleFunc("/", s.root)
	return nil
}

// own are the routes of no dialect, and those that run requests of others.
func (s *Server) own() map[string]wire.Handler {
	return map[string]wire.Handler{
		"POST /v1/files": s.postFile, "GET /v1/files": s.listFiles, "GET /v1/files/{id}": s.getFile,
		"GET /v1/files/{id}/content": s.fileContent, "DELETE /v1/files/{id}": s.deleteFile,
		"POST /v1/batches": s.postBatch, "GET /v1/batches": s.listBatches, "GET /v1/batches/{id}": s.getBatch, "POST /v1/batches/{id}/cancel": s.cancelBatch,
		"GET /health": s.health, "GET /v1/health": s.health, "GET /live": s.live, "GET /ready": s.ready, "GET /ping": s.live,
	}
}

// root answers for all other paths.
func (s *Server) root(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/" && (r.Method == http.MethodGet || r.Method == http.MethodHead) {
		w.Header().Add("Vary", "Accept")
		if page.Wanted(r) {
			page.Serve(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = w.Write([]byte("Ollama is running")) // exactly: clients compare
		return
	}
	for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodDelete} {
		if _, pattern := s.mux.Handler(&http.Request{Method: method, URL: r.URL, Host: r.Host}); pattern != "/" && r.URL.Path != "/" {
			w.Header().Set("Allow", method)
			writeError(w, r, &fault.Error{Status: http.StatusMethodNotAllowed, Type: "invalid_request_error", Code: "method_not_allowed", Message: "expected the method " + method + ", found " + r.Method})
			return
		}
	}
	for _, prefix := range missing {
		if r.URL.Path == prefix || strings.HasPrefix(r.URL.Path, prefix+"/") {
			writeError(w, r, fault.NotImplemented("%s %s is not offered by this server", r.Method, r.URL.Path))
			return
		}
	}
	writeError(w, r, fault.NotFound("no such route: %s %s", r.Method, r.URL.Path))
}

// missing are routes of OpenAI's API that this server does not have.
var missing = []string{"/v1/assistants", "/v1/audio", "/v1/chat/completions", "/v1/conversations", "/v1/evals", "/v1/fine_tuning", "/v1/images",
	"/v1/moderations", "/v1/realtime", "/v1/responses", "/v1/threads", "/v1/uploads", "/v1/vector_stores", "/v1/videos"}

// farewell is the time for requests that are cut off to tell their clients so.
const farewell = time.Second

// Serve answers on a listener until ctx ends. Then it takes no more requests,
// lets those that run finish for at most grace, and closes its models.
func (s *Server) Serve(ctx context.Context, l net.Listener, grace time.Duration) error {
	srv := &http.Server{
		Handler: s.handler, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
		ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
	failed := make(chan error, 1)
	go func() { failed <- srv.Serve(l) }()
	select {
	case err := <-failed:
		return errors.Join(fmt.Errorf("server: %w", err), s.Close())
	case <-ctx.Done():
	}
	s.log.Info("draining", "grace", grace)
	dctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	err := s.Drain(dctx)
	if e := srv.Shutdown(dctx); err == nil {
		err = e
	}
	if errors.Is(err, context.DeadlineExceeded) {
		s.log.Warn("requests were cut off: the time for them to finish is over")
		err = nil
		s.cutOff(fault.Unavailable(5*time.Second, "the server is shutting down: the answer was cut off"))
		fctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), farewell)
		defer cancel()
		_ = srv.Shutdown(fctx)
	}
	_ = srv.Close() // what is left has had its time
	return errors.Join(err, s.Close())
}

// Warm makes ready what the first request would have to wait for.
func (s *Server) Warm(ctx context.Context) error {
	m, err := s.lib.Acquire(ctx, "")
	if err != nil {
		var api *fault.Error
		if errors.As(err, &api) && api.Status == http.StatusBadRequest {
			return nil // no model is the first
		}
		return err
	}
	defer m.Release()
	m.Warm()
	s.inside.Look()
	return s.lib.CheckAdapters(ctx)
}

// Reload takes over what has changed: what the source says of its models, their
// adapters, and the file of keys. Requests under way go on as they began.
func (s *Server) Reload() {
	s.lib.Refresh()
	s.keys.Reload()
	if err := s.lib.CheckAdapters(s.cut); err != nil {
		s.log.Error("an adapter cannot be used", "error", err)
	}
}

// Drain refuses new requests, and returns when those under way are complete.
func (s *Server) Drain(ctx context.Context) error {
	s.draining.Store(true)
	if s.batches != nil {
		s.batches.stop()
	}
	return s.lib.Drain(ctx)
}

// Close closes the models. What still runs is aborted.
func (s *Server) Close() error {
	s.draining.Store(true)
	s.idle.timer.Stop()
	if s.batches != nil {
		s.batches.stop()
	}
	return s.lib.Close()
}
