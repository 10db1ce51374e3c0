package server

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"ridge/engine"
	"ridge/text/tokenizer"
)

// writes reports whether a masker lets the tokens of text come one after the
// other, and the answer end after them.
func writes(tok *tokenizer.Tokenizer, m engine.Masker, text string) bool {
	for _, id := range append(tok.Encode(nil, text, tokenizer.EncodeOptions{ParseSpecial: true}), tok.EOS()) {
		logits := make([]float32, tok.VocabSize())
		m.Mask(logits)
		if logits[id] != 0 || id != tok.EOS() && m.Accept(id) != nil {
			return false
		}
	}
	return true
}

const (
	addTool   = `"tools":[{"type":"function","function":{"name":"add","parameters":{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"],"additionalProperties":false}}}]`
	sumFormat = `"response_format":{"type":"json_schema","json_schema":{"name":"x","schema":{"type":"object","properties":{"sum":{"type":"integer"}},"required":["sum"],"additionalProperties":false}}}`
)

// With a format and tools that may be called or not, an answer is a text of the
// format or calls with arguments that meet their schemas.
func TestFormatOrTools(t *testing.T) {
	call := "<tool_call>\n{\"name\":\"add\",\"arguments\":{\"a\":1}}\n</tool_call>"
	for _, c := range []struct {
		extra string
		good  []string
		bad   []string
	}{
		{sumFormat, []string{`{"sum":3}`, call, call + "\n" + call}, []string{"", "hello", `{"sum":"3"}`, `{"a":1}`, "<tool_call>\n{\"name\":\"add\",\"arguments\":{}}\n</tool_call>", `{"sum":3}` + call}},
		{sumFormat + `,"parallel_tool_calls":false`, []string{`{"sum":3}`, call}, []string{call + "\n" + call}},
		{`"response_format":{"type":"json_object"}`, []string{`{"any":[1]}`, call}, []string{"[1]"}},
		{`"structured_outputs":{"choice":["yes","no"]}`, []string{"yes", "no", call}, []string{"maybe"}},
		{`"structured_outputs":{"regex":"[ab]+"}`, []string{"abba", call}, []string{"c"}},
		{`"grammar":"root ::= \"x\"+"`, []string{"xx", call}, []string{"y"}},
		{sumFormat + `,"tool_choice":"none"`, []string{`{"sum":3}`}, []string{call}},
		{sumFormat + `,"tool_choice":"required"`, []string{call}, []string{`{"sum":3}`}},
	} {
		srv, b := scripted(t, `{"sum":3}`)
		post(t, srv.URL+"/v1/chat/completions", `{"messages":[{"role":"user","content":"x"}],"reasoning_effort":"none",`+addTool+`,`+c.extra+`}`, 200)
		for _, text := range c.good {
			if !writes(b.tok, b.last().NewMasker(), text) {
				t.Errorf("%s: %q is not allowed", c.extra, text)
			}
		}
		for _, text := range c.bad {
			if writes(b.tok, b.last().NewMasker(), text) {
				t.Errorf("%s: %q is allowed", c.extra, text)
			}
		}
	}
	// A model that may reason does so first, without bounds.
	srv, b := scripted(t, `{"sum":3}`)
	post(t, srv.URL+"/v1/chat/completions", `{"messages":[{"role":"user","content":"x"}],`+addTool+`,`+sumFormat+`}`, 200)
	for text, want := range map[string]bool{"<think>hm</think>" + call: true, `<think>hm</think>{"sum":1}`: true, "<think>hm</think>hm": false, call: true, "hm": false} {
		if writes(b.tok, b.last().NewMasker(), text) != want {
			t.Errorf("%q: allowed is %v", text, !want)
		}
	}
	for reply, want := range map[string][2]any{`{"sum":3}`: {`{"sum":3}`, "stop"}, call: {nil, "tool_calls"}} {
		srv, _ := scripted(t, reply)
		o := post(t, srv.URL+"/v1/chat/completions", `{"messages":[{"role":"user","content":"x"}],`+addTool+`,`+sumFormat+`}`, 200)
		equal(t, "content", o.at("choices", 0, "message", "content"), want[0])
		equal(t, "finish", o.at("choices", 0, "finish_reason"), want[1])
	}
	// A schema that cannot be held is an error for a strict tool only.
	loose := `"tools":[{"type":"function","function":{"name":"add","strict":%v,"parameters":{"type":"object","properties":{"a":{"$dynamicRef":"#x"}}}}}]`
	post(t, srv.URL+"/v1/chat/completions", `{"messages":[{"role":"user","content":"x"}],`+fmt.Sprintf(loose, false)+`,`+sumFormat+`}`, 200)
	o := post(t, srv.URL+"/v1/chat/completions", `{"messages":[{"role":"user","content":"x"}],`+fmt.Sprintf(loose, true)+`,`+sumFormat+`}`, 400)
	if m := o.at("error", "message").(string); m == "" {
		t.Error("no message")
	}
}

// What of a schema is not enforced is named in a header of every API, in streams
// too; where strict asks for all of it, it is an error that names it.
func TestUnenforcedHeader(t *testing.T) {
	bad := `{"type":"object","properties":{"a":{"$dynamicRef":"#x"},"b":{"type":"string","format":"odd"}},"nullable":true}`
	tool := `"tools":[{"type":"function","function":{"name":"f","strict":%v,"parameters":` + bad + `}}],"tool_choice":"required"`
	chat := `"messages":[{"role":"user","content":"x"}]`
	format := `"response_format":{"type":"json_schema","json_schema":{"name":"n","strict":%v,"schema":` + bad + `}}`
	srv, _ := scripted(t, `{"b":"x"}`)
	for _, c := range []struct{ path, body string }{
		{"/v1/chat/completions", chat + `,` + fmt.Sprintf(format, false)},
		{"/v1/chat/completions", `"stream":true,` + chat + `,` + fmt.Sprintf(format, false)},
		{"/v1/chat/completions", chat + `,` + fmt.Sprintf(tool, false)},
		{"/v1/completions", `"prompt":"x",` + fmt.Sprintf(format, false)},
		{"/v1/responses", `"input":"x","text":{"format":{"type":"json_schema","name":"n","schema":` + bad + `}}`},
		{"/v1/messages", `"max_tokens":9,` + chat + `,"output_config":{"format":{"type":"json_schema","schema":` + bad + `}}`},
	} {
		res, err := http.Post(srv.URL+c.path, "application/json", strings.NewReader(`{`+c.body+`}`))
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(res.Body)
		res.Body.Close()
		got := strings.Join(res.Header.Values("X-Ridge-Unenforced"), "|")
		for _, want := range []string{`#/properties/a: "$dynamicRef": left out: keyword not supported`, `#/properties/b: "format": unknown format "odd"`, `#: "nullable": unknown keyword`} {
			if res.StatusCode != 200 || !strings.Contains(got, want) {
				t.Errorf("%s %s: %d %s: header %q, want %q", c.path, c.body, res.StatusCode, text, got, want)
			}
		}
	}
	for _, body := range []string{fmt.Sprintf(format, true), fmt.Sprintf(tool, true), `"guided_json":` + bad} {
		o := post(t, srv.URL+"/v1/chat/completions", `{`+chat+`,`+body+`}`, 400)
		if m := o.at("error", "message").(string); !strings.Contains(m, `#/properties/a: "$dynamicRef"`) {
			t.Errorf("%s: %s", body, m)
		}
	}
}

// A format that several fields name is one; two that differ are an error.
func TestFormatNamedTwice(t *testing.T) {
	srv, b := scripted(t, "x1")
	chat := `{"messages":[{"role":"user","content":"x"}],"reasoning_effort":"none",`
	post(t, srv.URL+"/v1/chat/completions", chat+`"structured_outputs":{"grammar":"root ::= \"x\" [0-9]"},"guided_grammar":"root ::= \"x\" [0-9]","grammar":"root ::= \"x\" [0-9]"}`, 200)
	for text, want := range map[string]bool{"x1": true, "y1": false} {
		if writes(b.tok, b.last().NewMasker(), text) != want {
			t.Errorf("%q: allowed is %v", text, !want)
		}
	}
	const lark = `"start: \"x\" DIGIT\nDIGIT: /[0-9]/"`
	post(t, srv.URL+"/v1/chat/completions", chat+`"structured_outputs":{"grammar":`+lark+`},"guided_grammar":`+strings.Replace(lark, `]/"`, `]/\n"`, 1)+`}`, 200)
	for text, want := range map[string]bool{"x1": true, "y1": false, "x": false} {
		if writes(b.tok, b.last().NewMasker(), text) != want {
			t.Errorf("Lark: %q: allowed is %v", text, !want)
		}
	}
	o := post(t, srv.URL+"/v1/chat/completions", chat+`"guided_grammar":"start: x"}`, 400)
	equal(t, "a wrong grammar", o.at("error", "message"), `guided_grammar: grammar: lark: line 1, column 8: rule "x" not defined`)
	post(t, srv.URL+"/v1/chat/completions", chat+`"structured_outputs":{"choice":["a","b"]},"guided_choice":["a","b"]}`, 200)
	post(t, srv.URL+"/v1/chat/completions", chat+`"structured_outputs":{"choice":["a","b"]},"guided_choice":["a","c"]}`, 400)
}

func TestStructuralTagField(t *testing.T) {
	old := `{"type":"structural_tag","structures":[{"begin":"<f>","schema":{"type":"integer"},"end":"</f>"}],"triggers":["<f"]}`
	text, _ := json.Marshal(old)
	for _, field := range []string{
		`"response_format":` + old, `"structured_outputs":{"structural_tag":` + string(text) + `}`, `"structured_outputs":{"structural_tag":` + old + `}`,
		`"response_format":{"type":"structural_tag","format":{"type":"triggered_tags","triggers":["<f"],"tags":[{"begin":"<f>","content":{"type":"json_schema","json_schema":{"type":"integer"}},"end":"</f>"}]}}`,
	} {
		srv, b := scripted(t, "x")
		post(t, srv.URL+"/v1/chat/completions", `{"messages":[{"role":"user","content":"x"}],"reasoning_effort":"none",`+field+`}`, 200)
		for text, want := range map[string]bool{"so <f>5</f> it is": true, "free": true, "<f>x</f>": false, "<f>5": false} {
			if writes(b.tok, b.last().NewMasker(), text) != want {
				t.Errorf("%s: %q: allowed is %v", field, text, !want)
			}
		}
		equal(t, "code", post(t, srv.URL+"/v1/chat/completions", `{"messages":[{"role":"user","content":"x"}],`+addTool+`,`+field+`}`, 400).at("error", "code"), "unsupported")
	}
	srv, _ := scripted(t, "x")
	post(t, srv.URL+"/v1/chat/completions", `{"messages":[{"role":"user","content":"x"}],"response_format":{"type":"structural_tag","format":{"type":"magic"}}}`, 400)
}

// A real model with both: whatever it does is one or the other.
func TestFormatOrToolsRealModel(t *testing.T) {
	_, srv := serveSmol(t)
	seen := map[string]int{}
	for seed := range 3 {
		body := fmt.Sprintf(`{"messages":[{"role":"user","content":"What is 2+2?"}],"seed":%d,"temperature":1,"max_tokens":80,%s,%s}`, seed, addTool, sumFormat)
		a := post(t, srv.URL+"/v1/chat/completions", body, 200)
		why := a.at("choices", 0, "finish_reason").(string)
		seen[why]++
		var x struct{ Sum, A *int }
		switch why {
		case "tool_calls":
			if err := json.Unmarshal([]byte(a.at("choices", 0, "message", "tool_calls", 0, "function", "arguments").(string)), &x); err != nil || x.A == nil {
				t.Errorf("%v: %v", err, a.at("choices", 0, "message"))
			}
		case "stop":
			if err := json.Unmarshal([]byte(a.at("choices", 0, "message", "content").(string)), &x); err != nil || x.Sum == nil {
				t.Errorf("%v: %v", err, a.at("choices", 0, "message"))
			}
		}
	}
	t.Logf("%v", seen)
}
