package server

import (
	"fmt"
	"math"
	"slices"
	"testing"
)

// Tokens that are named, as vLLM's logprob_token_ids has them: in the place of the most
// probable ones, with the numbers that they have among those.
func TestProbsOfTokens(t *testing.T) {
	srv := tiny(t)
	const chat = `"messages":[{"role":"user","content":"abc"}],"max_tokens":3,"temperature":0`
	whole := post(t, srv.URL+"/v1/chat/completions", `{`+chat+`,"logprobs":true,"top_logprobs":20}`, 200)
	named := post(t, srv.URL+"/v1/chat/completions", `{`+chat+`,"logprob_token_ids":[70,5,70],"return_tokens_as_token_ids":true}`, 200)
	equal(t, "the answer", named.at("choices", 0, "message"), whole.at("choices", 0, "message"))
	for i := range 3 {
		top := named.at("choices", 0, "logprobs", "content", i, "top_logprobs").([]any)
		equal(t, "tokens", []any{named.at("choices", 0, "logprobs", "content", i, "top_logprobs", 1, "token"), len(top)}, []any{"token_id:5", 3})
		equal(t, "the drawn one", named.at("choices", 0, "logprobs", "content", i, "logprob"), whole.at("choices", 0, "logprobs", "content", i, "logprob"))
	}
	// Each of the most probable tokens has the same number when it is asked for alone.
	all := post(t, srv.URL+"/completion", `{"prompt":"abc","n_predict":1,"temperature":0,"n_probs":10}`, 200).at("completion_probabilities", 0, "top_logprobs").([]any)
	for _, x := range all {
		o := x.(map[string]any)
		one := post(t, srv.URL+"/completion", fmt.Sprintf(`{"prompt":"abc","n_predict":1,"temperature":0,"logprob_token_ids":[%v]}`, o["id"]), 200)
		equal(t, "alone", one.at("completion_probabilities", 0, "top_logprobs", 0), x)
	}
	legacy := post(t, srv.URL+"/v1/completions", `{"prompt":"abc","max_tokens":1,"temperature":0,"logprob_token_ids":[9],"return_tokens_as_token_ids":true}`, 200)
	if _, there := legacy.at("choices", 0, "logprobs", "top_logprobs", 0).(map[string]any)["token_id:9"]; !there {
		t.Errorf("token 9 is not in %v", legacy)
	}
	for _, bad := range []string{`"logprob_token_ids":[-1]`, `"logprob_token_ids":[99999999]`, `"logprob_token_ids":[1],"ridge_trace":true`, `"logprob_token_ids":[1],"use_beam_search":true,"n":2`,
		`"logprob_token_ids":[1],"post_sampling_probs":true`, `"logprobs":true,"post_sampling_probs":true,"ridge_trace":true`, `"logprobs":true,"post_sampling_probs":true,"best_of":2`} {
		post(t, srv.URL+"/v1/chat/completions", `{`+chat+`,`+bad+`}`, 400)
	}
}

// Probabilities after all steps, as llama-server's test_completion.py looks at them.
func TestPostSamplingProbs(t *testing.T) {
	srv := tiny(t)
	check := func(what string, list any, cut int) {
		t.Helper()
		for i, x := range list.([]any) {
			o := x.(map[string]any)
			top, sum, last, among := o["top_probs"].([]any), 0.0, 1.0, false
			for _, y := range top {
				p := y.(map[string]any)["prob"].(float64)
				among = among || y.(map[string]any)["id"] == o["id"] && p == o["prob"]
				if sum += p; p <= 0 || p > last {
					t.Errorf("%s %d: %v after %v", what, i, p, last)
				}
				last = p
			}
			if len(top) > cut || !among && len(top) == cut || math.Abs(sum-1) > 1e-5 {
				t.Errorf("%s %d: %v of %d with a sum of %v, %v among them: %v", what, i, o["id"], len(top), sum, o["prob"], among)
			}
			if _, there := o["logprob"]; there {
				t.Errorf("%s: a logarithm too: %v", what, o)
			}
		}
	}
	const asked = `"temperature":0.7,"seed":3,"post_sampling_probs":true`
	o := post(t, srv.URL+"/completion", `{"prompt":"abc","n_predict":5,"top_k":4,"n_probs":4,`+asked+`}`, 200)
	check("/completion", o.at("completion_probabilities"), 4)
	equal(t, "settings", o.at("generation_settings", "post_sampling_probs"), true)
	plain := post(t, srv.URL+"/completion", `{"prompt":"abc","n_predict":5,"top_k":4,"temperature":0.7,"seed":3}`, 200)
	equal(t, "the answer", o.at("content"), plain.at("content"))
	o = post(t, srv.URL+"/v1/chat/completions", `{"messages":[{"role":"user","content":"abc"}],"max_tokens":5,"top_k":3,"logprobs":true,"top_logprobs":5,`+asked+`}`, 200)
	check("chat", o.at("choices", 0, "logprobs", "content"), 3)
	greedy := post(t, srv.URL+"/completion", `{"prompt":"abc","n_predict":2,"n_probs":4,"temperature":0,"post_sampling_probs":true}`, 200)
	check("greedy", greedy.at("completion_probabilities"), 1)
	// What a grammar forces is certain, with jump-ahead and without.
	for _, jump := range []bool{false, true} {
		o = post(t, srv.URL+"/completion", fmt.Sprintf(`{"prompt":"abc","n_predict":8,"n_probs":4,"structured_outputs":{"regex":"ab*c","jump_ahead":%v},%s}`, jump, asked), 200)
		first := o.at("completion_probabilities", 0).(map[string]any)
		equal(t, "forced", []any{first["prob"], len(first["top_probs"].([]any))}, []any{1.0, 1})
	}
	_, events := sse(t, srv.URL+"/completion", `{"stream":true,"prompt":"abc","n_predict":5,"top_k":4,"n_probs":4,`+asked+`}`)
	if !slices.ContainsFunc(events, func(ev object) bool { return ev["completion_probabilities"] != nil }) {
		t.Error("a stream has none")
	}
	for _, ev := range events {
		if list := ev["completion_probabilities"]; list != nil {
			check("stream", list, 4)
		}
	}
}
