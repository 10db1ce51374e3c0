package server

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"ridge/engine"
)

// quoted is a text as JSON has it.
func quoted(s string) string {
	b, _ := json.Marshal(s) // strings encode
	return string(b)
}

// endless is a template that goes on for as long as it may.
const endless = `{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}`

// Without leave no template of a client is run, however it comes.
func TestTemplatesNeedLeave(t *testing.T) {
	dir := t.TempDir()
	srv, b := scripted(t, "abc", func(o *Options, _ *script) { o.DataDir = dir })
	for path, body := range map[string]string{
		"/v1/chat/completions":        `{` + hello + `,"chat_template":"{{ messages }}"}`,
		"/tokenize":                   `{` + hello + `,"chat_template":"{{ messages }}"}`,
		"/apply-template":             `{` + hello + `,"chat_template":"{{ messages }}"}`,
		"/v1/chat/completions/render": `{` + hello + `,"chat_template":"{{ messages }}"}`,
		"/api/create":                 `{"model":"x","from":"fake","template":"{{ messages }}","stream":false}`,
	} {
		status, _, got := send(t, http.MethodPost, srv.URL+path, body)
		if status != 400 || !strings.Contains(string(got), "--allow-request-template") {
			t.Errorf("%s: status %d: %s", path, status, got)
		}
	}
	if n := len(b.requests); n != 0 {
		t.Errorf("%d requests reached the engine", n)
	}
	// A model that was created when there was leave, too.
	open, _ := scripted(t, "abc", func(o *Options, _ *script) { o.DataDir, o.AllowTemplates = dir, true })
	post(t, open.URL+"/api/create", `{"model":"own","from":"fake","template":"{% for m in messages %}[{{ m.content }}]{% endfor %}","stream":false}`, 200)
	equal(t, "prompt", post(t, open.URL+"/apply-template", `{"model":"own",`+hello+`}`, 200)["prompt"], "[Hi]")
	closed, _ := scripted(t, "abc", func(o *Options, _ *script) { o.DataDir = dir })
	if status, _, got := send(t, http.MethodPost, closed.URL+"/v1/chat/completions", `{"model":"own",`+hello+`}`); status != 400 || !strings.Contains(string(got), "--allow-request-template") {
		t.Errorf("status %d: %s", status, got)
	}
}

// Templates of clients have bounds for all requests together: a second each, some
// memory, one at a time, only for requests that are admitted, and none for
// clients that have left.
func TestTemplatesAreBounded(t *testing.T) {
	srv, b := scripted(t, "abc", func(o *Options, _ *script) { o.AllowTemplates = true })
	url := srv.URL + "/v1/chat/completions"
	for _, c := range [][2]string{
		{`{{ 'x' * 20000000 }}`, "16777216 bytes"},
		{`{% set ns = namespace(s='x') %}{% for i in range(100) %}{% set ns.s = ns.s + ns.s %}{% endfor %}{{ ns.s }}`, "16777216 bytes"},
		{strings.Repeat("x", 300<<10), "at most 262144 bytes"},
	} {
		status, _, got := send(t, http.MethodPost, url, `{`+hello+`,"chat_template":`+quoted(c[0])+`}`)
		if status != 400 || !strings.Contains(string(got), c[1]) {
			t.Errorf("%.60s: status %d: %s", c[0], status, got)
		}
	}
	// Others do not wait for them.
	var wg sync.WaitGroup
	ctx, leave := context.WithCancel(t.Context())
	slow := fmt.Sprintf(`{%s,"chat_template":%s}`, hello, quoted(strings.Repeat(endless, 50)))
	for range 8 {
		wg.Go(func() {
			r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(slow))
			if err != nil {
				t.Error(err)
				return
			}
			if resp, err := http.DefaultClient.Do(r); err == nil {
				resp.Body.Close()
			}
		})
	}
	time.Sleep(20 * time.Millisecond) // that some of them run; nothing below depends on it
	equal(t, "beside them", post(t, url, `{`+hello+`}`, 200).at("choices", 0, "message", "content"), "abc")
	leave()
	wg.Wait()
	// All have left: the place is free.
	post(t, url, `{`+hello+`,"chat_template":"{{ messages[0].content }}"}`, 200)
	// A full queue is told of before anything is rendered.
	b.full = &engine.QueueFullError{Position: 3, RetryAfter: time.Second}
	if status, _, got := send(t, http.MethodPost, url, slow); status != 429 {
		t.Errorf("a full queue: status %d: %s", status, got)
	}
}
