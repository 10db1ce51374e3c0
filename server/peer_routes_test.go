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

	if status, _, _ := send(t, http.MethodPost, srv.URL+"/classify", `{}`); status != http.StatusNotImplemented {
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
