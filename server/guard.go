package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"ridge/internal/aside"
	"ridge/server/caller"
	"ridge/server/fault"
	"ridge/server/wire"
)

// watchedWriter sees what is answered.
type watchedWriter struct {
	http.ResponseWriter
	start  time.Time
	status int // 0 until the headers are written
	bytes  int64
	record *caller.Record
	leave  func() // called when the answer begins; nil for nothing
}

func (w *watchedWriter) WriteHeader(status int) {
	w.begin(status)
	w.ResponseWriter.WriteHeader(status)
}

func (w *watchedWriter) Write(b []byte) (int, error) {
	w.begin(http.StatusOK)
	n, err := w.ResponseWriter.Write(b)
	w.bytes += int64(n)
	return n, err
}

// begin adds what is known of the request when its answer begins.
func (w *watchedWriter) begin(status int) {
	if w.status != 0 {
		return
	}
	w.status = status
	if w.leave != nil {
		w.leave() // a client may take its time
	}
	wire.NoteRecord(w.Header(), w.record)
}

// Unwrap lets http.ResponseController see the writer below.
func (w *watchedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// guard is the way in: it watches, logs and recovers, and lets through what
// may pass.
func (s *Server) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		l := &caller.Record{ID: caller.CleanID(r.Header.Get("X-Request-Id")), Arrived: time.Now()}
		ctx, cancel := context.WithCancelCause(caller.WithRecord(r.Context(), l))
		defer cancel(nil)
		defer context.AfterFunc(s.cut, func() { cancel(context.Cause(s.cut)) })()
		if s.o.RequestTimeout > 0 {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, s.o.RequestTimeout)
			defer cancel()
		}
		ctx, span := s.traced(ctx, r)
		r = r.WithContext(ctx)
		ww := &watchedWriter{ResponseWriter: w, start: time.Now(), record: l}
		h := w.Header()
		h.Set("X-Request-Id", l.ID)
		h.Set("Request-Id", l.ID)
		h.Set("X-Content-Type-Options", "nosniff")
		s.metrics.inFlight.Inc()
		defer s.metrics.inFlight.Dec()
		defer func() { s.endTrace(span, r, ww.status, l) }()
		defer s.logRequest(r, ww, l)
		defer s.inside.Begin(r, l.ID)()
		defer s.recovered(ww, r, l)
		s.screen(ww, r, next)
	})
}

// recovered turns a panic into a 500 with the request's id.
func (s *Server) recovered(w *watchedWriter, r *http.Request, l *caller.Record) {
	p := recover()
	if p == nil {
		return
	}
	if err, ok := p.(error); ok && errors.Is(err, http.ErrAbortHandler) {
		l.Err = err
		panic(http.ErrAbortHandler) // itself: who is above compares
	}
	s.metrics.panics.Inc()
	s.log.Error("panic", "request", l.ID, "path", r.URL.Path, "panic", s.logged(fmt.Errorf("%v", p)), "stack", string(debug.Stack()))
	if w.status == 0 {
		writeError(w, r, &fault.Error{Status: http.StatusInternalServerError, Type: "server_error", Code: "internal_error", Message: "internal error; the server's log has more under the request id " + l.ID})
		return
	}
	l.Err = errors.New("panic")
	panic(http.ErrAbortHandler) // the client must not take what it got for all
}

func (s *Server) logRequest(r *http.Request, w *watchedWriter, l *caller.Record) {
	took := time.Since(w.start)
	if w.status == 0 {
		w.status = http.StatusOK
	}
	if errors.Is(l.Err, context.Canceled) {
		w.status = fault.StatusClientGone
		s.metrics.gone.Inc()
	}
	s.metrics.request(r.Pattern, w.status, took)
	s.inside.Done(r, l, w.status, took)
	level := slog.LevelInfo
	switch {
	case w.status >= 500:
		level = slog.LevelError
	case w.status >= 400:
		level = slog.LevelWarn
	case r.URL.Path == "/health" || r.URL.Path == "/metrics" || r.URL.Path == "/ready", r.Method == http.MethodGet && strings.HasPrefix(r.URL.Path, "/ridge/"):
		level = slog.LevelDebug
	}
	if !s.log.Enabled(r.Context(), level) {
		return
	}
	a := []slog.Attr{
		slog.String("request", l.ID), slog.String("method", r.Method), slog.String("path", r.URL.Path), slog.Int("status", w.status),
		slog.Float64("took_ms", wire.Milliseconds(took.Seconds())), slog.Int64("bytes", w.bytes), slog.String("client", r.RemoteAddr),
	}
	if l.Model != "" {
		a = append(a, slog.String("model", l.Model), slog.Int("prompt_tokens", l.Prompt), slog.Int("cached_tokens", l.Cached), slog.Int("known_tokens", l.Known), slog.Int("tokens", l.Tokens),
			slog.Float64("queue_ms", wire.Milliseconds(l.Queue.Seconds())), slog.Float64("first_token_ms", wire.Milliseconds(l.TTFT.Seconds())), slog.String("finish", strings.Join(l.Finishes, ",")), slog.Bool("stream", l.Stream))
	}
	if l.Key != "" {
		a = append(a, slog.String("key", l.Key))
	}
	if l.Truncated > 0 {
		a = append(a, slog.Int("truncated_tokens", l.Truncated))
	}
	if n := len(l.Ignored); n > 0 { // their names are the client's text
		a = append(a, slog.Int("ignored_fields", n))
	}
	if len(l.Left) > 0 {
		left := slices.Clone(l.Left)
		for i := range left {
			if !s.o.LogPrompts {
				left[i] = fault.Unquoted(left[i])
			}
		}
		a = append(a, slog.Any("left_out", left))
	}
	if l.Err != nil {
		a = append(a, slog.String("error", s.logged(l.Err)))
	}
	s.log.LogAttrs(r.Context(), level, "request", a...)
}

// logged is what the log has of an error: no text of clients, unless it has their
// prompts anyway.
func (s *Server) logged(err error) string {
	if s.o.LogPrompts {
		return err.Error()
	}
	return fault.LogText(err)
}

// screen checks origin, host and key, and bounds the body.
func (s *Server) screen(w *watchedWriter, r *http.Request, next http.Handler) {
	timed := s.boundTime(w, r)
	if !s.hostAllowed(r) {
		writeError(w, r, &fault.Error{Status: http.StatusForbidden, Type: "permission_error", Code: "host_not_allowed", Message: "the Host header names no host that this server answers for; start it with --allow-host to add one"})
		return
	}
	if origin := r.Header.Get("Origin"); origin != "" {
		if !s.originAllowed(origin, r) {
			writeError(w, r, &fault.Error{Status: http.StatusForbidden, Type: "permission_error", Code: "origin_not_allowed", Message: "pages of this origin may not use this server; start it with --allow-origin to let them"})
			return
		}
		cors(w.Header(), r, origin)
		if r.Method == http.MethodOptions && r.Header.Get("Access-Control-Request-Method") != "" {
			w.WriteHeader(http.StatusNoContent)
			return
		}
	}
	if err := readDeadline(r); err != nil {
		writeError(w, r, err)
		return
	}
	release, err := s.authorize(r)
	if err != nil {
		if err.Status == http.StatusUnauthorized {
			w.Header().Set("WWW-Authenticate", "Bearer")
		}
		writeError(w, r, err)
		return
	}
	defer release()
	done, e := s.takeBody(w, r, timed)
	defer s.idle.watch(r)() // after its body is let go
	defer done()
	if e != nil {
		s.turnAway(w, r, wire.BodyError(e))
		return
	}
	if n := r.ContentLength; n >= 0 && n <= smallBody {
		next.ServeHTTP(w, r)
		return
	}
	if generates(r.URL.Path) {
		caller.Note(r.Context(), func(l *caller.Record) { l.Fits = s.lib.Fits() })
	}
	_ = large.Run(r.Context(), func(ctx context.Context) error { // no error
		w.leave = func() { aside.Leave(ctx) }
		own := r.WithContext(ctx)
		defer func() { r.Pattern = own.Pattern }() // the log has it
		next.ServeHTTP(w, own)
		return nil
	})
}

// large is where bodies become plans that are not small: one half of the processors
// at most reads bodies, renders conversations and makes tokens of them.
var large = aside.NewLane(0)

// generates reports whether requests of a path go on from a prompt, all of it unless
// they say otherwise.
func generates(path string) bool {
	return slices.ContainsFunc([]string{"/completions", "/completion", "/responses", "/messages", "/infill", "/api/chat", "/api/generate"}, func(end string) bool { return strings.HasSuffix(path, end) })
}

// deadlineHeader is the field deadline_ms for clients that cannot add to a body.
const deadlineHeader = "X-Request-Deadline-Ms"

// readDeadline notes the deadline that a request's header names.
func readDeadline(r *http.Request) error {
	text := r.Header.Get(deadlineHeader)
	if text == "" {
		return nil
	}
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil || n < 0 {
		return fault.BadRequest(deadlineHeader, "expected milliseconds, 0 (none) or more, found %s", fault.Excerpt([]byte(text)))
	}
	caller.Note(r.Context(), func(l *caller.Record) { l.Deadline = new(time.Duration(n) * time.Millisecond) })
	return nil
}

// cors lets a page of an allowed origin use the server.
func cors(h http.Header, r *http.Request, origin string) {
	h.Set("Access-Control-Allow-Origin", origin)
	h.Add("Vary", "Origin")
	h.Set("Access-Control-Allow-Methods", "GET, POST, PUT, DELETE, HEAD, OPTIONS")
	h.Set("Access-Control-Max-Age", "600")
	h.Set("Access-Control-Expose-Headers", "X-Request-Id, X-Ridge-Unenforced, X-Ridge-Ignored, X-Ridge-Truncated, Retry-After, Retry-After-Ms")
	if asked := r.Header.Get("Access-Control-Request-Headers"); asked != "" {
		h.Set("Access-Control-Allow-Headers", asked)
	}
}

// hostAllowed guards against DNS rebinding: a page of a foreign site that
// makes its name point to this machine sends that name.
func (s *Server) hostAllowed(r *http.Request) bool {
	host := hostOnly(r.Host)
	if slices.Contains(s.o.AllowHosts, "*") || host == "" || net.ParseIP(host) != nil || isLocalName(host) {
		return true
	}
	if slices.ContainsFunc(s.o.AllowHosts, func(h string) bool { return strings.EqualFold(h, host) }) {
		return true
	}
	// A server that others can reach anyway answers to any name, unless the
	// request came in over the loopback device.
	local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if !ok {
		return false
	}
	ip := net.ParseIP(hostOnly(local.String()))
	return ip != nil && !ip.IsLoopback()
}

func hostOnly(hostport string) string {
	if h, _, err := net.SplitHostPort(hostport); err == nil {
		return h
	}
	return strings.Trim(hostport, "[]")
}

func isLocalName(host string) bool {
	h := strings.ToLower(strings.TrimSuffix(host, "."))
	return h == "localhost" || strings.HasSuffix(h, ".localhost") || strings.HasSuffix(h, ".local") || strings.HasSuffix(h, ".internal") || h == "host.docker.internal"
}

// originAllowed says whether pages of an origin may use the server: its own,
// local ones and those that were named.
func (s *Server) originAllowed(origin string, r *http.Request) bool {
	for _, o := range s.o.AllowOrigins {
		if o == "*" || strings.EqualFold(o, origin) {
			return true
		}
	}
	u, err := url.Parse(origin)
	if err != nil || u.Host == "" {
		return false
	}
	host := u.Hostname()
	ip := net.ParseIP(host)
	return u.Host == r.Host || isLocalName(host) || ip != nil && ip.IsLoopback() ||
		slices.Contains([]string{"app", "file", "tauri", "vscode-webview", "vscode-file"}, u.Scheme)
}
