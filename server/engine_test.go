package server

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"

	"ridge/internal/testdata"
	"ridge/model"
)

// What the prompt's log-probabilities say of a token is what generation says
// of it, bit for bit.
func TestEchoAgreesWithGeneration(t *testing.T) {
	srv := tiny(t)
	ids := []int{16, 30, 48, 2, 101, 119, 55, 83}
	body := func(prompt []int, rest string) string {
		b, _ := json.Marshal(prompt)
		return `{"prompt":` + string(b) + `,"temperature":0,"max_tokens":1,"logprobs":20,` + rest + `}`
	}
	echo := post(t, srv.URL+"/v1/completions", body(ids, `"echo":true`), 200)
	for n := 1; n < len(ids); n++ {
		gen := post(t, srv.URL+"/v1/completions", body(ids[:n], `"echo":false`), 200)
		tops := echo.at("choices", 0, "logprobs", "top_logprobs", n).(map[string]any)
		best := gen.at("choices", 0, "logprobs", "top_logprobs", 0).(map[string]any)
		for name, p := range best {
			if q, ok := tops[name]; ok && q != p {
				t.Errorf("position %d, token %q: %v generating, %v in the prompt", n, name, p, q)
			}
		}
		if chosen := gen.at("choices", 0, "logprobs", "tokens", 0).(string); tops[chosen] != gen.at("choices", 0, "logprobs", "token_logprobs", 0) {
			t.Errorf("position %d: the token drawn has %v, in the prompt %v", n, gen.at("choices", 0, "logprobs", "token_logprobs", 0), tops[chosen])
		}
	}
}

// The same request gets the same answer whole, as a stream, alone, among
// others and with the prefix in the cache.
func TestSameAnswer(t *testing.T) {
	srv := tiny(t)
	text := func(stream bool) string {
		body := fmt.Sprintf(`{"prompt":"the cat and the","max_tokens":12,"temperature":0.8,"seed":5,"n":2,"stream":%v}`, stream)
		if !stream {
			o := post(t, srv.URL+"/v1/completions", body, 200)
			return fmt.Sprint(o.at("choices", 0, "text"), "|", o.at("choices", 1, "text"))
		}
		_, evs := sse(t, srv.URL+"/v1/completions", body)
		var texts [2]string
		for _, e := range evs[:len(evs)-1] {
			texts[int(e.at("choices", 0, "index").(float64))] += e.at("choices", 0, "text").(string)
		}
		return texts[0] + "|" + texts[1]
	}
	want := text(false)
	var wg sync.WaitGroup
	for i := range 12 {
		wg.Go(func() {
			if got := text(i%2 == 0); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
	wg.Wait()
}

// A grammar holds with a real engine.
func TestGrammarHolds(t *testing.T) {
	srv := tiny(t)
	for seed := range 5 {
		o := post(t, srv.URL+"/v1/completions", fmt.Sprintf(`{"prompt":"x","max_tokens":60,"temperature":1.5,"seed":%d,"structured_outputs":{"regex":"(ab|c){2,5}!"}}`, seed), 200)
		s := o.at("choices", 0, "text").(string)
		if trimmed := strings.TrimSuffix(s, "!"); trimmed == s || strings.Trim(strings.ReplaceAll(trimmed, "ab", "c"), "c") != "" {
			t.Errorf("got %q", s)
		}
		equal(t, "finish", o.at("choices", 0, "finish_reason"), "stop")
	}
}

func TestContextIsNeverCut(t *testing.T) {
	srv := tiny(t)
	o := post(t, srv.URL+"/v1/completions", `{"prompt":"`+strings.Repeat("a ", 300)+`"}`, 400)
	equal(t, "code", o.at("error", "code"), "context_length_exceeded")
	if m := o.at("error", "message").(string); !strings.Contains(m, "128") {
		t.Errorf("no counts in %q", m)
	}
	post(t, srv.URL+"/api/chat", `{"model":"tiny","messages":[{"role":"user","content":"`+strings.Repeat("a ", 300)+`"}]}`, 400)
	post(t, srv.URL+"/v1/messages", `{"max_tokens":5,"messages":[{"role":"user","content":"`+strings.Repeat("a ", 300)+`"}]}`, 400)
	post(t, srv.URL+"/v1/embeddings", `{"input":"`+strings.Repeat("a ", 300)+`"}`, 400)
	// An answer that reaches the end of the context says so.
	o = post(t, srv.URL+"/v1/completions", `{"prompt":"a a","max_tokens":1000,"ignore_eos":true,"temperature":0}`, 200)
	equal(t, "finish", o.at("choices", 0, "finish_reason"), "length")
	equal(t, "tokens", o.at("usage", "total_tokens"), 129)
}

// storm sends requests of all kinds, some of which leave, read slowly or are
// wrong, and wants the server idle and whole afterwards.
func storm(t *testing.T, srv *httptest.Server, clients, each int, seed uint64) {
	t.Helper()
	bodies := []struct{ path, body string }{
		{"/v1/completions", `{"prompt":"the cat","max_tokens":8,"n":2}`},
		{"/v1/completions", `{"prompt":["a","b","c"],"max_tokens":4,"logprobs":2,"echo":true}`},
		{"/v1/completions", `{"prompt":"the cat and","max_tokens":30,"stream":true,"stop":["e"]}`},
		{"/v1/completions", `{"prompt":"x","max_tokens":20,"grammar":"root ::= [a-z]+","stream":true}`},
		{"/v1/completions", `{"prompt":[[1,2,3]],"max_tokens":5,"use_beam_search":true,"best_of":3}`},
		{"/v1/completions", `{"prompt":"` + strings.Repeat("x", 500) + `"}`},
		{"/v1/embeddings", `{"input":["a","b"]}`},
		{"/api/generate", `{"model":"tiny","raw":true,"prompt":"ab","options":{"num_predict":10}}`},
		{"/v1/messages", `{"max_tokens":4,"messages":[{"role":"user","content":"a"}],"stream":true}`},
		{"/v1/chat/completions", `{"messages":[{"role":"user","content":"a"}],"max_tokens":1000}`},
		{"/v1/chat/completions", `{"messages":[{"role":"user"`},
		{"/metrics", ``}, {"/slots", ``},
	}
	var wg sync.WaitGroup
	for c := range clients {
		r := rand.New(rand.NewPCG(seed, uint64(c)))
		wg.Go(func() {
			for range each {
				b := bodies[r.IntN(len(bodies))]
				method := http.MethodPost
				if b.body == "" {
					method = http.MethodGet
				}
				req, err := http.NewRequest(method, srv.URL+b.path, strings.NewReader(b.body))
				if err != nil {
					t.Error(err)
					return
				}
				resp, err := http.DefaultClient.Do(req)
				if err != nil {
					t.Error(err)
					return
				}
				if r.IntN(4) == 0 { // leave in the middle
					_, _ = io.CopyN(io.Discard, resp.Body, int64(r.IntN(300)))
				} else {
					_, _ = io.Copy(io.Discard, resp.Body)
				}
				resp.Body.Close()
				if resp.StatusCode >= 500 && resp.StatusCode != 503 {
					t.Errorf("%s %s: status %d", b.path, b.body, resp.StatusCode)
				}
			}
		})
	}
	wg.Wait()
	http.DefaultClient.CloseIdleConnections()
	until(t, "all requests end", func() bool { return get(t, srv.URL+"/load", 200)["server_load"] == 0.0 })
}

func TestStorm(t *testing.T) {
	before := runtime.NumGoroutine()
	t.Run("storm", func(t *testing.T) {
		each := 15
		if testing.Short() {
			each = 5
		}
		storm(t, tiny(t), 8, each, 1)
	})
	until(t, "the goroutines end", func() bool { return runtime.NumGoroutine() <= before+2 })
}

// Real text through the whole way: template, tokens, engine, text, tools.
func TestRealModel(t *testing.T) {
	srv := serveFile(t, testdata.Model(t, "smollm2"))
	const ask = `"messages":[{"role":"user","content":"What is 2+2? Answer with one number."}],"temperature":0`
	warm(t, srv.URL, ask)
	c := post(t, srv.URL+"/v1/chat/completions", `{`+ask+`,"max_tokens":60,"response_format":{"type":"json_schema","json_schema":{"name":"n","schema":{"type":"object","properties":{"answer":{"type":"integer"}},"required":["answer"]},"strict":true}}}`, 200)
	var v struct{ Answer *int }
	if err := json.Unmarshal([]byte(c.at("choices", 0, "message", "content").(string)), &v); err != nil || v.Answer == nil {
		t.Errorf("structured output: %v: %s", err, c.at("choices", 0, "message", "content"))
	}
	tool := `"tools":[{"type":"function","function":{"name":"add","strict":true,"parameters":{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer"}},"required":["a","b"],"additionalProperties":false}}}]`
	d := post(t, srv.URL+"/v1/chat/completions", `{`+ask+`,"max_tokens":100,`+tool+`,"tool_choice":{"type":"function","function":{"name":"add"}}}`, 200)
	var args map[string]int
	if err := json.Unmarshal([]byte(fmt.Sprint(d.at("choices", 0, "message", "tool_calls", 0, "function", "arguments"))), &args); err != nil || len(args) != 2 {
		t.Errorf("tool call: %v: %v", err, d.at("choices", 0, "message"))
	}
	post(t, srv.URL+"/v1/chat/completions", `{`+ask+`,"max_tokens":30,`+tool+`}`, 200) // auto and strict
}

// What needs a trained model but no clever one, with the one that is always
// there.
func TestTrainedModel(t *testing.T) {
	srv := serveFile(t, testdata.Tiny)
	const ask = `"messages":[{"role":"user","content":"Tell me a story about a dog."}],"temperature":0`
	text := warm(t, srv.URL, ask)
	if len(strings.Fields(text)) < 5 {
		t.Errorf("answer: %q", text)
	}
	c := post(t, srv.URL+"/v1/chat/completions", `{`+ask+`,"max_tokens":40,"response_format":{"type":"json_schema","json_schema":{"name":"n","schema":{"enum":["a dog","a cat"]},"strict":true}}}`, 200)
	if s := c.at("choices", 0, "message", "content"); s != `"a dog"` && s != `"a cat"` {
		t.Errorf("structured output: %v", s)
	}
}

// serveFile serves the model at path.
func serveFile(t *testing.T, path string) *httptest.Server {
	o := model.DefaultOptions()
	o.MaxContext, o.KVBytes = 2048, 64<<20
	mm, err := model.Open(path, o)
	if err != nil {
		t.Fatal(err)
	}
	return serve(t, mm, path)
}

// warm asks twice, the second time with the prompt in the cache, and returns
// the answer.
func warm(t *testing.T, url, ask string) string {
	a := post(t, url+"/v1/chat/completions", `{`+ask+`,"max_tokens":20}`, 200)
	b := post(t, url+"/v1/chat/completions", `{`+ask+`,"max_tokens":20}`, 200)
	equal(t, "with a warm cache", b.at("choices", 0, "message", "content"), a.at("choices", 0, "message", "content"))
	if n := b.at("usage", "prompt_tokens_details", "cached_tokens").(float64); n < 16 {
		t.Errorf("%v cached tokens", n)
	}
	return fmt.Sprint(a.at("choices", 0, "message", "content"))
}
