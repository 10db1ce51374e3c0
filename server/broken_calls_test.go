package server

import (
	"strings"
	"testing"
)

// A call whose arguments are no JSON is one in every API that can show it, whole and
// in a stream, so that the agent can have it mended; sent back, it is no error.
func TestBrokenCalls(t *testing.T) {
	const args = `{"a": oops}`
	srv, b := scripted(t, `<tool_call>{"name": "get", "arguments": `+args+`</tool_call>`)
	tools := `"tools":[{"type":"function","function":` + getFunction + `}]`
	o := post(t, srv.URL+"/v1/chat/completions", `{`+hello+`,`+tools+`}`, 200)
	call := func(k string) any { return o.at("choices", 0, "message", "tool_calls", 0, "function", k) }
	equal(t, "chat", []any{call("name"), call("arguments"), o.at("choices", 0, "finish_reason"), o.at("choices", 0, "message", "content")}, []any{"get", args, "tool_calls", nil})
	_, data := sse(t, srv.URL+"/v1/chat/completions", `{`+hello+`,`+tools+`,"stream":true}`)
	streamed := ""
	for _, d := range data {
		if s, ok := d.at("choices", 0, "delta", "tool_calls", 0, "function", "arguments").(string); ok {
			streamed += s
		}
		if s, ok := d.at("choices", 0, "finish_reason").(string); ok {
			streamed += s
		}
	}
	equal(t, "chat, streamed", streamed, args+"tool_calls")

	o = post(t, srv.URL+"/v1/responses", `{"input":"a","tools":[{"type":"function","name":"get"}]}`, 200)
	equal(t, "responses", []any{o.at("output", 0, "type"), o.at("output", 0, "arguments")}, []any{"function_call", args})

	messages := `{"max_tokens":100,` + hello + `,"tools":[{"name":"get","input_schema":{"type":"object"}}]`
	o = post(t, srv.URL+"/v1/messages", messages+`}`, 200)
	equal(t, "messages", []any{o.at("content", 0, "type"), o.at("content", 0, "input", "INVALID_JSON"), o["stop_reason"]}, []any{"tool_use", args, "tool_use"})
	_, data = sse(t, srv.URL+"/v1/messages", messages+`,"stream":true}`)
	streamed = ""
	for _, d := range data {
		if s, ok := d.at("delta", "partial_json").(string); ok {
			streamed += s
		}
	}
	equal(t, "messages, streamed", streamed, `{"INVALID_JSON":"{\"a\": oops}"}`)

	o = post(t, srv.URL+"/api/chat", `{"stream":false,`+hello+`,`+tools+`}`, 200)
	if s, _ := o.at("message", "content").(string); !strings.Contains(s, args) || o.at("message", "tool_calls") != nil {
		t.Errorf("ollama: %v", o)
	}

	back := `"messages":[{"role":"user","content":"Hi"},{"role":"assistant","tool_calls":[{"id":"x","type":"function","function":{"name":"get","arguments":"{\"a\": oops}"}}]},{"role":"tool","tool_call_id":"x","content":"no JSON"}]`
	post(t, srv.URL+"/v1/chat/completions", `{`+back+`,`+tools+`}`, 200)
	if s := b.tok.DecodeSpecial(b.last().Tokens); !strings.Contains(s, `{"arguments": "{\"a\": oops}"}`) {
		t.Errorf("sent back: %s", s)
	}
	post(t, srv.URL+"/v1/responses", `{"input":[{"role":"user","content":"Hi"},{"type":"function_call","call_id":"x","name":"get","arguments":"{oops"},{"type":"function_call_output","call_id":"x","output":"no JSON"}]}`, 200)
}

// A call between tags of a tool that was not offered is one: the agent says that
// there is none. Without tags it is text.
func TestCallsOfUnknownTools(t *testing.T) {
	const call = `{"name": "none", "arguments": {"a": 1}}`
	tools := `"tools":[{"type":"function","function":` + getFunction + `}]`
	srv, _ := scripted(t, `<tool_call>`+call+`</tool_call>`)
	o := post(t, srv.URL+"/v1/chat/completions", `{`+hello+`,`+tools+`}`, 200)
	equal(t, "with tags", []any{o.at("choices", 0, "message", "tool_calls", 0, "function", "name"), o.at("choices", 0, "finish_reason")}, []any{"none", "tool_calls"})
	bare, _ := scripted(t, call)
	o = post(t, bare.URL+"/v1/chat/completions", `{`+hello+`,`+tools+`}`, 200)
	equal(t, "without", []any{o.at("choices", 0, "message", "content"), o.at("choices", 0, "finish_reason")}, []any{call, "stop"})
}
