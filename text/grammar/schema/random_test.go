package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"ridge/text/grammar"
	"ridge/text/grammar/internal/grammartest"
)

// randomSchema writes a schema over a small world of names, texts and numbers,
// so that random values have a fair chance to meet it.
type randomSchema struct {
	rng   *rand.Rand
	depth int
}

func (r *randomSchema) one(list ...any) any { return list[r.rng.IntN(len(list))] }

func (r *randomSchema) name() string { return r.one("a", "b", "ab", "c", "é").(string) }

func (r *randomSchema) schema() any {
	r.depth++
	defer func() { r.depth-- }()
	if r.depth > 4 {
		return r.one(true, map[string]any{"type": "integer"}, map[string]any{"type": "string"}, map[string]any{"$ref": "#/$defs/d"})
	}
	s := map[string]any{}
	for range 1 + r.rng.IntN(3) {
		r.keyword(s)
	}
	return s
}

func (r *randomSchema) list(n int) []any {
	out := make([]any, 1+r.rng.IntN(n))
	for i := range out {
		out[i] = r.schema()
	}
	return out
}

func (r *randomSchema) members() map[string]any {
	m := map[string]any{}
	for range 1 + r.rng.IntN(3) {
		m[r.name()] = r.schema()
	}
	return m
}

func (r *randomSchema) keyword(s map[string]any) {
	number := func() any { return r.one(-2, -1, 0, 1, 2, 3, 0.5, 1.5, -0.25) }
	switch r.rng.IntN(35) {
	case 0, 1, 2:
		s["type"] = r.one("null", "boolean", "integer", "number", "string", "array", "object", "object", "array", []string{"string", "integer"}, []string{"object", "null"})
	case 3:
		s["enum"] = []any{r.value(2), r.value(2), r.value(1)}
	case 4:
		s["const"] = r.value(2)
	case 5:
		s["minLength"] = r.rng.IntN(3)
	case 6:
		s["maxLength"] = r.rng.IntN(4)
	case 7:
		s["pattern"] = r.one("^a", "b$", "a.?b", "^(a|b)*$", "é", "^[^a]+$", "")
	case 8:
		s[r.one("minimum", "exclusiveMinimum").(string)] = number()
	case 9:
		s[r.one("maximum", "exclusiveMaximum").(string)] = number()
	case 10:
		s["multipleOf"] = r.one(1, 2, 0.5, 0.25, 3)
	case 11:
		s["items"] = r.schema()
	case 12:
		s["prefixItems"] = r.list(2)
	case 13:
		s["minItems"] = r.rng.IntN(3)
	case 14:
		s["maxItems"] = r.rng.IntN(4)
	case 15, 16:
		s["properties"] = r.members()
	case 17:
		s["required"] = []string{r.name()}
	case 18:
		s["additionalProperties"] = r.one(false, r.schema(), r.schema())
	case 19:
		s["patternProperties"] = map[string]any{r.one("^a", "b", "^.$").(string): r.schema()}
	case 20:
		s["propertyNames"] = map[string]any{"maxLength": 1}
	case 21:
		s["anyOf"] = r.list(3)
	case 22:
		s["allOf"] = r.list(2)
	case 23:
		if r.rng.IntN(2) == 0 {
			s["oneOf"] = r.list(2)
		} else {
			s["$ref"] = "#/$defs/d"
		}
	default:
		r.condition(s)
	}
}

// condition writes one of the keywords that count, compare, negate, or depend on others.
func (r *randomSchema) condition(s map[string]any) {
	switch r.rng.IntN(11) {
	case 0, 1:
		s["not"] = r.schema()
	case 2:
		s["if"] = r.schema()
		for _, key := range []string{"then", "else"} {
			if r.rng.IntN(3) > 0 {
				s[key] = r.schema()
			}
		}
	case 3, 4:
		s["contains"] = r.schema()
		for _, key := range []string{"minContains", "maxContains"} {
			if r.rng.IntN(2) == 0 {
				s[key] = r.rng.IntN(3)
			}
		}
	case 5:
		s["uniqueItems"] = true
		if r.rng.IntN(4) > 0 {
			s["items"] = r.one(map[string]any{"type": "boolean"}, map[string]any{"enum": []any{r.value(1), r.value(1), 1, 0.5}},
				map[string]any{"type": []string{"integer", "null"}, "minimum": -1, "maximum": 2})
		}
	case 6:
		s["dependentRequired"] = map[string]any{r.name(): []string{r.name()}}
	case 7:
		s["dependentSchemas"] = map[string]any{r.name(): r.schema(), "ab": r.schema()}
	case 8, 9:
		s["unevaluatedProperties"] = r.one(false, r.schema())
	case 10:
		s["unevaluatedItems"] = r.one(false, r.schema())
	}
}

func (r *randomSchema) value(depth int) any {
	n := 8
	if depth <= 0 {
		n = 5
	}
	switch r.rng.IntN(n) {
	case 0:
		return nil
	case 1:
		return r.rng.IntN(2) == 0
	case 2:
		return r.rng.IntN(6) - 2
	case 3:
		return r.one(0.5, 1.5, -0.25, 2.25)
	case 4:
		return r.one("", "a", "b", "ab", "aab", "é", "ba")
	case 5:
		list := make([]any, r.rng.IntN(4))
		for i := range list {
			list[i] = r.value(depth - 1)
		}
		return list
	default:
		m := map[string]any{}
		for range r.rng.IntN(4) {
			m[r.name()] = r.value(depth - 1)
		}
		return m
	}
}

// nestedItems says whether an array in a document has an array or an object.
func nestedItems(doc []byte) bool {
	var nested func(v any) bool
	nested = func(v any) bool {
		switch v := v.(type) {
		case map[string]any:
			return slices.ContainsFunc(slices.Collect(maps.Values(v)), nested)
		case []any:
			for _, x := range v {
				switch x.(type) {
				case map[string]any, []any:
					return true
				}
			}
		}
		return false
	}
	var v any
	return json.Unmarshal(doc, &v) == nil && nested(v)
}

// Random schemas read to the letter accept exactly the values that an
// independent validator finds valid, and generate only such.
func TestRandomSchemas(t *testing.T) {
	n := 1500
	if testing.Short() {
		n = 200
	}
	v := grammartest.Small()
	var compiled, accepted, generated int
	refused := map[string]int{}
	for i := range n {
		rng := rand.New(rand.NewPCG(12, uint64(i)))
		r := &randomSchema{rng: rng}
		doc, _ := r.schema().(map[string]any)
		if doc == nil {
			continue
		}
		doc["$defs"] = map[string]any{"d": r.schema()}
		text, _ := json.Marshal(doc)
		g, err := Compile(v, text, Options{Open: true, AnyOrder: true, Whitespace: Compact})
		narrow, errNarrow := Compile(v, text, Options{Whitespace: Compact})
		s := validator(t, string(text))
		if err != nil {
			var e *grammar.Error
			if !errors.As(err, &e) || e.Kind == grammar.Invalid {
				t.Errorf("%s: %v", text, err)
			}
			refused[fmt.Sprintf("%d %s", e.Kind, e.Keyword)]++
			if e.Kind == grammar.Unmatchable {
				for range 50 {
					x, _ := json.Marshal(r.value(3))
					if valid(s, string(x)) == nil {
						t.Errorf("%s: %v, but %s is valid", text, err, x)
					}
				}
			}
		} else {
			compiled++
			for range 60 {
				x, _ := json.Marshal(r.value(3))
				want, got := valid(s, string(x)), grammartest.Accepts(g, string(x))
				// Of sets whose items may be anything only those of scalars are written.
				set := bytes.Contains(text, []byte(`"uniqueItems":true`)) && nestedItems(x)
				if (want == nil) != (got == nil) && !(set && want == nil) {
					t.Fatalf("%s: %s: accepted: %v, valid: %v", text, x, got, want)
				}
				if got == nil {
					accepted++
				}
				if errNarrow == nil && grammartest.Accepts(narrow, string(x)) == nil && want != nil {
					t.Fatalf("%s: %s is accepted and not valid: %v", text, x, want)
				}
			}
		}
		for _, g := range []*grammar.Grammar{g, narrow} {
			if g == nil {
				continue
			}
			for range 4 {
				x := grammartest.Generate(t, g, rng, rng.IntN(20))
				generated++
				if err := valid(s, x); err != nil {
					t.Fatalf("%s: generated %s: %v", text, x, err)
				}
			}
		}
	}
	t.Logf("%d schemas compiled, %d values accepted, %d texts generated; refused: %v", compiled, accepted, generated, refused)
}
