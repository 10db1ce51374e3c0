package server

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// A prompt is cut as vLLM cuts it, and the client is told how much of it is gone.
func TestTruncate(t *testing.T) {
	srv, b := scripted(t, "xyz")
	long := strings.Repeat("a", 4000) + strings.Repeat("b", 1000) // the context has 4096
	for _, x := range []struct{ body, want, gone string }{
		{`"prompt":"abcdef","truncate_prompt_tokens":2`, "ef", "4"},
		{`"prompt":"abcdef","truncate_prompt_tokens":2,"truncation_side":"left"`, "ef", "4"},
		{`"prompt":"abcdef","truncate_prompt_tokens":2,"truncation_side":"right"`, "ab", "4"},
		{`"prompt":[97,98,99],"truncate_prompt_tokens":2,"truncation_side":"right"`, "ab", "1"},
		{`"prompt":"abcdef","truncate_prompt_tokens":6`, "abcdef", ""},
		{`"prompt":"abcdef","truncate_prompt_tokens":-1`, "abcdef", ""},
		{`"prompt":"abcdef","truncation_side":"right"`, "abcdef", ""},
		{`"prompt":"` + long + `","truncate_prompt_tokens":-1,"max_tokens":96`, long[1000:], "1000"},
		{`"prompt":"` + long + `","truncate_prompt_tokens":-1,"max_tokens":0`, long[904:], "904"},
		{`"prompt":"` + long + `","truncate_prompt_tokens":-1,"max_tokens":-1`, long[905:], "905"},
		{`"prompt":"` + long + `","truncate_prompt_tokens":-1,"max_tokens":96,"truncation_side":"right"`, long[:4000], "1000"},
	} {
		status, h, raw := send(t, http.MethodPost, srv.URL+"/v1/completions", `{`+x.body+`}`)
		if got := b.tok.DecodeSpecial(b.last().Tokens); status != 200 || got != x.want || h.Get("X-Ridge-Truncated") != x.gone {
			t.Errorf("%.60s: status %d, %d tokens, %q gone, want %d and %q: %s", x.body, status, len(got), h.Get("X-Ridge-Truncated"), len(x.want), x.gone, raw)
		}
	}
	o := post(t, srv.URL+"/v1/completions", `{"prompt":["abcdef","abc"],"truncate_prompt_tokens":2,"echo":true,"max_tokens":1}`, 200)
	equal(t, "usage of two", []any{o.at("usage", "prompt_tokens"), o.at("usage", "prompt_tokens_details", "truncated_tokens")}, []any{4, 5})
	equal(t, "echo", []any{o.at("choices", 0, "text"), o.at("choices", 1, "text")}, []any{"efx", "bcx"})
	o = post(t, srv.URL+"/v1/chat/completions", `{`+hello+`,"truncate_prompt_tokens":3}`, 200)
	equal(t, "usage of a chat", []any{o.at("usage", "prompt_tokens"), o.at("usage", "prompt_tokens_details", "truncated_tokens")}, []any{3, 18})
	_, evs := sse(t, srv.URL+"/v1/chat/completions", `{`+hello+`,"truncate_prompt_tokens":3,"stream":true,"stream_options":{"include_usage":true}}`)
	equal(t, "usage of a stream", evs[len(evs)-2].at("usage", "prompt_tokens_details", "truncated_tokens"), 18)
	equal(t, "llama-server's word", post(t, srv.URL+"/completion", `{"prompt":"abcdef","truncate_prompt_tokens":2}`, 200)["truncated"], true)

	// Embeddings keep the beginning, as vLLM's do.
	for body, want := range map[string]string{`,"truncate_prompt_tokens":2`: "ab", `,"truncate_prompt_tokens":2,"truncation_side":"left"`: "ef"} {
		_, h, _ := send(t, http.MethodPost, srv.URL+"/v1/embeddings", `{"input":"abcdef"`+body+`}`)
		equal(t, "embedding", []any{b.tok.DecodeSpecial(b.last().Tokens), h.Get("X-Ridge-Truncated")}, []any{want, 4})
	}
	_, h, _ := send(t, http.MethodPost, srv.URL+"/v1/embeddings", `{"input":"`+long+`","truncate_prompt_tokens":-1}`)
	equal(t, "long embedding", []any{len(b.last().Tokens), h.Get("X-Ridge-Truncated")}, []any{4096, 904})
	_, h, _ = send(t, http.MethodPost, srv.URL+"/api/embed", `{"model":"fake","input":"`+long+`","truncate":true}`)
	equal(t, "Ollama's", []any{len(b.last().Tokens), h.Get("X-Ridge-Truncated")}, []any{4096, 904})

	for body, param := range map[string]string{
		`"truncate_prompt_tokens":0`:                          "truncate_prompt_tokens",
		`"truncate_prompt_tokens":-2`:                         "truncate_prompt_tokens",
		`"truncation_side":"middle"`:                          "truncation_side",
		`"truncate_prompt_tokens":-1,"max_tokens":4096`:       "max_tokens",
		`"truncate_prompt_tokens":-1,"max_tokens":2147483647`: "max_tokens",
	} {
		o := post(t, srv.URL+"/v1/completions", `{"prompt":"a",`+body+`}`, 400)
		equal(t, fmt.Sprint("param of ", body), o.at("error", "param"), param)
	}
}
