package grammar_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"ridge/text/grammar"
	"ridge/text/grammar/internal/grammartest"
)

func randomGrammar(rng *rand.Rand) string {
	var expr func(depth int) string
	one := func(list ...string) string { return list[rng.IntN(len(list))] }
	expr = func(depth int) string {
		if depth <= 0 {
			return one(`"a"`, `"b"`, `"ab"`, "[ab]", "[^a]", "x", "y", `"é"`, ".", `""`, "root")
		}
		switch rng.IntN(7) {
		case 0, 1, 2:
			return expr(depth-1) + " " + expr(depth-1)
		case 3:
			return "(" + expr(depth-1) + " | " + expr(depth-1) + ")"
		case 4:
			return "(" + expr(depth-1) + ")" + one("*", "+", "?", "{2}", "{1,3}", "{0,2}", "{2,}")
		case 5:
			return "(" + one(`"a"`, "[ab]", "x", `"ab" | "b"`, expr(depth-1)) + ")" + one("{2,60}", "{0,70}", "{3,50}", "{1,}", "{45,}")
		}
		return expr(depth - 1)
	}
	return fmt.Sprintf("root ::= %s | %s\nx ::= %s | %s\ny ::= %s", expr(3), expr(2), expr(2), expr(2), expr(2))
}

// Random grammars, recursive and ambiguous ones too, accept exactly the texts
// that the naive recognizer does.
func TestGBNFAgainstNaive(t *testing.T) {
	n := 800
	if testing.Short() {
		n = 150
	}
	v := grammartest.Small()
	var compiled, checked, good int
	for i := range n {
		rng := rand.New(rand.NewPCG(61, uint64(i)))
		source := randomGrammar(rng)
		g, err := grammar.GBNF(v, source)
		if err != nil {
			if e := err.(*grammar.Error); e.Kind == grammar.Invalid || e.Kind == grammar.TooLarge {
				t.Fatalf("%s: %v", source, err)
			}
			continue
		}
		compiled++
		check := func(text string) {
			want, known := grammar.Naive(source, text)
			got := grammartest.Accepts(g, text)
			if errors.Is(got, grammar.ErrTooAmbiguous) || !known {
				return
			}
			checked++
			if want {
				good++
			}
			if (got == nil) != want {
				t.Fatalf("%s\n%q: %v, naive says %v", source, text, got, want)
			}
		}
		for range 12 {
			var b strings.Builder
			for range rng.IntN(9) {
				b.WriteString([]string{"a", "b", "é"}[rng.IntN(10)/4])
			}
			check(b.String())
		}
		check(strings.Repeat("ab", rng.IntN(30)))
		check(strings.Repeat("a", rng.IntN(60)))
		if text, ok := grammartest.Walk(t, g, uint64(i)); ok {
			check(text)
		}
	}
	t.Logf("%d grammars, %d texts, %d of them good", compiled, checked, good)
}
