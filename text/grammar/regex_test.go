package grammar_test

import (
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"ridge/text/grammar"
	"ridge/text/grammar/internal/grammartest"
)

// randomRegex writes an expression over a few characters, with everything that
// RE2 has.
func randomRegex(rng *rand.Rand, depth int) string {
	one := func(list ...string) string { return list[rng.IntN(len(list))] }
	if depth <= 0 {
		return one("a", "b", "é", "日", ".", `\d`, `\w`, `\W`, `\s`, "[ab]", "[^a]", "[a-cé]", `\x{1F600}`, `\n`, `\pL`, "1", " ", "[[:alpha:]]", `\.`, "(?i:K)", "(?s:.)", `\Qa.\E`)
	}
	sub := func() string { return randomRegex(rng, depth-1-rng.IntN(2)) }
	switch rng.IntN(12) {
	case 0, 1, 2:
		return sub() + sub()
	case 3:
		return sub() + "|" + sub()
	case 4:
		return "(" + sub() + "|" + sub() + ")"
	case 5:
		return "(?:" + sub() + ")" + one("*", "+", "?", "*?", "+?", "{2}", "{1,3}", "{0,2}", "{2,}")
	case 6:
		return one("^", "$", `\b`, `\B`, `\A`, `\z`, "(?m:^)", "(?m:$)") + sub()
	case 7:
		return sub() + one("$", `\b`, "^", `\B`, "(?m:$)")
	case 8:
		return "(?i)" + sub()
	case 9:
		return "(?P<x>" + strings.ReplaceAll(sub(), "(?P<x>", "(") + ")"
	default:
		return sub()
	}
}

func randomText(rng *rand.Rand) string {
	var b strings.Builder
	for range rng.IntN(7) {
		b.WriteString([]string{"a", "b", "A", "K", "k", "\u212a", "é", "日", "1", " ", "\n", "_", ".", "😀", "c"}[rng.IntN(15)])
	}
	return b.String()
}

// The whole text matches exactly if Go's regexp says so for ^(?:...)$, and a
// pattern of a schema (which may match anywhere) exactly if MatchString says so.
func TestRegexAgainstGo(t *testing.T) {
	v := grammartest.Small()
	n := 1500
	if testing.Short() {
		n = 300
	}
	checked, matched := 0, 0
	for i := range n {
		rng := rand.New(rand.NewPCG(21, uint64(i)))
		expr := randomRegex(rng, 1+rng.IntN(5))
		whole, err := regexp.Compile(`\A(?:` + expr + `)\z`)
		if err != nil {
			continue
		}
		g, err := grammar.Regex(v, expr)
		if err != nil {
			if e := err.(*grammar.Error); e.Kind == grammar.Invalid || e.Kind == grammar.Unsupported {
				t.Errorf("%q: %v", expr, err)
			}
			continue
		}
		b := &grammar.Builder{Source: "test"}
		search := b.Pattern("", "", expr, true)
		anywhere := regexp.MustCompile(expr)
		for range 40 {
			text := randomText(rng)
			want := whole.MatchString(text)
			if got := grammartest.Accepts(g, text) == nil; got != want {
				t.Fatalf("%q: %q accepted: %v, Go: %v", expr, text, got, want)
			}
			checked++
			if want {
				matched++
			}
			if strings.ContainsAny(text, "\r\u2028\u2029") {
				continue // where . differs on purpose
			}
			if got, want := search.Match(text), anywhere.MatchString(text); b.Err() == nil && got != want {
				t.Fatalf("%q somewhere: %q accepted: %v, Go: %v", expr, text, got, want)
			}
		}
		for range 5 {
			text := grammartest.Generate(t, g, rng, rng.IntN(12))
			if !utf8.ValidString(text) || !whole.MatchString(text) {
				t.Fatalf("%q: generated %q", expr, text)
			}
		}
	}
	t.Logf("%d texts, %d match", checked, matched)
}

func TestRegexRefused(t *testing.T) {
	for expr, want := range map[string]string{
		`(?=a)`: "no finite text", `(?=a`: "look-around without an end", `(?<=a$)b`: "look-behind", `(?=(?<=a)b)b`: "look-behind inside", `(a)\1`: "back-reference", `\k<a>`: "back-reference",
		`(?>a)`: "atomic group", `a**`: "invalid nested repetition", `(`: "missing closing", `[b-a]`: "character class range",
		`a{1001}`: "repeat count", `\q`: "escape", "\xff": "UTF-8", `a$b`: "no finite text", `[^\x00-\x{10FFFF}]`: "no finite text",
		`(a|b)*a(a|b){18}`: "too large", strings.Repeat("a", grammar.MaxRegexSource+1): "16 KiB", `(a{1000}){10}`: "repeat count", `(\pL{900}){1,1}\pL{900}`: "too large",
	} {
		_, err := grammar.Regex(nil, expr)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: %v, want %q", expr, err, want)
		}
	}
	for _, expr := range []string{`[(?=]`, `\(\?=`, `[]\\1]`} {
		if _, err := grammar.Regex(nil, expr); err != nil {
			t.Errorf("%q: %v", expr, err)
		}
	}
}

// Automata are the smallest, and set operations are what they say.
func TestRuneDFA(t *testing.T) {
	for i := range 300 {
		rng := rand.New(rand.NewPCG(41, uint64(i)))
		x, y := randomRegex(rng, 3), randomRegex(rng, 3)
		rx, ex := regexp.Compile(`\A(?:` + x + `)\z`)
		ry, ey := regexp.Compile(`\A(?:` + y + `)\z`)
		if ex != nil || ey != nil {
			continue
		}
		b := &grammar.Builder{Source: "test"}
		dx, dy := b.Pattern("", "", x, false), b.Pattern("", "", y, false)
		both, not := dx.Intersect(b, dy), dx.Complement().Minimize(b)
		if b.Err() != nil {
			t.Fatal(b.Err())
		}
		for range 40 {
			text := randomText(rng)
			mx, my := rx.MatchString(text), ry.MatchString(text)
			if both.Match(text) != (mx && my) || not.Match(text) == mx {
				t.Fatalf("%q, %q: %q: %v %v, both %v, not %v", x, y, text, mx, my, both.Match(text), not.Match(text))
			}
		}
		if twice := both.Minimize(b); twice.States() != both.States() {
			t.Errorf("%q, %q: %d states after %d", x, y, twice.States(), both.States())
		}
		if back := not.Complement().Minimize(b); back.States() != dx.States() {
			t.Errorf("%q: %d states after two complements, %d before", x, back.States(), dx.States())
		}
	}
	if dx := new(grammar.Builder).Pattern("", "", "(a|b)*abb", false); dx.States() != 4 {
		t.Errorf("(a|b)*abb has %d states, want 4", dx.States())
	}
}
