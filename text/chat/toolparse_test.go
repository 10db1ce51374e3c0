package chat

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"ridge/internal/testdata"
)

var weatherTools = []json.RawMessage{
	json.RawMessage(`{"type": "function", "function": {"name": "get_weather", "description": "d", "parameters": {"type": "object", "properties": {"city": {"type": "string", "description": "d"}, "days": {"type": "integer", "description": "d"}}, "required": ["city"]}}}`),
	json.RawMessage(`{"type": "function", "function": {"name": "now", "description": "d", "parameters": {"type": "object", "properties": {}}}}`),
}

// result is an answer put together from its parts.
type result struct {
	Text, Reasoning string
	Calls           []string // NAME{...}, or NAME!... for arguments that are no object
}

func gather(parts []Part) result {
	var r result
	args := ""
	name := ""
	for _, p := range parts {
		switch p.Kind {
		case PartText:
			r.Text += p.Text
		case PartReasoning:
			r.Reasoning += p.Text
		case PartCall:
			name, args = p.Name, ""
		case PartArguments:
			args += p.Text
		case PartCallEnd:
			if !p.Valid {
				r.Calls = append(r.Calls, name+"!"+args)
				continue
			}
			var v any
			if err := json.Unmarshal([]byte(args), &v); err != nil {
				panic("valid arguments that are not JSON: " + args)
			}
			b, _ := json.Marshal(v)
			r.Calls = append(r.Calls, name+string(b))
		}
	}
	return r
}

// parseIn parses text given in pieces of n bytes.
func parseIn(s Syntax, o ParseOptions, text string, n int) result {
	return parseTo((*Parser).Flush, s, o, text, n)
}

// parseTo is parseIn with what the parser does at the end.
func parseTo(end func(*Parser) []Part, s Syntax, o ParseOptions, text string, n int) result {
	p := NewParser(s, o)
	defer p.Close()
	var parts []Part
	for len(text) > n {
		parts = append(parts, p.Add(text[:n])...)
		text = text[n:]
	}
	parts = append(parts, p.Add(text)...)
	return gather(append(parts, end(p)...))
}

const call1 = `get_weather{"city":"Köln","days":3}`

func TestParseForms(t *testing.T) {
	think := SyntaxOf("<think></think><tool_call>")
	gemma4 := SyntaxOf("<|tool_call>")
	harmony := SyntaxOf("<|channel|><|message|>")
	for _, c := range []struct {
		name, text string
		syn        Syntax
		prompt     string
		want       result
	}{
		{name: "plain text", text: " Hello <tool> world\n", want: result{Text: " Hello <tool> world\n"}},
		{name: "hermes", text: "I look.\n<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Köln\", \"days\": 3}}\n</tool_call>\n<tool_call>\n{\"name\": \"now\", \"arguments\": {}}\n</tool_call>",
			want: result{Text: "I look.", Calls: []string{call1, "now{}"}}},
		{name: "hermes, no closing tag", text: `<tool_call>{"name": "get_weather", "arguments": {"city": "Köln", "days": 3}}`, want: result{Calls: []string{call1}}},
		{name: "arguments first", text: `<tool_call>{"arguments": {"city": "Köln", "days": 3}, "name": "get_weather"}</tool_call>`, want: result{Calls: []string{call1}}},
		{name: "arguments as text", text: `<tool_call>{"name": "get_weather", "arguments": "{\"city\": \"Köln\", \"days\": 3}"}</tool_call>`, want: result{Calls: []string{call1}}},
		{name: "list", text: `<tool_call>[{"name": "now"}, {"name": "get_weather", "arguments": {"city": "Köln", "days": 3}}]</tool_call>`, want: result{Calls: []string{"now{}", call1}}},
		{name: "OpenAI's form", text: `<tool_call>{"id": "x", "type": "function", "function": {"name": "get_weather", "arguments": "{\"city\":\"Köln\",\"days\":3}"}}</tool_call>`, want: result{Calls: []string{call1}}},
		{name: "line break in a string", text: "<tool_call>{\"name\": \"get_weather\", \"arguments\": {\"city\": \"a\nb\tc\"}}</tool_call>", want: result{Calls: []string{`get_weather{"city":"a\nb\tc"}`}}},
		{name: "tag in a string", text: `<tool_call>{"name": "get_weather", "arguments": {"city": "</tool_call>"}}</tool_call>`, want: result{Calls: []string{`get_weather{"city":"\u003c/tool_call\u003e"}`}}},
		{name: "bare", text: `{"name": "get_weather", "parameters": {"city": "Köln", "days": 3}}`, want: result{Calls: []string{call1}}},
		{name: "two bare", text: `{"name": "get_weather", "parameters": {"city": "Köln", "days": 3}}; {"name": "now", "parameters": {}}`, want: result{Calls: []string{call1, "now{}"}}},
		{name: "fenced", text: "```json\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Köln\", \"days\": 3}}\n```", want: result{Calls: []string{call1}}},
		{name: "JSON that is no call", text: `{"name": "Anna", "age": 3}`, want: result{Text: `{"name": "Anna", "age": 3}`}},
		{name: "other JSON", text: "```json\n{\"a\": [1, 2]}\n```\n", want: result{Text: "```json\n{\"a\": [1, 2]}\n```\n"}},
		{name: "not a call", text: "<tool_call> is a tag", want: result{Text: "<tool_call> is a tag"}},
		{name: "not a call, then one", text: "<tool_call> or\n<tool_call>{\"name\": \"now\"}</tool_call> end", want: result{Text: "<tool_call> or end", Calls: []string{"now{}"}}},
		{name: "broken arguments", text: `<tool_call>{"name": "now", "arguments": {"a": 1]}}</tool_call> end`, want: result{Text: " end", Calls: []string{`now!{"a": 1]}}`}}},
		{name: "cut off", text: `<tool_call>{"name": "now", "arguments": {"a": "xyz`, want: result{Calls: []string{`now!{"a": "xyz`}}},
		{name: "qwen-coder", text: "<tool_call>\n<function=get_weather>\n<parameter=city>\nKöln\n</parameter>\n<parameter=days>\n3\n</parameter>\n</function>\n</tool_call>", want: result{Calls: []string{call1}}},
		{name: "string parameter like a number", text: "<function=get_weather><parameter=city>50667</parameter></function>", want: result{Calls: []string{`get_weather{"city":"50667"}`}}},
		{name: "functionary 3.1", text: `<function=get_weather>{"city": "Köln", "days": 3}</function>`, want: result{Calls: []string{call1}}},
		{name: "glm", text: "<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>Köln</arg_value>\n<arg_key>days</arg_key>\n<arg_value>3</arg_value>\n</tool_call>", want: result{Calls: []string{call1}}},
		{name: "glm without arguments", text: "<tool_call>now\n</tool_call>", want: result{Calls: []string{"now{}"}}},
		{name: "mistral", text: `[TOOL_CALLS][{"name": "get_weather", "arguments": {"city": "Köln", "days": 3}, "id": "abcdefghi"}]`, want: result{Calls: []string{call1}}},
		{name: "mistral 11", text: `[TOOL_CALLS]get_weather[ARGS]{"city": "Köln", "days": 3}[TOOL_CALLS]now[CALL_ID]123456789[ARGS]{}`, want: result{Calls: []string{call1, "now{}"}}},
		{name: "llama 3", text: `<|python_tag|>{"name": "get_weather", "parameters": {"city": "Köln", "days": 3}}`, want: result{Calls: []string{call1}}},
		{name: "llama 3 built-in", text: `<|python_tag|>get_weather.call(city="Köln", days=3)`, want: result{Calls: []string{call1}}},
		{name: "deepseek v3", text: "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>get_weather\n```json\n{\"city\": \"Köln\", \"days\": 3}\n```<｜tool▁call▁end｜>\n<｜tool▁call▁begin｜>function<｜tool▁sep｜>now\n```json\n{}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>", want: result{Calls: []string{call1, "now{}"}}},
		{name: "deepseek v3.1", text: `<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>{"city": "Köln", "days": 3}<｜tool▁call▁end｜><｜tool▁calls▁end｜>`, want: result{Calls: []string{call1}}},
		{name: "deepseek v3.2", text: `<｜DSML｜function_calls><｜DSML｜invoke name="get_weather"><｜DSML｜parameter name="city" string="true">Köln</｜DSML｜parameter><｜DSML｜parameter name="days" string="false">3</｜DSML｜parameter></｜DSML｜invoke></｜DSML｜function_calls>`, want: result{Calls: []string{call1}}},
		{name: "minimax", text: "<minimax:tool_call>\n<invoke name=\"get_weather\">\n<parameter name=\"city\">Köln</parameter>\n<parameter name=\"days\">3</parameter>\n</invoke>\n</minimax:tool_call>", want: result{Calls: []string{call1}}},
		{name: "kimi", text: `<|tool_calls_section_begin|><|tool_call_begin|>functions.get_weather:0<|tool_call_argument_begin|>{"city": "Köln", "days": 3}<|tool_call_end|><|tool_calls_section_end|>`, want: result{Calls: []string{call1}}},
		{name: "lfm2", text: `<|tool_call_start|>[get_weather(city="Köln", days=3), now()]<|tool_call_end|>Done.`, want: result{Text: "Done.", Calls: []string{call1, "now{}"}}},
		{name: "python literals", text: `<|tool_call_start|>[now(a=[1, 'x', None], b={"k": True}, c=(1,), d=-1.5)]<|tool_call_end|>`, want: result{Calls: []string{`now{"a":[1,"x",null],"b":{"k":true},"c":[1],"d":-1.5}`}}},
		{name: "functiongemma", text: `<start_function_call>call:get_weather{city:<escape>Köln<escape>,days:3}<end_function_call>`, want: result{Calls: []string{call1}}},
		{name: "gemma 4", syn: gemma4, text: `<|tool_call>call:get_weather{city:<|"|>Köln<|"|>,days:3}<tool_call|>`, want: result{Calls: []string{call1}}},
		{name: "nested colon form", syn: gemma4, text: `<|tool_call>call:now{a:{b:[1,<|"|>x<|"|>,true]},c:null}<tool_call|>`, want: result{Calls: []string{`now{"a":{"b":[1,"x",true]},"c":null}`}}},
		{name: "command r7b", syn: SyntaxOf("<|START_ACTION|><|END_THINKING|>"), text: "<|START_THINKING|>Let me see.<|END_THINKING|><|START_ACTION|>[\n    {\"tool_call_id\": \"0\", \"tool_name\": \"get_weather\", \"parameters\": {\"city\": \"Köln\", \"days\": 3}}\n]<|END_ACTION|>",
			want: result{Reasoning: "Let me see.", Calls: []string{call1}}},
		{name: "command r", syn: SyntaxOf("Action: ```json \"tool_name\""), text: "Action: ```json\n[\n    {\n        \"tool_name\": \"get_weather\",\n        \"parameters\": {\"city\": \"Köln\", \"days\": 3}\n    }\n]```", want: result{Calls: []string{call1}}},
		{name: "firefunction", syn: SyntaxOf("functools["), text: ` functools[{"name": "get_weather", "arguments": {"city": "Köln", "days": 3}}]`, want: result{Calls: []string{call1}}},
		{name: "functionary 3.2", syn: SyntaxOf(">>>all"), prompt: "assistant\n\n>>>", text: "all\nI look.\n>>>get_weather\n{\"city\": \"Köln\", \"days\": 3}", want: result{Text: "I look.", Calls: []string{call1}}},
		{name: "functionary, a tool that was not offered", syn: SyntaxOf(">>>all"), prompt: ">>>", text: "search\n{\"q\": 1}\n>>>all\nDone.", want: result{Text: "Done.", Calls: []string{`search{"q":1}`}}},
		{name: "functionary, not a recipient", syn: SyntaxOf(">>>all"), prompt: ">>>", text: "all\nIn Python:\n\n>>> x = 1\n>>>print\n>>>now\n{}", want: result{Text: "In Python:\n\n>>> x = 1\n>>>print", Calls: []string{"now{}"}}},
		{name: "functionary, text first", syn: SyntaxOf(">>>all"), prompt: ">>>", text: "search\nfor it >>>", want: result{Text: "search\nfor it >>>"}},
		{name: "reasoning", syn: think, text: "<think>\nHm.\n\nYes.\n</think>\n\nHello", want: result{Reasoning: "Hm.\n\nYes.", Text: "Hello"}},
		{name: "reasoning begun in the prompt", syn: think, prompt: "assistant\n<think>\n", text: "Hm.\n</think>\n\nHello </think>", want: result{Reasoning: "Hm.", Text: "Hello </think>"}},
		{name: "reasoning cut off", syn: think, text: "<think>Hm. </thi", want: result{Reasoning: "Hm. </thi"}},
		{name: "reasoning, then a call", syn: think, text: "<think>a</think>\n<tool_call>{\"name\": \"now\"}</tool_call>", want: result{Reasoning: "a", Calls: []string{"now{}"}}},
		{name: "empty reasoning", syn: think, text: "<think>\n\n</think>\n\nHello", want: result{Text: "Hello"}},
		{name: "tags later are text", syn: think, text: "Use <think>a</think>", want: result{Text: "Use <think>a</think>"}},
		{name: "harmony", syn: harmony, text: `<|channel|>analysis<|message|>Need weather.<|end|><|start|>assistant<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>{"city": "Köln", "days": 3}<|call|>`, want: result{Reasoning: "Need weather.", Calls: []string{call1}}},
		{name: "harmony text", syn: harmony, text: `<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>final<|message|>Hello`, want: result{Reasoning: "Hm.", Text: "Hello"}},
	} {
		if c.syn.Name == "" {
			c.syn = Generic()
		}
		o := ParseOptions{Tools: weatherTools, Prompt: c.prompt}
		for _, n := range []int{1, 2, 3, 7, 1000} {
			if got := parseIn(c.syn, o, c.text, n); !reflect.DeepEqual(got, c.want) {
				t.Errorf("%s, in pieces of %d bytes:\n got %q\nwant %q", c.name, n, got, c.want)
			}
		}
	}
}

// Without tools nothing is a call.
func TestParseWithoutTools(t *testing.T) {
	text := "<tool_call>{\"name\": \"now\"}</tool_call> "
	if got := parseIn(Generic(), ParseOptions{}, text, 5); got.Text != text || got.Calls != nil {
		t.Errorf("got %q", got)
	}
}

// Arguments come as soon as they are there.
func TestParseStreams(t *testing.T) {
	p := NewParser(Generic(), ParseOptions{Tools: weatherTools})
	defer p.Close()
	parts := p.Add(`<tool_call>{"name": "get_weather", "arguments": {"city": "Kö`)
	if len(parts) != 2 || parts[0].Kind != PartCall || parts[1].Text != `{"city": "Kö` {
		t.Fatalf("got %+v", parts)
	}
	if parts = p.Add(`ln"`); len(parts) != 1 || parts[0].Text != `ln"` {
		t.Fatalf("got %+v", parts)
	}
	if parts = p.Add(`}} `); len(parts) != 2 || parts[1].Kind != PartCallEnd || !parts[1].Valid {
		t.Fatalf("got %+v", parts)
	}
}

// What real templates print for a call of an earlier turn is what their models
// learned to write: the parser must find the same call in it.
func TestParseWhatTemplatesPrint(t *testing.T) {
	files, _ := filepath.Glob(filepath.Join(testdata.Dir(t), "templates", "*.jinja"))
	if extra := os.Getenv("RIDGE_MORE_TEMPLATES"); extra != "" {
		more, _ := filepath.Glob(filepath.Join(extra, "*.jinja"))
		files = append(files, more...)
	}
	if len(files) == 0 {
		t.Fatal("no templates")
	}
	checked := 0
	for _, file := range files {
		src, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		tmpl, err := Compile(string(src), Options{BOS: "<s>", EOS: "</s>"})
		if err != nil {
			t.Logf("%s: %v", filepath.Base(file), err)
			continue
		}
		if !tmpl.Caps().ToolCalls {
			continue
		}
		user := Message{Role: "user", Content: "What is the weather?"}
		call := Message{Role: "assistant", ToolCalls: []ToolCall{{ID: "abcdefghi", Name: "get_weather", Arguments: json.RawMessage(`{"city": "Köln", "days": 3}`)}}}
		before, err1 := tmpl.Render(Input{Messages: []Message{user}, Tools: weatherTools, AddGenerationPrompt: true})
		after, err2 := tmpl.Render(Input{Messages: []Message{user, call}, Tools: weatherTools})
		if err1 != nil || err2 != nil {
			t.Logf("%s: %v, %v", filepath.Base(file), err1, err2)
			continue
		}
		n := 0
		for n < min(len(before), len(after)) && before[n] == after[n] {
			n++
		}
		// Parts of a tag that both have in common belong to the answer.
		n = max(strings.LastIndexAny(before[:n], "\n>")+1, n-64)
		text := after[n:]
		prompt := before[:n]
		for _, end := range []string{"<|im_end|>", "</s>", "<|eot_id|>", "<|eom_id|>", "<|END_OF_TURN_TOKEN|>", "<|end|>", "<end_of_turn>", "<turn|>"} {
			text, _, _ = strings.Cut(text, end)
		}
		s := SyntaxOf(string(src))
		want := fmt.Sprint([]string{call1})
		got := parseIn(s, ParseOptions{Tools: weatherTools, Prompt: prompt}, text, 3)
		if fmt.Sprint(got.Calls) != want {
			t.Errorf("%s (%s): %q:\n got %q", filepath.Base(file), s.Name, text, got)
			continue
		}
		checked++
	}
	t.Logf("checked %d of %d templates", checked, len(files))
}

func FuzzParse(f *testing.F) {
	for _, o := range openers {
		f.Add(o.mark+`{"name": "now", "arguments": {"a": [1, "b"]}}`+closers[0], uint8(3), uint8(0))
	}
	f.Add("<think>a</think><tool_call>now<arg_key>a</arg_key><arg_value>1</arg_value></tool_call>", uint8(1), uint8(1))
	f.Add(`<|channel|>commentary to=functions.now<|message|>{"a": 1}<|call|>`, uint8(2), uint8(2))
	f.Add("all\nx>>>now\n{}", uint8(2), uint8(3))
	f.Add("[now(a=[1,{'b':\"\\u00e4\"}])]", uint8(2), uint8(4))
	syns := []Syntax{Generic(), SyntaxOf("<think></think><tool_call>"), SyntaxOf("<|channel|><|message|>"), SyntaxOf(">>>all"), SyntaxOf("Action: ```json \"tool_name\"")}
	f.Fuzz(func(t *testing.T, text string, n, which uint8) {
		s := syns[int(which)%len(syns)]
		o := ParseOptions{Tools: weatherTools}
		if s.recipients {
			o.Prompt = ">>>"
		}
		whole := parseIn(s, o, text, len(text)+1)
		if pieces := parseIn(s, o, text, int(n%16)+1); !reflect.DeepEqual(whole, pieces) {
			t.Errorf("%q: whole %q, in pieces of %d %q", text, whole, n%16+1, pieces)
		}
		if len(whole.Calls) == 0 && whole.Reasoning == "" && !s.harmony && !s.recipients && whole.Text != text && (s.ThinkOpen == "" || !strings.Contains(text, s.ThinkOpen)) {
			t.Errorf("%q became %q", text, whole.Text)
		}
	})
}
