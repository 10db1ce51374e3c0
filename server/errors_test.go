package server

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"ridge/engine"
	"ridge/server/run"
)

// An error about a field names it as the client wrote it, whatever Go types
// the body is put together from.
func TestErrorsNameTheField(t *testing.T) {
	srv, _ := scripted(t, "abc")
	for _, c := range []struct{ path, body, field, message string }{
		{"/v1/chat/completions", `"max_tokens":"abc"`, "max_tokens", `max_tokens: expected a whole number, found "abc"`},
		{"/v1/chat/completions", `"max_tokens":1.5`, "max_tokens", `max_tokens: expected a whole number, found 1.5`},
		{"/v1/chat/completions", `"temperature":"hot"`, "temperature", `temperature: expected a number in range, found string`},
		{"/v1/chat/completions", `"stream":"yes"`, "stream", `stream: expected true or false, found string`},
		{"/v1/chat/completions", `"stream_options":{"include_usage":5}`, "stream_options.include_usage", ``},
		{"/v1/chat/completions", `"stop":{"a":[1, 2]}`, "stop", `stop: expected a string or a list of strings, found {"a":[1,2]}`},
		{"/v1/chat/completions", `"seed":"x"`, "seed", `seed: expected a whole number, found "x"`},
		{"/v1/chat/completions", `"logit_bias":{"5":1e39}`, "logit_bias", `logit_bias: expected numbers of at most 1e+30, found 1e+39`},
		{"/v1/chat/completions", `"allowed_token_ids":[-1]`, "allowed_token_ids", ``},
		{"/v1/chat/completions", `"stop_token_ids":["` + strings.Repeat("é", 50) + `"]`, "stop_token_ids", ``},
		{"/v1/completions", `"prompt":"x","request_id":"a\u001b[2J"`, "request_id", `request_id: expected at most 128 letters, digits and -_.:/, found "a\x1b[2J"`},
		{"/v1/completions", `"prompt":{"é":1}`, "prompt", `prompt: expected a string, a list of strings, a list of token ids or a list of such lists, found {"é":1}`},
		{"/v1/completions", `"prompt":[["` + strings.Repeat("é", 50) + `"]]`, "prompt", `prompt: expected a string, a list of strings, a list of token ids or a list of such lists, found [["` + strings.Repeat("é", 18) + `…`},
		{"/v1/embeddings", `"input":[99999]`, "input", `input: expected token ids from 0 to 265, found 99999`},
		{"/v1/embeddings", `"input":"x","dimensions":"y"`, "dimensions", ``},
		{"/v1/rerank", `"query":5`, "query", `query: expected a string, or an object with a text, found 5`},
		{"/v1/rerank", `"query":"x","documents":["a",5]`, "documents", `documents: expected a string, or an object with a text, found 5`},
		{"/completion", `"prompt":"x","n_predict":"y"`, "n_predict", ``},
	} {
		body := `{"messages":[{"role":"user","content":"Hi"}],` + c.body + `}`
		o := post(t, srv.URL+c.path, body, 400)
		if got := o.at("error", "param"); got != c.field {
			t.Errorf("%s %s: expected the field %s, found %v", c.path, c.body, c.field, got)
		}
		if got := o.at("error", "message"); c.message != "" && got != c.message {
			t.Errorf("%s %s:\nexpected %s\nfound    %v", c.path, c.body, c.message, got)
		}
	}
	for _, c := range []struct{ path, body, message string }{
		{"/api/chat", `"options":{"temperature":"x"}`, `options.temperature: expected a number in range, found string`},
		{"/api/chat", `"options":{"seed":"x"}`, `options.seed: expected a whole number, found "x"`},
		{"/api/embed", `"input":7`, `input: expected a string, a list of strings, a list of token ids or a list of such lists, found 7`},
	} {
		o := post(t, srv.URL+c.path, `{"model":"fake",`+c.body+`}`, 400)
		equal(t, c.body, o.at("error"), c.message)
	}
	o := post(t, srv.URL+"/v1/messages", `{"max_tokens":5,"top_k":[],`+hello+`}`, 400)
	equal(t, "top_k", o.at("error", "message"), "top_k: expected a whole number, found []")
	if status, _, b := send(t, http.MethodGet, srv.URL+"/v1/messages", ""); status != 405 || !strings.Contains(string(b), `"type":"invalid_request_error"`) {
		t.Errorf("a wrong method: status %d: %s", status, b)
	}
}

// A prompt that does not fit is an error that clients of all APIs know, with
// the field that has the prompt.
func TestContextErrors(t *testing.T) {
	srv, b := scripted(t, "abc")
	b.fail = &engine.ContextError{Tokens: 5030, Context: 4096}
	for path, field := range map[string]string{
		"/v1/chat/completions": "messages", "/v1/completions": "prompt", "/v1/responses": "input", "/v1/embeddings": "input", "/completion": "prompt",
	} {
		body := `{"` + field + `":"x"}`
		if field == "messages" {
			body = `{` + hello + `}`
		}
		o := post(t, srv.URL+path, body, 400)
		equal(t, path, o.at("error", "param"), field)
		equal(t, path, o.at("error", "code"), "context_length_exceeded")
		for _, words := range []string{"prompt is too long: 5030 tokens > 4096 maximum", "This model's maximum context length is 4096 tokens"} {
			if !strings.Contains(o.at("error", "message").(string), words) {
				t.Errorf("%s: %q is not in %v", path, words, o.at("error", "message"))
			}
		}
	}
}

// A sign of life that comes before the first token takes nothing from the
// stream that follows.
func TestStreamAfterPing(t *testing.T) {
	srv, _ := scripted(t, "abc", func(o *Options, b *script) { o.Ping, b.delay = 5*time.Millisecond, 50*time.Millisecond })
	_, evs := sse(t, srv.URL+"/v1/chat/completions", `{`+hello+`,"stream":true,"n":2}`)
	for i := range 2 {
		equal(t, "role", evs[i].at("choices", 0, "delta", "role"), "assistant")
		equal(t, "choice", evs[i].at("choices", 0, "index"), i)
	}
	names, _ := sse(t, srv.URL+"/v1/messages", `{"max_tokens":5,"stream":true,`+hello+`}`)
	equal(t, "Anthropic's first event", names[0], "message_start")
	names, _ = sse(t, srv.URL+"/v1/responses", `{"input":"Hi","stream":true}`)
	equal(t, "the first event of a response", names[0], "response.created")
}

// What a client asks to know of the prompt is in streams too.
func TestStreamPrompt(t *testing.T) {
	srv, b := scripted(t, "abc")
	_, evs := sse(t, srv.URL+"/v1/chat/completions", `{`+hello+`,"stream":true,"return_token_ids":true,"prompt_logprobs":1,"stream_options":{"include_usage":true,"continuous_usage_stats":true}}`)
	n := len(b.last().Tokens)
	equal(t, "ids of the prompt", len(evs[0].at("prompt_token_ids").([]any)), n)
	equal(t, "log-probabilities of the prompt", len(evs[0].at("prompt_logprobs").([]any)), n)
	equal(t, "usage of the first chunk", evs[0].at("usage", "total_tokens"), n)
	if evs[1].at("prompt_token_ids") != nil {
		t.Error("the prompt comes twice")
	}
	_, evs = sse(t, srv.URL+"/v1/completions", `{"prompt":"xyz","stream":true,"return_token_ids":true,"prompt_logprobs":1,"n":2}`)
	for i := range 2 {
		equal(t, "ids of the prompt", len(evs[i].at("choices", 0, "prompt_token_ids").([]any)), 3)
		equal(t, "log-probabilities of the prompt", len(evs[i].at("choices", 0, "prompt_logprobs").([]any)), 3)
	}
}

// Tokens can be named by their ids, and llama-server's log-probabilities have
// them always.
func TestTokenIDsInLogprobs(t *testing.T) {
	srv, _ := scripted(t, "ab")
	o := post(t, srv.URL+"/v1/chat/completions", `{`+hello+`,"logprobs":true,"top_logprobs":1,"return_tokens_as_token_ids":true}`, 200)
	equal(t, "token", o.at("choices", 0, "logprobs", "content", 0, "token"), "token_id:97")
	if name := o.at("choices", 0, "logprobs", "content", 0, "top_logprobs", 0, "token").(string); !strings.HasPrefix(name, "token_id:") {
		t.Errorf("the most probable token is named %s", name)
	}
	o = post(t, srv.URL+"/completion", `{"prompt":"x","n_probs":1}`, 200)
	equal(t, "id", o.at("completion_probabilities", 1, "id"), 98)
	equal(t, "token", o.at("completion_probabilities", 1, "token"), "b")
	_, evs := sse(t, srv.URL+"/completion", `{"prompt":"x","n_probs":1,"stream":true}`)
	equal(t, "id in a stream", evs[0].at("completion_probabilities", 0, "id"), 97)
}

// -1 is a random seed, other negative ones are seeds.
func TestNegativeSeeds(t *testing.T) {
	srv, b := scripted(t, "x")
	for range 2 {
		post(t, srv.URL+"/v1/chat/completions", `{`+hello+`,"seed":-5}`, 200)
		equal(t, "seed", b.last().Sampling.Seed, uint64(1<<64-5))
	}
	post(t, srv.URL+"/api/chat", `{"model":"fake",`+hello+`,"stream":false,"options":{"seed":-1}}`, 200)
	if b.last().Sampling.Seed == 1<<64-1 {
		t.Error("the seed -1 is not random")
	}
}

// A stream that is cut off when the server's time to end is over says why.
func TestDrainCutsOff(t *testing.T) {
	tok := byteTokenizer(t)
	b := &script{tok: tok, reply: func(*engine.Request, int) string { return strings.Repeat("a", 3000) }, delay: 20 * time.Millisecond}
	s, err := New(Options{Models: []*run.Model{fakeModel(t, tok, b)}})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx, l, time.Millisecond) }()
	r, err := http.Post("http://"+l.Addr().String()+"/v1/chat/completions", "application/json", strings.NewReader(`{`+hello+`,"stream":true}`))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	stop()
	rest, err := io.ReadAll(r.Body)
	if err != nil || !strings.HasSuffix(string(rest), `data: {"error":{"message":"the server is shutting down: the answer was cut off","type":"unavailable_error","param":null,"code":503}}`+"\n\n") {
		t.Errorf("%v: the stream ends with %s", err, rest[max(0, len(rest)-200):])
	}
	if err := <-served; err != nil {
		t.Error(err)
	}
}

// What is asked and answered is in the log if somebody wants it there, however it
// is answered.
func TestLogPrompts(t *testing.T) {
	for _, wanted := range []bool{true, false} {
		var log bytes.Buffer
		srv, _ := scripted(t, "answer<tool_call>{\"name\":\"f\",\"arguments\":{\"a\":\"wombat\"}}</tool_call>", func(o *Options, _ *script) {
			o.Log, o.LogPrompts = slog.New(slog.NewJSONHandler(&log, nil)), wanted
		})
		for _, c := range []struct{ path, body string }{
			{"/v1/chat/completions", hello}, {"/v1/chat/completions", hello + `,"stream":true`}, {"/v1/completions", `"prompt":"Hi","max_tokens":99`},
			{"/v1/completions", `"prompt":[72,105],"stream":true,"max_tokens":99`}, {"/v1/messages", hello + `,"max_tokens":99,"stream":true`}, {"/api/chat", hello},
			{"/api/generate", `"prompt":"Hi"`}, {"/v1/responses", `"input":"Hi"`}, {"/completion", `"prompt":"Hi"`},
		} {
			log.Reset()
			send(t, http.MethodPost, srv.URL+c.path, `{"model":"fake",`+c.body+`}`)
			for _, text := range []string{"Hi", "answer", "wombat"} {
				if strings.Contains(strings.ReplaceAll(log.String(), `"msg":"answer"`, ""), text) != wanted {
					t.Errorf("%s {%s}: %q in the log: expected %v: %s", c.path, c.body, text, wanted, log.String())
				}
			}
		}
	}
}

// A route that other servers have and this one lacks is a 501, one that nobody has
// a 404.
func TestMissingRoutes(t *testing.T) {
	srv, _ := scripted(t, "abc")
	for route, want := range map[string]int{
		"POST /v1/moderations": 501, "POST /v1/audio/speech": 501, "POST /v1/images/generations": 501, "GET /v1/chat/completions/chatcmpl-1": 501,
		"POST /v1/responses/resp_1/steer": 501, "GET /v1/chat/completions": 405, "POST /v1/audiobook": 404, "POST /v1/nothing": 404,
	} {
		method, path, _ := strings.Cut(route, " ")
		status, h, b := send(t, method, srv.URL+path, "")
		if status != want || status == 501 && (h.Get("X-Should-Retry") != "false" || !strings.Contains(string(b), route+" is not offered")) {
			t.Errorf("%s: status %d, expected %d: %s", route, status, want, b)
		}
	}
}

// Routes that clients look for with another base address, or in another API.
func TestBorrowedRoutes(t *testing.T) {
	srv, b := scripted(t, "abc")
	equal(t, "chat", post(t, srv.URL+"/chat/completions", `{`+hello+`}`, 200).at("object"), "chat.completion")
	equal(t, "completion", post(t, srv.URL+"/completions", `{"prompt":"x"}`, 200).at("content"), "abc") // llama-server's own form
	o := get(t, srv.URL+"/models", 200)
	equal(t, "for Anthropic's clients", []any{o.at("data", 0, "type"), o.at("data", 0, "display_name"), o.at("data", 0, "created_at"), o.at("has_more"), o.at("first_id"), o.at("last_id")},
		[]any{"model", "fake", "2001-09-09T01:46:40Z", false, "fake", "fake"})
	post(t, srv.URL+"/v1/responses", `{"input":"Hi"}`, 200)
	equal(t, "tokens of the input", post(t, srv.URL+"/v1/responses/input_tokens", `{"input":"Hi"}`, 200).at("input_tokens"), len(b.last().Tokens))
}

// What is wrong with a grammar is told with the field that has it.
func TestGrammarFields(t *testing.T) {
	srv, _ := scripted(t, "abc")
	bad := `{"type":"bogus"}`
	tool := `"tools":[{"type":"function","function":{"name":"f","strict":true,"parameters":` + bad + `}}],"tool_choice":"required"`
	loose := `"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object"}}}]`
	for _, c := range []struct{ path, body, field string }{
		{"/v1/chat/completions", `"response_format":{"type":"json_schema","json_schema":{"schema":` + bad + `}}`, "response_format"},
		{"/v1/chat/completions", `"response_format":{"type":"json_schema","json_schema":{"schema":` + bad + `}},` + loose, "response_format"},
		{"/v1/chat/completions", `"structured_outputs":{"json":` + bad + `}`, "structured_outputs.json"},
		{"/v1/chat/completions", `"structured_outputs":{"regex":"(("}`, "structured_outputs.regex"},
		{"/v1/chat/completions", `"structured_outputs":{"choice":[]}`, "structured_outputs.choice"},
		{"/v1/chat/completions", `"guided_json":"{\"type\":\"bogus\"}"`, "guided_json"},
		{"/v1/chat/completions", `"grammar":"root ::= x","jump_ahead":false`, "grammar"},
		{"/v1/chat/completions", `"guided_regex":"a","guided_choice":["b"]`, "guided_choice"},
		{"/v1/chat/completions", tool, "tools"},
		{"/v1/responses", `"input":"x","text":{"format":{"type":"json_schema","name":"n","schema":` + bad + `}}`, "text.format"},
		{"/completion", `"prompt":"x","json_schema":` + bad, "json_schema"},
	} {
		o := post(t, srv.URL+c.path, `{`+hello+`,`+c.body+`}`, 400)
		equal(t, c.body, o.at("error", "param"), c.field)
	}
	o := post(t, srv.URL+"/api/chat", `{"model":"fake",`+hello+`,"format":`+bad+`}`, 400)
	if !strings.HasPrefix(o.at("error").(string), "format: ") {
		t.Errorf("Ollama's format: %v", o)
	}
	o = post(t, srv.URL+"/v1/messages", `{"max_tokens":9,`+hello+`,"output_config":{"format":{"type":"json_schema","schema":`+bad+`}}}`, 400)
	if !strings.HasPrefix(o.at("error", "message").(string), "output_config.format: ") {
		t.Errorf("Anthropic's output_config: %v", o)
	}
}

// A model's quantization is told from its file if the name says nothing.
func TestQuantOfFile(t *testing.T) {
	srv := tiny(t)
	equal(t, "quantization", get(t, srv.URL+"/api/tags", 200).at("models", 0, "details", "quantization_level"), "F32")
}

// Before the least number of tokens a stop string ends nothing.
func TestMinTokensAndStop(t *testing.T) {
	srv, b := scripted(t, "abcabcabc")
	o := post(t, srv.URL+"/v1/completions", `{"prompt":"x","stop":["bc"],"min_tokens":4,"max_tokens":20,"request_id":"mine-1"}`, 200)
	equal(t, "text", o.at("choices", 0, "text"), "abca")
	equal(t, "reason", o.at("choices", 0, "stop_reason"), "bc")
	equal(t, "id", b.last().ID, "mine-1")
	_, evs := sse(t, srv.URL+"/v1/completions", `{"prompt":"x","stop":["bc"],"max_tokens":20,"stream":true}`)
	equal(t, "without it", evs[0].at("choices", 0, "text"), "a")
}

// Reasoning is left out, or has its newer name too, as the client wants it.
func TestReasoningNames(t *testing.T) {
	srv, _ := scripted(t, "<think>so</think>yes")
	for _, c := range []struct{ body, old, name string }{{``, "so", ""}, {`,"include_reasoning":true`, "so", "so"}, {`,"include_reasoning":false`, "", ""}} {
		text := func(v any) string { s, _ := v.(string); return s }
		m := post(t, srv.URL+"/v1/chat/completions", `{`+hello+c.body+`}`, 200)
		got := []any{text(m.at("choices", 0, "message", "reasoning_content")), text(m.at("choices", 0, "message", "reasoning")), m.at("choices", 0, "message", "content")}
		equal(t, c.body, got, []any{c.old, c.name, "yes"})
		got = []any{"", "", ""}
		_, evs := sse(t, srv.URL+"/v1/chat/completions", `{`+hello+c.body+`,"stream":true}`)
		for _, e := range evs {
			for i, key := range []string{"reasoning_content", "reasoning", "content"} {
				got[i] = got[i].(string) + text(e.at("choices", 0, "delta", key))
			}
		}
		equal(t, c.body+" in a stream", got, []any{c.old, c.name, "yes"})
	}
}
