package schema

import (
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	"ridge/text/grammar"
	"ridge/text/grammar/internal/grammartest"
)

// larkCase is a grammar with texts that llguidance takes and refuses; without any it
// refuses the grammar.
type larkCase struct {
	Grammar   string
	Good, Bad []string
}

func larkCases(t testing.TB) (cases []larkCase) {
	t.Helper()
	b, err := os.ReadFile("../testdata/lark_goldens.json")
	if err == nil {
		err = json.Unmarshal(b, &cases)
	}
	if err != nil {
		t.Fatal(err)
	}
	return cases
}

// Grammars in Lark take the texts that llguidance takes of them, and no others.
func TestLark(t *testing.T) {
	v := grammartest.Small()
	for i, c := range larkCases(t) {
		if !grammar.IsLark(c.Grammar) && c.Grammar != "start: (" {
			t.Errorf("not taken for Lark: %q", c.Grammar)
		}
		g, err := Lark(v, c.Grammar, Options{})
		if c.Good == nil && c.Bad == nil {
			var e *grammar.Error
			if !errors.As(err, &e) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%q: got %v, want an error", c.Grammar, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%q: %v", c.Grammar, err)
			continue
		}
		for _, s := range c.Good {
			if err := grammartest.Accepts(g, s); err != nil {
				t.Errorf("%q: %q: %v", c.Grammar, s, err)
			}
		}
		for _, s := range c.Bad {
			if grammartest.Accepts(g, s) == nil {
				t.Errorf("%q: %q accepted", c.Grammar, s)
			}
		}
		grammartest.Walk(t, g, uint64(i))
	}
}

// What is wrong with a grammar in Lark, or not known of it, is named with its place.
func TestLarkErrors(t *testing.T) {
	for source, want := range map[string]string{
		"start: \"a\"\nb: \"x\" ~ 3..2": "grammar: lark: line 2, column 7: expected a range of counts, the smaller first",
		"start: b":                      `grammar: lark: line 1, column 8: rule "b" not defined`,
		"start: A\nA: A":                `grammar: lark: line 1, column 8: terminal "A" has itself in it`,
		"start: <|im_end|>":             "grammar: lark: line 1, column 8: tokens in grammars are not supported",
		"start.2: \"a\"":                "grammar: lark: line 1, column 6: priorities of rules are not supported",
		"start{x}: \"a\"":               "grammar: lark: line 1, column 6: rules with parameters are not supported",
		"start: /a*?b/":                 "grammar: lark: line 1, column 8: lazy repetitions in a regular expression; [lazy] makes a whole rule lazy",
		"start: /(a/":                   `grammar: lark: line 1, column 8: regular expression: missing closing ): "(a"`,
		"start: /a/x":                   "grammar: lark: line 1, column 11: expected flags of i, m, s and u, found 'x'",
		"start: a\na: b \"x\"\nb: a \"y\" | \"z\"":   "left recursion",
		"start: %json {\"type\": \"strong\"}":        `grammar: schema: #: "type"`,
		"start: %json {":                             "grammar: lark: line 1, column 13: expected JSON, found ' '",
		"start[max_tokens]: \"a\"":                   "expected = after max_tokens, found ']'",
		"%declare A\nstart: A":                       `grammar: lark: line 1, column 1: expected a rule, %ignore, %import or %llguidance, found "%declare"`,
		"start: A\nA: /a/{2} & (\"b\" ~/c/ | \"d\")": "line 2, column 18: %regex, & and ~ cannot stand inside",
		`{"grammars": [{"lark_grammar": "start: @a"}, {"name": "a", "lark_grammar": "start: @a"}]}`: "no finite text",
	} {
		if _, err := Lark(nil, source, Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %s", source, err, want)
		}
	}
	g, err := Lark(nil, "start[max_tokens=5, temperature=0.5]: \"a\"", Options{})
	if err != nil || len(g.Unenforced()) != 2 || g.Unenforced()[0].Keyword != "max_tokens" {
		t.Errorf("what is left out: %v, %v", err, g.Unenforced())
	}
	for source, want := range map[string]bool{
		"root ::= \"a\"": false, "# x\nroot   ::= a\na ::= \"b\"": false, "start: \"a\"": true, "// x\n?start[lazy]: \"a\"": true, "%llguidance {}": true, "root": false, "": false,
		`{"grammars": []}`: false, `{"grammars": [{"json_schema": {}}]}`: true, `{"type": "object"}`: false,
	} {
		if grammar.IsLark(source) != want {
			t.Errorf("%q: expected that it is Lark: %v", source, want)
		}
	}
}

// The example of the documents means what it says.
func TestLarkDocument(t *testing.T) {
	b, err := os.ReadFile("../../../docs/grammars.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, ok := strings.Cut(string(b), "## 5. Lark")
	_, text, ok2 := strings.Cut(text, "```\n")
	text, _, ok3 := strings.Cut(text, "```")
	if !ok || !ok2 || !ok3 {
		t.Fatal("docs/grammars.md: no example in section 5")
	}
	g, err := Lark(grammartest.Small(), text, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for s, want := range map[string]bool{"1 + 2*(x+3.5)": true, "a+b + c": true, "if": false, "1+": false, " 1": false, "elsewhere": true} {
		if err := grammartest.Accepts(g, s); (err == nil) != want {
			t.Errorf("%q: %v", s, err)
		}
	}
}
