package chat

import (
	"encoding/json"
	"reflect"
	"testing"
)

// parseCut is parseIn of an answer that was cut off.
func parseCut(s Syntax, o ParseOptions, text string, n int) result {
	return parseTo((*Parser).Cut, s, o, text, n)
}

// The forms of further families.
func TestParseMoreForms(t *testing.T) {
	think := SyntaxOf("<think></think><tool_call>")
	for _, c := range []struct {
		name, source, text, prompt string
		want                       result
	}{
		{name: "bare pythonic", text: `[get_weather(city="Köln", days=3), now()]`, want: result{Calls: []string{call1, "now{}"}}},
		{name: "a list of words", text: `[one(a=1)]`, want: result{Text: `[one(a=1)]`}},
		{name: "python_start", text: `<|python_start|>[get_weather(city='Köln', days=3)]<|python_end|>`, want: result{Calls: []string{call1}}},
		{name: "smollm3", source: "<tool_call><code>", text: "I look.\n<code>\nget_weather(city=\"Köln\", days=3)\n</code>", want: result{Text: "I look.", Calls: []string{call1}}},
		{name: "code without a call", source: "<tool_call><code>", text: "<code>x = 1</code>", want: result{Text: "<code>x = 1</code>"}},
		{name: "code elsewhere", text: "<code>get_weather(city=\"Köln\")</code>", want: result{Text: "<code>get_weather(city=\"Köln\")</code>"}},
		{name: "tool_code", text: "```tool_code\nprint(default_api.get_weather(city=\"Köln\", days=3))\n```", want: result{Calls: []string{call1}}},
		{name: "tool_code, assigned", text: "```tool_code\nw = get_weather(city=\"Köln\", days=3)\n```", want: result{Calls: []string{call1}}},
		{name: "olmo 3", text: "<function_calls>\nget_weather(city=\"Köln\", days=3)\nnow()\n</function_calls>", want: result{Calls: []string{call1, "now{}"}}},
		{name: "nemotron", text: `<TOOLCALL>[{"name": "get_weather", "arguments": {"city": "Köln", "days": 3}}]</TOOLCALL>`, want: result{Calls: []string{call1}}},
		{name: "glm 4", text: "get_weather\n{\"city\": \"Köln\", \"days\": 3}", want: result{Calls: []string{call1}}},
		{name: "a word and JSON", text: "weather\n{\"city\": \"Köln\"}", want: result{Text: "weather\n{\"city\": \"Köln\"}"}},
		{name: "internlm 2", source: "<|action_start|>", text: "Yes.<|action_start|><|plugin|>\n{\"name\": \"get_weather\", \"parameters\": {\"city\": \"Köln\", \"days\": 3}}<|action_end|>", want: result{Text: "Yes.", Calls: []string{call1}}},
		{name: "granite function_call", text: `<function_call>{"name": "get_weather", "arguments": {"city": "Köln", "days": 3}}`, want: result{Calls: []string{call1}}},
		{name: "minimax m3", source: "]<]minimax[>[", text: "<mm:think>Hm.</mm:think>Yes.]<]minimax[>[<tool_call>\n]<]minimax[>[<invoke name=\"get_weather\">]<]minimax[>[<city>Köln]<]minimax[>[</city>]<]minimax[>[<days>3]<]minimax[>[</days>]<]minimax[>[</invoke>\n]<]minimax[>[</tool_call>", want: result{Reasoning: "Hm.", Text: "Yes.", Calls: []string{call1}}},
		{name: "minimax m3, nested", source: "]<]minimax[>[", text: "]<]minimax[>[<tool_call>]<]minimax[>[<invoke name=\"now\">]<]minimax[>[<a>]<]minimax[>[<item>1]<]minimax[>[</item>]<]minimax[>[<item>]<]minimax[>[<b>x]<]minimax[>[</b>]<]minimax[>[</item>]<]minimax[>[</a>]<]minimax[>[</invoke>]<]minimax[>[</tool_call>", want: result{Calls: []string{`now{"a":[1,{"b":"x"}]}`}}},
		{name: "kimi k3", source: "<|open|><|sep|>", prompt: "<|open|>think<|sep|>", text: "Hm.<|close|>think<|sep|><|open|>response<|sep|>Yes.<|close|>response<|sep|><|open|>tools<|sep|><|open|>call tool=\"get_weather\" index=\"1\"<|sep|><|open|>argument key=\"city\" type=\"string\"<|sep|>Köln<|close|>argument<|sep|><|open|>argument key=\"days\" type=\"number\"<|sep|>3<|close|>argument<|sep|><|close|>call<|sep|><|close|>tools<|sep|><|close|>message<|sep|>", want: result{Reasoning: "Hm.", Text: "Yes.", Calls: []string{call1}}},
		{name: "kimi without a section", text: `<|tool_call_begin|>functions.get_weather:0<|tool_call_argument_begin|>{"city": "Köln", "days": 3}<|tool_call_end|>`, want: result{Calls: []string{call1}}},
		{name: "minicpm 5", text: `<function name="get_weather"><param name="city"><![CDATA[Köln]]></param><param name="days">3</param></function>`, want: result{Calls: []string{call1}}},
		{name: "apertus", source: "<|tools_prefix|>", text: `<|inner_prefix|>Hm.<|inner_suffix|><|tools_prefix|>[{"get_weather": {"city": "Köln", "days": 3}}, {"now": {}}]<|tools_suffix|>`, want: result{Reasoning: "Hm.", Calls: []string{call1, "now{}"}}},
		{name: "apriel", source: "[BEGIN FINAL RESPONSE]", prompt: "Here are my reasoning steps:\n", text: "Hm.\n[BEGIN FINAL RESPONSE]\nYes.\n<tool_calls>[{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Köln\", \"days\": 3}}]</tool_calls>", want: result{Reasoning: "Hm.", Text: "Yes.", Calls: []string{call1}}},
		{name: "command r7b's tags", source: "<|START_ACTION|><|END_THINKING|>", text: "<|START_THINKING|>Hm.<|END_THINKING|><|START_RESPONSE|>Yes.<|END_RESPONSE|>", want: result{Reasoning: "Hm.", Text: "Yes."}},
		{name: "gemma 4's tags", source: "<|tool_call>", text: "<|channel>thought\nHm.<channel|>Yes.<channel|>", want: result{Reasoning: "Hm.", Text: "Yes."}},
		{name: "gigachat", text: "Yes.<|message_sep|>\n\nfunction call<|role_sep|>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Köln\", \"days\": 3}}", want: result{Text: "Yes.", Calls: []string{call1}}},
		{name: "harmony to a tool not offered", source: "<|channel|><|message|>", text: "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant to=python<|channel|>commentary<|message|>1+1<|call|><|start|>assistant<|channel|>final<|message|>Yes.", want: result{Reasoning: "Hm.1+1", Text: "Yes."}},
		{name: "qwen-coder without its opening tag", text: "Yes.\n<function=get_weather>\n<parameter=city>\nKöln\n</parameter>\n<parameter=days>\n3\n</parameter>\n</function>\n</tool_call>", want: result{Text: "Yes.", Calls: []string{call1}}},
		{name: "a value's own last line break", text: "<seed:tool_call><function=get_weather><parameter=city>Köln\n</parameter></function></seed:tool_call>", want: result{Calls: []string{`get_weather{"city":"Köln\n"}`}}},
		{name: "a fenced block", text: "I call:\n```json\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Köln\", \"days\": 3}}\n```", want: result{Text: "I call:", Calls: []string{call1}}},
		{name: "a fenced block without a language", text: "I call:\n```\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Köln\", \"days\": 3}}\n```\nDone.", want: result{Text: "I call:\nDone.", Calls: []string{call1}}},
		{name: "other fenced blocks", text: "```\n{\"a\": 1}\n```\n```\nmake\n```\n```go\nfunc f() {}\n```", want: result{Text: "```\n{\"a\": 1}\n```\n```\nmake\n```\n```go\nfunc f() {}\n```"}},
		{name: "qwen 2.5 coder", text: "<tools>\n{\"name\": \"now\"}\n</tools>", want: result{Calls: []string{"now{}"}}},
		{name: "tags of tools", text: "In <tools> there is {\"name\": \"x\"}.", want: result{Text: "In <tools> there is {\"name\": \"x\"}."}},
		{name: "bare, nothing for arguments", text: "{\"name\": \"now\", \"arguments\": \"\"}", want: result{Calls: []string{"now{}"}}},
		{name: "bare, broken", text: "{\"name\": \"now\", \"arguments\": {\"a\": Paris}}", want: result{Calls: []string{`now!{"a": Paris}}`}}},
		{name: "another fenced block", text: "So:\n```json\n{\"name\": \"Anna\", \"arguments\": {}}\n```", want: result{Text: "So:\n```json\n{\"name\": \"Anna\", \"arguments\": {}}\n```"}},
		{name: "a call in reasoning that is never closed", source: "<think></think><tool_call>", text: "<think>Hm.\n<tool_call>{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Köln\", \"days\": 3}}</tool_call>", want: result{Reasoning: "Hm.", Calls: []string{call1}}},
		{name: "and in one that the prompt began", source: "<think></think><tool_call>", prompt: "<think>\n", text: "<tool_call>{\"name\": \"now\"}</tool_call>", want: result{Calls: []string{"now{}"}}},
		{name: "a call that reasoning speaks of", source: "<think></think><tool_call>", text: "<think>Say <tool_call>{\"name\": \"now\"}</tool_call> or not.</think>No.", want: result{Reasoning: "Say <tool_call>{\"name\": \"now\"}</tool_call> or not.", Text: "No."}},
		{name: "a mark that reasoning speaks of", source: "<think></think><tool_call>", text: "<think>What is <tool_call> for", want: result{Reasoning: "What is <tool_call> for"}},
		{name: "a closing tag alone", source: "<think></think><tool_call>", text: "</think>\n\nYes.", want: result{Text: "Yes."}},
	} {
		syn := SyntaxOf(c.source)
		o := ParseOptions{Tools: weatherTools, Prompt: c.prompt}
		for _, n := range []int{1, 2, 3, 7, 1000} {
			if got := parseIn(syn, o, c.text, n); !reflect.DeepEqual(got, c.want) {
				t.Errorf("%s, in pieces of %d bytes:\n got %q\nwant %q", c.name, n, got, c.want)
			}
		}
	}
	keep := parseIn(think, ParseOptions{KeepReasoning: true, Prompt: "assistant\n<think>\n"}, "Hm.</think>Yes.", 3)
	if keep.Text != "<think>\nHm.</think>Yes." {
		t.Errorf("reasoning that is kept: %q", keep.Text)
	}
	on := parseIn(think, ParseOptions{Continue: true, Prompt: "assistant\n<think>\nHm"}, " yes.</think>Yes.", 3)
	if on.Reasoning != " yes." || on.Text != "Yes." {
		t.Errorf("reasoning that is continued: %q", on)
	}
}

// An answer that was cut off shows no marks: a call as far as it came, or
// nothing of it.
func TestParseCut(t *testing.T) {
	for _, c := range []struct {
		name, source, text string
		want               result
	}{
		{"a mark's beginning", "", "Yes.\n<tool_c", result{Text: "Yes.\n"}},
		{"a mark", "", "Yes. <tool_call>", result{Text: "Yes. "}},
		{"before the name", "", "Yes.<tool_call>\n{\"na", result{Text: "Yes."}},
		{"after the name", "", `<tool_call>{"name": "get_weather", "arg`, result{Calls: []string{"get_weather!"}}},
		{"within arguments", "", `<tool_call>{"name": "get_weather", "arguments": {"city": "Kö`, result{Calls: []string{`get_weather!{"city": "Kö`}}},
		{"pythonic", "", `<|tool_call_start|>[get_weather(city="Köln", day`, result{Calls: []string{`get_weather!{"city": "Köln"`}}},
		{"after the arguments", "", `<tool_call>{"name": "get_weather", "arguments": {"city": "Köln", "days": 3}`, result{Calls: []string{call1}}},
		{"within reasoning", "<think></think><tool_call>", "<think>Hm.\n<tool_call>{\"na", result{Reasoning: "Hm."}},
		{"a lesser sign", "", "1 <", result{Text: "1 <"}},
		{"no call", "", "Use <tool_call> for it", result{Text: "Use <tool_call> for it"}},
	} {
		for _, n := range []int{1, 4, 1000} {
			if got := parseCut(SyntaxOf(c.source), ParseOptions{Tools: weatherTools}, c.text, n); !reflect.DeepEqual(got, c.want) {
				t.Errorf("%s, in pieces of %d bytes:\n got %q\nwant %q", c.name, n, got, c.want)
			}
		}
	}
}

// A tool that was offered without parameters takes none, whatever the model writes.
func TestNoParameters(t *testing.T) {
	o := ParseOptions{Tools: []json.RawMessage{json.RawMessage(`{"type":"function","function":{"name":"stop"}}`), json.RawMessage(`{"name":"halt","parameters":null}`), json.RawMessage(`{"name":"any","parameters":{}}`)}}
	s := SyntaxOf("<tool_call>")
	for text, want := range map[string]string{
		`<tool_call>{"name": "stop", "arguments": {"a": 1}}</tool_call>`:   "stop{}",
		`<tool_call>{"name": "stop", "arguments": {}}</tool_call>`:         "stop{}",
		`<tool_call>{"name": "stop"}</tool_call>`:                          "stop{}",
		`<tool_call>{"name": "halt", "arguments": {"a": [1]}}</tool_call>`: "halt{}",
		`<tool_call>{"name": "any", "arguments": {"a": 1}}</tool_call>`:    `any{"a":1}`,
		"<function=stop>\n<parameter=a>\n1\n</parameter>\n</function>":     "stop{}",
	} {
		for _, n := range []int{1, 1000} {
			if got := parseTo((*Parser).Flush, s, o, text, n); len(got.Calls) != 1 || got.Calls[0] != want || got.Text != "" {
				t.Errorf("%s in pieces of %d: %+v, want %s", text, n, got, want)
			}
		}
	}
}
