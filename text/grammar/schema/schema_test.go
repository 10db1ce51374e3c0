package schema

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/dlclark/regexp2/v2"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"ridge/internal/testdata"
	"ridge/text/grammar"
	"ridge/text/grammar/internal/grammartest"
)

// validator compiles a schema with an independent implementation.
func validator(t testing.TB, schema string) *jsonschema.Schema {
	t.Helper()
	s, err := compileValidator(schema)
	if err != nil {
		t.Fatalf("%s: %v", schema, err)
	}
	return s
}

func compileValidator(schema string) (*jsonschema.Schema, error) {
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(schema))
	if err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	c.UseRegexpEngine(func(expr string) (jsonschema.Regexp, error) {
		re, err := regexp2.Compile(expr, regexp2.ECMAScript)
		return ecmaRegexp{re}, err
	})
	if err := c.AddResource("mem:///schema.json", doc); err != nil {
		return nil, err
	}
	return c.Compile("mem:///schema.json")
}

// ecmaRegexp matches as ECMAScript does, which is what schemas are written for.
type ecmaRegexp struct{ *regexp2.Regexp }

func (r ecmaRegexp) MatchString(s string) bool {
	ok, err := r.Regexp.MatchString(s)
	return ok && err == nil
}

// valid reports whether text is JSON and valid.
func valid(s *jsonschema.Schema, text string) error {
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		return err
	}
	return s.Validate(doc)
}

func TestSchemaTexts(t *testing.T) {
	for _, c := range schemaCases {
		g, err := Compile(nil, []byte(c.schema), c.options)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		valid := valid
		if c.skipValidator {
			valid = func(*jsonschema.Schema, string) error { return nil }
		}
		var s *jsonschema.Schema
		if !c.skipValidator {
			s = validator(t, c.schema)
		}
		for _, text := range c.good {
			if err := valid(s, text); err != nil {
				t.Errorf("%s: the case is wrong: %s is not valid: %v", c.name, text, err)
			}
			if err := grammartest.Accepts(g, text); err != nil {
				t.Errorf("%s: %s: %v", c.name, text, err)
			}
		}
		for _, text := range c.bad {
			if !c.skipValidator && valid(s, text) == nil {
				t.Errorf("%s: the case is wrong: %s is valid", c.name, text)
			}
			if grammartest.Accepts(g, text) == nil {
				t.Errorf("%s: %s is accepted", c.name, text)
			}
		}
		for _, text := range c.narrow {
			if err := valid(s, text); err != nil {
				t.Errorf("%s: the case is wrong: %s is not valid: %v", c.name, text, err)
			}
			if grammartest.Accepts(g, text) == nil {
				t.Errorf("%s: %s is accepted, so it is no exception any more", c.name, text)
			}
		}
	}
}

// Thousands of random walks over masks of a real vocabulary, for each schema and
// form of white space: whatever is generated is valid.
func TestSchemaGenerations(t *testing.T) {
	v := grammartest.Real(t, "gpt-2")
	walks := 40
	if testing.Short() {
		walks = 5
	}
	total := 0
	for i, c := range schemaCases {
		if c.skipValidator {
			continue
		}
		s := validator(t, c.schema)
		for j, o := range []Options{c.options, {Whitespace: Compact}, {Whitespace: Pretty, AnyOrder: true}, {Open: true, Whitespace: Spaced}} {
			if j > 0 && o == c.options {
				continue
			}
			g, err := Compile(v, []byte(c.schema), o)
			if err != nil {
				var e *grammar.Error
				if j > 0 && errors.As(err, &e) && e.Kind == grammar.Unsupported {
					continue // oneOf of objects that Open keeps from being told apart
				}
				t.Errorf("%s: %+v: %v", c.name, o, err)
				continue
			}
			rng := rand.New(rand.NewPCG(uint64(i), uint64(j)))
			for range walks {
				text := grammartest.Generate(t, g, rng, rng.IntN(40))
				total++
				if err := valid(s, text); err != nil {
					t.Errorf("%s: %+v: generated %s: %v", c.name, o, text, err)
					break
				}
			}
		}
	}
	t.Logf("%d texts of %d schemas", total, len(schemaCases))
}

func TestSchemaRefused(t *testing.T) {
	for _, c := range []struct {
		schema string
		kind   grammar.Kind
		want   []string // parts of the message
	}{
		{`{"not":{"format":"email"}}`, grammar.Unsupported, []string{`#/not: "format"`, "not, if"}},
		{`{"not":{"not":{"not":{"format":"int8"}}}}`, grammar.Unsupported, []string{`#/not/not/not: "format"`}},
		{`{"properties":{"a/b":{"if":{"properties":{"x":{"format":"date"}}},"then":false}}}`, grammar.Unsupported, []string{`#/properties/a~1b/if/properties/x: "format"`}},
		{`{"not":{"additionalProperties":{"type":"null"}}}`, grammar.Unsupported, []string{`#/not: "additionalProperties"`, "may come again"}},
		{`{"not":{"patternProperties":{"^a":{"type":"null"}}}}`, grammar.Unsupported, []string{`#/not: "patternProperties"`}},
		{`{"not":{"propertyNames":{"maxLength":3}}}`, grammar.Unsupported, []string{`#/not: "propertyNames"`}},
		{`{"not":{"uniqueItems":true}}`, grammar.Unsupported, []string{`#/not: "uniqueItems"`}},
		{`{"not":{"maxLength":2000000}}`, grammar.TooLarge, []string{`#/not: "maxLength"`}},
		{`{"not":{"const":1.2e-70}}`, grammar.Unsupported, []string{`#/not: "const"`, "digits"}},
		{`{"type":"object","patternProperties":{"^a":true},"additionalProperties":{"type":"null"},"not":{"maxProperties":3}}`, grammar.Unsupported, []string{`"minProperties"`}},
		{`{"not":{"$ref":"#"}}`, grammar.Unsupported, []string{"itself"}},
		{`{"not":{}}`, grammar.Unmatchable, nil},
		{`{"not":3}`, grammar.Invalid, []string{`#/not`}},
		{`{"type":"array","not":{"contains":{"format":"date"}},"contains":{"minimum":3},"maxContains":2}`, grammar.Unsupported, []string{`"format"`}},
		{`{"items":{"type":"array","uniqueItems":true,"items":{"type":"array"}}}`, grammar.Unsupported, []string{`#/items: "uniqueItems"`, "at most 64 values"}},
		{`{"uniqueItems":true,"items":{"type":"object"},"maxItems":2}`, grammar.Unsupported, []string{`#: "uniqueItems"`, "scalars"}},
		{`{"uniqueItems":true,"items":{"type":"integer","minimum":1,"maximum":200},"minItems":201}`, grammar.Unmatchable, []string{`different items`}},
		{`{"uniqueItems":true,"items":{"enum":[[1],[2],[3],[4],[5],[6],[7],[8],[9],[10],[11],[12],[13],[14]]}}`, grammar.TooLarge, []string{`#: "uniqueItems"`, "maxItems"}},
		{`{"uniqueItems":true,"maxItems":2,"prefixItems":[{"type":"string"},{"properties":{"a":true}}],"contains":{"type":"string"},"minContains":2}`, grammar.Unsupported, []string{`#: "uniqueItems"`}},
		{`{"uniqueItems":1}`, grammar.Invalid, []string{`#: "uniqueItems"`}},
		{`{"contains":{"const":1},"minContains":5000}`, grammar.TooLarge, []string{`#: "contains"`}},
		{`{"contains":{"format":"date"},"maxContains":2}`, grammar.Unsupported, []string{`#/contains: "format"`}},
		{`{"contains":{"const":1},"minContains":"2"}`, grammar.Invalid, []string{`#: "minContains"`}},
		{`{"contains":{"const":1},"minContains":3,"maxContains":2}`, grammar.Unmatchable, nil},
		{`{"dependentRequired":{"a":"b"}}`, grammar.Invalid, []string{`#: "dependentRequired"`, "expected array"}},
		{`{"dependentSchemas":{"a":["b"]}}`, grammar.Invalid, []string{`#/dependentSchemas/a`}},
		{`{"dependencies":[]}`, grammar.Invalid, []string{`#: "dependencies"`}},
		{`{"not":{"unevaluatedProperties":false}}`, grammar.Unsupported, []string{`#/not: "unevaluatedProperties"`}},
		{`{"if":{"unevaluatedItems":false},"then":false}`, grammar.Unsupported, []string{`#/if: "unevaluatedItems"`}},
		{`{"$dynamicRef":"#x"}`, grammar.Unsupported, []string{`"$dynamicRef"`}},
		{`{"pattern":"(?<=a$)b"}`, grammar.Unsupported, []string{`"pattern"`, "look-behind"}},
		{`{"pattern":"\\p{Bogus}"}`, grammar.Unsupported, []string{`"pattern"`, "property", "Bogus"}},
		{`{"pattern":"(a)\\1"}`, grammar.Unsupported, []string{"back-reference"}},
		{`{"pattern":"("}`, grammar.Invalid, []string{`"pattern"`, "missing closing"}},
		{`{"pattern":"\\ud800"}`, grammar.Unsupported, []string{"surrogate"}},
		{`{"pattern":"(a|b)*a(a|b){18}"}`, grammar.TooLarge, []string{`#: "pattern"`, "too large"}},
		{`{"pattern":"((a{1,100}){1,100}){1,100}"}`, grammar.TooLarge, []string{`"pattern"`}},
		{`{"properties":{"x":{"pattern":"^a+$","minLength":900000}}}`, grammar.TooLarge, []string{`#/properties/x: "pattern"`}},
		{`{"multipleOf":12345}`, grammar.Unsupported, []string{`"multipleOf"`}},
		{`{"multipleOf":0}`, grammar.Invalid, []string{`"multipleOf"`}},
		{`{"minimum":"3"}`, grammar.Invalid, []string{`"minimum"`, "expected number, found string"}},
		{`{"exclusiveMinimum":true}`, grammar.Invalid, []string{`"exclusiveMinimum"`}},
		{`{"type":"strin"}`, grammar.Invalid, []string{`"type"`, `"strin"`}},
		{`{"type":[]}`, grammar.Invalid, []string{`"type"`}},
		{`{"enum":3}`, grammar.Invalid, []string{`"enum"`}},
		{`{"enum":[]}`, grammar.Unmatchable, nil},
		{`{"required":"a"}`, grammar.Invalid, []string{`"required"`}},
		{`{"minLength":-1}`, grammar.Invalid, []string{`"minLength"`}},
		{`{"minItems":1.5}`, grammar.Invalid, []string{`"minItems"`}},
		{`{"minLength":99999999999}`, grammar.TooLarge, []string{`"minLength"`}},
		{`{"anyOf":[]}`, grammar.Invalid, []string{`"anyOf"`}},
		{`{"properties":[]}`, grammar.Invalid, []string{`"properties"`}},
		{`{"properties":{"a":3}}`, grammar.Invalid, []string{`#/properties/a`, "number"}},
		{`{"$ref":"#/$defs/x"}`, grammar.Invalid, []string{`"$ref"`, "nothing is there"}},
		{`{"$ref":"http://example.org/x"}`, grammar.Unsupported, []string{`"$ref"`}},
		{`{"$ref":"#anchor"}`, grammar.Unsupported, []string{`"$ref"`, "anchor"}},
		{`{"$ref":"#"}`, grammar.Unsupported, []string{`"$ref"`, "itself"}},
		{`{"$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}},"$ref":"#/$defs/a"}`, grammar.Unsupported, []string{`"$ref"`, "itself"}},
		{`{"anyOf":[{"$ref":"#"},{"type":"null"}]}`, grammar.Unsupported, []string{"recursion"}},
		{`{"allOf":[{"$ref":"#"},{"type":"null"}]}`, grammar.Unsupported, []string{"itself"}},
		{`{"$schema":"https://example.org/mine"}`, grammar.Unsupported, []string{`"$schema"`}},
		{`{"items":{"$id":"x"}}`, grammar.Unsupported, []string{`"$id"`}},
		{`{"oneOf":[{"format":"date"},{"type":"string"}]}`, grammar.Unsupported, []string{`"oneOf"`, "branches 0 and 1", `#/oneOf/0: "format"`}},
		{`{"oneOf":[{"type":"string"},{"type":"string"}]}`, grammar.Unmatchable, nil},
		{`{"type":"object","patternProperties":{"^a":true},"additionalProperties":{"type":"null"},"minProperties":2}`, grammar.Unsupported, []string{`"minProperties"`}},
		{`{"type":"object","additionalProperties":{"type":"null"},"maxProperties":1000}`, grammar.TooLarge, []string{`"maxProperties"`}},
		{`false`, grammar.Unmatchable, []string{"no finite text"}},
		{`{"type":"string","minLength":3,"maxLength":2}`, grammar.Unmatchable, nil},
		{`{"type":"string","pattern":"^a$","minLength":2}`, grammar.Unmatchable, nil},
		{`{"type":"integer","minimum":3,"maximum":2}`, grammar.Unmatchable, nil},
		{`{"type":"integer","exclusiveMinimum":1,"exclusiveMaximum":2}`, grammar.Unmatchable, nil},
		{`{"type":"object","properties":{"a":{"$ref":"#"}},"required":["a"]}`, grammar.Unmatchable, nil},
		{`{"type":"object","properties":{"a":false},"required":["a"]}`, grammar.Unmatchable, nil},
		{`{"type":"array","items":false,"minItems":1}`, grammar.Unmatchable, nil},
		{`{"allOf":[{"type":"string"},{"type":"integer"}]}`, grammar.Unmatchable, nil},
		{`{"type":"integer","enum":["a"]}`, grammar.Unmatchable, nil},
		{`{"a":1,"a":2}`, grammar.Invalid, []string{"twice"}},
		{`{`, grammar.Invalid, []string{"not JSON"}},
		{`{} {}`, grammar.Invalid, []string{"not JSON"}},
		{`3`, grammar.Invalid, []string{"object or a boolean"}},
		{strings.Repeat(`{"items":`, 200) + "true" + strings.Repeat("}", 200), grammar.Invalid, []string{"nested deeper"}},
		{`{"const":1e999}`, grammar.Invalid, []string{"exponent"}},
	} {
		g, err := Compile(nil, []byte(c.schema), Options{})
		if err == nil {
			t.Errorf("%.100s: compiled to %d states", c.schema, g.States())
			continue
		}
		var e *grammar.Error
		if !errors.As(err, &e) || e.Kind != c.kind {
			t.Errorf("%.100s: %v: kind %v, want %v", c.schema, err, e.Kind, c.kind)
		}
		for _, part := range c.want {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%.100s: %v: want %q in it", c.schema, err, part)
			}
		}
	}
}

func TestLooseOneOf(t *testing.T) {
	g, err := Compile(nil, []byte(`{"oneOf":[{"type":"integer"},{"type":"number","format":"double"},{"format":"int8"}]}`), Options{LooseOneOf: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{`1`, `1.5`} {
		if err := grammartest.Accepts(g, text); err != nil {
			t.Error(err)
		}
	}
}

// Sizes that would cost time or memory end in an error, or do not cost it.
func TestSchemaBounds(t *testing.T) {
	list := func(n int, f func(i int) string) string {
		var b strings.Builder
		for i := range n {
			if i > 0 {
				b.WriteByte(',')
			}
			b.WriteString(f(i))
		}
		return b.String()
	}
	object := func(i int) string {
		return fmt.Sprintf(`{"type":"object","properties":{"p%d":{"type":"array","prefixItems":[{"minLength":3},{"maximum":7}]}}}`, i)
	}
	for _, c := range []struct {
		name, schema string
		refused      bool
	}{
		{"many branches", `{"anyOf":[` + list(3000, object) + `]}`, false},
		{"many branches that overlap", `{"oneOf":[` + list(3000, object) + `]}`, true},
		{"many combinations", `{"allOf":[` + list(12, func(int) string { return `{"anyOf":[{"minimum":1},{"maximum":100},{"type":"string"}]}` }) + `]}`, true},
		{"combinations of combinations", `{"allOf":[` + list(8, func(int) string {
			return `{"anyOf":[` + list(8, func(i int) string { return fmt.Sprintf(`{"minimum":%d}`, i) }) + `]}`
		}) + `]}`, true},
		{"a thousand nested millions", `{"type":"array","items":{"type":"array","items":{"type":"string","minLength":1000000},"minItems":1000000},"minItems":1000000}`, false},
		{"many optional members", `{"type":"object","properties":{` + list(1500, func(i int) string { return fmt.Sprintf(`"p%d":{"type":"integer"}`, i) }) + `}}`, false},
		{"many members in any order", `{"type":"object","properties":{` + list(30, func(i int) string { return fmt.Sprintf(`"p%d":{"type":"integer"}`, i) }) + `}}`, true},
		{"many definitions", `{"$ref":"#/$defs/d0","$defs":{` + list(2000, func(i int) string {
			return fmt.Sprintf(`"d%d":{"type":"object","properties":{"a":{"$ref":"#/$defs/d%d"},"b":{"$ref":"#/$defs/d%d"}}}`, i, (7*i+1)%2000, (13*i+5)%2000)
		}) + `}}`, false},
		{"a chain of definitions", `{"$ref":"#/$defs/d0","$defs":{` + list(2000, func(i int) string { return fmt.Sprintf(`"d%d":{"allOf":[{"$ref":"#/$defs/d%d"}]}`, i, i+1) }) + `,"d2000":true}}`, true},
		{"forty conditions on a member", `{"type":"object","properties":{"c":{"type":"string"},"z":{"type":"string"}},"required":["c"],"allOf":[` + list(40, func(i int) string {
			return fmt.Sprintf(`{"if":{"properties":{"c":{"const":"c%d"}}},"then":{"properties":{"z":{"minLength":%d}}}}`, i, i)
		}) + `]}`, false},
		{"conditions on many members", `{"type":"object","properties":{"c":{"type":"string"}},"allOf":[` + list(40, func(i int) string {
			return fmt.Sprintf(`{"if":{"properties":{"c%d":{"const":1}}},"then":{"properties":{"z":{"minLength":%d}}}}`, i, i)
		}) + `]}`, true},
		{"many members that depend on others", `{"type":"object","dependentRequired":{` + list(40, func(i int) string { return fmt.Sprintf(`"a%d":["b%d"]`, i, i) }) + `}}`, true},
		{"negations in each other", strings.Repeat(`{"not":{"properties":{"a":`, 40) + `{"minimum":3}` + strings.Repeat(`}}}`, 40), false},
		{"negations of combinations", `{"not":` + strings.Repeat(`{"allOf":[{"anyOf":[{"minLength":3},{"maximum":4},`, 30) + `true` + strings.Repeat(`]},{"type":"string"}]}`, 30) + `}`, false},
		{"a negation of many values", `{"not":{"enum":[` + list(3000, func(i int) string { return fmt.Sprintf(`"value %d",%d`, i, i) }) + `]}}`, false},
		{"a negation of many numbers", `{"type":"number","not":{"enum":[` + list(3000, func(i int) string { return fmt.Sprintf(`%d.%d`, i*7919%1000, i) }) + `]}}`, false},
		{"a negation of a long tuple", `{"not":{"prefixItems":[` + list(20000, func(i int) string { return `{"type":"null"}` }) + `]}}`, true},
		{"a negation of a large object", `{"not":{"const":{` + list(400, func(i int) string { return fmt.Sprintf(`"p%d":[%d,{"a":%d}]`, i, i, i) }) + `}}}`, true},
		{"unique of many", `{"uniqueItems":true,"items":{"enum":[` + list(64, func(i int) string { return fmt.Sprintf("[%d]", i) }) + `]}}`, true},
		{"unique of many scalars", `{"uniqueItems":true,"items":{"enum":[` + list(64, func(i int) string { return fmt.Sprint(i) }) + `]}}`, false},
		{"contains of contains", strings.Repeat(`{"minContains":3,"maxContains":60,"contains":`, 100) + `{"const":1}` + strings.Repeat(`}`, 100), false},
		{"many of four contains", `{"allOf":[` + list(4, func(i int) string { return fmt.Sprintf(`{"contains":{"minimum":%d},"maxContains":20}`, i) }) + `]}`, true},
		{"sixty branches that overlap", `{"type":"object","oneOf":[` + list(60, func(i int) string { return fmt.Sprintf(`{"required":["a%d"]}`, i) }) + `]}`, false},
		{"branches of many members that overlap", `{"type":"object","oneOf":[` + list(20, func(i int) string {
			return fmt.Sprintf(`{"required":["a%d"],"properties":{"a%d":{"type":"string"},"b%d":{"type":"integer"}}}`, i, i, i)
		}) + `]}`, false},
		{"a great pattern", `{"type":"string","pattern":"` + strings.Repeat(`\\p{L}`, 3000) + `"}`, true},
		{"a great text", `{"enum":["` + strings.Repeat("x", 1<<19) + `"]}`, true},
		{"too long", `{"title":"` + strings.Repeat("x", 1<<20) + `"}`, true},
	} {
		var g *grammar.Grammar
		var err error
		start := time.Now()
		testdata.Within(t, 20*time.Second, c.name, func() {
			g, err = Compile(nil, []byte(c.schema), Options{AnyOrder: c.name == "many members in any order"})
		})
		if (err != nil) != c.refused {
			t.Errorf("%s: refused: %v, want %v", c.name, err, c.refused)
		}
		if err != nil {
			t.Logf("%s: %v: %.160v", c.name, time.Since(start), err)
		} else {
			t.Logf("%s: %v: %d states", c.name, time.Since(start), g.States())
		}
	}
}
