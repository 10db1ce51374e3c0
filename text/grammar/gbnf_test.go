package grammar_test

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"ridge/text/grammar"
	"ridge/text/grammar/internal/grammartest"
)

const arithmetic = `
# sums and products of numbers, with brackets
root   ::= sum
sum    ::= product (ws [-+] ws product)*
product ::= factor (ws ("*" | "/") ws factor)*
factor ::= "-"? (number | "(" ws sum ws ")")
number ::= [0-9]+ ("." [0-9]+)?
ws     ::= [ \t]?
`

const jsonGrammar = `root ::= value
value  ::= object | array | string | number | "true" | "false" | "null"
object ::= "{" ws (member ("," ws member)*)? "}" ws
member ::= string ":" ws value
array  ::= "[" ws (value ("," ws value)*)? "]" ws
string ::= "\"" (
    [^"\\\x00-\x1F] |
    "\\" (["\\/bfnrt] | "u" [0-9a-fA-F]{4})   # escapes
  )* "\"" ws
number ::= "-"? ("0" | [1-9] [0-9]{0,15}) ("." [0-9]+)? ([eE] [-+]? [0-9]+)? ws
ws ::= | " " | "\n" [ \t]{0,20}
`

func TestGBNF(t *testing.T) {
	for _, c := range []struct {
		name, grammar string
		good, bad     []string
	}{
		{"literal", `root ::= "hello"`, []string{"hello"}, []string{"", "hell", "hello!"}},
		{"quotes of the other kind", `root ::= 'it"s' "'"`, []string{`it"s'`}, []string{`it"s`}},
		{"escapes of XGrammar", `root ::= "\0\a\b\e\f\v\?" [\f\0]`, []string{"\x00\a\b\x1b\f\v?\f", "\x00\a\b\x1b\f\v?\x00"}, []string{"0abefv?f"}},
		{"escapes", `root ::= "\n\t\r\\\"\x41\u00e9\U0001F600" [\]\[\^\-\x42-\x44]`, []string{"\n\t\r\\\"Aé😀]", "\n\t\r\\\"Aé😀C", "\n\t\r\\\"Aé😀-"}, []string{"\n\t\r\\\"Aé😀a"}},
		{"alternatives", `root ::= "a" | "b" "c" |`, []string{"a", "bc", ""}, []string{"b", "ac"}},
		{"classes", "root ::= [a-c] [^a-c\n] [あ-ん.-]", []string{"a1い", "cé-", "bx."}, []string{"d1い", "abい", "a\nい"}},
		{"any", `root ::= . .`, []string{"ab", "\n日"}, []string{"a", "abc", "\xff\xff"}},
		{"repetitions", `root ::= "a"* "b"+ "c"? "d"{2} "e"{1,} "f"{1,2} "g"{0,1} "h"{,2}`, []string{"bddef", "aabbcddeeffghh"}, []string{"ddef", "bdef", "bddefff", "bddefhhh"}},
		{"repeated literal", `root ::= "ab"{2,3}`, []string{"abab", "ababab"}, []string{"ab", "abb", "abababab"}},
		{"repetition of a repetition", `root ::= ("a"{2}){2}+ "b"*?`, []string{"aaaa", "aaaaaaaabb"}, []string{"aa", "aaaaaa"}},
		{"great repetition", `root ::= ("ab" | "a"){300,1000} "c"`, []string{strings.Repeat("aab", 200) + "c"}, []string{strings.Repeat("a", 299) + "c", "c", strings.Repeat("ab", 1001) + "c"}},
		{"great repetition without a bound", `root ::= word{200,}
			word ::= [a-z]+ " "`, []string{strings.Repeat("x ", 200), strings.Repeat("xy ", 500)}, []string{strings.Repeat("x ", 199), strings.Repeat("x", 400)}},
		{"groups over lines", "root ::= (\n  # one\n  \"a\"\n  | \"b\" # two\n)\n\nother ::= \"c\"", []string{"a", "b"}, []string{"c"}},
		{"alternatives over lines", "root ::= \"a\" |\n  \"b\"\n  | x\nx ::= \"c\"", []string{"a", "b", "c"}, []string{"ab"}},
		{"names", "root ::= a-1_B\na-1_B ::= \"x\"", []string{"x"}, []string{""}},
		{"carriage returns", "root ::= \"a\" b\r\nb ::= \"c\"\r\n", []string{"ac"}, []string{"a"}},
		{"recursion", `root ::= "(" root ")" root | ""`, []string{"", "()", "(())()"}, []string{"(", ")("}},
		{"palindromes", `root ::= "a" root "a" | "b" root "b" | "c"`, []string{"c", "abcba"}, []string{"abcab", "ab"}},
		{"right recursion", `root ::= "a" root | "b"`, []string{"b", strings.Repeat("a", 5000) + "b"}, []string{strings.Repeat("a", 5000)}},
		{"ambiguity", `root ::= "a" root | "a" root root | "b"`, []string{"b", strings.Repeat("a", 300) + strings.Repeat("b", 100)}, []string{"bb"}},
		{"empty in the middle", `root ::= e "a" e
			e ::= ("x" |)*`, []string{"a", "xxax"}, []string{"x"}},
		{"unused rules may be impossible", "root ::= \"a\"\nx ::= x \"b\"", []string{"a"}, nil},
		{"impossible alternatives", "root ::= \"a\" | x\nx ::= \"b\" x", []string{"a"}, []string{"b"}},
		{"arithmetic", arithmetic, []string{"1", "1+2*3", "-(1.5 - 2) / 3", "((((7))))"}, []string{"1+", "(1", "1 2", "--1"}},
		{"json", jsonGrammar, []string{`{"a": [1, -2.5e+3, "x\u00e9\n", true], "b": {}}`, "[\n\t1]"}, []string{`{"a"}`, `[1,]`, `{"a": "\x"}`}},
	} {
		g, err := grammar.GBNF(grammartest.Small(), c.grammar)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		for _, text := range c.good {
			if err := grammartest.Accepts(g, text); err != nil {
				t.Errorf("%s: %.40q: %v", c.name, text, err)
			}
		}
		for _, text := range c.bad {
			if grammartest.Accepts(g, text) == nil {
				t.Errorf("%s: %.40q is accepted", c.name, text)
			}
		}
		rng := rand.New(rand.NewPCG(1, 9))
		for range 20 {
			text := grammartest.Generate(t, g, rng, rng.IntN(20))
			if err := grammartest.Accepts(g, text); err != nil {
				t.Errorf("%s: generated %.60q: %v", c.name, text, err)
			}
		}
	}
}

func TestGBNFRefused(t *testing.T) {
	for _, c := range []struct {
		grammar string
		kind    grammar.Kind
		want    string
	}{
		{``, grammar.Invalid, "root"},
		{`x ::= "a"`, grammar.Invalid, `"root": rule not defined`},
		{`root ::= x`, grammar.Invalid, `line 1, column 10: rule "x" not defined`},
		{"root ::= \"a\"\nroot ::= \"b\"", grammar.Invalid, "line 2, column 1: rule \"root\" defined twice"},
		{`root := "a"`, grammar.Invalid, "expected ::="},
		{`root ::= "a`, grammar.Invalid, "literal without an end"},
		{`root ::= [a`, grammar.Invalid, "without an end"},
		{`root ::= []`, grammar.Invalid, "empty class"},
		{`root ::= [b-a]`, grammar.Invalid, "descending"},
		{`root ::= ("a"`, grammar.Invalid, "expected )"},
		{`root ::= "a")`, grammar.Invalid, "expected an operand"},
		{`root ::= *`, grammar.Invalid, "expected an operand"},
		{`root ::= "\q"`, grammar.Invalid, "unknown escape"},
		{`root ::= "\x4"`, grammar.Invalid, "hexadecimal"},
		{`root ::= "\ud800"`, grammar.Invalid, "not a character"},
		{`root ::= "\UFFFFFFFF"`, grammar.Invalid, "not a character"},
		{`root ::= "a"{`, grammar.Invalid, "expected }"},
		{`root ::= "a"{x}`, grammar.Invalid, "{x}"},
		{`root ::= "a"{3,2}`, grammar.Invalid, "m at most n"},
		{`root ::= "a"{99999999}`, grammar.TooLarge, "too large"},
		{`root ::= "a"{}`, grammar.Invalid, "whole numbers"},
		{`root ::= <think>`, grammar.Unsupported, "tokens"},
		{`root ::= root "a" | "b"`, grammar.Unsupported, "left recursion: root → root"},
		{"root ::= x | \"b\"\nx ::= y? z \"c\"\ny ::= \"y\"\nz ::= root", grammar.Unsupported, "left recursion"},
		{`root ::= "a" root`, grammar.Unmatchable, "no finite text"},
		{`root ::= ("a"? "b"?){400} "c"`, grammar.Unsupported, "may be empty"},
		{"root ::= \"a\xff\"", grammar.Invalid, "UTF-8"},
		{"root ::= " + strings.Repeat("(", 300) + strings.Repeat(")", 300), grammar.TooLarge, "nested"},
		{strings.Repeat("#\n", 1<<20), grammar.TooLarge, "longer"},
		{"root ::= (\"a\"{1000000}){1000000}" + strings.Repeat("(\"a\"{1000000} [bc])", 2000), grammar.TooLarge, "counts"},
	} {
		_, err := grammar.GBNF(nil, c.grammar)
		var e *grammar.Error
		if !errors.As(err, &e) || e.Kind != c.kind || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.60q: %v (want kind %d, %q)", c.grammar, err, c.kind, c.want)
		}
	}
}

func TestChoice(t *testing.T) {
	texts := []string{"yes", "no", "yes, but", "не знаю", ""}
	g, err := grammar.Choice(grammartest.Small(), texts)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range texts {
		if err := grammartest.Accepts(g, text); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
	for _, text := range []string{"ye", "yes,", "maybe"} {
		if grammartest.Accepts(g, text) == nil {
			t.Errorf("%q is accepted", text)
		}
	}
	if _, err := grammar.Choice(nil, nil); err == nil {
		t.Error("no choice at all")
	}
	if _, err := grammar.Choice(nil, []string{"\xff"}); err == nil {
		t.Error("a choice that is not UTF-8")
	}
	if _, err := grammar.Choice(nil, []string{strings.Repeat("x", grammar.MaxStates)}); err == nil {
		t.Error("a choice that is too large")
	}
}
