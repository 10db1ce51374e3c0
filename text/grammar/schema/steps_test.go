package schema

import (
	"fmt"
	"strings"
	"testing"

	"ridge/text/grammar"
	"ridge/text/grammar/internal/grammartest"
)

// steps compiles a schema and returns the number of steps that it took.
func steps(t *testing.T, schema string) (*grammar.Grammar, int) {
	t.Helper()
	b := (&Options{}).builder("schema")
	root, err := schemaRule(&jsonText{b: b}, []byte(schema), Options{}, "")
	if err != nil {
		t.Fatal(err)
	}
	g, err := b.Compile(root, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	return g, b.Spent()
}

// What could take a time beyond the size of a schema takes steps in proportion
// to it.
func TestStepsOfSchemas(t *testing.T) {
	list := func(n int, format string) string {
		var b strings.Builder
		for i := range n {
			if i > 0 {
				b.WriteByte(',')
			}
			b.WriteString(strings.ReplaceAll(format, "#n", fmt.Sprintf("%05d", i*7919%n)))
		}
		return b.String()
	}
	doubling := func(n int, last, beside string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `"d%d":{"allOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]},`, i, i+1, i+1)
		}
		return `{` + beside + `"$ref":"#/$defs/d0","$defs":{` + b.String() + fmt.Sprintf(`"d%d":%s}}`, n, last)
	}
	for _, c := range []struct {
		name   string
		schema func(n int) string
		n      int
		most   int // steps for n
		good   string
	}{
		{"allOf of what is twice the same", func(n int) string { return doubling(n, `{"type":"integer"}`, ``) }, 60, 100_000, `7`},
		{"and an anyOf at the end", func(n int) string { return doubling(n, `{"anyOf":[{"type":"integer"},{"type":"null"}]}`, ``) }, 60, 100_000, `null`},
		{"and values", func(n int) string { return doubling(n, `{"type":"integer"}`, `"enum":[1,"a",3],`) }, 60, 100_000, `3`},
		{"and what is not evaluated", func(n int) string {
			return doubling(n, `{"properties":{"a":true}}`, `"type":"object","unevaluatedProperties":false,`)
		}, 60, 100_000, `{"a":1}`},
		{"enum", func(n int) string { return `{"enum":[` + list(n, `"v#n"`) + `]}` }, 100_000, 8_000_000, `"v00077"`},
		{"enum of a type in another enum", func(n int) string {
			return `{"type":"string","enum":[` + list(n, `"#n"`) + `],"allOf":[{"enum":[` + list(n, `"#n"`) + `]}]}`
		}, 50_000, 8_000_000, `"00077"`},
		{"optional members", func(n int) string {
			return `{"type":"object","properties":{` + list(n, `"property #n":{"type":"integer"}`) + `}}`
		}, 4000, 10_000_000, `{"property 03919":1}`},
		{"required and optional members", func(n int) string {
			return `{"type":"object","properties":{` + list(n, `"#n":{"type":"boolean"}`) + `},"required":["00000","00001"]}`
		}, 4000, 10_000_000, ``},
	} {
		_, half := steps(t, c.schema(c.n/2))
		g, all := steps(t, c.schema(c.n))
		t.Logf("%s: %d and %d steps, %d states", c.name, half, all, g.States())
		if all > c.most || all > 5*half/2 {
			t.Errorf("%s: %d steps for %d, %d for %d: want at most %d, and two and a half times as many", c.name, half, c.n/2, all, c.n, c.most)
		}
		if c.good != "" {
			if err := grammartest.Accepts(g, c.good); err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
		}
	}
}

// 4,000 optional members come in their order, any of them, once.
func TestManyOptional(t *testing.T) {
	var props []string
	for i := range 4000 {
		props = append(props, fmt.Sprintf(`"p%d":{"type":"integer"}`, i))
	}
	g, err := Compile(grammartest.Small(), []byte(`{"type":"object","properties":{`+strings.Join(props, ",")+`},"additionalProperties":false}`), Options{})
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]bool{
		`{}`: true, `{"p0":1}`: true, `{"p3999":1}`: true, `{"p7":1,"p70":2,"p3000":3}`: true, `{"p70":1,"p7":2}`: false, `{"p7":1,"p7":1}`: false, `{"p4000":1}`: false, `{"p":1}`: false,
	} {
		if got := grammartest.Accepts(g, text) == nil; got != want {
			t.Errorf("%s: accepted: %v, want %v", text, got, want)
		}
	}
	s := g.NewState()
	if err := s.AcceptBytes([]byte(`{"p10":1,`)); err != nil {
		t.Fatal(err)
	}
	if s.MaskBits(); s.Err() != nil {
		t.Error(s.Err())
	}
}
