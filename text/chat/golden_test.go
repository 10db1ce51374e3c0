package chat

import (
	"encoding/json"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ridge/internal/testdata"
)

// scenarios is testdata/scenarios.json.
type scenarios struct {
	BOS, EOS  string
	Extra     map[string]any
	Tools     []json.RawMessage
	Scenarios map[string]struct {
		Messages []struct {
			Role, Content, Name, Reasoning string
			ToolCallID                     string `json:"tool_call_id"`
			ToolCalls                      []struct {
				ID, Name  string
				Arguments json.RawMessage
			} `json:"tool_calls"`
		}
		Tools, Gen bool
	}
}

func loadScenarios(t testing.TB) (s scenarios) {
	t.Helper()
	b, err := os.ReadFile("testdata/scenarios.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &s); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s scenarios) input(name string) Input {
	sc := s.Scenarios[name]
	in := Input{AddGenerationPrompt: sc.Gen, Extra: s.Extra, Now: time.Date(2024, 7, 26, 14, 3, 9, 0, time.UTC)}
	if sc.Tools {
		in.Tools = s.Tools
	}
	for _, m := range sc.Messages {
		msg := Message{Role: m.Role, Content: m.Content, Name: m.Name, ToolCallID: m.ToolCallID, Reasoning: m.Reasoning}
		for _, c := range m.ToolCalls {
			msg.ToolCalls = append(msg.ToolCalls, ToolCall{ID: c.ID, Name: c.Name, Arguments: c.Arguments})
		}
		in.Messages = append(in.Messages, msg)
	}
	return in
}

// goldens is testdata/goldens.json, see gen_goldens.py.
type goldens struct {
	Texts     []string
	Templates map[string]map[string][]int
}

func loadGoldens(t testing.TB, path string) (g goldens) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &g); err != nil {
		t.Fatal(err)
	}
	return g
}

// goldenForms are the forms of gen_goldens.py, in its order.
var goldenForms = []shape{
	{noContent: contentEmpty}, {noContent: contentEmpty, argsText: true},
	{noContent: contentNone}, {noContent: contentNone, argsText: true},
	{noContent: contentAbsent}, {noContent: contentAbsent, argsText: true},
	{noContent: contentEmpty, toolsUndefined: true},
}

// lenient are renderings that Python refuses and ridge gives: the template
// prints a generator as JSON, or appends to a list (see package jinja).
var lenient = map[string]bool{
	"llama-cpp-deepseek-r1.jinja": true,
}

// checkTemplate compares every scenario in every form with Python's.
func checkTemplate(t *testing.T, name, source string, g goldens, s scenarios) {
	t.Helper()
	tmpl, err := Compile(source, Options{BOS: s.BOS, EOS: s.EOS, Name: name})
	if err != nil {
		t.Fatal(err)
	}
	for key := range s.Scenarios {
		in := s.input(key)
		for i, want := range g.Templates[name][key] {
			r, err := tmpl.render(in, goldenForms[i], Limits{})
			got := r.text
			switch {
			case want < 0 && err == nil && !lenient[name]:
				t.Errorf("%s, form %+v: Python raises an error, got %q", key, goldenForms[i], got)
			case want >= 0 && err != nil:
				t.Errorf("%s, form %+v: %v", key, goldenForms[i], err)
			case want >= 0 && got != g.Texts[want]:
				t.Errorf("%s, form %+v (-Python +ridge):\n%s", key, goldenForms[i], cmp.Diff(g.Texts[want], got))
			}
		}
	}
}

// TestGoldens: byte for byte the prompts of Python jinja2, for every template
// of internal/testdata.
func TestGoldens(t *testing.T) {
	dir := filepath.Join(testdata.Dir(t), "templates")
	runGoldens(t, dir, "testdata/goldens.json")
	if d := os.Getenv("RIDGE_TEST_TEMPLATES"); d != "" { // more templates: "DIR:GOLDENS"
		dir, file, _ := strings.Cut(d, ":")
		runGoldens(t, dir, file)
	}
}

func runGoldens(t *testing.T, dir, file string) {
	g, s := loadGoldens(t, file), loadScenarios(t)
	var names []string
	for name := range g.Templates {
		if strings.HasSuffix(name, ".jinja") {
			names = append(names, name)
		}
	}
	sort.Strings(names)
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			source, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil {
				t.Fatal(err)
			}
			checkTemplate(t, name, string(source), g, s)
		})
	}
}
