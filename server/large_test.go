package server

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"ridge/engine"
)

// Who announces a body that is not taken is told so before it has sent it, and who
// sends all of it first hears it then.
func TestTurnedAway(t *testing.T) {
	srv, _ := scripted(t, "abc", func(o *Options, _ *script) { o.MaxBodyBytes = 2 << 20 })
	const size = 3 << 20
	for name, sends := range map[string]int{"listens": 0, "sends first": size} {
		conn, err := net.Dial("tcp", srv.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		_ = conn.SetDeadline(time.Now().Add(30 * time.Second))
		text := fmt.Sprintf("POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s", size, strings.Repeat(" ", sends))
		if _, err := io.WriteString(conn, text); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		b, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode != 413 || !resp.Close || !strings.Contains(string(b), "2097152 bytes") {
			t.Errorf("%s: %v, status %d, close %v: %s", name, err, resp.StatusCode, resp.Close, b)
		}
	}
}

// A text that fits into no prompt is refused before the rest of its body is looked
// at, unless the request says that it may be cut.
func TestLongTexts(t *testing.T) {
	srv, _ := scripted(t, "abc")
	long := strings.Repeat("many words ", 60_000)
	const wrong = `"temperature":"x"` // what the body is told of that is read
	for _, c := range []struct{ path, body, says string }{
		{"/v1/completions", `{"prompt":"` + long + `",` + wrong + `}`, "prompt is too long"},
		{"/v1/chat/completions", `{"messages":[{"role":"user","content":[{"type":"text","text":"` + long + `"}]}],` + wrong + `}`, "prompt is too long"},
		{"/v1/completions", `{"prompt":"` + long + `","truncate_prompt_tokens":3,` + wrong + `}`, "temperature"},
		{"/v1/completions", `{"prompt":"` + strings.Repeat(`\u0061`, 60_000) + `",` + wrong + `}`, "temperature"},
		{"/v1/completions", `{"prompt":"x","user":"` + long + `",` + wrong + `}`, "temperature"},
		{"/tokenize", `{"content":"` + long + `","add_special":"x"}`, "add_special"},
	} {
		if status, _, b := send(t, http.MethodPost, srv.URL+c.path, c.body); status != 400 || !strings.Contains(string(b), c.says) {
			t.Errorf("%s %.60s: status %d, want 400 and %q: %s", c.path, c.body, status, c.says, b)
		}
	}
	if status, _, b := send(t, http.MethodPost, srv.URL+"/tokenize", `{"content":"`+strings.Repeat("x", 17<<20)+`"}`); status != 400 || !strings.Contains(string(b), "16777216 bytes") {
		t.Errorf("/tokenize: status %d: %s", status, b)
	}
}

// Requests with large bodies are read one after the other, answered together, and a
// fault in one is its own.
func TestLargeTogether(t *testing.T) {
	gate := make(chan struct{})
	srv, b := scripted(t, "abc", func(_ *Options, b *script) {
		b.hold = func(r *engine.Request, _ int) <-chan struct{} {
			if r.MaxTokens == 9 {
				panic("a defect")
			}
			return gate
		}
	})
	body := `{` + hello + `,"stream":true,"user":"` + strings.Repeat("x", 2*smallBody) + `"}`
	const n = 4
	answers := make(chan string, n)
	for range n {
		go func() {
			resp, err := http.Post(srv.URL+"/v1/chat/completions", "application/json", strings.NewReader(body))
			if err != nil {
				answers <- err.Error()
				return
			}
			defer resp.Body.Close()
			b, err := io.ReadAll(resp.Body)
			answers <- fmt.Sprint(err, string(b))
		}()
	}
	waitFor(t, func() bool { return b.open.Load() == n })
	if status, _, b := send(t, http.MethodPost, srv.URL+"/v1/chat/completions", strings.Replace(body, `"stream":true`, `"max_tokens":9`, 1)); status != 500 {
		t.Errorf("a panic: status %d: %s", status, b)
	}
	close(gate)
	for range n {
		if a := <-answers; !strings.HasPrefix(a, "<nil>") || !strings.Contains(a, "[DONE]") {
			t.Errorf("got %s", a)
		}
	}
	_, _, metrics := send(t, http.MethodGet, srv.URL+"/metrics", "")
	if !strings.Contains(string(metrics), `route="POST /v1/chat/completions"`) {
		t.Error("the route of large requests is not counted")
	}
}
