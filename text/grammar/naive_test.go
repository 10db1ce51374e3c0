package grammar

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sort"
	"strings"
	"testing"
)

// naive recognizes texts straight from the parsed grammar: for an expression and
// a place, the places where it can end.
type naive struct {
	text  []rune
	known map[naiveKey][]int
	work  int
}

type naiveKey struct {
	e  *gbnfExpr
	at int
}

func (n *naive) ends(e *gbnfExpr, at int) []int {
	key := naiveKey{e, at}
	if ends, ok := n.known[key]; ok {
		return ends
	}
	if n.work++; n.work > 3000 {
		return nil
	}
	n.known[key] = nil // left recursion is left only where nothing can be spelled
	set := map[int]bool{}
	switch e.op {
	case gbnfSet:
		if at < len(n.text) {
			for i := 0; i < len(e.set); i += 2 {
				if r := n.text[at]; e.set[i] <= r && r <= e.set[i+1] {
					set[at+1] = true
				}
			}
		}
	case gbnfSeq:
		now := map[int]bool{at: true}
		for _, s := range e.sub {
			next := map[int]bool{}
			for p := range now {
				for _, q := range n.ends(s, p) {
					next[q] = true
				}
			}
			now = next
		}
		set = now
	case gbnfAlt:
		for _, s := range e.sub {
			for _, q := range n.ends(s, at) {
				set[q] = true
			}
		}
	case gbnfRef:
		for _, q := range n.ends(e.rule.body, at) {
			set[q] = true
		}
	case gbnfRepeat:
		now := map[int]bool{at: true}
		for i := 0; len(now) > 0 && i <= e.lo+len(n.text)+1; i++ {
			if i >= e.lo {
				for p := range now {
					set[p] = true
				}
			}
			if i == e.hi {
				break
			}
			next := map[int]bool{}
			for p := range now {
				for _, q := range n.ends(e.sub[0], p) {
					next[q] = true
				}
			}
			now = next
		}
	}
	ends := []int{}
	for p := range set {
		ends = append(ends, p)
	}
	sort.Ints(ends)
	n.known[key] = ends
	return ends
}

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
	v := smallVocabulary()
	var compiled, checked, good int
	for i := range n {
		rng := rand.New(rand.NewPCG(61, uint64(i)))
		source := randomGrammar(rng)
		g, err := GBNF(v, source)
		if err != nil {
			if e := err.(*Error); e.Kind == Invalid || e.Kind == TooLarge {
				t.Fatalf("%s: %v", source, err)
			}
			continue
		}
		compiled++
		p := &gbnfParser{b: &Builder{}, src: source, rules: map[string]*gbnfRule{}}
		if err := p.parse(); err != nil {
			t.Fatal(err)
		}
		check := func(text string) {
			rec := &naive{text: []rune(text), known: map[naiveKey][]int{}}
			want := false
			for _, end := range rec.ends(p.rules["root"].body, 0) {
				want = want || end == len(rec.text)
			}
			got := accepts(g, text)
			if errors.Is(got, ErrTooAmbiguous) || rec.work > 3000 {
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
		if text, ok := walk(t, g, uint64(i)); ok {
			check(text)
		}
	}
	t.Logf("%d grammars, %d texts, %d of them good", compiled, checked, good)
}
