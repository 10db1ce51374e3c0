package server

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
)

// The form of text-embeddings-inference: a list, the best text first.
func TestRerankTEI(t *testing.T) {
	srv := tiny(t)
	ranks := func(body string) []object {
		t.Helper()
		status, _, b := send(t, http.MethodPost, srv.URL+"/rerank", `{"pooling":"mean","query":"abc",`+body+`}`)
		var out []object
		if err := json.Unmarshal(b, &out); status != 200 || err != nil {
			t.Fatalf("%s: %d %s", body, status, b)
		}
		return out
	}
	out := ranks(`"texts":["xyz","abc"],"raw_scores":true,"return_text":true,"truncate":true,"truncation_direction":"Left"`)
	equal(t, "first", []any{len(out), out[0]["index"], out[0]["text"], out[0]["score"].(float64) > 0.999}, []any{2, 1, "abc", true})
	equal(t, "second", []any{out[1]["index"], out[1]["text"]}, []any{0, "xyz"})
	if out = ranks(`"texts":["xyz","abc"]`); out[0]["text"] != nil || out[0]["relevance_score"] != nil {
		t.Errorf("texts that nobody asked for: %v", out)
	}
	equal(t, "as llama-server has it", len(ranks(`"texts":["xyz","abc"],"top_n":1`)), 1)
	for body, param := range map[string]string{`"texts":[]`: "documents", `"texts":["a"],"documents":["a"]`: "texts", `"texts":["a"],"truncation_direction":"up"`: "truncation_side"} {
		o := post(t, srv.URL+"/rerank", `{"pooling":"mean","query":"abc",`+body+`}`, 400)
		equal(t, body, o.at("error", "param"), param)
	}
}

// vLLM's routes that make sense here.
func TestPoolingAndReset(t *testing.T) {
	srv := tiny(t)
	want := post(t, srv.URL+"/v1/embeddings", `{"input":["abc","x"],"pooling":"mean"}`, 200)
	o := post(t, srv.URL+"/pooling", `{"input":["abc","x"],"pooling":"mean"}`, 200)
	equal(t, "form", []any{o["object"], o.at("data", 1, "object"), o.at("data", 1, "index"), strings.HasPrefix(o["id"].(string), "pool-")}, []any{"list", "pooling", 1, true})
	equal(t, "numbers", o.at("data", 0, "data"), want.at("data", 0, "embedding"))

	computed := func() any {
		return post(t, srv.URL+"/completion", `{"prompt":[5,6,7,8,9,10,11,12,13,14],"n_predict":1}`, 200).at("timings", "prompt_n")
	}
	equal(t, "new", computed(), 10)
	equal(t, "cached", computed(), 1)
	status, _, b := send(t, http.MethodPost, srv.URL+"/reset_prefix_cache", "")
	equal(t, "reset", []any{status, string(b)}, []any{200, ""})
	equal(t, "forgotten", computed(), 10)

	if status, _, _ := send(t, http.MethodPost, srv.URL+"/classify", `{"input":"x"}`); status != http.StatusBadRequest { // it has no classifier
		t.Errorf("classify: status %d", status)
	}
}

// As llama-server's test_metrics.py: sums without labels, and when it started.
func TestLlamaMetrics(t *testing.T) {
	srv := tiny(t)
	predicted, computed, cached := 0.0, 0.0, 0.0
	for range 2 {
		o := post(t, srv.URL+"/completion", `{"prompt":[5,6,7,8,9,10,11,12,13,14],"n_predict":4,"ignore_eos":true}`, 200)
		predicted += o.at("timings", "predicted_n").(float64)
		computed += o.at("timings", "prompt_n").(float64)
		cached += o.at("timings", "cache_n").(float64)
	}
	_, h, b := send(t, http.MethodGet, srv.URL+"/metrics", "")
	if h.Get("Process-Start-Time-Unix") == "" {
		t.Error("no time of the start")
	}
	got := map[string]float64{}
	for _, line := range strings.Split(string(b), "\n") {
		if name, value, ok := strings.Cut(line, " "); ok && strings.HasPrefix(name, "llamacpp:") {
			if err := json.Unmarshal([]byte(value), new(float64)); err != nil {
				t.Fatal(line)
			}
			var v float64
			_ = json.Unmarshal([]byte(value), &v)
			got[strings.TrimPrefix(name, "llamacpp:")] = v
		}
	}
	for name, want := range map[string]float64{"tokens_predicted_total": predicted, "prompt_tokens_total": computed, "prompt_tokens_cached_total": cached, "requests_processing": 0, "requests_deferred": 0, "n_tokens_max": 14} {
		if v, ok := got[name]; !ok || v != want {
			t.Errorf("%s: %v (%v), want %v", name, v, ok, want)
		}
	}
	for _, name := range []string{"prompt_seconds_total", "tokens_predicted_seconds_total", "n_decode_total", "prompt_tokens_seconds", "predicted_tokens_seconds"} {
		if got[name] <= 0 {
			t.Errorf("%s: %v", name, got[name])
		}
		if !strings.Contains(string(b), "# HELP llamacpp:"+name+" ") {
			t.Errorf("%s has no help", name)
		}
	}
	for _, name := range []string{"vllm:request_inference_time_seconds_count", "vllm:request_prefill_kv_computed_tokens_sum"} {
		if !strings.Contains(string(b), name) {
			t.Errorf("%s is missing", name)
		}
	}
}

// As llama-server's test_completion.py: several prompts, several answers, and the
// fields that are asked for.
func TestCompletionForms(t *testing.T) {
	srv, _ := scripted(t, "one\ntwo")
	list := func(body string) []object {
		t.Helper()
		status, _, b := send(t, http.MethodPost, srv.URL+"/completion", body)
		var out []object
		if err := json.Unmarshal(b, &out); status != 200 || err != nil {
			t.Fatalf("%s: %d %s", body, status, b)
		}
		return out
	}
	out := list(`{"prompt":["a",[98,99]],"n_cmpl":2,"n_predict":5}`)
	equal(t, "answers", len(out), 4)
	for i, o := range out {
		equal(t, "answer", []any{o["index"], o["content"], o["prompt"], o["tokens_evaluated"], o["stop_type"], o["has_new_line"]}, []any{i, "one\nt", []string{"a", "bc"}[i/2], 1 + i/2, "limit", true})
	}
	equal(t, "n is its other name", len(list(`{"prompt":"a","n":3}`)), 3)
	equal(t, "one of a list", post(t, srv.URL+"/completion", `{"prompt":["a"]}`, 200)["content"], "one\ntwo")

	o := post(t, srv.URL+"/completion", `{"prompt":"abcd","n_predict":7,"response_fields":["content","generation_settings/n_predict","prompt","none","content/deeper"]}`, 200)
	equal(t, "fields", []any{len(o), o["content"], o["generation_settings/n_predict"], o["prompt"]}, []any{3, "one\ntwo", 7, "abcd"})
	o = post(t, srv.URL+"/completion", `{"prompt":"abcd","seed":3,"id_slot":2}`, 200)
	equal(t, "whole", []any{o["id_slot"], o["tokens_cached"], o.at("generation_settings", "seed"), o.at("generation_settings", "n_predict")}, []any{2, 2, 3, -1})

	_, evs := sse(t, srv.URL+"/completion", `{"prompt":["a","b"],"stream":true,"response_fields":["index","stop","stop_type"]}`)
	texts, ends := map[any]string{}, 0
	for _, e := range evs {
		if e["stop"] == true {
			ends++
			equal(t, "end", []any{len(e), e["stop_type"]}, []any{3, "eos"})
			continue
		}
		texts[e["index"]] += e["content"].(string)
	}
	equal(t, "streams", []any{ends, texts[0.0], texts[1.0]}, []any{2, "one\ntwo", "one\ntwo"})

	equal(t, "a bad one", post(t, srv.URL+"/completion", `{"prompt":["a",[]]}`, 400).at("error", "param"), "prompt")
}

// With echo and logprobs 0 each token has itself alone, as in vLLM: the same for the
// prompt's tokens as for the answer's.
func TestEchoWithoutAlternatives(t *testing.T) {
	srv := tiny(t)
	o := post(t, srv.URL+"/v1/completions", `{"prompt":[5,6,7,8],"max_tokens":2,"ignore_eos":true,"temperature":0,"echo":true,"logprobs":0}`, 200)
	top, _ := o.at("choices", 0, "logprobs", "top_logprobs").([]any)
	if len(top) != 6 || top[0] != nil {
		t.Fatalf("got %v", top)
	}
	for i := 1; i < len(top); i++ {
		own, _ := top[i].(map[string]any)
		name := o.at("choices", 0, "logprobs", "tokens", i).(string)
		if len(own) != 1 || own[name] != o.at("choices", 0, "logprobs", "token_logprobs", i) {
			t.Errorf("token %d, %q: %v", i, name, own)
		}
	}
}
