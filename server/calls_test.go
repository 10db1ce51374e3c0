package server

import (
	"strconv"
	"strings"
	"testing"

	"ridge/text/tokenizer"
)

const getFunction = `{"name":"get","parameters":{"type":"object","properties":{"a":{"type":"integer"}}}}`

// Requests with functions, of the time before tools, are answered in its form.
func TestLegacyFunctions(t *testing.T) {
	srv, _ := scripted(t, `<tool_call>{"name": "get", "arguments": {"a": 1}}</tool_call>`)
	body := `{` + hello + `,"functions":[` + getFunction + `]`
	o := post(t, srv.URL+"/v1/chat/completions", body+`}`, 200)
	equal(t, "name", o.at("choices", 0, "message", "function_call", "name"), "get")
	equal(t, "arguments", o.at("choices", 0, "message", "function_call", "arguments"), `{"a": 1}`)
	equal(t, "finish", o.at("choices", 0, "finish_reason"), "function_call")
	equal(t, "tool calls", o.at("choices", 0, "message", "tool_calls"), nil)
	name, args, finish := "", "", ""
	_, data := sse(t, srv.URL+"/v1/chat/completions", body+`,"stream":true}`)
	for _, d := range data {
		if d == nil {
			continue
		}
		if s, ok := d.at("choices", 0, "delta", "function_call", "name").(string); ok {
			name += s
		}
		if s, ok := d.at("choices", 0, "delta", "function_call", "arguments").(string); ok {
			args += s
		}
		if s, ok := d.at("choices", 0, "finish_reason").(string); ok {
			finish = s
		}
	}
	equal(t, "streamed", name+args+finish, `get{"a": 1}function_call`)
}

// An answer that max_tokens cuts off within a call shows no marks, in any
// dialect, whole or as a stream.
func TestCutCalls(t *testing.T) {
	srv, b := scripted(t, `Yes. <tool_call>{"name": "get", "arguments": {"a": 12345}}</tool_call>`)
	tools := `"tools":[{"type":"function","function":` + getFunction + `}]`
	for max := 1; max < len(b.tok.Encode(nil, `Yes. <tool_call>{"name": "get", "arguments": {"a": 1234`, tokenizer.EncodeOptions{ParseSpecial: true})); max++ {
		limit := `,"max_tokens":` + strconv.Itoa(max)
		for route, body := range map[string]string{
			"/v1/chat/completions": `{` + hello + `,` + tools + limit,
			"/v1/messages":         `{` + hello + `,"tools":[{"name":"get","input_schema":{"type":"object"}}]` + limit,
			"/v1/responses":        `{"input":"a","tools":[{"type":"function","name":"get"}],"max_output_tokens":` + strconv.Itoa(max),
			"/api/chat":            `{` + hello + `,` + tools + `,"options":{"num_predict":` + strconv.Itoa(max) + `}`,
		} {
			for _, stream := range []string{`,"stream":false}`, `,"stream":true}`} {
				code, _, answer := send(t, "POST", srv.URL+route, body+stream)
				if code != 200 {
					t.Fatalf("%s: status %d: %s", route, code, answer)
				}
				said := strings.Split(string(answer), `"tools"`)[0] // responses repeat the request
				if strings.Contains(said, "tool_call>") || strings.Contains(said, `"arguments\"`) {
					t.Fatalf("%s, %d tokens%s: %s", route, max, stream, answer)
				}
			}
		}
	}
}

// Blocks come in the same order in whole answers and in streams.
func TestOrderOfBlocks(t *testing.T) {
	srv, _ := scripted(t, `<think>Hm.</think>One<tool_call>{"name": "get", "arguments": {"a": 1}}</tool_call>Two<tool_call>{"name": "get", "arguments": {"a": 2}}</tool_call>`)
	body := `{"max_tokens":1000,` + hello + `,"tools":[{"name":"get","input_schema":{"type":"object"}}]`
	whole, streamed := "", ""
	for _, c := range post(t, srv.URL+"/v1/messages", body+`}`, 200).at("content").([]any) {
		whole += c.(map[string]any)["type"].(string) + " "
	}
	_, data := sse(t, srv.URL+"/v1/messages", body+`,"stream":true}`)
	for _, d := range data {
		if s, ok := d.at("content_block", "type").(string); ok {
			streamed += s + " "
		}
	}
	equal(t, "whole", whole, "thinking text tool_use text tool_use ")
	equal(t, "streamed", streamed, whole)
}
