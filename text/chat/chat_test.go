package chat

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"ridge/internal/testdata"
)

// TestShapes: what the probes find out about real templates.
func TestShapes(t *testing.T) {
	dir := filepath.Join(testdata.Dir(t), "templates")
	mapping, text := shape{}, shape{argsText: true}
	noneText := shape{noContent: contentNone, argsText: true}
	undef := func(s shape) shape { s.toolsUndefined = true; return s }
	for name, want := range map[string]struct {
		shape
		sure bool
		caps Caps
	}{
		"CohereForAI-c4ai-command-r-plus-tool_use.jinja":      {undef(mapping), true, Caps{true, true, true}},
		"CohereForAI-c4ai-command-r7b-12-2024-tool_use.jinja": {mapping, true, Caps{true, true, true}},
		"NousResearch-Hermes-2-Pro-Llama-3-8B-tool_use.jinja": {undef(mapping), true, Caps{true, true, true}},
		"NousResearch-Hermes-3-Llama-3.1-8B-tool_use.jinja":   {undef(mapping), true, Caps{true, true, true}},
		"Qwen-Qwen2.5-7B-Instruct.jinja":                      {mapping, true, Caps{true, true, true}},
		"deepseek-ai-DeepSeek-R1-Distill-Llama-8B.jinja":      {noneText, true, Caps{true, false, true}},
		"fireworks-ai-llama-3-firefunction-v2.jinja":          {mapping, false, Caps{}}, // needs variables of its own
		"google-gemma-2-2b-it.jinja":                          {mapping, false, Caps{}},
		"llama-cpp-deepseek-r1.jinja":                         {noneText, true, Caps{true, true, true}},
		"meetkai-functionary-medium-v3.1.jinja":               {text, true, Caps{true, true, true}},
		"meetkai-functionary-medium-v3.2.jinja":               {text, true, Caps{true, true, true}},
		"meta-llama-Llama-3.1-8B-Instruct.jinja":              {mapping, true, Caps{true, true, true}},
		"meta-llama-Llama-3.2-3B-Instruct.jinja":              {mapping, true, Caps{true, true, true}},
		"microsoft-Phi-3.5-mini-instruct.jinja":               {mapping, false, Caps{System: true}},
		"mistralai-Mistral-Nemo-Instruct-2407.jinja":          {mapping, true, Caps{true, true, true}},
	} {
		source, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Error(err)
			continue
		}
		tmpl, err := Compile(string(source), Options{BOS: "<s>", EOS: "</s>", Name: name})
		if err != nil {
			t.Error(err)
			continue
		}
		if tmpl.shape != want.shape || tmpl.sure != want.sure || tmpl.caps != want.caps {
			t.Errorf("%s: shape %+v, sure %v, caps %+v; want %+v", name, tmpl.shape, tmpl.sure, tmpl.caps, want)
		}
		if bos := strings.Contains(string(source), "bos_token"); tmpl.AddsBOS() != bos && name != "fireworks-ai-llama-3-firefunction-v2.jinja" {
			t.Errorf("%s: AddsBOS is %v", name, tmpl.AddsBOS())
		}
	}
}

// TestRenderShaped: Render itself, with the form that was found, gives one of
// Python's renderings, for every template that Python can render at all.
func TestRenderShaped(t *testing.T) {
	dir := filepath.Join(testdata.Dir(t), "templates")
	g, s := loadGoldens(t, "testdata/goldens.json"), loadScenarios(t)
	for name, scenarios := range g.Templates {
		source, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			continue // of a model
		}
		tmpl, err := Compile(string(source), Options{BOS: s.BOS, EOS: s.EOS, Name: name})
		if err != nil {
			t.Fatal(err)
		}
		for key, forms := range scenarios {
			got, err := tmpl.Render(s.input(key))
			any, same := false, false
			for _, i := range forms {
				any = any || i >= 0
				same = same || i >= 0 && g.Texts[i] == got
			}
			if any && (err != nil || !same) {
				t.Errorf("%s, %s: %v, got %q", name, key, err, got)
			}
			if !any && err == nil && !lenient[name] {
				t.Errorf("%s, %s: Python renders it in no form, got %q", name, key, got)
			}
		}
	}
}

func mustCompile(t testing.TB, source string, o Options) *Template {
	t.Helper()
	tmpl, err := Compile(source, o)
	if err != nil {
		t.Fatal(err)
	}
	return tmpl
}

func TestDefaults(t *testing.T) {
	turns := []Message{
		{Role: "system", Content: "S"}, {Role: "user", Content: "U1"},
		{Role: "assistant", Content: "A"}, {Role: "user", Content: "U2"},
	}
	for _, c := range []struct {
		arch, want string
		bos        bool
	}{
		{"chatml", "<|im_start|>system\nS<|im_end|>\n<|im_start|>user\nU1<|im_end|>\n<|im_start|>assistant\nA<|im_end|>\n<|im_start|>user\nU2<|im_end|>\n<|im_start|>assistant\n", false},
		{"qwen2", "<|im_start|>system\nS<|im_end|>\n<|im_start|>user\nU1<|im_end|>\n<|im_start|>assistant\nA<|im_end|>\n<|im_start|>user\nU2<|im_end|>\n<|im_start|>assistant\n", false},
		{"gemma3", "<s><start_of_turn>user\nS\n\nU1<end_of_turn>\n<start_of_turn>model\nA<end_of_turn>\n<start_of_turn>user\nU2<end_of_turn>\n<start_of_turn>model\n", true},
		{"llama-2", "<s>[INST] <<SYS>>\nS\n<</SYS>>\n\nU1 [/INST] A </s><s>[INST] U2 [/INST]", true},
		{"llama-3", "<s><|start_header_id|>system<|end_header_id|>\n\nS<|eot_id|><|start_header_id|>user<|end_header_id|>\n\nU1<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\nA<|eot_id|><|start_header_id|>user<|end_header_id|>\n\nU2<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n", true},
		{"mistral", "<s>[INST] S\n\nU1 [/INST] A</s>[INST] U2 [/INST]", true},
		{"phi3", "<|system|>\nS<|end|>\n<|user|>\nU1<|end|>\n<|assistant|>\nA<|end|>\n<|user|>\nU2<|end|>\n<|assistant|>\n", false},
		{"stablelm", "<|system|>\nS</s>\n<|user|>\nU1</s>\n<|assistant|>\nA</s>\n<|user|>\nU2</s>\n<|assistant|>\n", false},
		{"rwkv7", "System: S\n\nUser: U1\n\nAssistant: A\n\nUser: U2\n\nAssistant:", false},
	} {
		tmpl := mustCompile(t, Default(c.arch), Options{BOS: "<s>", EOS: "</s>", Name: c.arch})
		got, err := tmpl.Render(Input{Messages: turns, AddGenerationPrompt: true})
		if err != nil || got != c.want {
			t.Errorf("%s: %v\ngot  %q\nwant %q", c.arch, err, got, c.want)
		}
		if tmpl.AddsBOS() != c.bos || !tmpl.Caps().System {
			t.Errorf("%s: AddsBOS %v, caps %+v", c.arch, tmpl.AddsBOS(), tmpl.Caps())
		}
	}
	named, err := mustCompile(t, "rwkv-world", Options{}).Render(Input{Messages: turns[1:2], AddGenerationPrompt: true})
	if err != nil || named != "User: U1\n\nAssistant:" {
		t.Errorf("the name that files have in place of a template gives %q, %v", named, err)
	}
	if Default("no such thing") != Default("chatml") {
		t.Error("the fallback is not ChatML")
	}
}

func TestErrors(t *testing.T) {
	if _, err := Compile("a\n{% for %}", Options{Name: "m.gguf"}); err == nil ||
		err.Error() != "chat: template m.gguf: line 2: expected a variable name, got end of statement" {
		t.Errorf("got %v", err)
	}
	user := []Message{{Role: "user", Content: "x"}}
	refuse := mustCompile(t, "{% if messages %}\n{{ raise_exception('no system role') }}{% endif %}", Options{Name: "m"})
	_, err := refuse.Render(Input{Messages: user})
	if !errors.Is(err, ErrRefused) || err.Error() != "chat: template m: refused by the template: no system role (line 2)" {
		t.Errorf("got %v", err)
	}
	chatml := mustCompile(t, Default(""), Options{})
	for _, c := range []struct {
		in   Input
		want string
	}{
		{Input{Messages: []Message{{Content: "x"}}}, "chat: message 0: role: expected a name, found nothing"},
		{Input{Messages: user, Tools: []json.RawMessage{json.RawMessage(`{}`), json.RawMessage(`[1]`)}}, `chat: tool 1: expected a JSON object, found "[1]"`},
		{Input{Messages: user, Tools: []json.RawMessage{nil}}, `chat: tool 0: expected a JSON object, found nothing`},
		{Input{Messages: user, Tools: []json.RawMessage{json.RawMessage(`{"a":}`)}}, `chat: tool 0: expected a JSON object, found "{\"a\":}"`},
		{Input{Messages: []Message{{Role: "assistant", ToolCalls: []ToolCall{{}}}}}, "chat: message 0: tool call 0: name: expected a name, found nothing"},
		{
			Input{Messages: []Message{{Role: "assistant", ToolCalls: []ToolCall{{Name: "f", Arguments: json.RawMessage(`{"a": `)}}}}},
			`chat: message 0: tool call 0 (f): arguments: expected a JSON object, found "{\"a\":"`,
		},
		{
			Input{Messages: []Message{{Role: "assistant", ToolCalls: []ToolCall{{Name: "f", Arguments: json.RawMessage(`"[1]"`)}}}}},
			`chat: message 0: tool call 0 (f): arguments: expected a JSON object, found "[1]"`,
		},
	} {
		if _, err := chatml.Render(c.in); err == nil || err.Error() != c.want {
			t.Errorf("got %v\nwant %s", err, c.want)
		}
	}
}

// TestArguments: objects and texts of objects are the same to every template,
// and keep their order and numbers.
func TestArguments(t *testing.T) {
	const raw = `{"z": 1, "a": {"y": 1.0, "b": 1e5}, "n": 18446744073709551616}`
	quoted, _ := json.Marshal(raw)
	object := mustCompile(t, "{% for m in messages %}{% for c in m.tool_calls %}{{ c.function.name }} {{ c.function.arguments | tojson }}{% endfor %}{% endfor %}", Options{})
	text := mustCompile(t, "{% for m in messages %}{% for c in m.tool_calls %}{{ c.function.name + ' ' + c.function.arguments }}{% endfor %}{% endfor %}", Options{})
	for _, args := range []string{raw, string(quoted)} {
		in := Input{Messages: []Message{{Role: "assistant", ToolCalls: []ToolCall{{Name: "f", Arguments: json.RawMessage(args)}}}}}
		if got, err := object.Render(in); err != nil || got != `f {"z": 1, "a": {"y": 1.0, "b": 100000.0}, "n": 18446744073709551616}` {
			t.Errorf("object: %v, %s", err, got)
		}
		if got, err := text.Render(in); err != nil || got != "f "+raw {
			t.Errorf("text: %v, %s", err, got)
		}
	}
	in := Input{Messages: []Message{{Role: "assistant", ToolCalls: []ToolCall{{Name: "f"}}}}}
	if got, err := object.Render(in); err != nil || got != "f {}" {
		t.Errorf("no arguments: %v, %s", err, got)
	}
}

func TestClockAndExtra(t *testing.T) {
	tmpl := mustCompile(t, "{{ strftime_now('%d %b %Y') }} {{ enable_thinking }} {{ docs | tojson }} {{ m | tojson }}", Options{})
	got, err := tmpl.Render(Input{
		Now: time.Date(2024, 2, 9, 0, 0, 0, 0, time.UTC),
		Extra: map[string]any{
			"enable_thinking": false,
			"docs":            json.RawMessage(`[{"z": 1, "a": 2}]`),
			"m":               map[string]any{"b": []int{1}, "a": struct{ X int }{3}},
		},
	})
	want := `09 Feb 2024 False [{"z": 1, "a": 2}] {"a": {"X": 3}, "b": [1]}`
	if err != nil || got != want {
		t.Errorf("%v\ngot  %s\nwant %s", err, got, want)
	}
}

func TestFoldSystem(t *testing.T) {
	s1, s2 := Message{Role: "system", Content: "A"}, Message{Role: "system", Content: "B"}
	u, a := Message{Role: "user", Content: "U"}, Message{Role: "assistant", Content: "X"}
	in := []Message{s1, s2, u, a, u}
	out := FoldSystem(in)
	if len(out) != 3 || out[0].Role != "user" || out[0].Content != "A\n\nB\n\nU" || out[2].Content != "U" {
		t.Errorf("got %+v", out)
	}
	if in[2].Content != "U" {
		t.Error("the input was changed")
	}
	for _, same := range [][]Message{{u, a}, {s1}, {s1, a}, nil} {
		if got := FoldSystem(same); len(got) != len(same) {
			t.Errorf("%+v became %+v", same, got)
		}
	}
}

func TestStopStrings(t *testing.T) {
	for arch, want := range map[string]string{"chatml": "<|im_end|>", "gemma": "<end_of_turn>", "phi3": "<|end|>", "llama3": "<|eot_id|>"} {
		if got := mustCompile(t, Default(arch), Options{}).StopStrings(); len(got) != 1 || got[0] != want {
			t.Errorf("%s: %q", arch, got)
		}
	}
}

// TestConcurrent renders with one template from many goroutines (run with
// -race).
func TestConcurrent(t *testing.T) {
	tmpl := mustCompile(t, Default("gemma"), Options{BOS: "<s>"})
	var wg sync.WaitGroup
	for range 8 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for range 50 {
				got, err := tmpl.Render(Input{Messages: []Message{{Role: "system", Content: "S"}, {Role: "user", Content: "U"}}})
				if err != nil || got != "<s><start_of_turn>user\nS\n\nU<end_of_turn>\n" {
					t.Errorf("%v %q", err, got)
					return
				}
			}
		}()
	}
	wg.Wait()
}

// TestHostileCompile: probing a template that wastes time takes bounded time.
func TestHostileCompile(t *testing.T) {
	var tmpl *Template
	testdata.Within(t, 30*time.Second, "compiling", func() {
		tmpl = mustCompile(t, "{% for a in range(99999) %}{% for b in range(99999) %}{{ a ~ b }}{% endfor %}{% endfor %}", Options{})
	})
	if _, err := tmpl.render(Input{}, shape{}, Limits{Steps: 10000}); err == nil {
		t.Error("no error")
	}
}

// TestLongPrompt: megabytes of conversation fit into the default limits.
func TestLongPrompt(t *testing.T) {
	long := strings.Repeat("All work and no play makes Jack a dull boy. ", 50_000)
	var msgs []Message
	for range 4 {
		msgs = append(msgs, Message{Role: "user", Content: long}, Message{Role: "assistant", Content: long})
	}
	got, err := mustCompile(t, Default("gemma"), Options{}).Render(Input{Messages: msgs})
	if err != nil || len(got) < 8*len(long)-100 {
		t.Errorf("%v, %d bytes", err, len(got))
	}
}

func BenchmarkRender(b *testing.B) {
	dir := filepath.Join(testdata.Dir(b), "templates")
	s := loadScenarios(b)
	for _, name := range []string{"Qwen-Qwen2.5-7B-Instruct.jinja", "meta-llama-Llama-3.1-8B-Instruct.jinja"} {
		source, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			b.Fatal(err)
		}
		tmpl := mustCompile(b, string(source), Options{BOS: s.BOS, EOS: s.EOS})
		in := s.input("tool_call")
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for range b.N {
				if _, err := tmpl.Render(in); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// Nothing is rendered for those who do not want it any more, and several
// renderings may have one end.
func TestLimitsEnd(t *testing.T) {
	endless := strings.Repeat("{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}", 100)
	tmpl, err := Compile(endless, Options{})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	close(done)
	in := Input{Messages: []Message{{Role: "user", Content: "x"}}}
	for says, l := range map[string]Limits{
		"nobody wants": {Time: time.Hour, Steps: 1 << 60, Done: done},
		"longer than":  {Time: time.Hour, Steps: 1 << 60, Until: time.Now()},
	} {
		if _, err := tmpl.Within(l).Render(in); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: got %v", says, err)
		}
	}
}
