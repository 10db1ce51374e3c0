package schema

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"ridge/text/grammar"
	"ridge/text/grammar/internal/grammartest"
)

const legacyTag = `{"type":"structural_tag","structures":[
	{"begin":"<function=add>","schema":{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer"}},"required":["a","b"],"additionalProperties":false},"end":"</function>"},
	{"begin":"<function=say>","schema":{"type":"object","properties":{"text":{"type":"string","maxLength":9}},"required":["text"],"additionalProperties":false},"end":"</function>"}],
	"triggers":["<function="]}`

func TestStructuralTag(t *testing.T) {
	add := `<function=add>{"a":1,"b":2}</function>`
	say := `<function=say>{"text": "hi"}</function>`
	format := func(f string) string { return `{"type":"structural_tag","format":` + f + `}` }
	tags := `"triggers":["<t","[x"],"tags":[{"begin":"<t>","content":{"type":"json_schema","json_schema":{"type":"integer"}},"end":"</t>"},{"type":"tag","begin":"[x]","content":{"type":"any_text"},"end":["[/x]","[/y]"]}]`
	for _, c := range []struct {
		source    string
		good, bad []string
	}{
		{legacyTag, []string{"", "free < text </function>", add, "so: " + add + " and " + say + " done", add + add, "<functio", "<<function=add>{\"a\":1,\"b\":2}</function>", "é\xff"},
			[]string{"<function=", "<function=sub>{}</function>", "<function=add>{}</function>", "<function=add>{\"a\":1,\"b\":2}", "x<function=say>{\"text\":\"0123456789\"}</function>"}},
		{format(`{"type":"triggered_tags",` + tags + `}`), []string{"", "a", "<t>5</t>", "[x]what <t></t[/x]b<t>-1</t>", "[x][/y]", "[", "[x[y"[:1]}, []string{"<t", "<t>5", "<t>x</t>", "[x", "[x]", "[x]a[/x]<t", "a<t>5</t>[x]"}},
		{format(`{"type":"triggered_tags","at_least_one":true,` + tags + `}`), []string{"<t>5</t>", "<t>5</t>a<t>6</t>", "[x]b[/y]c"}, []string{"", "a", "ab[", "a<t>5</t>"}},
		{format(`{"type":"triggered_tags","stop_after_first":true,` + tags + `}`), []string{"", "a", "a<t>5</t>"}, []string{"<t>5</t>a", "<t>5</t><t>5</t>"}},
		{format(`{"type":"triggered_tags","excludes":["bad"],` + tags + `}`), []string{"ba", "bbad"[:3], "[x]bad[/x]"}, []string{"bad", "a bad", "<t>5</t>bad"}},
		{format(`{"type":"sequence","elements":[{"type":"const_string","value":"A:"},{"type":"regex","pattern":"[0-9]+"},{"type":"or","elements":[{"type":"const_string","value":"!"},{"type":"grammar","grammar":"root ::= \"?\"+"}]},{"type":"any_text"}]}`),
			[]string{"A:1!", "A:12??", "A:1! and more"}, []string{"A:", "A:1", "B:1!", ""}},
		{format(`{"type":"tags_with_separator","separator":", ","tags":[{"begin":"<a>","content":{"type":"const_string","value":"1"},"end":"</a>"},{"begin":"<b>","content":{"type":"json_schema","json_schema":true},"end":""}]}`),
			[]string{"", "<a>1</a>", "<a>1</a>, <b>[1]", "<b>{}, <a>1</a>"}, []string{"<a>1</a>,", "x", "<a>1</a><a>1</a>", "<a>2</a>"}},
		{format(`{"type":"tags_with_separator","separator":";","at_least_one":true,"stop_after_first":true,"tags":[{"begin":"<a>","content":{"type":"any_text"},"end":"</a>"}]}`),
			[]string{"<a></a>", "<a>x</</a>"}, []string{"", "<a></a>;<a></a>", "<a></a></a>"}},
		{format(`{"type":"sequence","elements":[{"type":"optional","content":{"type":"const_string","value":"A"}},{"type":"plus","content":{"type":"regex","pattern":"[0-9];"}},{"type":"star","content":{"type":"const_string","value":"!"}},{"type":"repeat","min":2,"max":3,"content":{"type":"const_string","value":"?"}},{"type":"repeat","min":1,"max":-1,"content":{"type":"const_string","value":"."}}]}`),
			[]string{"A1;??.", "1;2;!!???...", "3;??."}, []string{"A??.", "AA1;??.", "1;?.", "1;????.", "1;??", ""}},
		{format(`{"type":"dispatch","rules":[["<n>",{"type":"regex","pattern":"[0-9]+</n>"}],["<j>",{"type":"json_schema","json_schema":{"type":"boolean"}}]],"excludes":["bad"]}`),
			[]string{"", "text < n", "a<n>12</n>b<j>true c<n>1</n>", "ba"}, []string{"<n>", "<n>x</n>", "a<j>1", "bad", "<n>1</n>bad"}},
		{format(`{"type":"tag","begin":"(","end":")","content":{"type":"dispatch","loop":false,"rules":[["#",{"type":"const_string","value":"1"}]]}}`),
			[]string{"()", "(a)", "(a#1)"}, []string{"(a#2)", "(a#1b)", "(a)b", "(#1#1)"}},
		{format(`{"type":"json_schema","any_order":true,"json_schema":{"type":"object","properties":{"a":{"type":"null"},"b":{"type":"null"}},"required":["a","b"]}}`), []string{`{"a":null,"b":null}`, `{"b":null,"a":null}`}, []string{`{"a":null}`}},
		{format(`{"type":"star","content":{"type":"any_text"}}`), []string{"", "abc"}, nil},
		{format(`{"type":"tag","begin":"(","content":{"type":"tag","begin":"[","content":{"type":"any_text","excludes":["x"]},"end":"]"},"end":")"}`), []string{"([])", "([a])"}, []string{"([x])", "()", "([])a"}},
	} {
		g, err := StructuralTag(nil, []byte(c.source), Options{})
		if err != nil {
			t.Errorf("%s: %v", c.source, err)
			continue
		}
		for _, text := range c.good {
			if err := grammartest.Accepts(g, text); err != nil {
				t.Errorf("%s: %q: %v", c.source, text, err)
			}
		}
		for _, text := range c.bad {
			if grammartest.Accepts(g, text) == nil {
				t.Errorf("%s: %q is accepted", c.source, text)
			}
		}
	}
}

func TestStructuralTagRefuses(t *testing.T) {
	for source, says := range map[string]string{
		`x`:  "#",
		`{}`: "expected a format",
		`{"structures":[{"begin":"<a>","schema":{},"end":"x"}],"triggers":[]}`:                                                             "triggers",
		`{"structures":[{"begin":"<a>","schema":{},"end":"x"}],"triggers":["<b"]}`:                                                         "begins with a trigger",
		`{"structures":[{"begin":"<a>","schema":{"uniqueItems":true,"items":{"type":"array"}},"end":"x"}],"triggers":["<a"]}`:              "uniqueItems",
		`{"structures":[{"begin":"<a>","schema":{"type":5},"end":"x"}],"triggers":[""]}`:                                                   "1 to 1024 bytes",
		`{"format":{"type":"qwen_xml_parameter"}}`:                                                                                         "json_schema",
		`{"format":{"type":"repeat","min":3,"max":2,"content":{"type":"any_text"}}}`:                                                       "min <= max",
		`{"format":{"type":"repeat","min":3,"content":{"type":"any_text"}}}`:                                                               "min <= max",
		`{"format":{"type":"dispatch","rules":[]}}`:                                                                                        "rules",
		`{"format":{"type":"dispatch","rules":[["a"]]}}`:                                                                                   "a text and a format",
		`{"format":{"type":"json_schema","json_schema":{},"excludes":["x"]}}`:                                                              "excludes",
		`{"format":{"type":"json_schema"}}`:                                                                                                "json_schema",
		`{"format":{"type":"json_schema","json_schema":{},"style":"other_xml"}}`:                                                           "other_xml",
		`{"format":{"type":"sequence","elements":[{"type":"regex","pattern":"("}]}}`:                                                       "#/format/elements/0",
		`{"format":{"type":"tag","begin":"a","content":{"type":"any_text"}}}`:                                                              "end",
		`{"format":{"type":"tags_with_separator","tags":[]}}`:                                                                              "tags",
		`{"format":` + strings.Repeat(`{"type":"or","elements":[`, 40) + `{"type":"any_text"}` + strings.Repeat(`]}`, 40) + `}`:            "nested deeper",
		`{"format":{"type":"triggered_tags","triggers":["a"],"tags":[{"type":"or","begin":"a","content":{"type":"any_text"},"end":"b"}]}}`: "expected a tag",
	} {
		_, err := StructuralTag(nil, []byte(source), Options{})
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: got %v, want %s", source, err, says)
			continue
		}
		if large := strings.Contains(err.Error(), "too large"); large != (err.(*grammar.Error).Kind == grammar.TooLarge) {
			t.Errorf("%s: %v is of kind %d", source, err, err.(*grammar.Error).Kind)
		}
	}
}

// Random walks over the masks of a real vocabulary: every trigger that is
// written goes on as a section whose content an independent validator finds
// valid.
func TestStructuralTagGenerations(t *testing.T) {
	v := grammartest.Real(t, "gpt-2")
	g, err := StructuralTag(v, []byte(legacyTag), Options{})
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Structures []struct {
			Begin, End string
			Schema     json.RawMessage
		}
	}
	if err := json.Unmarshal([]byte(legacyTag), &doc); err != nil {
		t.Fatal(err)
	}
	sections := 0
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 3))
		text := steered(t, g, rng, 30, "<function=")
		for rest := text; ; {
			_, after, ok := strings.Cut(rest, "<function=")
			if !ok {
				break
			}
			sections++
			found := false
			for _, s := range doc.Structures {
				body, ok := strings.CutPrefix("<function="+after, s.Begin)
				if !ok {
					continue
				}
				dec := json.NewDecoder(strings.NewReader(body))
				var x json.RawMessage
				if err := dec.Decode(&x); err != nil {
					t.Fatalf("%q: %v", text, err)
				}
				if err := valid(validator(t, string(s.Schema)), string(x)); err != nil {
					t.Fatalf("%q: %v", text, err)
				}
				if rest, found = strings.CutPrefix(body[dec.InputOffset():], s.End); !found {
					t.Fatalf("%q: no end after %s", text, x)
				}
			}
			if !found {
				t.Fatalf("%q: no tag after the trigger", text)
			}
		}
	}
	if sections < 100 {
		t.Errorf("only %d sections", sections)
	}
}

// steered is generate, but writes the text want first, now and then.
func steered(t testing.TB, g *grammar.Grammar, rng *rand.Rand, soft int, want string) string {
	t.Helper()
	s := g.NewState()
	var out []byte
	for range soft {
		if s.Complete() && rng.IntN(6) == 0 {
			if err := s.AcceptBytes([]byte(want)); err != nil {
				t.Fatalf("%q: %v", out, err)
			}
			out = append(out, want...)
			continue
		}
		id := grammartest.Pick(s.MaskBits(), rng)
		if err := s.Accept(id); err != nil {
			t.Fatalf("after %q: %v", out, err)
		}
		if g.Vocabulary().IsEnd(id) {
			return string(out)
		}
		out = append(out, g.Vocabulary().Bytes(id)...)
	}
	return string(append(out, s.Shortest(1000)...))
}

// A union accepts what one of its parts accepts, and nothing else.
func TestUnion(t *testing.T) {
	schema := []byte(`{"type":"object","properties":{"name":{"type":"string"}},"required":["name"],"additionalProperties":false}`)
	calls := Part{Tools: []Tool{{Name: "add", Parameters: []byte(`{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"]}`)}},
		Calling: ToolOptions{Begin: "<call>", End: "</call>", MinCalls: 1, MaxCalls: 2}}
	g, err := Union(nil, []Part{{Schema: schema}, calls, {Regex: "[xy]+"}, {Choice: []string{"one", "two"}}, {GBNF: `root ::= "z"+`}}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{`{"name":"x"}`, `<call>{"name":"add","arguments":{"a":1}}</call>`, `<call>{"name":"add","arguments":{"a":1}}</call><call>{"name":"add","arguments":{"a":2}}</call>`, "xyx", "two", "zz"} {
		if err := grammartest.Accepts(g, text); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
	for _, text := range []string{``, `{}`, `{"name":"add","arguments":{"a":1}}`, `<call>{"name":"add","arguments":{}}</call>`, "xz", "onetwo"} {
		if grammartest.Accepts(g, text) == nil {
			t.Errorf("%s is accepted", text)
		}
	}
	if g, err = Union(nil, []Part{{Object: true}, {Choice: []string{"{"}}}, Options{}); err != nil || grammartest.Accepts(g, `{"a":[1]}`) != nil || grammartest.Accepts(g, "{") != nil || grammartest.Accepts(g, "[]") == nil {
		t.Errorf("objects: %v", err)
	}
	for says, parts := range map[string][]Part{"at least one part": nil, "says something": {{}}, "schema: #": {{Choice: []string{"a"}}, {Schema: []byte(`{"uniqueItems":true,"items":{"type":"array"}}`)}}, "regex": {{Regex: "("}}} {
		if _, err := Union(nil, parts, Options{}); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("want %s, got %v", says, err)
		}
	}
}

// Marks are found where a plain search finds them.
func TestMarkTable(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	for range 300 {
		var marks []string
		for range 1 + rng.IntN(4) {
			marks = append(marks, markText(rng, 1+rng.IntN(4)))
		}
		text := markText(rng, 30)
		table := newMarkTable(marks)
		n := 0
		for i := range len(text) {
			n = table.step(n, text[i])
			got, want := map[int]bool{}, map[int]bool{}
			for _, m := range table.out[n] {
				got[m] = true
			}
			for m, mark := range marks {
				if strings.HasSuffix(text[:i+1], mark) {
					want[m] = true
				}
			}
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Fatalf("%q in %q: got %v, want %v", marks, text[:i+1], got, want)
			}
		}
	}
}

func markText(rng *rand.Rand, n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = "ab<"[rng.IntN(3)]
	}
	return string(b)
}
