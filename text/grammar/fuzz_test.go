package grammar

import (
	"errors"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"ridge/internal/cpu"
)

// walk generates a little and checks what it generates; it is what all fuzz
// targets do with what they could compile. Two failures are part of the
// contract: a limit of a running grammar, and nothing else.
func walk(t *testing.T, g *Grammar, seed uint64) (string, bool) {
	t.Helper()
	v := g.m.v
	rng := rand.New(rand.NewPCG(seed, 1))
	s := g.NewState()
	var out []byte
	for range 12 {
		mask := s.MaskBits()
		if err := s.Err(); err != nil {
			if errors.Is(err, ErrTooAmbiguous) {
				return "", false
			}
			t.Fatalf("after %q: %v", out, err)
		}
		id := pick(mask, rng)
		if id < 0 {
			t.Fatalf("after %q: nothing allowed", out)
		}
		if err := s.Accept(id); err != nil {
			if errors.Is(err, ErrTooAmbiguous) {
				return "", false
			}
			t.Fatalf("after %q: token %d allowed and not accepted: %v", out, id, err)
		}
		if v.IsEnd(id) {
			return string(out), true
		}
		out = append(out, v.Bytes(id)...)
		s.Forced()
	}
	if s.Complete() {
		return string(out), true
	}
	rest := s.Shortest(1 << 12)
	if rest == nil || s.AcceptBytes(rest) != nil {
		return "", false
	}
	return string(append(out, rest...)), true
}

// inTime fails if compiling or generating took more processor time than a slow
// machine excuses. What else runs on the machine does not count.
func inTime(t *testing.T, start time.Duration, source string) {
	if d := cpu.Time() - start; d > 10*time.Second {
		t.Fatalf("%v for %.200q", d, source)
	}
}

func FuzzSchema(f *testing.F) {
	for _, c := range schemaCases {
		f.Add(c.schema, uint64(1))
	}
	v := smallVocabulary()
	f.Fuzz(func(t *testing.T, schema string, seed uint64) {
		if len(schema) > 4096 {
			return
		}
		start := cpu.Time()
		o := Options{Whitespace: Whitespace(seed % 4), Open: seed&4 != 0, AnyOrder: seed&8 != 0, MaxDepth: int(seed >> 4 & 63)}
		g, err := JSONSchema(v, []byte(schema), o)
		inTime(t, start, schema)
		if err != nil {
			var e *Error
			if !errors.As(err, &e) || strings.ContainsAny(err.Error(), "\n\r") {
				t.Fatalf("%T %v", err, err)
			}
			return
		}
		text, ok := walk(t, g, seed)
		inTime(t, start, schema)
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

func FuzzRegex(f *testing.F) {
	for i := range uint64(60) {
		rng := rand.New(rand.NewPCG(21, i))
		f.Add(randomRegex(rng, 4), randomText(rng))
	}
	f.Add(`(a|b)*a(a|b){18}`, "a")
	f.Add(`((a{0,30}){0,30}){0,30}`, "aaa")
	f.Add(`\pL*(?i:ſ)`, "s")
	v := smallVocabulary()
	f.Fuzz(func(t *testing.T, expr, text string) {
		if len(expr) > 400 {
			return
		}
		start := cpu.Time()
		g, err := Regex(v, expr)
		inTime(t, start, expr)
		if err != nil {
			var e *Error
			if !errors.As(err, &e) || strings.ContainsAny(err.Error(), "\n\r") {
				t.Fatalf("%T %v", err, err)
			}
			return
		}
		whole, err := regexp.Compile(`\A(?:` + expr + `)\z`)
		if err != nil {
			return // a flag at the end that changes the wrapping
		}
		if got, want := accepts(g, text), utf8.ValidString(text) && whole.MatchString(text); (got == nil) != want && !errors.Is(got, ErrTooAmbiguous) {
			t.Fatalf("%q: %q: %v, Go: %v", expr, text, got, want)
		}
		if out, ok := walk(t, g, uint64(len(text))); ok && !whole.MatchString(out) {
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
	v := smallVocabulary()
	f.Fuzz(func(t *testing.T, source string, seed uint64) {
		if len(source) > 4096 {
			return
		}
		start := cpu.Time()
		g, err := GBNF(v, source)
		inTime(t, start, source)
		if err != nil {
			var e *Error
			if !errors.As(err, &e) || strings.ContainsAny(err.Error(), "\n\r") {
				t.Fatalf("%T %v", err, err)
			}
			return
		}
		text, ok := walk(t, g, seed)
		inTime(t, start, source)
		if !ok {
			return
		}
		if err := accepts(g, text); err != nil && !errors.Is(err, ErrTooAmbiguous) {
			t.Errorf("%s: generated %q: %v", source, text, err)
		}
	})
}
