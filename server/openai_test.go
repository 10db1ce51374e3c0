package server

import (
	"encoding/base64"
	"strings"
	"testing"

	"ridge/engine"
)

const hello = `"messages":[{"role":"user","content":"Hi"}]`

func TestChat(t *testing.T) {
	srv, b := scripted(t, "Hello, world")
	o := post(t, srv.URL+"/v1/chat/completions", `{"model":"fake",`+hello+`,"temperature":0.5,"seed":7,"max_tokens":50}`, 200)
	equal(t, "object", o.at("object"), "chat.completion")
	equal(t, "content", o.at("choices", 0, "message", "content"), "Hello, world")
	equal(t, "role", o.at("choices", 0, "message", "role"), "assistant")
	equal(t, "finish", o.at("choices", 0, "finish_reason"), "stop")
	if v, ok := o.at("choices", 0).(map[string]any)["logprobs"]; !ok || v != nil {
		t.Error("logprobs: expected null")
	}
	if !strings.HasPrefix(o.at("id").(string), "chatcmpl-") || !strings.HasPrefix(o.at("system_fingerprint").(string), "fp_") {
		t.Error("id or fingerprint is wrong")
	}
	r := b.last()
	prompt := "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"
	equal(t, "prompt", b.tok.DecodeSpecial(r.Tokens), prompt)
	equal(t, "prompt tokens", o.at("usage", "prompt_tokens"), len(r.Tokens))
	equal(t, "cached tokens", o.at("usage", "prompt_tokens_details", "cached_tokens"), len(r.Tokens)/2)
	equal(t, "completion tokens", o.at("usage", "completion_tokens"), 12)
	equal(t, "total tokens", o.at("usage", "total_tokens"), 12+len(r.Tokens))
	equal(t, "request", []any{r.Sampling.Temperature, r.Sampling.Seed, r.MaxTokens}, []any{0.5, 7, 50})
	if len(r.StopTokens) == 0 {
		t.Error("no tokens end the answer")
	}
}

func TestChatLengthAndN(t *testing.T) {
	srv, b := scripted(t, "Hello")
	o := post(t, srv.URL+"/v1/chat/completions", `{`+hello+`,"max_completion_tokens":3,"n":2}`, 200)
	for i := range 2 {
		equal(t, "index", o.at("choices", i, "index"), i)
		equal(t, "content", o.at("choices", i, "message", "content"), "Hel")
		equal(t, "finish", o.at("choices", i, "finish_reason"), "length")
	}
	equal(t, "tokens", o.at("usage", "completion_tokens"), 6)
	equal(t, "n", b.last().N, 2)
}

func TestChatStream(t *testing.T) {
	srv, _ := scripted(t, "Höi")
	_, evs := sse(t, srv.URL+"/v1/chat/completions", `{`+hello+`,"stream":true,"stream_options":{"include_usage":true}}`)
	text := ""
	for i, e := range evs {
		if e == nil {
			if i != len(evs)-1 {
				t.Fatal("[DONE] is not the last event")
			}
			continue
		}
		if _, ok := e["error"]; ok {
			t.Fatal("a chunk has a key error")
		}
		equal(t, "id", e["id"], evs[0]["id"])
		equal(t, "object", e["object"], "chat.completion.chunk")
		if i == 0 {
			equal(t, "role", e.at("choices", 0, "delta", "role"), "assistant")
		}
		if i == len(evs)-2 {
			equal(t, "choices at the end", len(e["choices"].([]any)), 0)
			equal(t, "completion tokens", e.at("usage", "completion_tokens"), 4)
			continue
		}
		if u, ok := e["usage"]; !ok || u != nil {
			t.Errorf("chunk %d: usage: expected null, found %v", i, u)
		}
		if s, ok := e.at("choices", 0, "delta", "content").(string); ok {
			text += s
		}
		finish := e.at("choices", 0, "finish_reason")
		if i == len(evs)-3 {
			equal(t, "finish", finish, "stop")
		} else if finish != nil {
			t.Errorf("chunk %d: finish_reason %v", i, finish)
		}
	}
	equal(t, "text", text, "Höi")
	if _, evs := sse(t, srv.URL+"/v1/chat/completions", `{`+hello+`,"stream":true}`); evs[1]["usage"] != nil || evs[len(evs)-1] != nil {
		t.Error("usage without being asked, or no [DONE]")
	}
}

func TestStopStrings(t *testing.T) {
	srv, b := scripted(t, "one two three")
	for _, c := range []struct{ body, text, reason string }{
		{`"stop":"two"`, "one ", "two"},
		{`"stop":["x","three"]`, "one two ", "three"},
		{`"stop":["wo t"],"include_stop_str_in_output":true`, "one two t", "wo t"},
	} {
		o := post(t, srv.URL+"/v1/chat/completions", `{`+hello+`,`+c.body+`}`, 200)
		equal(t, c.body, o.at("choices", 0, "message", "content"), c.text)
		equal(t, c.body, o.at("choices", 0, "finish_reason"), "stop")
		equal(t, c.body, o.at("choices", 0, "stop_reason"), c.reason)
		_, evs := sse(t, srv.URL+"/v1/chat/completions", `{`+hello+`,"stream":true,`+c.body+`}`)
		text := ""
		for _, e := range evs {
			s, _ := e.at("choices", 0, "delta", "content").(string)
			text += s
		}
		equal(t, c.body+" in a stream", text, c.text)
	}
	if b.stopped.Load() == 0 {
		t.Error("the engine was not told to stop")
	}
}

func TestChatLogprobs(t *testing.T) {
	srv, b := scripted(t, "aé")
	o := post(t, srv.URL+"/v1/chat/completions", `{`+hello+`,"logprobs":true,"top_logprobs":2}`, 200)
	list := o.at("choices", 0, "logprobs", "content").([]any)
	equal(t, "tokens", len(list), 3)
	equal(t, "token", o.at("choices", 0, "logprobs", "content", 0, "token"), "a")
	equal(t, "bytes of half a character", o.at("choices", 0, "logprobs", "content", 1, "bytes"), []int{0xc3})
	equal(t, "text of half a character", o.at("choices", 0, "logprobs", "content", 1, "token"), "\ufffd")
	equal(t, "top", len(o.at("choices", 0, "logprobs", "content", 0, "top_logprobs").([]any)), 2)
	equal(t, "same number", o.at("choices", 0, "logprobs", "content", 0, "logprob"), o.at("choices", 0, "logprobs", "content", 0, "top_logprobs", 0, "logprob"))
	o = post(t, srv.URL+"/v1/chat/completions", `{`+hello+`,"logprobs":true}`, 200)
	equal(t, "top", o.at("choices", 0, "logprobs", "content", 0, "top_logprobs"), "[]")
	equal(t, "asked of the engine", b.last().Sampling.LogProbs, 1)
}

func TestChatTools(t *testing.T) {
	srv, b := scripted(t, "Let me see.\n<tool_call>\n{\"name\": \"get\", \"arguments\": {\"city\": \"Köln\"}}\n</tool_call>")
	tools := `"tools":[{"type":"function","function":{"name":"get","parameters":{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}}}]`
	o := post(t, srv.URL+"/v1/chat/completions", `{`+hello+`,`+tools+`}`, 200)
	equal(t, "finish", o.at("choices", 0, "finish_reason"), "tool_calls")
	equal(t, "content", o.at("choices", 0, "message", "content"), "Let me see.")
	equal(t, "name", o.at("choices", 0, "message", "tool_calls", 0, "function", "name"), "get")
	equal(t, "arguments", o.at("choices", 0, "message", "tool_calls", 0, "function", "arguments"), `{"city": "Köln"}`)
	equal(t, "type", o.at("choices", 0, "message", "tool_calls", 0, "type"), "function")
	if s := b.tok.DecodeSpecial(b.last().Tokens); !strings.Contains(s, `"name": "get", "parameters": {"type": "object"`) {
		t.Errorf("the tools are not in the prompt as the template prints them: %s", s)
	}

	_, evs := sse(t, srv.URL+"/v1/chat/completions", `{`+hello+`,`+tools+`,"stream":true}`)
	args, first := "", true
	for _, e := range evs {
		c, ok := e.at("choices", 0, "delta", "tool_calls", 0).(map[string]any)
		if !ok {
			continue
		}
		f := c["function"].(map[string]any)
		equal(t, "index", c["index"], 0)
		if first {
			equal(t, "first delta", []any{f["name"], f["arguments"], c["type"], c["id"] != ""}, []any{"get", "", "function", true})
		} else if c["id"] != nil || f["name"] != nil {
			t.Errorf("a later delta names the call again: %v", c)
		}
		first = false
		args += f["arguments"].(string)
	}
	equal(t, "streamed arguments", args, `{"city": "Köln"}`)
	equal(t, "finish", evs[len(evs)-2].at("choices", 0, "finish_reason"), "tool_calls")

	o = post(t, srv.URL+"/v1/chat/completions", `{`+hello+`,`+tools+`,"tool_choice":"none"}`, 200)
	if o.at("choices", 0, "message", "tool_calls") != nil || !strings.Contains(o.at("choices", 0, "message", "content").(string), "<tool_call>") {
		t.Error("tool_choice none: expected text")
	}
	for _, choice := range []string{`"required"`, `{"type":"function","function":{"name":"get"}}`, `{"type":"allowed_tools","allowed_tools":{"mode":"required","tools":[{"type":"function","function":{"name":"get"}}]}}`} {
		post(t, srv.URL+"/v1/chat/completions", `{`+hello+`,`+tools+`,"tool_choice":`+choice+`}`, 200)
		if b.last().NewMasker == nil {
			t.Errorf("tool_choice %s: no grammar", choice)
		}
	}
	conversation := `"messages":[{"role":"user","content":"Hi"},{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"get","arguments":"{\"city\":\"Bonn\"}"}}]},{"role":"tool","tool_call_id":"c1","content":[{"type":"text","text":"rain"}]}]`
	post(t, srv.URL+"/v1/chat/completions", `{`+conversation+`,`+tools+`}`, 200)
	if s := b.tok.DecodeSpecial(b.last().Tokens); !strings.Contains(s, `"arguments": {"city": "Bonn"}`) || !strings.Contains(s, "<|im_start|>tool\nrain") {
		t.Errorf("the conversation is not in the prompt: %s", s)
	}
	// Arguments that are no JSON must not break the conversation.
	post(t, srv.URL+"/v1/chat/completions", `{"messages":[{"role":"user","content":"Hi"},{"role":"assistant","tool_calls":[{"id":"c1","type":"function","function":{"name":"get","arguments":"{city"}}]}],`+tools+`}`, 200)
}

func TestParallelCallsOff(t *testing.T) {
	one := "<tool_call>\n{\"name\": \"get\", \"arguments\": {}}\n</tool_call>"
	srv, _ := scripted(t, one+"\n"+one)
	for off, n := range map[string]int{"false": 1, "true": 2} {
		o := post(t, srv.URL+"/v1/chat/completions", `{`+hello+`,"parallel_tool_calls":`+off+`,"tools":[{"type":"function","function":{"name":"get"}}]}`, 200)
		equal(t, "calls with parallel_tool_calls "+off, len(o.at("choices", 0, "message", "tool_calls").([]any)), n)
	}
}

func TestReasoning(t *testing.T) {
	srv, b := scripted(t, "<think>\nHm.\n</think>\n\nYes")
	o := post(t, srv.URL+"/v1/chat/completions", `{`+hello+`}`, 200)
	equal(t, "reasoning", o.at("choices", 0, "message", "reasoning_content"), "Hm.")
	equal(t, "content", o.at("choices", 0, "message", "content"), "Yes")
	if n := o.at("usage", "completion_tokens_details", "reasoning_tokens").(float64); n < 4 || n > 7 {
		t.Errorf("%v reasoning tokens", n)
	}
	o = post(t, srv.URL+"/v1/chat/completions", `{`+hello+`,"reasoning_format":"none"}`, 200)
	equal(t, "content", o.at("choices", 0, "message", "content"), "<think>\nHm.\n</think>\n\nYes")
	o = post(t, srv.URL+"/v1/chat/completions", `{`+hello+`,"include_reasoning":false}`, 200)
	equal(t, "reasoning left out", o.at("choices", 0, "message", "reasoning_content"), nil)
	for _, off := range []string{`"reasoning_effort":"none"`, `"chat_template_kwargs":{"enable_thinking":false}`} {
		post(t, srv.URL+"/v1/chat/completions", `{`+hello+`,`+off+`}`, 200)
		if s := b.tok.DecodeSpecial(b.last().Tokens); !strings.HasSuffix(s, "<think>\n\n</think>\n\n") {
			t.Errorf("%s: the prompt ends with %q", off, s[len(s)-30:])
		}
	}
}

func TestCompletions(t *testing.T) {
	srv, b := scripted(t, " world")
	o := post(t, srv.URL+"/v1/completions", `{"prompt":"Hello"}`, 200)
	equal(t, "text", o.at("choices", 0, "text"), " world")
	equal(t, "object", o.at("object"), "text_completion")
	equal(t, "max_tokens", b.last().MaxTokens, 16)
	equal(t, "echo", post(t, srv.URL+"/v1/completions", `{"prompt":"Hello","echo":true}`, 200).at("choices", 0, "text"), "Hello world")

	o = post(t, srv.URL+"/v1/completions", `{"prompt":["a","b"],"n":2}`, 200)
	equal(t, "choices", len(o.at("choices").([]any)), 4)
	for i := range 4 {
		equal(t, "index", o.at("choices", i, "index"), i)
	}
	o = post(t, srv.URL+"/v1/completions", `{"prompt":[[72,105],[72]],"max_tokens":0,"echo":true}`, 200)
	equal(t, "text of tokens", []any{o.at("choices", 0, "text"), o.at("choices", 1, "text")}, []any{"Hi", "H"})
	equal(t, "finish", o.at("choices", 0, "finish_reason"), "length")

	_, evs := sse(t, srv.URL+"/v1/completions", `{"prompt":["a","b"],"stream":true,"echo":true,"stream_options":{"include_usage":true}}`)
	texts := map[float64]string{}
	for _, e := range evs[:len(evs)-2] {
		texts[e.at("choices", 0, "index").(float64)] += e.at("choices", 0, "text").(string)
	}
	equal(t, "streams", texts, map[float64]string{0: "a world", 1: "b world"})
	equal(t, "usage", evs[len(evs)-2].at("usage", "completion_tokens"), 12)
}

// What lm-eval sends, and what it does with the answer.
func TestLogLikelihood(t *testing.T) {
	srv, b := scripted(t, "!")
	o := post(t, srv.URL+"/v1/completions", `{"model":"fake","prompt":[[72,105,32,121,111],[72]],"temperature":0,"max_tokens":1,"logprobs":1,"seed":1234,"echo":true}`, 200)
	lp := o.at("choices", 0, "logprobs").(map[string]any)
	equal(t, "tokens", lp["tokens"], []string{"H", "i", " ", "y", "o", "!"})
	equal(t, "offsets", lp["text_offset"], []int{0, 1, 2, 3, 4, 5})
	probs, tops := lp["token_logprobs"].([]any), lp["top_logprobs"].([]any)
	if probs[0] != nil || tops[0] != nil {
		t.Error("the first token has log-probabilities")
	}
	for i := 1; i < len(probs); i++ {
		best := -1e9
		for _, v := range tops[i].(map[string]any) {
			best = max(best, v.(float64))
		}
		if best != probs[i].(float64) {
			t.Errorf("token %d: %v is not the best, %v", i, probs[i], best)
		}
	}
	equal(t, "asked of the engine", b.last().PromptLogProbs, 1)
}

// The last token of the list is the one that was generated, also if it ends the
// answer: lm-eval leaves it out.
func TestLogLikelihoodAtTheEnd(t *testing.T) {
	srv, b := scripted(t, "")
	b.end = 257
	body := `{"prompt":[72,105],"temperature":0,"max_tokens":1,"logprobs":1,"echo":true,"stream":`
	want, wantProbs := []string{"H", "i", "<|im_end|>"}, []any{nil, -1, -0.25}
	lp := post(t, srv.URL+"/v1/completions", body+"false}", 200).at("choices", 0, "logprobs").(map[string]any)
	equal(t, "tokens", lp["tokens"], want)
	equal(t, "log-probabilities", lp["token_logprobs"], wantProbs)
	_, evs := sse(t, srv.URL+"/v1/completions", body+"true}")
	var tokens, probs []any
	for _, e := range evs[:len(evs)-1] {
		if lp, ok := e.at("choices", 0, "logprobs").(map[string]any); ok {
			tokens, probs = append(tokens, lp["tokens"].([]any)...), append(probs, lp["token_logprobs"].([]any)...)
		}
	}
	equal(t, "tokens of a stream", tokens, want)
	equal(t, "log-probabilities of a stream", probs, wantProbs)
	// Without echo the list has what the text has.
	o := post(t, srv.URL+"/v1/completions", `{"prompt":[72,105],"logprobs":1}`, 200)
	equal(t, "tokens without echo", len(o.at("choices", 0, "logprobs", "tokens").([]any)), 0)
}

func TestEmbeddings(t *testing.T) {
	srv, _ := scripted(t, "")
	o := post(t, srv.URL+"/v1/embeddings", `{"model":"fake","input":["a","bc"]}`, 200)
	equal(t, "object", []any{o.at("object"), o.at("data", 1, "object"), o.at("data", 1, "index")}, []any{"list", "embedding", 1})
	equal(t, "embedding", o.at("data", 0, "embedding"), []float64{0.6, 0, 0.8, 0})
	equal(t, "tokens", o.at("usage", "prompt_tokens"), 3)
	o = post(t, srv.URL+"/v1/embeddings", `{"input":[72,73],"encoding_format":"base64","dimensions":2}`, 200)
	b, err := base64.StdEncoding.DecodeString(o.at("data", 0, "embedding").(string))
	if err != nil || len(b) != 8 || b[2] != 0x80 || b[3] != 0x3f { // 1.0, little-endian
		t.Errorf("got %v, %v", b, err)
	}
}

func TestModels(t *testing.T) {
	srv, _ := scripted(t, "")
	equal(t, "list", get(t, srv.URL+"/v1/models", 200).at("data", 0, "id"), "fake")
	equal(t, "one", get(t, srv.URL+"/v1/models/fake", 200).at("object"), "model")
	equal(t, "none", get(t, srv.URL+"/v1/models/org/none", 404).at("error", "code"), "model_not_found")
}

func TestStructured(t *testing.T) {
	srv, b := scripted(t, "{}")
	for _, f := range []string{
		`"response_format":{"type":"json_object"}`,
		`"response_format":{"type":"json_schema","json_schema":{"name":"x","schema":{"type":"object","properties":{"a":{"type":"integer"}}},"strict":true}}`,
		`"structured_outputs":{"regex":"[ab]+"}`, `"structured_outputs":{"choice":["a","b"]}`, `"guided_json":{"type":"object"}`,
		`"grammar":"root ::= \"a\" | \"b\""`, `"json_schema":{"type":"string"}`, `"structured_outputs":{"json":"{\"type\":\"string\"}"}`,
	} {
		post(t, srv.URL+"/v1/chat/completions", `{`+hello+`,`+f+`}`, 200)
		if b.last().NewMasker == nil {
			t.Errorf("%s: no grammar", f)
			continue
		}
		// A model that may think first thinks freely.
		logits := make([]float32, 266)
		b.last().NewMasker().Mask(logits)
		if think, _ := b.tok.ID("<think>"); logits[think] != 0 {
			t.Errorf("%s: the model may not begin to think", f)
		}
	}
	post(t, srv.URL+"/v1/chat/completions", `{`+hello+`,"response_format":{"type":"json_object"},"reasoning_effort":"none"}`, 200)
	logits := make([]float32, 266)
	m := b.last().NewMasker()
	m.Mask(logits)
	if think, _ := b.tok.ID("<think>"); logits[think] == 0 || logits['{'] != 0 || logits['x'] == 0 {
		t.Error("the grammar does not hold from the start")
	}
}

func TestFill(t *testing.T) {
	srv, b := scripted(t, "middle")
	want := "<|fim_prefix|>a<|fim_suffix|>b<|fim_middle|>"
	equal(t, "suffix", post(t, srv.URL+"/v1/completions", `{"prompt":"a","suffix":"b"}`, 200).at("choices", 0, "text"), "middle")
	equal(t, "prompt", b.tok.DecodeSpecial(b.last().Tokens), want)
	equal(t, "infill", post(t, srv.URL+"/infill", `{"input_prefix":"a","input_suffix":"b"}`, 200).at("content"), "middle")
	equal(t, "prompt", b.tok.DecodeSpecial(b.last().Tokens), want)
}

func TestExtraFields(t *testing.T) {
	srv, b := scripted(t, "abc")
	post(t, srv.URL+"/v1/completions", `{"prompt":"x","top_k":5,"min_p":0.1,"repetition_penalty":1.1,"logit_bias":{"65":-100},"stop_token_ids":[66],"ignore_eos":true,"min_tokens":2,"priority":3,"cache_salt":"s","top_p":0}`, 200)
	r := b.last()
	equal(t, "request", []any{r.Sampling.TopK, r.Sampling.MinP, r.Sampling.RepetitionPenalty, r.Sampling.LogitBias, r.StopTokens, r.IgnoreEOS, r.MinTokens, r.Priority, r.CacheSalt, r.Sampling.TopP > 0},
		[]any{5, 0.1, 1.1, map[int32]float32{65: -100}, []int32{66}, true, 2, 3, "s", true})
	post(t, srv.URL+"/v1/completions", `{"prompt":"x","use_beam_search":true,"n":2,"best_of":4,"length_penalty":0.5}`, 200)
	if r = b.last(); r.Beam == nil || r.Beam.Width != 4 || r.Beam.LengthPenalty != 0.5 || r.N != 2 {
		t.Errorf("got %+v", r)
	}
	post(t, srv.URL+"/v1/completions", `{"prompt":"x","bad_words":["ab"],"allowed_token_ids":[97,98,99]}`, 200)
	m := b.last().NewMasker()
	logits := make([]float32, 266)
	m.Mask(logits)
	if logits['a'] != 0 || logits['b'] != 0 || logits['d'] == 0 {
		t.Error("allowed_token_ids does not hold")
	}
	if err := m.Accept('a'); err != nil {
		t.Fatal(err)
	}
	clear(logits)
	m.Mask(logits)
	if logits['b'] == 0 || logits['c'] != 0 {
		t.Error("bad_words does not hold")
	}
	o := post(t, srv.URL+"/v1/completions", `{"prompt":"x","return_token_ids":true,"prompt_logprobs":1,"logprobs":0,"return_tokens_as_token_ids":true}`, 200)
	equal(t, "ids", o.at("choices", 0, "token_ids"), []int{97, 98, 99})
	equal(t, "tokens", o.at("choices", 0, "logprobs", "tokens", 0), "token_id:97")
	if o.at("choices", 0, "prompt_logprobs") == nil {
		t.Error("no prompt_logprobs")
	}
	if v := post(t, srv.URL+"/v1/completions", `{"prompt":"x","seed":-1}`, 200); v.at("choices", 0, "text") != "abc" {
		t.Error("a seed of -1 is not taken")
	}
	a := b.last().Sampling.Seed
	post(t, srv.URL+"/v1/completions", `{"prompt":"x"}`, 200)
	if a == b.last().Sampling.Seed {
		t.Error("two requests without a seed have the same")
	}
}

func TestTruncationOnlyWhenAsked(t *testing.T) {
	srv, b := scripted(t, "x")
	post(t, srv.URL+"/v1/completions", `{"prompt":"abcdef","truncate_prompt_tokens":2}`, 200)
	equal(t, "prompt", b.last().Tokens, []int{'e', 'f'})
	b.fail = &engine.ContextError{Tokens: 9000, Context: 4096}
	o := post(t, srv.URL+"/v1/chat/completions", `{`+hello+`}`, 400)
	equal(t, "code", o.at("error", "code"), "context_length_exceeded")
	if m := o.at("error", "message").(string); !strings.Contains(m, "9000") || !strings.Contains(m, "4096") {
		t.Errorf("the counts are not in %q", m)
	}
}

func TestJSONIsOrdered(t *testing.T) {
	srv, b := scripted(t, "x")
	post(t, srv.URL+"/v1/chat/completions", `{`+hello+`,"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{"z":{"type":"string"},"a":{"type":"string"}}}}}]}`, 200)
	s := b.tok.DecodeSpecial(b.last().Tokens)
	if strings.Index(s, `"z"`) > strings.Index(s, `"a"`) {
		t.Error("the keys of a schema changed their order")
	}
}
