package tokenizer

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// scanAlphabet has characters of every class that patterns tell apart, the
// common ones several times.
var scanAlphabet = []rune("  \n\n\r\t\v\u00a0\u0085\u3000\u2028''''stmdrevlSTMDREVLſaabcxyzABCXYZéÉßǅʰªºاब中文日々〇あア한\u0301\u0308\u093f" +
	"00123789½²Ⅻ٣१..,,!?-_/\\|()[]{}<>#$%&*+=^~`\"@:;…。，、।۔،¿«»–€£©°^\u200d\u200b\ufeff\u00ad\x00\x01\x7f😀👍🏽🏳\ufe0f𝕏𠮷𐐀𐐨\U0001e900\ue000\ufffd⺀")

// scanText makes a text of n characters.
func scanText(r *rand.Rand, n int) string {
	var b strings.Builder
	for range n {
		c := scanAlphabet[r.IntN(len(scanAlphabet))]
		b.WriteRune(c)
		for r.IntN(4) == 0 {
			b.WriteRune(c)
		}
	}
	return b.String()
}

// kimiRegex is reKimi without the intersection of classes, which the engine
// does not know.
var kimiRegex = strings.NewReplacer(
	`[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]`, `(?:(?!\p{Han})[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}])`,
	`[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]`, `(?:(?!\p{Han})[\p{Ll}\p{Lm}\p{Lo}\p{M}])`).Replace(reKimi)

// oracle compiles the regular expression of a scanner.
func oracle(t testing.TB, re string) *regex {
	t.Helper()
	if re == reKimi {
		re = kimiRegex
	}
	// The engine does not fold the long s.
	re = strings.Replace(re, `(?i:'s|`, `(?i:'s|'ſ|`, 1)
	re = strings.Replace(re, `'(?i:[sdmt]|`, `'(?i:[sſdmt]|`, 1)
	rx, err := compileRegex(re)
	if err != nil {
		t.Fatal(err)
	}
	return rx
}

func checkScanner(t testing.TB, re string, m matcher, rx *regex, s string) {
	t.Helper()
	got := matches{m}.split(nil, s)
	want := rx.split(nil, s)
	if !slices.Equal(got, want) {
		t.Fatalf("%s\ntext %q\n got %q\nwant %q", re, s, cutParts(s, got), cutParts(s, want))
	}
}

func cutParts(s string, parts []part) (out []string) {
	for _, p := range parts {
		out = append(out, s[p.lo:p.hi])
	}
	return out
}

// TestScanners compares the hand-written scanners with a regular-expression
// engine over random texts.
func TestScanners(t *testing.T) {
	classes()
	n := 4000
	if testing.Short() {
		n = 400
	}
	for re, m := range scanners {
		rx := oracle(t, re)
		r := rand.New(rand.NewPCG(1, uint64(len(re))))
		for range n {
			checkScanner(t, re, m, rx, scanText(r, 1+r.IntN(24)))
		}
	}
}

// TestDigitsGPT2 compares the scanner for two stages in one with the two.
func TestDigitsGPT2(t *testing.T) {
	classes()
	r := rand.New(rand.NewPCG(2, 0))
	for range 20000 {
		s := scanText(r, 1+r.IntN(24))
		var want []string
		for _, p := range (matches{classOne(clN)}).split(nil, s) {
			if p.match {
				want = append(want, s[p.lo:p.hi])
				continue
			}
			want = append(want, cutParts(s[p.lo:p.hi], matches{gpt2}.split(nil, s[p.lo:p.hi]))...)
		}
		if got := cutParts(s, matches{gpt2Digits}.split(nil, s)); !slices.Equal(got, want) {
			t.Fatalf("text %q\n got %q\nwant %q", s, got, want)
		}
	}
}

// FuzzScanners checks on any text that every scanner agrees with its regular
// expression, and on invalid UTF-8 that it cuts the text into parts.
func FuzzScanners(f *testing.F) {
	classes()
	r := rand.New(rand.NewPCG(3, 0))
	for range 8 {
		f.Add(scanText(r, 20))
	}
	f.Add("it's 1234\r\n\r\n  x\xff\xfe'LL ½")
	type pair struct {
		re string
		m  matcher
		rx *regex
	}
	var all []pair
	for re, m := range scanners {
		all = append(all, pair{re, m, oracle(f, re)})
	}
	f.Fuzz(func(t *testing.T, s string) {
		if len(s) > 200 {
			return
		}
		compare := utf8.ValidString(s)
		for _, n := range unicode16 {
			for _, c := range s {
				compare = compare && (c < n.lo || c > n.hi)
			}
		}
		for _, p := range all {
			if compare {
				checkScanner(t, p.re, p.m, p.rx, s)
			}
			at := 0
			for _, part := range (matches{p.m}).split(nil, s) {
				if part.lo != at || part.hi <= part.lo {
					t.Fatalf("%s: text %q: part %v after %d", p.re, s, part, at)
				}
				at = part.hi
			}
			if at != len(s) {
				t.Fatalf("%s: text %q: parts end at %d", p.re, s, at)
			}
		}
	})
}

func TestAtomic(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{`a+`, `a+`},
		{`a++`, `(?>a+)`},
		{`[^\r\n\p{L}]?+\p{L}+`, `(?>[^\r\n\p{L}]?)\p{L}+`},
		{`\p{L}*+x`, `(?>\p{L}*)x`},
		{`(?:ab|c)++|d`, `(?>(?:ab|c)+)|d`},
		{`((a++)b)?+`, `(?>(((?>a+))b)?)`},
		{`[]+]++`, `(?>[]+]+)`},
		{`\++`, `\++`},
		{`é?+`, `(?>é?)`},
		{`++`, `++`},
	} {
		if got := atomic(c.in); got != c.want {
			t.Errorf("atomic(%q) = %q, want %q", c.in, got, c.want)
		}
	}
}

// TestPatternsCompile compiles every pattern of the table of pre-tokenizers.
func TestPatternsCompile(t *testing.T) {
	for name, p := range preTokenizers {
		for _, s := range p.stages {
			if _, err := stageFor(s); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}
