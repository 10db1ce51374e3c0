package constraint

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"ridge/internal/testdata"
	"ridge/model"
	"ridge/text/chat"
	"ridge/text/tokenizer"
)

func compiler(t *testing.T, s chat.Syntax) (*Compiler, *tokenizer.Tokenizer) {
	t.Helper()
	m, err := model.Open(testdata.Tiny, model.Options{Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return NewCompiler(m.Tokenizer(), s, s.EndTokens(m.Tokenizer())), m.Tokenizer()
}

// takes reports whether a masker allows all tokens of text and then an end.
func takes(t *testing.T, m Masker, tok *tokenizer.Tokenizer, text string) bool {
	t.Helper()
	for _, id := range append(tok.Encode(nil, text, tokenizer.EncodeOptions{ParseSpecial: true}), tok.EOS()) {
		logits := make([]float32, tok.VocabSize())
		if m.Mask(logits); math.IsInf(float64(logits[id]), -1) {
			return false
		}
		if id == tok.EOS() {
			return true
		}
		if err := m.Accept(id); err != nil {
			t.Error(err)
			return false
		}
	}
	return true
}

func TestFormats(t *testing.T) {
	c, tok := compiler(t, chat.Generic())
	for name, x := range map[string]struct {
		f     Format
		takes []string
		not   []string
	}{
		"json":   {JSON(), []string{`{}`, `{"a": [1, 2]}`}, []string{`[1]`, `x`}},
		"schema": {JSONSchema([]byte(`{"type": "integer"}`)), []string{`7`, `-12`}, []string{`1.5`, `"a"`}},
		"regex":  {Regex(`a+b`), []string{`ab`, `aaab`}, []string{`b`, `aba`}},
		"choice": {Choice("yes", "no"), []string{`yes`, `no`}, []string{`y`, `maybe`}},
		"gbnf":   {GBNF(`root ::= "x" [0-9]`), []string{`x1`}, []string{`x`, `xx`}},
		"tag": {StructuralTag([]byte(`{"type": "structural_tag", "structures": [{"begin": "<n>", "schema": {"type": "integer"}, "end": "</n>"}], "triggers": ["<n>"]}`)),
			[]string{`free text`, `a <n>7</n> b`}, []string{`<n>x</n>`}},
		"spaced": {JSON().JumpAhead(), []string{`{"a": 1}`}, []string{`{"a":1}`, `{ "a": 1}`}},
	} {
		g, err := c.Format(t.Context(), x.f)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := c.Format(t.Context(), x.f); err != nil || again != g {
			t.Errorf("%s: compiled twice", name)
		}
		masks, err := c.After(g, "", false)
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range append(slices.Clone(x.takes), x.not...) {
			if got, want := takes(t, masks(), tok, text), slices.Contains(x.takes, text); got != want {
				t.Errorf("%s: %q: allowed: %v, want %v", name, text, got, want)
			}
		}
	}
	if _, err := c.Format(t.Context(), Format{}); err == nil || !(Format{}).Any() || JSON().Any() {
		t.Error("any text is no format")
	}
	if _, err := c.Format(t.Context(), JSONSchema([]byte(`{"type": "strange"}`))); err == nil {
		t.Error("a bad schema: no error")
	}
}

// A format holds after the reasoning, wherever that begins.
func TestAfterReasoning(t *testing.T) {
	c, tok := compiler(t, chat.Generic().WithReasoning("think"))
	g, err := c.Format(t.Context(), Choice("yes", "no"))
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		prompt string
		keep   bool
		text   string
		want   bool
	}{
		{"user: x\nassistant: ", false, "yes", true},
		{"user: x\nassistant: ", false, "perhaps", false},
		{"assistant: <think>\n", false, "I wonder.</think>yes", true},
		{"assistant: <think>\n", false, "I wonder.</think>perhaps", false},
		{"assistant: <think>\n", false, "yes", false}, // still in its reasoning
		{"assistant: <think>\n", true, "yes", true},   // reasoning is text
		{"assistant: <think></think>\n", false, "yes", true},
	} {
		masks, err := c.After(g, x.prompt, x.keep)
		if err != nil {
			t.Fatal(err)
		}
		for range 2 { // maskers are independent
			if got := takes(t, masks(), tok, x.text); got != x.want {
				t.Errorf("after %q: %q allowed: %v, want %v", x.prompt, x.text, got, x.want)
			}
		}
	}
}

func TestCalls(t *testing.T) {
	c, tok := compiler(t, chat.Generic())
	tools := []chat.Tool{{Name: "f", Parameters: []byte(`{"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}`), Strict: true}}
	call := func(n string) string {
		return "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"n\": " + n + "}}\n</tool_call>"
	}
	check := func(name string, m Masker, text string, want bool) {
		t.Helper()
		if got := takes(t, m, tok, text); got != want {
			t.Errorf("%s: %q allowed: %v, want %v", name, text, got, want)
		}
	}
	one, err := c.Calls(t.Context(), tools, false, Format{})
	if err != nil {
		t.Fatal(err)
	}
	many, err := c.Calls(t.Context(), tools, true, Format{})
	if err != nil {
		t.Fatal(err)
	}
	or, err := c.Calls(t.Context(), tools, false, Choice("no call"))
	if err != nil {
		t.Fatal(err)
	}
	check("one", one.NewState(), call("1"), true)
	check("one", one.NewState(), call(`"a"`), false)
	check("one", one.NewState(), "text", false)
	check("one", one.NewState(), call("1")+"\n"+call("2"), false)
	check("many", many.NewState(), call("1")+"\n"+call("2"), true)
	check("or", or.NewState(), "no call", true)
	check("or", or.NewState(), call("3"), true)
	check("or", or.NewState(), "something", false)
	if _, err := c.Calls(t.Context(), tools, false, StructuralTag([]byte(`{}`))); err == nil {
		t.Error("calls or a structural tag: no error")
	}
	strict, _, err := c.Strict(t.Context(), tools, false, false)
	if err != nil {
		t.Fatal(err)
	}
	check("strict", strict(), "Some text.", true)
	check("strict", strict(), "Some text. "+call("4"), true)
	check("strict", strict(), "Some text. "+call(`"a"`), false)
	// Of a schema that cannot be enforced only a strict tool complains.
	odd := []chat.Tool{{Name: "f", Parameters: []byte(`{"type": "strange"}`)}}
	if g, err := c.Calls(t.Context(), odd, false, Format{}); err != nil {
		t.Error(err)
	} else if left := fmt.Sprint(g.Unenforced()); !strings.Contains(left, `tool "f" #: "type": left out`) {
		t.Errorf("left out: %s", left)
	}
	odd[0].Strict = true
	if _, err := c.Calls(t.Context(), odd, false, Format{}); err == nil {
		t.Error("a strict tool with a bad schema: no error")
	}
}

// What of a tool's schema cannot be enforced is left out by name, and the rest
// holds. Of a format it is, if it is loose.
func TestUnenforced(t *testing.T) {
	c, tok := compiler(t, chat.Generic())
	params := `{"type": "object", "properties": {"n": {"type": "integer", "$dynamicRef": "#x"}, "s": {"type": "string", "format": "odd"}, "r": {"$ref": "http://elsewhere"}}, "required": ["n"], "nullable": true}`
	tools := []chat.Tool{{Name: "f", Parameters: []byte(params)}, {Name: "g", Parameters: []byte(`{"anyOf": [{"$ref": "#"}, {"type": "null"}]}`)}}
	want := `[tool "f" #/properties/n: "$dynamicRef": left out: keyword not supported tool "f" #/properties/s: "format": unknown format "odd", which says nothing ` +
		`tool "f" #/properties/r: "$ref": left out: "http://elsewhere": only references into the same schema are followed tool "f" #: "nullable": unknown keyword, which says nothing ` +
		`tool "g": its schema is left out: grammar: tools: "#": left recursion: # → #]`
	call := func(args string) string {
		return "<tool_call>\n{\"name\": \"f\", \"arguments\": " + args + "}\n</tool_call>"
	}
	for _, or := range []Format{{}, JSONSchema([]byte(`{"type": "null"}`))} {
		g, err := c.Calls(t.Context(), tools, false, or)
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(g.Unenforced()); !strings.Contains(got, want[1:200]) || !strings.Contains(got, `tool "g": its schema is left out`) {
			t.Errorf("got  %s\nwant %s", got, want)
		}
		for args, want := range map[string]bool{`{"n": 1}`: true, `{"n": "x"}`: false, `{"n": 2, "s": "x", "r": [1]}`: true, `{}`: false} {
			if got := takes(t, g.NewState(), tok, call(args)); got != want {
				t.Errorf("%s: allowed: %v, want %v", args, got, want)
			}
		}
	}
	tools[0].Strict = true
	if _, err := c.Calls(t.Context(), tools[:1], false, Format{}); err == nil || !strings.Contains(err.Error(), `tool "f" #/properties/n: "$dynamicRef"`) {
		t.Errorf("a strict tool: %v", err)
	}
	f := JSONSchema([]byte(`{"type": "object", "properties": {"a": {"$dynamicRef": "#x", "type": "null"}}}`))
	if _, err := c.Format(t.Context(), f); err == nil {
		t.Error("a format that cannot be enforced: no error")
	}
	tools[0].Strict = false
	if _, err := c.Calls(t.Context(), tools[:1], false, f); err == nil || strings.Contains(err.Error(), "tool") {
		t.Errorf("beside tools that are not strict: %v", err)
	}
	g, err := c.Format(t.Context(), f.Loose())
	if err != nil || len(g.Unenforced()) != 1 || g.Unenforced()[0].Keyword != "$dynamicRef" {
		t.Fatal(err)
	}
	if !takes(t, g.NewState(), tok, `{"a": null}`) || takes(t, g.NewState(), tok, `{"a": 1}`) {
		t.Error("the rest of a loose format does not hold")
	}
}
