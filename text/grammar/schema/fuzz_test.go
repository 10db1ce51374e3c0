package schema

import (
	"errors"
	"strings"
	"testing"

	"ridge/internal/cpu"
	"ridge/text/grammar"
	"ridge/text/grammar/internal/grammartest"
)

func FuzzSchema(f *testing.F) {
	for _, c := range schemaCases {
		f.Add(c.schema, uint64(1))
	}
	v := grammartest.Small()
	f.Fuzz(func(t *testing.T, schema string, seed uint64) {
		if len(schema) > 4096 {
			return
		}
		start := cpu.Time()
		o := Options{Whitespace: Whitespace(seed % 4), Open: seed&4 != 0, AnyOrder: seed&8 != 0, MaxDepth: int(seed >> 4 & 63)}
		g, err := Compile(v, []byte(schema), o)
		grammartest.InTime(t, start, schema)
		if err != nil {
			var e *grammar.Error
			if !errors.As(err, &e) || strings.ContainsAny(err.Error(), "\n\r") {
				t.Fatalf("%T %v", err, err)
			}
			return
		}
		text, ok := grammartest.Walk(t, g, seed)
		grammartest.InTime(t, start, schema)
		if !ok {
			return
		}
		s, err := compileValidator(schema)
		if err != nil {
			return // stricter than we are about keywords that are ignored
		}
		if err := valid(s, text); err != nil && !strings.Contains(schema, "$schema") && !strings.Contains(schema, "pattern") {
			t.Errorf("%s: generated %s: %v", schema, text, err)
		}
	})
}

func FuzzLark(f *testing.F) {
	for _, c := range larkCases(f) {
		f.Add(c.Grammar, uint64(1))
	}
	f.Add("start: "+strings.Repeat("[\"a\"] ", 40)+"\n%ignore \" \"", uint64(1))
	v := grammartest.Small()
	f.Fuzz(func(t *testing.T, source string, seed uint64) {
		if len(source) > 4096 {
			return
		}
		grammar.IsLark(source)
		start := cpu.Time()
		g, err := Lark(v, source, Options{Loose: seed&1 != 0})
		grammartest.InTime(t, start, source)
		if err != nil {
			var e *grammar.Error
			if !errors.As(err, &e) || strings.ContainsAny(err.Error(), "\n\r") {
				t.Fatalf("%T %v", err, err)
			}
			return
		}
		text, ok := grammartest.Walk(t, g, seed)
		grammartest.InTime(t, start, source)
		if !ok {
			return
		}
		if err := grammartest.Accepts(g, text); err != nil && !errors.Is(err, grammar.ErrTooAmbiguous) {
			t.Errorf("%s: generated %q: %v", source, text, err)
		}
	})
}
