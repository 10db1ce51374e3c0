package grammar

import (
	"sort"
)

// naive recognizes texts straight from the parsed grammar: for an expression and
// a place, the places where it can end.
type naive struct {
	text  []rune
	known map[naiveKey][]int
	work  int
}

type naiveKey struct {
	e  *ebnfExpr
	at int
}

func (n *naive) ends(e *ebnfExpr, at int) []int {
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
	case ebnfSet:
		if at < len(n.text) {
			for i := 0; i < len(e.set); i += 2 {
				if r := n.text[at]; e.set[i] <= r && r <= e.set[i+1] {
					set[at+1] = true
				}
			}
		}
	case ebnfSeq:
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
	case ebnfAlt:
		for _, s := range e.sub {
			for _, q := range n.ends(s, at) {
				set[q] = true
			}
		}
	case ebnfRef:
		for _, q := range n.ends(e.rule.body, at) {
			set[q] = true
		}
	case ebnfRepeat:
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

// Naive says whether a text is one of a grammar, and whether that is known: not
// if finding out takes too long.
func Naive(source, text string) (match, known bool) {
	p := &gbnfParser{b: &Builder{}, src: source, rules: map[string]*ebnfRule{}}
	if err := p.parse(); err != nil {
		panic(err) // it was compiled
	}
	n := &naive{text: []rune(text), known: map[naiveKey][]int{}}
	for _, end := range n.ends(p.rules["root"].body, 0) {
		match = match || end == len(n.text)
	}
	return match, n.work <= 3000
}
