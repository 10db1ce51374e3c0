package server

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"ridge/engine"
	"ridge/sched"
	"ridge/server/run"
)

// When the first token is due is said by the body, else by a header, else by the
// server, in every dialect.
func TestDeadline(t *testing.T) {
	srv, b := scripted(t, "x", func(o *Options, _ *script) { o.Deadline = time.Hour })
	due := func(path, body string, header ...string) time.Duration {
		t.Helper()
		post(t, srv.URL+path, body, 200, header...)
		d := b.last().Deadline
		if d.IsZero() {
			return 0
		}
		return time.Until(d).Round(time.Minute)
	}
	for path, body := range map[string]string{
		"/v1/chat/completions": `{` + hello + `%s}`, "/v1/completions": `{"prompt":"x"%s}`, "/completion": `{"prompt":"x"%s}`, "/v1/responses": `{"input":"x"%s}`,
		"/v1/messages": `{"max_tokens":5,` + hello + `%s}`, "/api/chat": `{"stream":false,` + hello + `%s}`, "/api/generate": `{"stream":false,"prompt":"x"%s}`,
	} {
		with := func(extra string) string { return strings.Replace(body, "%s", extra, 1) }
		header := []string{"X-Request-Deadline-Ms", "600000"}
		equal(t, path+": the server's", due(path, with("")), time.Hour)
		equal(t, path+": the header's", due(path, with(""), header...), 10*time.Minute)
		equal(t, path+": the body's", due(path, with(`,"deadline_ms":1200000`), header...), 20*time.Minute)
		equal(t, path+": none", due(path, with(`,"deadline_ms":0`), header...), time.Duration(0))
		for _, bad := range []string{`,"deadline_ms":-1`, `,"deadline_ms":"soon"`} {
			if _, _, a := send(t, http.MethodPost, srv.URL+path, with(bad)); !strings.Contains(string(a), "deadline_ms: expected") {
				t.Errorf("%s %s: got %s", path, bad, a)
			}
		}
		for _, bad := range []string{"-1", "soon", "1e3", "99999999999"} {
			status, _, a := send(t, http.MethodPost, srv.URL+path, with(""), "X-Request-Deadline-Ms", bad)
			if status != 400 || !strings.Contains(string(a), "X-Request-Deadline-Ms: expected") {
				t.Errorf("%s: %s: status %d: %s", path, bad, status, a)
			}
		}
	}
}

// A request that waits and cannot have its first token in time is dropped: a
// client is told so and may try again.
func TestShed(t *testing.T) {
	cfg := sched.Config{Split: true, MaxTokens: 16, MaxSeqs: 1, Shed: true, Cost: sched.NewCostModel()}
	for i := range 20 { // what it knows: every step takes a second
		n := 1 + i%16
		cfg.Cost.Observe(sched.Shape{Rows: n, Outputs: 1 + i%3, Context: int64(n * (n + i))}, time.Second)
	}
	_, srv := serveAs(t, openTiny(t, tinyPath, 1), run.ModelConfig{Path: tinyPath}, engine.Options{Sched: &cfg})
	ask := `{"prompt":"the cat","max_tokens":2,"ignore_eos":true`
	status, h, b := send(t, http.MethodPost, srv.URL+"/v1/completions", ask+`,"deadline_ms":1}`)
	if status != http.StatusServiceUnavailable || h.Get("Retry-After") == "" || !strings.Contains(string(b), `"deadline_exceeded"`) || !strings.Contains(string(b), `"param":"deadline_ms"`) {
		t.Errorf("status %d, Retry-After %q: %s", status, h.Get("Retry-After"), b)
	}
	for _, deadline := range []string{`,"deadline_ms":600000}`, `}`} {
		o := post(t, srv.URL+"/v1/completions", ask+deadline, 200)
		equal(t, "tokens of one in time", o.at("usage", "completion_tokens"), 2)
	}
	_, _, m := send(t, http.MethodGet, srv.URL+"/metrics", "")
	if want := `ridge_requests_shed_total{model="tiny"} 1` + "\n"; !strings.Contains(string(m), want) {
		t.Errorf("the metrics lack %s", want)
	}
	equal(t, "status", get(t, srv.URL+"/ridge/status", 200).at("models", 0, "shed"), 1)
}
