package server

import (
	"path/filepath"
	"testing"

	"ridge/engine"
	"ridge/model"
	"ridge/server/run"
)

// An answer that only repeats itself ends where that was asked for, by the request or
// for all of them, and every API says it as it can.
func TestEndLoops(t *testing.T) {
	mm, err := model.Open(filepath.FromSlash(tinyPath), model.Options{Workers: 1, Context: 700, KVBytes: 16 << 20})
	if err != nil {
		t.Fatal(err)
	}
	_, srv := serveAs(t, mm, run.ModelConfig{Path: tinyPath, EndLoops: new(true)}, engine.Options{})
	const loop = `"temperature":0,"logit_bias":{"10":100},`
	o := post(t, srv.URL+"/v1/completions", `{"prompt":"ab",`+loop+`"max_tokens":500}`, 200)
	equal(t, "the server's way", []any{o.at("choices", 0, "finish_reason"), o.at("choices", 0, "stop_reason"), o.at("usage", "completion_tokens")}, []any{"length", "loop", 400})
	o = post(t, srv.URL+"/v1/completions", `{"prompt":"ab",`+loop+`"max_tokens":500,"end_loops":false}`, 200)
	equal(t, "the request's way", []any{o.at("choices", 0, "finish_reason"), o.at("choices", 0, "stop_reason"), o.at("usage", "completion_tokens")}, []any{"length", nil, 500})
	o = post(t, srv.URL+"/v1/completions", `{"prompt":"ab",`+loop+`"max_tokens":450,"ignore_eos":true}`, 200)
	equal(t, "all tokens", o.at("usage", "completion_tokens"), 450)
	_, evs := sse(t, srv.URL+"/v1/chat/completions", `{"messages":[{"role":"user","content":"ab"}],`+loop+`"max_tokens":500,"stream":true}`)
	last := evs[len(evs)-2]
	equal(t, "a stream", []any{last.at("choices", 0, "finish_reason"), last.at("choices", 0, "stop_reason")}, []any{"length", "loop"})
	o = post(t, srv.URL+"/completion", `{"prompt":"ab","temperature":0,"logit_bias":[[10,100]],"n_predict":500}`, 200)
	equal(t, "llama-server", []any{o.at("stop_type"), o.at("stopping_word"), o.at("tokens_predicted")}, []any{"limit", "loop", 400})
}

// Where nothing is said answers without a limit of tokens end that only repeat
// themselves, and those with a very high one.
func TestEndLoopsWithoutLimit(t *testing.T) {
	mm, err := model.Open(filepath.FromSlash(tinyPath), model.Options{Workers: 1, Context: 700, KVBytes: 16 << 20})
	if err != nil {
		t.Fatal(err)
	}
	_, srv := serveAs(t, mm, run.ModelConfig{Path: tinyPath}, engine.Options{})
	const ask = `{"messages":[{"role":"user","content":"ab"}],"temperature":0,"logit_bias":{"10":100}`
	for more, want := range map[string][]any{
		``:                                     {"loop", 400},
		`,"max_tokens":-1`:                     {"loop", 400},
		`,"max_tokens":32000`:                  {"loop", 400},
		`,"max_tokens":500`:                    {nil, 500},
		`,"max_tokens":500,"end_loops":true`:   {"loop", 400},
		`,"max_tokens":9000,"end_loops":false`: {nil, nil},
	} {
		o := post(t, srv.URL+"/v1/chat/completions", ask+more+`}`, 200)
		got := []any{o.at("choices", 0, "stop_reason"), o.at("usage", "completion_tokens")}
		if want[1] == nil {
			got[1] = nil
		}
		equal(t, "limit "+more, got, want)
	}
}
