package server

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ridge/engine"
	"ridge/server/run"
)

// Whatever is wrong with a request is a 4xx that says what.
func TestBadRequests(t *testing.T) {
	srv, b := scripted(t, "x", func(o *Options, _ *script) { o.AllowTemplates, o.RefuseMedia = true, true })
	deep := strings.Repeat("[", 20000)
	many := `"` + strings.Repeat(`a","`, 70) + `a"`
	for _, c := range []struct {
		path, body string
		status     int
		says       string
	}{
		{"/v1/chat/completions", ``, 400, "empty body"},
		{"/v1/chat/completions", `[]`, 400, "JSON object"},
		{"/v1/chat/completions", `{`, 400, "not valid JSON"},
		{"/v1/chat/completions", `{"messages":` + deep, 400, "not valid JSON"},
		{"/v1/chat/completions", `{}`, 400, "messages"},
		{"/v1/chat/completions", `{"messages":"x"}`, 400, "messages"},
		{"/v1/chat/completions", `{"messages":[{"content":"x"}]}`, 400, "role"},
		{"/v1/chat/completions", `{"messages":[{"role":"king","content":"x"}]}`, 400, "king"},
		{"/v1/chat/completions", `{"messages":[{"role":"user","content":5}]}`, 400, "content"},
		{"/v1/chat/completions", `{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:..."}}]}]}`, 400, "images"},
		{"/v1/chat/completions", `{"messages":[{"role":"user","content":[{"type":"input_audio"}]}]}`, 400, "audio"},
		{"/v1/chat/completions", `{"messages":[{"role":"user","content":[{"type":"file"}]}]}`, 400, "files"},
		{"/v1/chat/completions", `{"model":"gpt-9",` + hello + `}`, 404, "gpt-9"},
		{"/v1/chat/completions", `{` + hello + `,"temperature":-1}`, 400, "temperature"},
		{"/v1/chat/completions", `{` + hello + `,"temperature":"hot"}`, 400, "temperature"},
		{"/v1/chat/completions", `{` + hello + `,"top_p":2}`, 400, "top_p"},
		{"/v1/chat/completions", `{` + hello + `,"max_tokens":0}`, 400, "max_tokens"},
		{"/v1/chat/completions", `{` + hello + `,"max_tokens":1.5}`, 400, "whole number"},
		{"/v1/chat/completions", `{` + hello + `,"n":0}`, 400, "n:"},
		{"/v1/chat/completions", `{` + hello + `,"n":1000000}`, 400, "n:"},
		{"/v1/chat/completions", `{` + hello + `,"stop":[` + many + `]}`, 400, "stop"},
		{"/v1/chat/completions", `{` + hello + `,"stop":5}`, 400, "list of strings"},
		{"/v1/chat/completions", `{` + hello + `,"top_logprobs":5}`, 400, "logprobs"},
		{"/v1/chat/completions", `{` + hello + `,"logprobs":true,"top_logprobs":50}`, 400, "top_logprobs"},
		{"/v1/chat/completions", `{` + hello + `,"logit_bias":{"-1":1}}`, 400, "logit_bias"},
		{"/v1/chat/completions", `{` + hello + `,"logit_bias":{"99999":1}}`, 400, "logit_bias"},
		{"/v1/chat/completions", `{` + hello + `,"response_format":{"type":"xml"}}`, 400, "xml"},
		{"/v1/chat/completions", `{` + hello + `,"response_format":{"type":"json_schema"}}`, 400, "schema"},
		{"/v1/chat/completions", `{` + hello + `,"response_format":{"type":"json_schema","json_schema":{"schema":{"type":"strong"}}}}`, 400, "strong"},
		{"/v1/chat/completions", `{` + hello + `,"structured_outputs":{"regex":"("}}`, 400, "regex"},
		{"/v1/chat/completions", `{` + hello + `,"grammar":"root ::= ("}`, 400, "gbnf"},
		{"/v1/chat/completions", `{` + hello + `,"guided_json":{},"guided_regex":"a"}`, 400, "at most one"},
		{"/v1/chat/completions", `{` + hello + `,"tools":[{"type":"retrieval"}],"tool_choice":{"type":"retrieval"}}`, 400, "retrieval"},
		{"/v1/chat/completions", `{` + hello + `,"tools":[{"type":"function","function":{}}]}`, 400, "name"},
		{"/v1/chat/completions", `{` + hello + `,"tool_choice":"required"}`, 400, "tool_choice"},
		{"/v1/chat/completions", `{` + hello + `,"tool_choice":"maybe"}`, 400, "maybe"},
		{"/v1/chat/completions", `{` + hello + `,"tools":[{"type":"function","function":{"name":"a"}}],"tool_choice":{"type":"function","function":{"name":"b"}}}`, 400, "tool_choice"},
		{"/v1/chat/completions", `{` + hello + `,"reasoning_effort":"huge"}`, 400, "reasoning_effort"},
		{"/v1/chat/completions", `{` + hello + `,"chat_template":"{% if %}"}`, 400, "chat_template"},
		{"/v1/chat/completions", `{` + hello + `,"chat_template":"{{ raise_exception('no') }}"}`, 400, "no"},
		{"/v1/chat/completions", `{` + hello + `,"modalities":["audio"]}`, 400, "modalities"},
		{"/v1/chat/completions", `{` + hello + `,"best_of":4,"stream":true}`, 400, "best_of"},
		{"/v1/chat/completions", `{` + hello + `,"continue_final_message":true}`, 400, "assistant"},
		{"/v1/completions", `{}`, 400, "prompt"},
		{"/v1/completions", `{"prompt":{}}`, 400, "token ids"},
		{"/v1/completions", `{"prompt":[]}`, 400, "token ids"},
		{"/v1/completions", `{"prompt":[[]]}`, 400, "token ids"},
		{"/v1/completions", `{"prompt":[1,-5]}`, 400, "token ids"},
		{"/v1/completions", `{"prompt":[[99999999]]}`, 400, "token ids"},
		{"/v1/completions", `{"prompt":"x","logprobs":500}`, 400, "logprobs"},
		{"/v1/completions", `{"prompt":"x","stop_token_ids":[-1]}`, 400, "stop_token_ids"},
		{"/v1/completions", `{"prompt":"x","bad_words":[""]}`, 400, "bad_words"},
		{"/v1/embeddings", `{}`, 400, "input"},
		{"/v1/embeddings", `{"input":"x","encoding_format":"hex"}`, 400, "hex"},
		{"/v1/embeddings", `{"input":"x","dimensions":99}`, 400, "dimensions"},
		{"/v1/responses", `{}`, 400, "input"},
		{"/v1/responses", `{"input":"x","background":true,"store":false}`, 400, "background"},
		{"/v1/responses", `{"input":"x","previous_response_id":"resp_none"}`, 404, "resp_none"},
		{"/v1/responses", `{"input":[{"type":"item_reference"}]}`, 400, "item_reference"},
		{"/v1/responses", `{"input":"x","tools":[{"type":"web_search"}],"tool_choice":{"type":"web_search"}}`, 400, "web_search"},
		{"/v1/rerank", `{}`, 400, "query"},
		{"/v1/rerank", `{"query":"x"}`, 400, "documents"},
		{"/v1/rerank", `{"query":"x","documents":["a"]}`, 400, "pooling"},
		{"/v1/rerank", `{"query":5,"documents":["a"]}`, 400, "text"},
		{"/v1/rerank", `{"query":"x","documents":[{"title":"a"}]}`, 400, "text"},
		{"/v1/rerank", `{"query":"x","documents":[""],"pooling":"mean"}`, 400, "empty"},
		{"/v1/rerank", `{"query":"x","documents":["a"],"pooling":"max"}`, 400, "max"},
		{"/v1/rerank", `{"query":"x","documents":["a"],"top_n":-1}`, 400, "top_n"},
		{"/v1/score", `{"text_1":"x"}`, 400, "text_2"},
		{"/v1/score", `{"text_1":["x","y"],"text_2":["a","b","c"]}`, 400, "text_2"},
		{"/v1/batches", `{}`, 501, "--data"},
		{"/v1/messages", `{"messages":[{"role":"user","content":"x"}]}`, 400, "max_tokens"},
		{"/v1/messages", `{"max_tokens":5,"messages":[]}`, 400, "messages"},
		{"/v1/messages", `{"max_tokens":5,"messages":[{"role":"user","content":[{"type":"image"}]}]}`, 400, "images"},
		{"/v1/messages", `{"max_tokens":5,"messages":[{"role":"robot","content":"x"}]}`, 400, "robot"},
		{"/v1/messages", `{"max_tokens":5,"model":"none","messages":[{"role":"user","content":"x"}]}`, 404, "none"},
		{"/v1/messages", `{"max_tokens":5,"messages":[{"role":"user","content":"x"}],"tool_choice":{"type":"tool","name":"b"},"tools":[{"name":"a","input_schema":{}}]}`, 400, "tool_choice"},
		{"/api/chat", `{"model":"none","messages":[{"role":"user","content":"x"}]}`, 404, "none"},
		{"/api/chat", `{"model":"fake","messages":[{"role":"user","content":"x","images":["aa"]}]}`, 400, "images"},
		{"/api/chat", `{"model":"fake","messages":[{"role":"user","content":"x"}],"format":"xml"}`, 400, "format"},
		{"/api/chat", `{"model":"fake","messages":[{"role":"user","content":"x"}],"keep_alive":"soon"}`, 400, "keep_alive"},
		{"/api/chat", `{"model":"fake","messages":[{"role":"user","content":"x"}],"think":"hard"}`, 400, "think"},
		{"/api/generate", `{"model":"fake","prompt":"x","template":"{{ .Prompt }}"}`, 400, "template"},
		{"/api/generate", `{"model":"fake","prompt":"x","options":{"temperature":"x"}}`, 400, "temperature"},
		{"/api/show", `{}`, 400, "model"},
		{"/api/create", `{}`, 400, "model"},
		{"/api/create", `{"model":"x","from":"fake"}`, 501, "--data"},
		{"/api/pull", `{"model":"/etc/passwd"}`, 400, "catalogue"},
		{"/api/pull", `{"model":"http://localhost/x"}`, 400, "catalogue"},
		{"/tokenize", `{}`, 400, "content"},
		{"/detokenize", `{"tokens":[-1]}`, 400, "token ids"},
		{"/infill", `{"prompt":["a","b"],"n":1000}`, 400, "n:"},
		{"/completion", `{}`, 400, "prompt"},
		{"/nowhere", `{}`, 404, "no such route"},
		{"/v1/models", `{}`, 405, "GET"},
	} {
		status, h, body := send(t, http.MethodPost, srv.URL+c.path, c.body)
		if status != c.status || !strings.Contains(string(body), c.says) || h.Get("X-Request-Id") == "" {
			t.Errorf("%s %.200s: status %d, want %d with %q: %s", c.path, c.body, status, c.status, c.says, body)
		}
		wrap := `{"error":{"message":`
		switch dialectOf(c.path) {
		case speaksOllama:
			wrap = `{"error":"`
		case speaksAnthropic:
			wrap = `{"type":"error","error":{"type":"`
		}
		if !strings.HasPrefix(string(body), wrap) {
			t.Errorf("%s: not in the form of its API: %s", c.path, body)
		}
	}
	if n := len(b.requests); n != 0 {
		t.Errorf("%d bad requests reached the engine", n)
	}
}

func TestEngineErrors(t *testing.T) {
	srv, b := scripted(t, "abc")
	for _, c := range []struct {
		err    error
		status int
		retry  bool
	}{
		{&engine.QueueFullError{Position: 10, RetryAfter: 1500 * time.Millisecond}, 429, true},
		{&engine.RequestError{Field: "tokens", Err: errors.New("bad")}, 400, false},
		{engine.ErrDraining, 503, true},
		{engine.ErrNoToken, 422, false},
		{engine.ErrDeadline, 503, true},
		{engine.ErrSlowReader, 408, false},
		{&engine.NonFiniteError{Where: "layer 3 of 12"}, 500, false},
		{errors.New("a secret path"), 500, false},
	} {
		for _, stream := range []string{"false", "true"} {
			b.fail = c.err
			status, h, body := send(t, http.MethodPost, srv.URL+"/v1/chat/completions", `{`+hello+`,"stream":`+stream+`}`)
			if status != c.status || (h.Get("Retry-After") != "") != c.retry || strings.Contains(string(body), "secret") {
				t.Errorf("%v: status %d, headers %v: %s", c.err, status, h, body)
			}
		}
	}
	if _, h, _ := send(t, http.MethodPost, srv.URL+"/v1/chat/completions", `{`+hello+`}`); h.Get("X-Should-Retry") != "false" {
		t.Error("clients should not try a 500 again")
	}
	b.fail, b.broke = nil, engine.ErrNoToken
	_, evs := sse(t, srv.URL+"/v1/chat/completions", `{`+hello+`,"stream":true}`)
	last := evs[len(evs)-1]
	if last == nil || last.at("error", "code") != "no_token_allowed" {
		t.Errorf("the stream ends with %v", last)
	}
	if names, evs := sse(t, srv.URL+"/v1/messages", `{"max_tokens":9,`+hello+`,"stream":true}`); names[len(names)-1] != "error" || evs[len(evs)-1].at("type") != "error" {
		t.Errorf("Anthropic's stream ends with %v", evs[len(evs)-1])
	}
	_, _, body := send(t, http.MethodPost, srv.URL+"/api/chat", `{"model":"fake",`+hello+`}`)
	if lines := strings.Split(strings.TrimSpace(string(body)), "\n"); !strings.HasPrefix(lines[len(lines)-1], `{"error":`) {
		t.Errorf("Ollama's stream ends with %s", lines[len(lines)-1])
	}
}

// A panic is a 500 with the request's id, and in the log.
func TestPanic(t *testing.T) {
	var log bytes.Buffer
	srv, b := scripted(t, "x", func(o *Options, _ *script) { o.Log = slog.New(slog.NewTextHandler(&log, nil)) })
	b.reply = func(*engine.Request, int) string { panic("oops") }
	status, h, body := send(t, http.MethodPost, srv.URL+"/v1/chat/completions", `{`+hello+`}`, "X-Request-Id", "my-id")
	b.open.Store(0)
	if status != 500 || h.Get("X-Request-Id") != "my-id" || !strings.Contains(string(body), "my-id") || strings.Contains(string(body), "oops") {
		t.Errorf("status %d: %s", status, body)
	}
	if !strings.Contains(log.String(), "oops") || !strings.Contains(log.String(), "my-id") {
		t.Error("the panic is not in the log")
	}
}

func TestKeys(t *testing.T) {
	file := filepath.Join(t.TempDir(), "keys")
	if err := os.WriteFile(file, []byte("sk-a name=alice requests=2\nsk-b name=bob\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	srv, b := scripted(t, "x", func(o *Options, _ *script) { o.KeyFile = file })
	url, body := srv.URL+"/v1/chat/completions", `{`+hello+`}`
	equal(t, "no key", post(t, url, body, 401).at("error", "code"), "invalid_api_key")
	equal(t, "wrong key", post(t, url, body, 401, "Authorization", "Bearer sk-c").at("error", "type"), "authentication_error")
	for range 2 {
		post(t, url, body, 200, "Authorization", "Bearer sk-a")
		equal(t, "tenant", b.last().Tenant, "alice")
	}
	status, h, _ := send(t, http.MethodPost, url, body, "Authorization", "Bearer sk-a")
	if status != 429 || h.Get("Retry-After") == "" {
		t.Errorf("the third request: status %d", status)
	}
	post(t, srv.URL+"/v1/messages", `{"max_tokens":5,`+hello+`}`, 200, "X-Api-Key", "sk-b")
	equal(t, "tenant", b.last().Tenant, "bob")
	equal(t, "health needs no key", get(t, srv.URL+"/health", 200).at("status"), "ok")
	equal(t, "models need one", get(t, srv.URL+"/v1/models", 401).at("error", "type"), "authentication_error")

	// What one key stored, another does not see.
	id := post(t, srv.URL+"/v1/responses", `{"input":"Hi"}`, 200, "X-Api-Key", "sk-b").at("id").(string)
	post(t, srv.URL+"/v1/responses", `{"input":"Hi","previous_response_id":"`+id+`"}`, 200, "X-Api-Key", "sk-b")
	if s, _, _ := send(t, http.MethodGet, srv.URL+"/v1/responses/"+id, "", "X-Api-Key", "sk-a"); s != 404 {
		t.Errorf("another key sees a response: %d", s)
	}
}

func TestHostAndOrigin(t *testing.T) {
	srv, _ := scripted(t, "x", func(o *Options, _ *script) {
		o.AllowHosts, o.AllowOrigins = []string{"models.example"}, []string{"https://app.example"}
	})
	for host, status := range map[string]int{"evil.example": 403, "localhost:99": 200, "models.example": 200, "127.0.0.1": 200, "[::1]:80": 200} {
		if got, _, body := send(t, http.MethodGet, srv.URL+"/health", "", "Host", host); got != status {
			t.Errorf("host %s: status %d: %s", host, got, body)
		}
	}
	for origin, status := range map[string]int{"https://evil.example": 403, "https://app.example": 200, "http://localhost:3000": 200, "null": 403, "vscode-webview://x": 200} {
		got, h, _ := send(t, http.MethodPost, srv.URL+"/v1/chat/completions", `{`+hello+`}`, "Origin", origin)
		if got != status || status == 200 && h.Get("Access-Control-Allow-Origin") != origin {
			t.Errorf("origin %s: status %d, %v", origin, got, h)
		}
	}
	got, h, _ := send(t, http.MethodOptions, srv.URL+"/v1/chat/completions", "", "Origin", "https://app.example", "Access-Control-Request-Method", "POST", "Access-Control-Request-Headers", "authorization, x-stainless-os")
	if got != 204 || h.Get("Access-Control-Allow-Headers") != "authorization, x-stainless-os" || !strings.Contains(h.Get("Access-Control-Allow-Methods"), "POST") {
		t.Errorf("preflight: status %d, %v", got, h)
	}
}

func TestBodyLimits(t *testing.T) {
	srv, _ := scripted(t, "x", func(o *Options, _ *script) { o.MaxBodyBytes, o.BodyTimeout = 1000, 200*time.Millisecond })
	o := post(t, srv.URL+"/v1/chat/completions", `{"messages":[{"role":"user","content":"`+strings.Repeat("a", 2000)+`"}]}`, 413)
	equal(t, "code", o.at("error", "code"), "request_too_large")
	// A body that does not come.
	c, err := net.Dial("tcp", srv.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprintf(c, "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{")
	_ = c.SetReadDeadline(time.Now().Add(patience))
	b, _ := io.ReadAll(c)
	if !strings.HasPrefix(string(b), "HTTP/1.1 400") {
		t.Errorf("got %q", b)
	}
}

// Reading slowly or long after the body is no reason to end a request.
func TestBodyTimeoutIsForTheBody(t *testing.T) {
	srv, _ := scripted(t, "abcdef", func(o *Options, b *script) { o.BodyTimeout, b.delay = 50*time.Millisecond, 30*time.Millisecond })
	o := post(t, srv.URL+"/v1/chat/completions", `{`+hello+`}`, 200)
	equal(t, "content", o.at("choices", 0, "message", "content"), "abcdef")
}

// A client that leaves ends its request at the engine.
func TestClientGone(t *testing.T) {
	for _, stream := range []string{"true", "false"} {
		srv, b := scripted(t, strings.Repeat("a", 1000), func(_ *Options, b *script) { b.hold = after(10) })
		ctx, cancel := context.WithCancel(context.Background())
		r, _ := http.NewRequestWithContext(ctx, http.MethodPost, srv.URL+"/v1/chat/completions", strings.NewReader(`{`+hello+`,"stream":`+stream+`}`))
		gone := make(chan struct{})
		go func() {
			defer close(gone)
			resp, err := http.DefaultClient.Do(r)
			if err != nil {
				return
			}
			defer resp.Body.Close()
			_, _ = io.ReadFull(resp.Body, make([]byte, 10)) // it leaves in the middle
			cancel()
		}()
		if stream == "false" {
			until(t, "the request is under way", func() bool { return b.open.Load() > 0 })
			cancel()
		}
		<-gone
		until(t, "the request of who has gone ends, stream "+stream, func() bool { return b.open.Load() == 0 })
	}
}

// after lets that many tokens of each answer come, and no more.
func after(n int) func(*engine.Request, int) <-chan struct{} {
	return func(_ *engine.Request, token int) <-chan struct{} {
		if token < n {
			return nil
		}
		return never
	}
}

func TestRequestTimeout(t *testing.T) {
	for limit := 50 * time.Millisecond; ; limit *= 4 {
		srv, _ := scripted(t, strings.Repeat("a", 1000), func(o *Options, b *script) { o.RequestTimeout, b.hold = limit, after(3) })
		if limit < 60*time.Millisecond {
			equal(t, "code", post(t, srv.URL+"/v1/chat/completions", `{`+hello+`}`, 504).at("error", "code"), "timeout")
		}
		status, _, b := send(t, http.MethodPost, srv.URL+"/v1/chat/completions", `{`+hello+`,"stream":true}`)
		if status == 504 && limit < patience {
			continue // the time was over before the first token came
		}
		equal(t, "status of a stream", status, 200)
		_, evs := eventsOf(t, b)
		equal(t, "code in a stream", evs[len(evs)-1].at("error", "code"), "timeout")
		return
	}
}

// A client's own limit of time counts from the first token of an answer and
// ends it when it has a line: it is never an error, however long the request
// waited. This is llama-server's t_max_predict_ms.
func TestTimeLimit(t *testing.T) {
	lines := strings.Repeat("aaaa\n", 200)
	srv, b := scripted(t, lines, func(_ *Options, b *script) { b.delay = 5 * time.Millisecond })
	ask := func(limit string) string {
		t.Helper()
		o := post(t, srv.URL+"/v1/chat/completions", `{`+hello+`,"t_max_predict_ms":`+limit+`}`, 200)
		equal(t, "finish", o.at("choices", 0, "finish_reason"), "length")
		return o.at("choices", 0, "message", "content").(string)
	}
	if s := ask("300"); len(s) < 5 || len(s) > 300 || !strings.HasPrefix(lines, s) {
		t.Errorf("%d tokens", len(s))
	}
	equal(t, "one line", ask("1"), "aaaa\n") // over before its end, and before the first token came
	_, evs := sse(t, srv.URL+"/v1/completions", `{"prompt":"x","stream":true,"t_max_predict_ms":1}`)
	equal(t, "finish of a stream", evs[len(evs)-2].at("choices", 0, "finish_reason"), "length")
	o := post(t, srv.URL+"/completion", `{"prompt":"x","t_max_predict_ms":1}`, 200)
	equal(t, "llama-server's own route", []any{o["stop_type"], o["content"]}, []any{"limit", "aaaa\n"})
	b.reply = func(*engine.Request, int) string { return "one line of any length" }
	o = post(t, srv.URL+"/v1/completions", `{"prompt":"x","max_tokens":50,"t_max_predict_ms":1}`, 200)
	equal(t, "without an end of a line", []any{o.at("choices", 0, "finish_reason"), o.at("choices", 0, "text")}, []any{"stop", "one line of any length"})
}

func TestPing(t *testing.T) {
	pinged := make(chan struct{})
	srv, _ := scripted(t, "a", func(o *Options, b *script) {
		b.queued = true
		o.Ping, b.hold = 20*time.Millisecond, func(*engine.Request, int) <-chan struct{} { return pinged }
	})
	resp, err := http.Post(srv.URL+"/v1/chat/completions", "application/json", strings.NewReader(`{`+hello+`,"stream":true}`))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body := bufio.NewReader(resp.Body)
	first, err := body.ReadString('\n')
	close(pinged) // now the answer may come
	rest, _ := io.ReadAll(body)
	before, _, answers := strings.Cut(first+string(rest), "data: {")
	if err != nil || first != ": ping\n" || !answers || strings.ReplaceAll(before, ": ping\n\n", "") != "" {
		t.Errorf("%v: got %.200s", err, first+string(rest))
	}
}

// Serve lets what runs come to its end.
func TestDrain(t *testing.T) {
	tok := byteTokenizer(t)
	b := &script{tok: tok, reply: func(*engine.Request, int) string { return "abcdefghij" }, delay: 20 * time.Millisecond}
	m := fakeModel(t, tok, b)
	s, err := New(Options{Models: []*run.Model{m}})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx, l, patience) }()
	url := "http://" + l.Addr().String()
	answered := make(chan object, 1)
	go func() {
		answered <- post(t, url+"/v1/chat/completions", `{`+hello+`}`, 200)
	}()
	until(t, "the request is under way", func() bool { return b.open.Load() > 0 })
	stop()
	equal(t, "answer", (<-answered).at("choices", 0, "message", "content"), "abcdefghij")
	if err := <-served; err != nil {
		t.Error(err)
	}
	rec := &recorder{header: http.Header{}}
	r, _ := http.NewRequest(http.MethodGet, "/ready", nil)
	s.handler.ServeHTTP(rec, r)
	if rec.status != 503 || rec.header.Get("Retry-After") == "" {
		t.Errorf("ready while draining: %d", rec.status)
	}
}

func TestMetrics(t *testing.T) {
	srv, _ := scripted(t, "abc")
	post(t, srv.URL+"/v1/chat/completions", `{`+hello+`}`, 200)
	post(t, srv.URL+"/v1/chat/completions", `{}`, 400)
	_, _, b := send(t, http.MethodGet, srv.URL+"/metrics", "")
	for _, want := range []string{
		`ridge_http_requests_total{route="POST /v1/chat/completions",status="400"} 1`, `ridge_generated_tokens_total{model="fake"} 3`,
		`vllm:generation_tokens_total{engine="0",model_name="fake"} 3`, `vllm:num_requests_waiting{engine="0",model_name="fake"} 0`,
		`vllm:num_requests_running{`, `vllm:kv_cache_usage_perc{`, `vllm:time_to_first_token_seconds_count{engine="0",model_name="fake"} 1`,
		`vllm:request_success_total{engine="0",finished_reason="stop",model_name="fake"} 1`, `vllm:cache_config_info{block_size="16"`, `vllm:inter_token_latency_seconds_count{engine="0",model_name="fake"} 2`,
		`ridge_model_info{`, `go_goroutines`,
	} {
		if !strings.Contains(string(b), want) {
			t.Errorf("no %s in\n%s", want, b)
		}
	}
}

func TestLog(t *testing.T) {
	var log bytes.Buffer
	srv, _ := scripted(t, "the answer", func(o *Options, _ *script) { o.Log = slog.New(slog.NewJSONHandler(&log, nil)) })
	post(t, srv.URL+"/v1/chat/completions", `{"messages":[{"role":"user","content":"the question"}]}`, 200, "X-Request-Id", "abc-1")
	srv.Close()
	s := log.String()
	for _, want := range []string{`"request":"abc-1"`, `"status":200`, `"model":"fake"`, `"tokens":10`, `"finish":"stop"`} {
		if !strings.Contains(s, want) {
			t.Errorf("no %s in %s", want, s)
		}
	}
	if strings.Contains(s, "the question") || strings.Contains(s, "the answer") {
		t.Error("the log has the prompt or the answer")
	}
}
