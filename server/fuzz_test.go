package server

import (
	"bytes"
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"ridge/engine"
	"ridge/server/run"
)

// Whatever a body holds, the answer is no panic and no 500.
func FuzzBodies(f *testing.F) {
	paths := []string{
		"/v1/chat/completions", "/v1/completions", "/v1/embeddings", "/v1/responses", "/v1/messages", "/v1/messages/count_tokens", "/api/chat", "/api/generate",
		"/api/embed", "/api/show", "/api/copy", "/tokenize", "/detokenize", "/apply-template", "/infill", "/completion", "/v1/batches", "/api/pull",
	}
	for i, s := range []string{
		`{"messages":[{"role":"user","content":"Hi"}],"stream":true,"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object"},"strict":true}}],"tool_choice":"required","n":2}`,
		`{"prompt":[[1,2],[3]],"echo":true,"logprobs":2,"max_tokens":0,"suffix":"x","logit_bias":{"5":1},"stop":["a"],"best_of":2}`,
		`{"input":["a",[1]],"encoding_format":"base64","dimensions":2}`,
		`{"input":[{"type":"function_call","call_id":"a","name":"f","arguments":"{"},{"type":"function_call_output","call_id":"a","output":"x"}],"stream":true,"text":{"format":{"type":"json_schema","name":"x","schema":{}}}}`,
		`{"max_tokens":5,"system":[{"type":"text","text":"s"}],"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"x"}]}],"stream":true}`,
		`{"messages":[{"role":"user","content":"x"}],"thinking":{"type":"enabled","budget_tokens":5}}`,
		`{"model":"fake","messages":[{"role":"user","content":"x","tool_calls":[{"function":{"name":"f","arguments":{}}}]}],"format":{"type":"object"},"options":{"seed":-1,"num_predict":-2},"keep_alive":"5m","think":"high"}`,
		`{"model":"fake","prompt":"x","context":[1,2],"raw":true}`,
		`{"prompt":"x","structured_outputs":{"regex":"a+"},"min_tokens":1,"t_max_predict_ms":1,"truncate_prompt_tokens":1,"bad_words":["a"],"allowed_token_ids":[1]}`,
		`{"content":"x","with_pieces":true}`, `{"tokens":[1,2]}`, `{"messages":[{"role":"user","content":[{"type":"text","text":"x"}]}],"chat_template":"{{ messages }}","chat_template_kwargs":{"a":{"b":1}}}`,
	} {
		f.Add(uint8(i), []byte(s))
	}
	tok := byteTokenizer(f)
	b := &script{tok: tok, reply: func(*engine.Request, int) string {
		return "<think>a</think>\nb<tool_call>{\"name\": \"f\", \"arguments\": {}}</tool_call>"
	}}
	s, err := New(Options{Models: []*run.Model{fakeModel(f, tok, b)}, RequestTimeout: 5 * time.Second})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, path uint8, body []byte) {
		p := paths[int(path)%len(paths)]
		r, err := http.NewRequest(http.MethodPost, "http://localhost"+p, bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		w := &recorder{header: http.Header{}, status: 200}
		s.handler.ServeHTTP(w, r)
		if w.status >= 500 && w.status != 501 {
			t.Errorf("%s %q: status %d: %s", p, body, w.status, w.body)
		}
		if ct := w.header.Get("Content-Type"); ct == "application/json; charset=utf-8" && !json.Valid(w.body) {
			t.Errorf("%s %q: not JSON: %s", p, body, w.body)
		}
		if n := b.open.Load(); n != 0 {
			t.Errorf("%s %q: %d streams are open", p, body, n)
		}
		b.mu.Lock()
		b.requests = nil
		b.mu.Unlock()
	})
}
