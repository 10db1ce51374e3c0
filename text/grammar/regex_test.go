package grammar

import (
	"math/big"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
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
	v := smallVocabulary()
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
		g, err := Regex(v, expr)
		if err != nil {
			if e := err.(*Error); e.Kind == Invalid || e.Kind == Unsupported {
				t.Errorf("%q: %v", expr, err)
			}
			continue
		}
		b := &Builder{Source: "test"}
		search := b.Pattern("", "", expr, true)
		anywhere := regexp.MustCompile(expr)
		for range 40 {
			text := randomText(rng)
			want := whole.MatchString(text)
			if got := accepts(g, text) == nil; got != want {
				t.Fatalf("%q: %q accepted: %v, Go: %v", expr, text, got, want)
			}
			checked++
			if want {
				matched++
			}
			if strings.ContainsAny(text, "\r\u2028\u2029") {
				continue // where . differs on purpose
			}
			if got, want := search.Match(text), anywhere.MatchString(text); b.err == nil && got != want {
				t.Fatalf("%q somewhere: %q accepted: %v, Go: %v", expr, text, got, want)
			}
		}
		for range 5 {
			text := generate(t, g, rng, rng.IntN(12))
			if !utf8.ValidString(text) || !whole.MatchString(text) {
				t.Fatalf("%q: generated %q", expr, text)
			}
		}
	}
	t.Logf("%d texts, %d match", checked, matched)
}

func TestRegexRefused(t *testing.T) {
	for expr, want := range map[string]string{
		`(?=a)`: "look-ahead", `(?!a)b`: "look-ahead", `(?<=a)b`: "look-behind", `(a)\1`: "back-reference", `\k<a>`: "back-reference",
		`(?>a)`: "atomic group", `a**`: "invalid nested repetition", `(`: "missing closing", `[b-a]`: "character class range",
		`a{1001}`: "repeat count", `\q`: "escape", "\xff": "UTF-8", `a$b`: "no finite text", `[^\x00-\x{10FFFF}]`: "no finite text",
		`(a|b)*a(a|b){18}`: "too large", strings.Repeat("a", maxRegexSource+1): "16 KiB", `(a{1000}){10}`: "repeat count", `(\pL{900}){1,1}\pL{900}`: "too large",
	} {
		_, err := Regex(nil, expr)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: %v, want %q", expr, err, want)
		}
	}
	for _, expr := range []string{`[(?=]`, `\(\?=`, `[]\\1]`} {
		if _, err := Regex(nil, expr); err != nil {
			t.Errorf("%q: %v", expr, err)
		}
	}
}

func TestRuneSets(t *testing.T) {
	rng := rand.New(rand.NewPCG(31, 1))
	edges := []rune{0, 1, 0x7F, 0x80, 0x7FF, 0x800, 0xFFF, 0x1000, 0xD7FF, 0xD800, 0xDFFF, 0xE000, 0xFFFF, 0x10000, 0x3FFFF, 0x40000, 0x10FFFF, 'a', 'z', 0x20AC, 0x1F600}
	for range 300 {
		var s RuneSet
		for range rng.IntN(4) {
			a, b := edges[rng.IntN(len(edges))], edges[rng.IntN(len(edges))]
			s = append(s, min(a, b), max(a, b))
		}
		s = s.normalize()
		in := func(s RuneSet, r rune) bool {
			for i := 0; i < len(s); i += 2 {
				if s[i] <= r && r <= s[i+1] {
					return true
				}
			}
			return false
		}
		not := s.complement()
		seqs := utf8Sequences(nil, s)
		spelled := func(b []byte) bool {
			n := 0
			for _, seq := range seqs {
				ok := len(seq) == len(b)
				for i := range seq {
					ok = ok && seq[i].Lo <= b[i] && b[i] <= seq[i].Hi
				}
				if ok {
					n++
				}
			}
			if n > 1 {
				t.Fatalf("%x: % x is spelled %d times", s, b, n)
			}
			return n == 1
		}
		for _, e := range edges {
			for r := max(0, e-2); r <= min(maxRune, e+2); r++ {
				if in(s, r) == in(not, r) {
					t.Fatalf("%x and its complement %x agree on %x", s, not, r)
				}
				if r >= surrogateMin && r <= surrogateMax {
					continue
				}
				if spelled([]byte(string(r))) != in(s, r) {
					t.Fatalf("%x: spelling of %x", s, r)
				}
			}
		}
		for _, bad := range [][]byte{{0x80}, {0xC0, 0x80}, {0xE0, 0x80, 0x80}, {0xED, 0xA0, 0x80}, {0xF4, 0x90, 0x80, 0x80}, {0xFF}} {
			if spelled(bad) {
				t.Fatalf("%x spells % x", s, bad)
			}
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
		b := &Builder{Source: "test"}
		dx, dy := b.Pattern("", "", x, false), b.Pattern("", "", y, false)
		both, not := dx.Intersect(b, dy), dx.Complement().Minimize(b)
		if b.err != nil {
			t.Fatal(b.err)
		}
		for range 40 {
			text := randomText(rng)
			mx, my := rx.MatchString(text), ry.MatchString(text)
			if both.Match(text) != (mx && my) || not.Match(text) == mx {
				t.Fatalf("%q, %q: %q: %v %v, both %v, not %v", x, y, text, mx, my, both.Match(text), not.Match(text))
			}
		}
		if twice := both.Minimize(b); len(twice.final) != len(both.final) {
			t.Errorf("%q, %q: %d states after %d", x, y, len(twice.final), len(both.final))
		}
		if back := not.Complement().Minimize(b); len(back.final) != len(dx.final) {
			t.Errorf("%q: %d states after two complements, %d before", x, len(back.final), len(dx.final))
		}
	}
	if dx := fixedDFA("(a|b)*abb"); len(dx.final) != 4 {
		t.Errorf("(a|b)*abb has %d states, want 4", len(dx.final))
	}
}

// The automaton of a range of numbers against the numbers.
func TestNumberRanges(t *testing.T) {
	for i := range 400 {
		rng := rand.New(rand.NewPCG(51, uint64(i)))
		pick := func() string {
			s := []string{"0", "1", "-1", "9", "10", "99", "100", "101", "-100", "0.5", "-0.5", "1.25", "12.34", "-12.34", "0.001", "1e2", "7", "123456", "-99.99"}
			return s[rng.IntN(len(s))]
		}
		rat := func(s string) *big.Rat { r, _ := parseRat(s); return r }
		spec := numberSpec{fractions: rng.IntN(2) == 0}
		if rng.IntN(4) > 0 {
			spec.lo, spec.openLo = rat(pick()), rng.IntN(2) == 0
		}
		if rng.IntN(4) > 0 {
			spec.hi, spec.openHi = rat(pick()), rng.IntN(2) == 0
		}
		if rng.IntN(3) == 0 {
			spec.multiple = rat([]string{"1", "2", "3", "7", "0.5", "0.01", "10", "0.125"}[rng.IntN(8)])
		}
		b := &Builder{Source: "test"}
		d := numberDFA(b, spec)
		if b.err != nil {
			t.Fatal(b.err)
		}
		s := &schema{types: typeNumber, lo: spec.lo, hi: spec.hi, openLo: spec.openLo, openHi: spec.openHi}
		if spec.multiple != nil {
			s.multiples = append(s.multiples, spec.multiple)
		}
		for range 200 {
			text := randomNumber(rng)
			x := rat(text)
			want := validNumber(s, x) && (spec.fractions || !strings.Contains(text, "."))
			if got := d.Match(text); got != want {
				if spec.multiple != nil && strings.Contains(text, ".") && strings.HasSuffix(text, "0") {
					continue // more digits than the step has
				}
				if want && strings.HasPrefix(text, "-") && x.Sign() == 0 {
					continue // -0 where no other negative number is possible
				}
				t.Fatalf("%+v: %s: accepted %v, want %v", spec, text, got, want)
			}
		}
	}
}

func randomNumber(rng *rand.Rand) string {
	var b strings.Builder
	if rng.IntN(3) == 0 {
		b.WriteByte('-')
	}
	if n := rng.IntN(4); n == 0 {
		b.WriteByte('0')
	} else {
		b.WriteByte(byte('1' + rng.IntN(9)))
		for range n - 1 {
			b.WriteByte("0912345"[rng.IntN(7)])
		}
	}
	if rng.IntN(2) == 0 {
		b.WriteByte('.')
		for range 1 + rng.IntN(3) {
			b.WriteByte("0592134"[rng.IntN(7)])
		}
	}
	return b.String()
}
