package server

import (
	"bytes"
	"encoding/json"
	"fmt"
	"mime/multipart"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ridge/engine"
	"ridge/server/caller"
	"ridge/server/run"
)

// lines sends a request and returns the lines of the answer.
func lines(t *testing.T, url, body string) []object {
	t.Helper()
	status, h, b := send(t, http.MethodPost, url, body)
	if status != 200 || !strings.HasPrefix(h.Get("Content-Type"), "application/x-ndjson") {
		t.Fatalf("%s %s: status %d, %s: %s", url, body, status, h.Get("Content-Type"), b)
	}
	var out []object
	for _, l := range bytes.Split(bytes.TrimSpace(b), []byte("\n")) {
		var o object
		if err := json.Unmarshal(l, &o); err != nil {
			t.Fatalf("line %q: %v", l, err)
		}
		out = append(out, o)
	}
	return out
}

const ollamaTool = `"tools":[{"type":"function","function":{"name":"get","parameters":{"type":"object","properties":{"a":{"type":"integer"}}}}}]`

func TestOllamaChat(t *testing.T) {
	srv, b := scripted(t, "<think>\nHm.\n</think>\n\nHi there\n<tool_call>{\"name\": \"get\", \"arguments\": {\"a\": 1}}</tool_call>")
	ls := lines(t, srv.URL+"/api/chat", `{"model":"fake",`+hello+`,`+ollamaTool+`,"options":{"num_predict":100,"temperature":0,"seed":3,"stop":["zzz"]}}`)
	text, thinking := "", ""
	var calls []any
	for i, l := range ls {
		equal(t, "model", l["model"], "fake")
		if _, err := time.Parse(time.RFC3339Nano, l["created_at"].(string)); err != nil {
			t.Error(err)
		}
		equal(t, "done", l["done"], i == len(ls)-1)
		if s, ok := l.at("message", "content").(string); ok {
			text += s
		}
		if s, ok := l.at("message", "thinking").(string); ok {
			thinking += s
		}
		if c, ok := l.at("message", "tool_calls").([]any); ok {
			calls = append(calls, c...)
		}
	}
	equal(t, "answer", []any{text, thinking, len(calls)}, []any{"Hi there", "Hm.", 1})
	equal(t, "arguments are an object", object(calls[0].(map[string]any)).at("function", "arguments", "a"), 1)
	last := ls[len(ls)-1]
	equal(t, "reason", last["done_reason"], "stop")
	for _, k := range []string{"total_duration", "load_duration", "prompt_eval_count", "prompt_eval_duration", "eval_count", "eval_duration"} {
		if _, ok := last[k]; !ok {
			t.Errorf("no %s at the end", k)
		}
	}
	r := b.last()
	equal(t, "options", []any{r.Sampling.Temperature, r.Sampling.TopK, r.Sampling.TopP, r.Sampling.Seed, r.MaxTokens}, []any{0, 40, 0.9, 3, 100})

	o := post(t, srv.URL+"/api/chat", `{"model":"fake:latest",`+hello+`,`+ollamaTool+`,"stream":false}`, 200)
	equal(t, "whole", []any{o.at("message", "content"), o.at("message", "thinking"), o.at("message", "tool_calls", 0, "function", "name"), o["done"]}, []any{"Hi there", "Hm.", "get", true})
	post(t, srv.URL+"/api/chat", `{"model":"fake",`+hello+`,"stream":false,"format":{"type":"object"},"think":false}`, 200)
	if b.last().NewMasker == nil || !strings.HasSuffix(b.tok.DecodeSpecial(b.last().Tokens), "</think>\n\n") {
		t.Error("format or think had no effect")
	}
	post(t, srv.URL+"/api/chat", `{"model":"fake","stream":false,"messages":[{"role":"user","content":"x"},{"role":"assistant","content":"","tool_calls":[{"function":{"name":"get","arguments":{"a":1}}}]},{"role":"tool","tool_name":"get","content":"5"}]}`, 200)
}

func TestOllamaGenerate(t *testing.T) {
	srv, b := scripted(t, "world")
	ls := lines(t, srv.URL+"/api/generate", `{"model":"fake","prompt":"Hello","system":"Be brief."}`)
	text := ""
	for _, l := range ls {
		text += l["response"].(string)
	}
	equal(t, "text", text, "world")
	if s := b.tok.DecodeSpecial(b.last().Tokens); !strings.Contains(s, "Be brief.") || !strings.Contains(s, "user\nHello") {
		t.Errorf("prompt %q", s)
	}
	context, _ := json.Marshal(ls[len(ls)-1]["context"])
	before := len(b.last().Tokens)
	post(t, srv.URL+"/api/generate", `{"model":"fake","prompt":"more","stream":false,"context":`+string(context)+`}`, 200)
	if s := b.tok.DecodeSpecial(b.last().Tokens); !strings.Contains(s, "Hello") || !strings.HasSuffix(s[:len(s)-1], "assistant") || len(b.last().Tokens) < before {
		t.Errorf("the context is not in the prompt: %q", s)
	}
	post(t, srv.URL+"/api/generate", `{"model":"fake","prompt":"Hello","raw":true,"stream":false}`, 200)
	equal(t, "raw", b.tok.DecodeSpecial(b.last().Tokens), "Hello")
	equal(t, "load", post(t, srv.URL+"/api/generate", `{"model":"fake"}`, 200)["done_reason"], "load")
	equal(t, "unload", post(t, srv.URL+"/api/generate", `{"model":"fake","keep_alive":0}`, 200)["done_reason"], "unload")
	o := post(t, srv.URL+"/api/generate", `{"model":"fake","prompt":"x","stream":false,"logprobs":true,"top_logprobs":2,"options":{"num_predict":1}}`, 200)
	equal(t, "logprobs", []any{len(o.at("logprobs", 0, "top_logprobs").([]any)), o["done_reason"]}, []any{2, "length"})
}

func TestOllamaModels(t *testing.T) {
	srv, _ := scripted(t, "x")
	equal(t, "tags", get(t, srv.URL+"/api/tags", 200).at("models", 0, "name"), "fake")
	equal(t, "ps", get(t, srv.URL+"/api/ps", 200).at("models", 0, "details", "family"), "fake")
	if get(t, srv.URL+"/api/version", 200)["version"] == "" {
		t.Error("no version")
	}
	o := post(t, srv.URL+"/api/show", `{"model":"fake"}`, 200)
	if caps := fmt.Sprint(o["capabilities"]); !strings.Contains(caps, "tools") || !strings.Contains(caps, "thinking") || !strings.Contains(caps, "insert") {
		t.Errorf("capabilities %s", caps)
	}
	if status, _, _ := send(t, http.MethodPost, srv.URL+"/api/copy", `{"source":"fake","destination":"gpt-4"}`); status != 200 {
		t.Errorf("copy: status %d", status)
	}
	post(t, srv.URL+"/v1/chat/completions", `{"model":"gpt-4",`+hello+`}`, 200)
	o = post(t, srv.URL+"/api/embed", `{"model":"fake","input":["a","b"]}`, 200)
	equal(t, "embed", len(o["embeddings"].([]any)), 2)
	equal(t, "embeddings", len(post(t, srv.URL+"/api/embeddings", `{"model":"fake","prompt":"a"}`, 200)["embedding"].([]any)), 4)
	if status, _, b := send(t, http.MethodGet, srv.URL+"/", ""); status != 200 || !strings.HasPrefix(string(b), "Ollama is running") {
		t.Errorf("/: %d %s", status, b)
	}
}

func TestMessages(t *testing.T) {
	srv, b := scripted(t, "<think>\nHm.\n</think>\n\nHi\n<tool_call>{\"name\": \"get\", \"arguments\": {\"a\": 1}}</tool_call>")
	tools := `"tools":[{"name":"get","description":"d","input_schema":{"type":"object","properties":{"a":{"type":"integer"}}}}]`
	o := post(t, srv.URL+"/v1/messages", `{"model":"fake","max_tokens":100,"system":[{"type":"text","text":"Be brief.","cache_control":{"type":"ephemeral"}}],`+hello+`,`+tools+`}`, 200)
	equal(t, "message", []any{o["type"], o["role"], o["stop_reason"], o["stop_sequence"]}, []any{"message", "assistant", "tool_use", nil})
	equal(t, "thinking", o.at("content", 0, "thinking"), "Hm.")
	equal(t, "text", o.at("content", 1, "text"), "Hi")
	equal(t, "tool", []any{o.at("content", 2, "name"), o.at("content", 2, "input", "a")}, []any{"get", 1})
	n := len(b.last().Tokens)
	equal(t, "usage", []any{o.at("usage", "input_tokens"), o.at("usage", "cache_read_input_tokens")}, []any{n - n/2, n / 2})

	names, evs := sse(t, srv.URL+"/v1/messages", `{"model":"fake","max_tokens":100,`+hello+`,`+tools+`,"stream":true}`)
	var kinds []string
	args := ""
	for i, e := range evs {
		equal(t, "name of event", names[i], e["type"])
		if e["type"] == "content_block_start" {
			kinds = append(kinds, e.at("content_block", "type").(string))
			equal(t, "index", e["index"], len(kinds)-1)
		}
		if s, ok := e.at("delta", "partial_json").(string); ok {
			args += s
		}
	}
	equal(t, "blocks", kinds, []string{"thinking", "text", "tool_use"})
	equal(t, "arguments", args, `{"a": 1}`)
	equal(t, "start and end", []any{names[0], names[len(names)-2], names[len(names)-1]}, []any{"message_start", "message_delta", "message_stop"})
	equal(t, "stop", evs[len(evs)-2].at("delta", "stop_reason"), "tool_use")

	// A turn with results, and the count of its tokens.
	conv := `"messages":[{"role":"user","content":"x"},{"role":"assistant","content":[{"type":"thinking","thinking":"t","signature":""},{"type":"text","text":"a"},{"type":"tool_use","id":"t1","name":"get","input":{"a":1}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":[{"type":"text","text":"rain"}]},{"type":"text","text":"and?"}]}]`
	post(t, srv.URL+"/v1/messages", `{"max_tokens":100,`+conv+`,`+tools+`}`, 200)
	n = len(b.last().Tokens)
	if s := b.tok.DecodeSpecial(b.last().Tokens); !strings.Contains(s, "tool\nrain") || !strings.Contains(s, "user\nand?") || !strings.Contains(s, `{"a": 1}`) {
		t.Errorf("prompt %s", s)
	}
	equal(t, "count", post(t, srv.URL+"/v1/messages/count_tokens", `{`+conv+`,`+tools+`}`, 200)["input_tokens"], n)

	b.reply = func(*engine.Request, int) string { return "one two" }
	o = post(t, srv.URL+"/v1/messages", `{"max_tokens":100,`+hello+`,"stop_sequences":["two"]}`, 200)
	equal(t, "stop sequence", []any{o["stop_reason"], o["stop_sequence"]}, []any{"stop_sequence", "two"})
	equal(t, "length", post(t, srv.URL+"/v1/messages", `{"max_tokens":2,`+hello+`}`, 200)["stop_reason"], "max_tokens")
	equal(t, "end", post(t, srv.URL+"/v1/messages", `{"max_tokens":20,`+hello+`,"thinking":{"type":"disabled"}}`, 200)["stop_reason"], "end_turn")
}

func TestResponses(t *testing.T) {
	srv, b := scripted(t, "<think>\nHm.\n</think>\n\nHi")
	o := post(t, srv.URL+"/v1/responses", `{"model":"fake","input":"Hello","instructions":"Be brief.","metadata":{"a":"b"}}`, 200)
	equal(t, "response", []any{o["object"], o["status"], o.at("metadata", "a")}, []any{"response", "completed", "b"})
	equal(t, "output", []any{o.at("output", 0, "type"), o.at("output", 0, "content", 0, "text"), o.at("output", 1, "type"), o.at("output", 1, "content", 0, "text")}, []any{"reasoning", "Hm.", "message", "Hi"})
	id := o["id"].(string)
	equal(t, "stored", get(t, srv.URL+"/v1/responses/"+id, 200)["id"], id)
	post(t, srv.URL+"/v1/responses", `{"input":[{"role":"user","content":[{"type":"input_text","text":"More"}]}],"previous_response_id":"`+id+`"}`, 200)
	if s := b.tok.DecodeSpecial(b.last().Tokens); !strings.Contains(s, "user\nHello") || !strings.Contains(s, "assistant\nHi") || !strings.Contains(s, "user\nMore") || strings.Contains(s, "Be brief") {
		t.Errorf("prompt %s", s)
	}
	if status, _, _ := send(t, http.MethodDelete, srv.URL+"/v1/responses/"+id, ""); status != 200 {
		t.Error("delete failed")
	}
	get(t, srv.URL+"/v1/responses/"+id, 404)

	b.reply = func(*engine.Request, int) string {
		return "Hi\n<tool_call>{\"name\": \"get\", \"arguments\": {\"a\": 1}}</tool_call>"
	}
	tools := `"tools":[{"type":"function","name":"get","parameters":{"type":"object"}}]`
	names, evs := sse(t, srv.URL+"/v1/responses", `{"input":"x","stream":true,`+tools+`}`)
	for i, e := range evs {
		equal(t, "event", []any{names[i], e["sequence_number"]}, []any{e["type"], i})
	}
	var short []string
	for _, n := range names {
		if len(short) == 0 || short[len(short)-1] != n {
			short = append(short, n)
		}
	}
	equal(t, "events", strings.Join(short, " "), "response.created response.in_progress response.output_item.added response.content_part.added response.output_text.delta response.output_text.done response.content_part.done response.output_item.done "+
		"response.output_item.added response.function_call_arguments.delta response.function_call_arguments.done response.output_item.done response.completed")
	last := evs[len(evs)-1]
	equal(t, "call", []any{last.at("response", "output", 1, "type"), last.at("response", "output", 1, "arguments"), last.at("response", "output", 1, "status")}, []any{"function_call", `{"a": 1}`, "completed"})
	call := last.at("response", "output", 1, "call_id").(string)
	post(t, srv.URL+"/v1/responses", `{"input":[{"type":"function_call_output","call_id":"`+call+`","output":"rain"}],"previous_response_id":"`+last.at("response", "id").(string)+`",`+tools+`}`, 200)
	if s := b.tok.DecodeSpecial(b.last().Tokens); !strings.Contains(s, "tool\nrain") || !strings.Contains(s, `"arguments": {"a": 1}`) {
		t.Errorf("prompt %s", s)
	}
	b.reply = func(*engine.Request, int) string { return "Hello" }
	o = post(t, srv.URL+"/v1/responses", `{"input":"x","max_output_tokens":2,"store":false}`, 200)
	equal(t, "cut", []any{o["status"], o.at("incomplete_details", "reason")}, []any{"incomplete", "max_output_tokens"})
	get(t, srv.URL+"/v1/responses/"+o["id"].(string), 404)
}

func TestTokenizeRoutes(t *testing.T) {
	srv, _ := scripted(t, "x")
	equal(t, "tokens", post(t, srv.URL+"/tokenize", `{"content":"Hi<think>"}`, 200)["tokens"], []int{'H', 'i', 261})
	equal(t, "not parsed", len(post(t, srv.URL+"/tokenize", `{"content":"<|im_end|>","parse_special":false}`, 200)["tokens"].([]any)), 10)
	o := post(t, srv.URL+"/tokenize", `{"content":"é","with_pieces":true}`, 200)
	equal(t, "piece", o.at("tokens", 0, "piece"), []int{0xc3})
	o = post(t, srv.URL+"/tokenize", `{"prompt":"Hi","add_special_tokens":false,"return_token_strs":true}`, 200)
	equal(t, "vLLM's form", []any{o["count"], o["token_strs"], o["max_model_len"]}, []any{2, []string{"H", "i"}, 4096})
	equal(t, "of messages", post(t, srv.URL+"/tokenize", `{`+hello+`}`, 200)["count"], 21)
	o = post(t, srv.URL+"/detokenize", `{"tokens":[72,105,261]}`, 200)
	equal(t, "text", []any{o["content"], o["prompt"]}, []any{"Hi<think>", "Hi<think>"})
	equal(t, "template", post(t, srv.URL+"/apply-template", `{`+hello+`}`, 200)["prompt"], "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n")
	o = get(t, srv.URL+"/tokenizer_info", 200)
	equal(t, "tokens", []any{o["bos_token"], o["eos_token"]}, []any{"<s>", "<|im_end|>"})
	o = get(t, srv.URL+"/props", 200)
	equal(t, "props", []any{o.at("default_generation_settings", "n_ctx"), o["eos_token"], o["tool_call_format"]}, []any{4096, "<|im_end|>", "hermes"})
	for _, path := range []string{"/health", "/v1/health", "/live", "/ready", "/ping", "/version", "/load"} {
		get(t, srv.URL+path, 200)
	}
	status, _, b := send(t, http.MethodGet, srv.URL+"/slots", "")
	var slots []object
	if err := json.Unmarshal(b, &slots); status != 200 || err != nil || len(slots) != 4 {
		t.Fatalf("slots: %d %s", status, b)
	}
	equal(t, "idle slot", []any{slots[3]["id"], slots[3]["is_processing"], slots[3]["n_ctx"], slots[3].at("next_token", "n_remain")}, []any{3, false, 4096, -1})
	equal(t, "total slots", get(t, srv.URL+"/props", 200)["total_slots"], 4)
	o = post(t, srv.URL+"/completion", `{"prompt":"a","n_predict":5}`, 200)
	equal(t, "completion", []any{o["content"], o["stop"], o["stop_type"], o["tokens_predicted"]}, []any{"x", true, "eos", 1})
}

func upload(t *testing.T, url, purpose, content string) (int, object) {
	t.Helper()
	var body bytes.Buffer
	w := multipart.NewWriter(&body)
	_ = w.WriteField("purpose", purpose)
	f, _ := w.CreateFormFile("file", "in.jsonl")
	_, _ = f.Write([]byte(content))
	w.Close()
	status, _, b := send(t, http.MethodPost, url+"/v1/files", body.String(), "Content-Type", w.FormDataContentType())
	var o object
	if err := json.Unmarshal(b, &o); err != nil {
		t.Fatal(err)
	}
	return status, o
}

func waitBatch(t *testing.T, url, id string, over func(string) bool) object {
	t.Helper()
	var o object
	until(t, "the batch comes to its end", func() bool {
		o = get(t, url+"/v1/batches/"+id, 200)
		return over(o["status"].(string))
	})
	return o
}

func TestBatch(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	srv, b := scripted(t, "x", func(o *Options, _ *script) { o.DataDir = dir })
	var in strings.Builder
	for i := range 20 {
		fmt.Fprintf(&in, `{"custom_id":"c%d","method":"POST","url":"/v1/chat/completions","body":{"stream":true,%s}}`+"\n", i, hello)
	}
	in.WriteString(`{"custom_id":"bad","method":"POST","url":"/v1/chat/completions","body":{}}` + "\n")
	status, f := upload(t, srv.URL, "batch", in.String())
	equal(t, "file", []any{status, f["object"], f["filename"], f["bytes"]}, []any{200, "file", "in.jsonl", in.Len()})
	o := post(t, srv.URL+"/v1/batches", `{"input_file_id":"`+f["id"].(string)+`","endpoint":"/v1/chat/completions","completion_window":"24h"}`, 200)
	o = waitBatch(t, srv.URL, o["id"].(string), func(s string) bool { return s == "completed" })
	equal(t, "counts", []any{o.at("request_counts", "total"), o.at("request_counts", "completed"), o.at("request_counts", "failed")}, []any{21, 20, 1})
	_, _, out := send(t, http.MethodGet, srv.URL+"/v1/files/"+o["output_file_id"].(string)+"/content", "")
	if n := strings.Count(string(out), `"status_code":200`); n != 20 || strings.Count(string(out), "\n") != 20 {
		t.Errorf("%d results in %s", n, out)
	}
	_, _, out = send(t, http.MethodGet, srv.URL+"/v1/files/"+o["error_file_id"].(string)+"/content", "")
	if !strings.Contains(string(out), `"custom_id":"bad"`) || !strings.Contains(string(out), `"status_code":400`) {
		t.Errorf("errors: %s", out)
	}
	equal(t, "priority", b.last().Priority, batchPriority)
	equal(t, "list", len(get(t, srv.URL+"/v1/batches", 200)["data"].([]any)), 1)
	equal(t, "files", len(get(t, srv.URL+"/v1/files", 200)["data"].([]any)), 3)

	for content, says := range map[string]string{
		"":                  "at least one line",
		"{":                 "line 1",
		`{"custom_id":"a"}`: "line 1",
		`{"custom_id":"a","method":"POST","url":"/v1/chat/completions","body":{}}` + "\n" + `{"custom_id":"a","method":"POST","url":"/v1/chat/completions","body":{}}`: "line 2",
	} {
		_, f := upload(t, srv.URL, "batch", content)
		o := post(t, srv.URL+"/v1/batches", `{"input_file_id":"`+f["id"].(string)+`","endpoint":"/v1/chat/completions","completion_window":"24h"}`, 200)
		o = waitBatch(t, srv.URL, o["id"].(string), func(s string) bool { return s == "failed" })
		if s := fmt.Sprint(o["errors"]); !strings.Contains(s, says) {
			t.Errorf("%q: %s", content, s)
		}
	}
	status, o = upload(t, srv.URL, "fine-tune", "x")
	equal(t, "purpose", []any{status, o.at("error", "param")}, []any{400, "purpose"})
	for _, path := range []string{"/v1/files/file-0", "/v1/files/..%2f..%2fx", "/v1/batches/batch-000000000000000000000000", "/v1/files/" + strings.Repeat("a", 30) + "/content"} {
		if status, _, _ := send(t, http.MethodGet, srv.URL+path, ""); status != 404 {
			t.Errorf("%s: status %d", path, status)
		}
	}
}

// A server that ends in the middle of a batch goes on with it, and does
// nothing twice.
func TestBatchSurvives(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	var in strings.Builder
	for i := range 30 {
		fmt.Fprintf(&in, `{"custom_id":"c%d","method":"POST","url":"/v1/completions","body":{"prompt":"%02d"}}`+"\n", i, i)
	}
	start := func(hold func(*engine.Request, int) <-chan struct{}) (*Server, *script, func()) {
		tok := byteTokenizer(t)
		b := &script{tok: tok, reply: func(*engine.Request, int) string { return "abc" }, hold: hold}
		m := fakeModel(t, tok, b)
		s, err := New(Options{Models: []*run.Model{m}, DataDir: dir})
		if err != nil {
			t.Fatal(err)
		}
		return s, b, func() {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
	}
	const before = 12 // lines that have a result when it ends
	s, first, stop := start(func(r *engine.Request, _ int) <-chan struct{} {
		if line := r.Tokens[len(r.Tokens)-2:]; 10*(line[0]-'0')+line[1]-'0' < before {
			return nil
		}
		return never
	})
	f, err := s.batches.store(strings.NewReader(in.String()), "in", "batch", "")
	if err != nil {
		t.Fatal(err)
	}
	x := batch{ID: caller.NewID("batch-"), Object: "batch", Endpoint: "/v1/completions", Input: f.ID, Status: "validating", Created: time.Now().Unix(), Expires: time.Now().Add(time.Hour).Unix()}
	if err := s.batches.writeMeta(x.ID, &x); err != nil {
		t.Fatal(err)
	}
	s.batches.wake <- struct{}{}
	until(t, "the first lines are done", func() bool {
		b, err := s.batches.get(x.ID, "")
		if err != nil {
			t.Fatal(err)
		}
		return b.Counts.Completed == before
	})
	stop()
	path := filepath.Join(dir, x.ID+".results")
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "results before the end", bytes.Count(b, []byte("\n")), before)
	if err := os.WriteFile(path, append(b, `{"id":"cut`...), 0o600); err != nil { // as a crash leaves it
		t.Fatal(err)
	}
	s, second, stop := start(nil)
	defer stop()
	until(t, "the batch is completed", func() bool {
		got, err := s.batches.get(x.ID, "")
		if err != nil {
			t.Fatal(err)
		}
		if got.Status != "completed" {
			return false
		}
		equal(t, "counts", got.Counts, batchCounts{30, 30, 0})
		return true
	})
	second.mu.Lock()
	defer second.mu.Unlock()
	if n := len(second.requests); n != 30-before {
		t.Errorf("%d requests after the start, %d were done before (%d asked)", n, before, len(first.requests))
	}
}
