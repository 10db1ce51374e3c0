package grammar

import (
	"slices"
	"strings"
)

// ebnfExpr is a parsed expression of GBNF or Lark.
type ebnfExpr struct {
	op     ebnfOp
	set    RuneSet
	sub    []*ebnfExpr
	rule   *ebnfRule
	lo, hi int // of a repetition; hi < 0: no bound
	size   int // states that it takes, roughly

	// What only Lark has.
	expr   string   // of a pattern: the regular expression, "" if it is none
	dfa    *RuneDFA // of a pattern
	chunks []string // of a substring
	other  *Rule    // of another language
	at     int      // offset in the source
}

type ebnfOp uint8

const (
	ebnfSet ebnfOp = iota // one character of set
	ebnfSeq
	ebnfAlt
	ebnfRepeat
	ebnfRef
	ebnfPattern   // a text of dfa
	ebnfSubstring // neighbours among chunks, perhaps none
	ebnfOther     // a text of the rule other
	ebnfLexeme    // of Lark: between two of them stands what is ignored
	ebnfAnd       // of Lark: a text of all of sub
	ebnfNot       // of Lark: any text but those of sub[0]
)

type ebnfRule struct {
	name      string
	defined   bool
	where     int // offset of the first use
	body      *ebnfExpr
	state     uint8 // while looking for recursion
	recursive bool
	small     bool // written out where it is used

	terminal bool // of Lark: a text without what is ignored
	nullable bool // of Lark: it may be empty
	first    *ebnfRule
}

const (
	ebnfNew = iota
	ebnfLooking
	ebnfKnown
)

// maxInline is the size up to which a rule that does not call itself is written
// out where it is used: what is read in one state then shows more.
const maxInline = 24

// findSmall decides whether r is written out where it is used, and returns the size
// of a use.
func (r *ebnfRule) findSmall() int {
	switch r.state {
	case ebnfLooking:
		r.recursive = true
		return 1
	case ebnfNew:
		r.state = ebnfLooking
		r.body.measure()
		r.small = !r.recursive && r.body.size <= maxInline
		r.state = ebnfKnown
	}
	if r.small {
		return r.body.size
	}
	return 1
}

// measure fills in the size of e.
func (e *ebnfExpr) measure() int {
	n := 1
	for _, s := range e.sub {
		n += s.measure()
	}
	switch e.op {
	case ebnfRepeat:
		n *= max(1, e.lo, e.hi)
	case ebnfRef:
		n += e.rule.findSmall()
	case ebnfPattern:
		n += e.dfa.Size()
	case ebnfSubstring:
		for _, c := range e.chunks {
			n += len(c)
		}
	}
	e.size = min(n, 1<<30)
	return e.size
}

// ebnfEmitter adds parsed rules to a Builder.
type ebnfEmitter struct {
	b       *Builder
	rules   map[*ebnfRule]*Rule
	pending []*ebnfRule
}

// ebnf adds parsed rules, which were measured, from root on.
func (b *Builder) ebnf(root *ebnfRule) (*Rule, error) {
	e := &ebnfEmitter{b: b, rules: map[*ebnfRule]*Rule{}}
	r := e.rule(root)
	for len(e.pending) > 0 && b.err == nil {
		next := e.pending[len(e.pending)-1]
		e.pending = e.pending[:len(e.pending)-1]
		to := e.rules[next]
		e.add(to, to.Start, next.body, to.End)
	}
	return r, b.err
}

func (e *ebnfEmitter) rule(r *ebnfRule) *Rule {
	g := e.rules[r]
	if g == nil {
		g = e.b.Rule(r.name)
		e.rules[r] = g
		e.pending = append(e.pending, r)
	}
	return g
}

// maxUnrolled is the size up to which counted repetitions are written out.
const maxUnrolled = 128

// add adds an expression between two states.
func (e *ebnfEmitter) add(g *Rule, from int32, x *ebnfExpr, to int32) {
	if e.b.err != nil {
		return
	}
	switch x.op {
	case ebnfSet:
		g.Runes(from, x.set, to, Tails{})
	case ebnfSeq:
		for i, s := range x.sub {
			next := to
			if i < len(x.sub)-1 {
				next = g.State()
			}
			e.add(g, from, s, next)
			from = next
		}
		if len(x.sub) == 0 {
			g.Skip(from, to)
		}
	case ebnfAlt:
		for _, s := range x.sub {
			e.add(g, from, s, to)
		}
	case ebnfRef:
		if x.rule.small {
			e.add(g, from, x.rule.body, to)
		} else {
			g.Call(from, e.rule(x.rule), to)
		}
	case ebnfRepeat:
		e.repeat(g, from, x, to)
	case ebnfPattern:
		g.Spell(from, x.dfa, to, g.Runes)
	case ebnfSubstring:
		e.substring(g, from, x.chunks, to)
	case ebnfOther:
		g.Call(from, x.other, to)
	case ebnfLexeme:
		e.add(g, from, x.sub[0], to)
	}
}

// substring adds the texts of neighbours among chunks.
func (e *ebnfEmitter) substring(g *Rule, from int32, chunks []string, to int32) {
	at := g.State()
	for i := 0; e.b.err == nil; i++ {
		g.Skip(from, at)
		g.Skip(at, to)
		if i == len(chunks) {
			return
		}
		next := g.State()
		g.Text(at, chunks[i], next)
		at = next
	}
}

func (e *ebnfEmitter) repeat(g *Rule, from int32, x *ebnfExpr, to int32) {
	body := x.sub[0]
	if max(x.lo, x.hi) > 1 && max(x.lo, x.hi)*body.size > maxUnrolled {
		rule := e.b.Rule("repetition")
		e.add(rule, rule.Start, body, rule.End)
		g.Call(from, e.b.Loop("repetition", rule, x.lo, x.hi), to)
		return
	}
	for range x.lo {
		next := g.State()
		e.add(g, from, body, next)
		from = next
	}
	if x.hi < 0 {
		again := g.State()
		g.Skip(from, again)
		e.add(g, again, body, again)
		g.Skip(again, to)
		return
	}
	for range x.hi - x.lo {
		next, begin := g.State(), g.State()
		g.Skip(from, begin)
		e.add(g, begin, body, next)
		g.Skip(from, to)
		from = next
	}
	g.Skip(from, to)
}

// skipSpace returns the place in src, from at on, behind white space and
// comments, which begin with one of the marks; behind line ends only if lines is
// set.
func skipSpace(src string, at int, lines bool, marks ...string) int {
	for at < len(src) {
		c := src[at]
		switch {
		case slices.ContainsFunc(marks, func(m string) bool { return strings.HasPrefix(src[at:], m) }):
			for at < len(src) && src[at] != '\n' && src[at] != '\r' {
				at++
			}
		case c == ' ' || c == '\t' || lines && (c == '\n' || c == '\r'):
			at++
		default:
			return at
		}
	}
	return at
}
