package server

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"ridge/engine"
)

// zipped is a text as gzip has it.
func zipped(t testing.TB, text string) string {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// Bodies may be compressed, within the limits of those that are not.
func TestCompressedBodies(t *testing.T) {
	srv, _ := scripted(t, "abc", func(o *Options, _ *script) { o.MaxBodyBytes, o.BodyMemory = 100_000, 1<<20 })
	url := srv.URL + "/v1/chat/completions"
	for _, c := range []struct {
		body, coding string
		status       int
		says         string
	}{
		{zipped(t, `{`+hello+`}`), "gzip", 200, "abc"},
		{zipped(t, `{`+hello+`}`), "X-GZIP", 200, "abc"},
		{`{` + hello + `}`, "identity", 200, "abc"},
		{`{` + hello + `}`, "br", 415, "gzip"},
		{`{` + hello + `}`, "gzip, gzip", 415, "gzip"},
		{`{` + hello + `}`, "gzip", 400, "Content-Encoding"},
		{zipped(t, `{`+hello+`}`)[:40], "gzip", 400, "could not be read"},
		{"", "gzip", 400, ""},
		{zipped(t, `{`+hello+`,"user":"`+strings.Repeat("x", 10_000_000)+`"}`), "gzip", 413, "100000 bytes"},
	} {
		status, h, body := send(t, http.MethodPost, url, c.body, "Content-Encoding", c.coding)
		if status != c.status || !strings.Contains(string(body), c.says) {
			t.Errorf("%s %.20q: status %d, want %d: %s", c.coding, c.body, status, c.status, body)
		}
		if status == 415 && h.Get("Accept-Encoding") != "gzip" {
			t.Errorf("%s: what is accepted is not said: %v", c.coding, h)
		}
	}
}

// The bodies of all requests together have a bound: who comes when it is reached
// is asked to come back, whatever it has sent, and small requests are served.
func TestBodiesTogether(t *testing.T) {
	gate := make(chan struct{})
	srv, b := scripted(t, "abc", func(o *Options, b *script) {
		o.BodyMemory = 4 << 20
		b.hold = func(r *engine.Request, _ int) <-chan struct{} {
			if r.MaxTokens == 7 {
				return gate
			}
			return nil
		}
	})
	url := srv.URL + "/v1/chat/completions"
	large := func(n, max int) string {
		return fmt.Sprintf(`{%s,"max_tokens":%d,"user":%q}`, hello, max, strings.Repeat("x", n))
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(strings.Replace(large(2<<20, 7), `{`, `{"stream":true,`, 1)))
		if err != nil {
			t.Error(err)
			return
		}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Error(err)
			return
		}
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		if err != nil || !strings.Contains(string(b), "[DONE]") {
			t.Errorf("%v: %s", err, b)
		}
	})
	release := sync.OnceFunc(func() { close(gate) })
	defer release()
	waitFor(t, func() bool { return b.open.Load() == 1 })
	status, h, body := send(t, http.MethodPost, url, large(1<<20+1<<19, 1))
	if status != 429 || h.Get("Retry-After") == "" || !strings.Contains(string(body), "4194304 bytes") {
		t.Errorf("status %d, %v: %s", status, h, body)
	}
	for _, coding := range []string{"", "gzip"} { // of a length that is not known
		text := large(1<<20+1<<19, 1)
		if coding != "" {
			text = zipped(t, text)
		}
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, io.MultiReader(strings.NewReader(text)))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Encoding", coding)
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != 429 {
			t.Errorf("%q: status %d", coding, resp.StatusCode)
		}
	}
	if got := answered(t, url, `{`+hello+`}`); got != 200 {
		t.Errorf("a small request beside large ones: status %d", got)
	}
	release()
	wg.Wait()
	waitFor(t, func() bool { return answered(t, url, large(1<<20+1<<19, 1)) == 200 })
}

func answered(t testing.TB, url, body string) int {
	t.Helper()
	status, _, _ := send(t, http.MethodPost, url, body)
	return status
}

// waitFor waits until something is so.
func waitFor(t testing.TB, is func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it did not become so")
		}
	}
}

// A body that comes slowly ends by a limit on all of it, also one that nobody
// reads.
func TestSlowBodies(t *testing.T) {
	srv, _ := scripted(t, "abc", func(o *Options, _ *script) { o.BodyTimeout, o.Keys = 150*time.Millisecond, []string{"k"} })
	for path, c := range map[string]struct {
		header string
		status string
	}{
		"POST /v1/chat/completions": {"Authorization: Bearer k\r\n", "400"},
		"POST /v1/completions":      {"", "401"},
		"GET /health":               {"", "200"},
		"POST /nowhere":             {"Authorization: Bearer k\r\n", "404"},
	} {
		conn, err := net.Dial("tcp", srv.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if _, err := fmt.Fprintf(conn, "%s HTTP/1.1\r\nHost: localhost\r\nContent-Length: 200000\r\n%s\r\n{", path, c.header); err != nil {
			t.Fatal(err)
		}
		stop := make(chan struct{})
		go func() { // a byte now and then, never silent for the limit
			for {
				select {
				case <-stop:
					return
				case <-time.After(20 * time.Millisecond):
					_, _ = conn.Write([]byte(" ")) // the server may have closed it
				}
			}
		}()
		_ = conn.SetReadDeadline(time.Now().Add(30 * time.Second))
		b, err := io.ReadAll(conn)
		close(stop)
		if ne, ok := err.(net.Error); ok && ne.Timeout() {
			t.Errorf("%s: the connection stays open: %q", path, b)
		}
		if !strings.HasPrefix(string(b), "HTTP/1.1 "+c.status) {
			t.Errorf("%s: got %q, want status %s", path, b, c.status)
		}
	}
}

// syncBuffer is a log that may be read while it is written.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// What clients write is in no log, whatever is wrong with it, and no client is
// told where files lie.
func TestLogHasNoText(t *testing.T) {
	var log syncBuffer
	srv, b := scripted(t, "zebra", func(o *Options, _ *script) {
		o.Log = slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
		o.DataDir = t.TempDir()
	})
	const secret = "zebra"
	for _, body := range []string{
		`{"messages":"zebra"}`, `{"messages":[{"role":"zebra","content":"x"}]}`, `zebra`, `{"zebra`, `{"zebra":1,"zebra":2}`, `{"model":"zebra",` + hello + `}`,
		`{` + hello + `,"temperature":"zebra"}`, `{` + hello + `,"stop":{"zebra":1}}`, `{` + hello + `,"logit_bias":{"zebra":1}}`, `{` + hello + `,"reasoning_effort":"zebra"}`,
		`{` + hello + `,"response_format":{"type":"zebra"}}`, `{` + hello + `,"response_format":{"type":"json_schema","json_schema":{"schema":{"type":"zebra"}}}}`,
		`{` + hello + `,"structured_outputs":{"regex":"(zebra"}}`, `{` + hello + `,"grammar":"root ::= zebra"}`, `{` + hello + `,"tools":[{"type":"zebra"}]}`, `{` + hello + `,"tool_choice":"zebra"}`,
		`{` + hello + `,"chat_template":"{% zebra %}"}`, `{` + hello + `,"request_id":"zebra\u001b"}`, `{` + hello + `,"max_tokens":[{"zebra":1}]}`, `{` + hello + `,"stream_options":{"include_usage":"zebra"}}`,
		`{` + hello + `}`, `{"messages":[{"role":"user","content":[{"type":"zebra"}]}]}`, `{"prompt":"zebra"}`, `{"input":"zebra","model":"zebra"}`, `{"model":"fake","format":"zebra",` + hello + `}`,
		`{"max_tokens":1,"tool_choice":{"type":"zebra"},` + hello + `}`, `{"input_file_id":"zebra","endpoint":"zebra","completion_window":"zebra"}`, `{"model":"zebra","from":"zebra","template":"{{ zebra("}`,
	} {
		for _, path := range []string{"/v1/chat/completions", "/v1/completions", "/v1/messages", "/v1/responses", "/v1/embeddings", "/v1/rerank", "/v1/batches", "/api/chat", "/api/generate", "/api/create", "/api/show", "/api/pull", "/tokenize", "/infill", "/completion", "/apply-template"} {
			send(t, http.MethodPost, srv.URL+path, body, "X-Request-Deadline-Ms", "0")
		}
	}
	send(t, http.MethodPost, srv.URL+"/v1/completions", `{"prompt":"x"}`, "X-Request-Deadline-Ms", "zebra")
	b.fail = fmt.Errorf("engine: nobody foresaw %q at 'zebra'", secret)
	post(t, srv.URL+"/v1/chat/completions", `{`+hello+`}`, 500)
	text := log.String()
	for line := range strings.Lines(text) {
		if strings.Contains(line, secret) {
			t.Errorf("the log has a client's text: %s", line)
		}
	}
	if !strings.Contains(text, "reasoning_effort: expected none, minimal") || !strings.Contains(text, "nobody foresaw") {
		t.Errorf("the log does not say what is wrong: %s", text)
	}
}

// No answer has an absolute path of the server's machine.
func TestNoPaths(t *testing.T) {
	srv := tiny(t)
	for _, path := range []string{"/props", "/v1/models", "/api/tags", "/api/ps", "/ridge/status", "/slots", "/tokenizer_info"} {
		_, _, body := send(t, http.MethodGet, srv.URL+path, "")
		var v any
		if json.Unmarshal(body, &v) == nil && strings.Contains(string(body), "testdata/") {
			t.Errorf("%s: %s", path, body)
		}
	}
	_, _, body := send(t, http.MethodPost, srv.URL+"/api/show", `{"model":"tiny","verbose":true}`)
	_, _, refused := send(t, http.MethodPost, srv.URL+"/v1/chat/completions", `{"messages":[{"role":"user","content":"x"},{"role":"user","content":"x"},{"role":"tool","content":"x"}]}`)
	if strings.Contains(string(body), "testdata/") || strings.Contains(string(refused), "testdata/") {
		t.Errorf("%s\n%s", body, refused)
	}
}

// What large requests took goes back to the system when nobody asks for a while.
func TestMemoryGoesBack(t *testing.T) {
	srv, _ := scripted(t, "abc", func(o *Options, _ *script) { o.FreeAfter = 50 * time.Millisecond })
	held := func() uint64 { // what is neither used nor given back
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapIdle - m.HeapReleased
	}
	post(t, srv.URL+"/v1/chat/completions", fmt.Sprintf(`{%s,"user":%q}`, hello, strings.Repeat("x", 20<<20)), 200)
	waitFor(t, func() bool { return held() < 8<<20 })
}

// A prompt that cannot fit is refused by its length, before it is tokenized.
func TestHugePrompts(t *testing.T) {
	srv, b := scripted(t, "abc")
	text := strings.Repeat("word ", 80_000)
	for path, body := range map[string]string{
		"/v1/chat/completions": `{"messages":[{"role":"user","content":"` + text + `"}]}`,
		"/v1/completions":      `{"prompt":"` + text + `"}`,
		"/v1/responses":        `{"input":"` + text + `"}`,
		"/v1/messages":         `{"max_tokens":5,"messages":[{"role":"user","content":"` + text + `"}]}`,
		"/api/chat":            `{"model":"fake","messages":[{"role":"user","content":"` + text + `"}]}`,
		"/api/generate":        `{"model":"fake","prompt":"` + text + `"}`,
		"/v1/embeddings":       `{"input":"` + text + `"}`,
		"/infill":              `{"input_prefix":"` + text + `","input_suffix":"x"}`,
		"/completion":          `{"prompt":"` + text + `"}`,
	} {
		status, _, got := send(t, http.MethodPost, srv.URL+path, body)
		if status != 400 || !strings.Contains(string(got), "prompt is too long") || !strings.Contains(string(got), "it has at least so many") {
			t.Errorf("%s: status %d: %s", path, status, got)
		}
	}
	if n := len(b.requests); n != 0 {
		t.Errorf("%d prompts reached the engine", n)
	}
	ids := strings.TrimSuffix(strings.Repeat("257,", 1_800_000), ",") // <|im_end|>: text many times as long
	if status, _, got := send(t, http.MethodPost, srv.URL+"/detokenize", `{"tokens":[`+ids+`]}`); status != 400 || !strings.Contains(string(got), "bytes of text") {
		t.Errorf("detokenize: status %d: %s", status, got)
	}
	if status, _, got := send(t, http.MethodPost, srv.URL+"/tokenize", `{"content":"`+text+`","with_pieces":true}`); status != 400 || !strings.Contains(string(got), "with_pieces") {
		t.Errorf("tokenize: status %d: %.200s", status, got)
	}
}
