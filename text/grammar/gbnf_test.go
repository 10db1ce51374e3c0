package grammar

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
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
		g, err := GBNF(smallVocabulary(), c.grammar)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		for _, text := range c.good {
			if err := accepts(g, text); err != nil {
				t.Errorf("%s: %.40q: %v", c.name, text, err)
			}
		}
		for _, text := range c.bad {
			if accepts(g, text) == nil {
				t.Errorf("%s: %.40q is accepted", c.name, text)
			}
		}
		rng := rand.New(rand.NewPCG(1, 9))
		for range 20 {
			text := generate(t, g, rng, rng.IntN(20))
			if err := accepts(g, text); err != nil {
				t.Errorf("%s: generated %.60q: %v", c.name, text, err)
			}
		}
	}
}

func TestGBNFRefused(t *testing.T) {
	for _, c := range []struct {
		grammar string
		kind    Kind
		want    string
	}{
		{``, Invalid, "root"},
		{`x ::= "a"`, Invalid, `"root": rule not defined`},
		{`root ::= x`, Invalid, `line 1, column 10: rule "x" not defined`},
		{"root ::= \"a\"\nroot ::= \"b\"", Invalid, "line 2, column 1: rule \"root\" defined twice"},
		{`root := "a"`, Invalid, "expected ::="},
		{`root ::= "a`, Invalid, "literal without an end"},
		{`root ::= [a`, Invalid, "without an end"},
		{`root ::= []`, Invalid, "empty class"},
		{`root ::= [b-a]`, Invalid, "descending"},
		{`root ::= ("a"`, Invalid, "expected )"},
		{`root ::= "a")`, Invalid, "expected an operand"},
		{`root ::= *`, Invalid, "expected an operand"},
		{`root ::= "\q"`, Invalid, "unknown escape"},
		{`root ::= "\x4"`, Invalid, "hexadecimal"},
		{`root ::= "\ud800"`, Invalid, "not a character"},
		{`root ::= "\UFFFFFFFF"`, Invalid, "not a character"},
		{`root ::= "a"{`, Invalid, "expected }"},
		{`root ::= "a"{x}`, Invalid, "{x}"},
		{`root ::= "a"{3,2}`, Invalid, "m at most n"},
		{`root ::= "a"{99999999}`, TooLarge, "too large"},
		{`root ::= "a"{}`, Invalid, "whole numbers"},
		{`root ::= <think>`, Unsupported, "tokens"},
		{`root ::= root "a" | "b"`, Unsupported, "left recursion: root → root"},
		{"root ::= x | \"b\"\nx ::= y? z \"c\"\ny ::= \"y\"\nz ::= root", Unsupported, "left recursion"},
		{`root ::= "a" root`, Unmatchable, "no finite text"},
		{`root ::= ("a"? "b"?){400} "c"`, Unsupported, "may be empty"},
		{"root ::= \"a\xff\"", Invalid, "UTF-8"},
		{"root ::= " + strings.Repeat("(", 300) + strings.Repeat(")", 300), TooLarge, "nested"},
		{strings.Repeat("#\n", 1<<20), TooLarge, "longer"},
		{"root ::= (\"a\"{1000000}){1000000}" + strings.Repeat("(\"a\"{1000000} [bc])", 2000), TooLarge, "counts"},
	} {
		_, err := GBNF(nil, c.grammar)
		var e *Error
		if !errors.As(err, &e) || e.Kind != c.kind || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.60q: %v (want kind %d, %q)", c.grammar, err, c.kind, c.want)
		}
	}
}

func TestChoice(t *testing.T) {
	texts := []string{"yes", "no", "yes, but", "не знаю", ""}
	g, err := Choice(smallVocabulary(), texts)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range texts {
		if err := accepts(g, text); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
	for _, text := range []string{"ye", "yes,", "maybe"} {
		if accepts(g, text) == nil {
			t.Errorf("%q is accepted", text)
		}
	}
	if _, err := Choice(nil, nil); err == nil {
		t.Error("no choice at all")
	}
	if _, err := Choice(nil, []string{"\xff"}); err == nil {
		t.Error("a choice that is not UTF-8")
	}
	if _, err := Choice(nil, []string{strings.Repeat("x", maxStates)}); err == nil {
		t.Error("a choice that is too large")
	}
}

func TestTools(t *testing.T) {
	weather := Tool{"weather", []byte(`{"type":"object","properties":{"city":{"type":"string"},"days":{"$ref":"#/$defs/d"}},"required":["city"],"$defs":{"d":{"type":"integer","minimum":1,"maximum":9}}}`)}
	stop := Tool{Name: "stop"}
	for _, c := range []struct {
		name      string
		o         ToolOptions
		good, bad []string
	}{
		{"one", ToolOptions{}, []string{`{"name": "weather", "arguments": {"city": "x", "days": 3}}`, `{"name":"stop","arguments":{"any":[1]}}`},
			[]string{`{"name":"weather","arguments":{}}`, `{"name":"rain","arguments":{}}`, `{"name":"stop"}`, ``, `{"name":"weather","arguments":{"city":"x","days":10}}`}},
		{"tagged", ToolOptions{Begin: "<tool_call>\n", End: "\n</tool_call>", Between: "\n", MaxCalls: 2, MinCalls: 1},
			[]string{"<tool_call>\n{\"name\": \"stop\", \"arguments\": {}}\n</tool_call>", "<tool_call>\n{\"name\": \"stop\", \"arguments\": {}}\n</tool_call>\n<tool_call>\n{\"name\": \"stop\", \"arguments\": {}}\n</tool_call>"},
			[]string{"{\"name\": \"stop\", \"arguments\": {}}", ""}},
		{"list", ToolOptions{Before: "[", After: "]", Between: ", ", MinCalls: 0, MaxCalls: -1, ArgumentsKey: "parameters", NameKey: "function"},
			[]string{`[]`, `[{"function": "stop", "parameters": {}}, {"function": "stop", "parameters": {}}, {"function": "stop", "parameters": {}}]`}, []string{`[{"name": "stop", "parameters": {}}]`}},
		{"only", ToolOptions{Only: "stop"}, []string{`{"name":"stop","arguments":{}}`}, []string{`{"name":"weather","arguments":{"city":""}}`}},
	} {
		g, err := Tools(smallVocabulary(), []Tool{weather, stop}, c.o)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		for _, text := range c.good {
			if err := accepts(g, text); err != nil {
				t.Errorf("%s: %s: %v", c.name, text, err)
			}
		}
		for _, text := range c.bad {
			if accepts(g, text) == nil {
				t.Errorf("%s: %s is accepted", c.name, text)
			}
		}
	}
	for _, c := range []struct {
		tools []Tool
		o     ToolOptions
		want  string
	}{
		{nil, ToolOptions{}, "at least one tool"},
		{[]Tool{stop, stop}, ToolOptions{}, "each once"},
		{[]Tool{{Name: ""}}, ToolOptions{}, "not empty"},
		{[]Tool{stop}, ToolOptions{Only: "go"}, `"go": no such tool`},
		{[]Tool{stop}, ToolOptions{MinCalls: 3, MaxCalls: 2}, "MaxCalls"},
		{[]Tool{stop, {"x", []byte(`{"properties":{"a":{"nullable":true}}}`)}}, ToolOptions{}, `tool "x" #/properties/a`},
	} {
		_, err := Tools(nil, c.tools, c.o)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
}
