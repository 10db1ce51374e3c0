package grammar_test

import (
	"errors"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"ridge/internal/cpu"
	"ridge/text/grammar"
	"ridge/text/grammar/internal/grammartest"
)

func FuzzRegex(f *testing.F) {
	for i := range uint64(60) {
		rng := rand.New(rand.NewPCG(21, i))
		f.Add(randomRegex(rng, 4), randomText(rng))
	}
	f.Add(`(a|b)*a(a|b){18}`, "a")
	f.Add(`((a{0,30}){0,30}){0,30}`, "aaa")
	f.Add(`\pL*(?i:ſ)`, "s")
	v := grammartest.Small()
	f.Fuzz(func(t *testing.T, expr, text string) {
		if len(expr) > 400 {
			return
		}
		start := cpu.Time()
		g, err := grammar.Regex(v, expr)
		grammartest.InTime(t, start, expr)
		if err != nil {
			var e *grammar.Error
			if !errors.As(err, &e) || strings.ContainsAny(err.Error(), "\n\r") {
				t.Fatalf("%T %v", err, err)
			}
			return
		}
		whole, err := regexp.Compile(`\A(?:` + expr + `)\z`)
		if err != nil {
			return // a flag at the end that changes the wrapping
		}
		if got, want := grammartest.Accepts(g, text), utf8.ValidString(text) && whole.MatchString(text); (got == nil) != want && !errors.Is(got, grammar.ErrTooAmbiguous) {
			t.Fatalf("%q: %q: %v, Go: %v", expr, text, got, want)
		}
		if out, ok := grammartest.Walk(t, g, uint64(len(text))); ok && !whole.MatchString(out) {
			t.Fatalf("%q: generated %q", expr, out)
		}
	})
}

func FuzzGBNF(f *testing.F) {
	f.Add(arithmetic, uint64(1))
	f.Add(jsonGrammar, uint64(2))
	f.Add(`root ::= ("a" | [b-dé]){3,400} x? | .+
		x ::= "(" root ")" | 'q'{2}`, uint64(3))
	f.Add(`root ::= "a" root | "a" root root | "b"`, uint64(4))
	v := grammartest.Small()
	f.Fuzz(func(t *testing.T, source string, seed uint64) {
		if len(source) > 4096 {
			return
		}
		start := cpu.Time()
		g, err := grammar.GBNF(v, source)
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
