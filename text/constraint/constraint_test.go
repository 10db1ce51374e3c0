package constraint

import (
	"math"
	"slices"
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
		g, err := c.Format(x.f)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := c.Format(x.f); err != nil || again != g {
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
	if _, err := c.Format(Format{}); err == nil || !(Format{}).Any() || JSON().Any() {
		t.Error("any text is no format")
	}
	if _, err := c.Format(JSONSchema([]byte(`{"type": "strange"}`))); err == nil {
		t.Error("a bad schema: no error")
	}
}

// A format holds after the reasoning, wherever that begins.
func TestAfterReasoning(t *testing.T) {
	c, tok := compiler(t, chat.Generic().WithReasoning("think"))
	g, err := c.Format(Choice("yes", "no"))
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
	one, err := c.Calls(tools, false, Format{})
	if err != nil {
		t.Fatal(err)
	}
	many, err := c.Calls(tools, true, Format{})
	if err != nil {
		t.Fatal(err)
	}
	or, err := c.Calls(tools, false, Choice("no call"))
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
	if _, err := c.Calls(tools, false, StructuralTag([]byte(`{}`))); err == nil {
		t.Error("calls or a structural tag: no error")
	}
	strict, err := c.Strict(tools, false, false)
	if err != nil {
		t.Fatal(err)
	}
	check("strict", strict(), "Some text.", true)
	check("strict", strict(), "Some text. "+call("4"), true)
	check("strict", strict(), "Some text. "+call(`"a"`), false)
	// Of a schema that cannot be enforced only a strict tool complains.
	odd := []chat.Tool{{Name: "f", Parameters: []byte(`{"type": "strange"}`)}}
	if _, err := c.Calls(odd, false, Format{}); err != nil {
		t.Error(err)
	}
	odd[0].Strict = true
	if _, err := c.Calls(odd, false, Format{}); err == nil {
		t.Error("a strict tool with a bad schema: no error")
	}
}
