package grammar

import (
	"strconv"
	"strings"

	"ridge/internal/diag"
)

// larkLazy is a rule that is a terminal of its own, with what its options say.
type larkLazy struct {
	rule     *ebnfRule
	set      bool // there are such options
	shortest bool // a text ends where it may first
	suffix   *ebnfExpr
}

// resolve checks what was parsed and turns it into what can be added to a Builder.
func (p *larkParser) resolve() error {
	for _, r := range p.order {
		if !r.defined {
			return p.fail(Invalid, r.where, "rule %s not defined", diag.Quote(r.name))
		}
	}
	for _, r := range p.order {
		if r.terminal {
			if err := p.acyclic(r); err != nil {
				return err
			}
		}
	}
	for _, r := range p.order {
		r.state = ebnfNew
	}
	for _, r := range p.order {
		if r.terminal {
			if err := p.regular(r.body); err != nil {
				return err
			}
		}
	}
	for _, e := range p.ignore {
		if err := p.regular(e); err != nil {
			return err
		}
	}
	for _, l := range p.lazy {
		if err := p.shortest(l); err != nil {
			return err
		}
	}
	for _, r := range p.order {
		if !r.terminal {
			unroll(r)
		}
	}
	return p.b.err
}

// acyclic refuses a terminal that has itself in it.
func (p *larkParser) acyclic(r *ebnfRule) error {
	switch r.state {
	case ebnfLooking:
		return p.fail(Invalid, r.where, "terminal %s has itself in it", diag.Quote(r.name))
	case ebnfKnown:
		return nil
	}
	r.state = ebnfLooking
	var visit func(e *ebnfExpr) error
	visit = func(e *ebnfExpr) error {
		if e.op == ebnfRef {
			return p.acyclic(e.rule)
		}
		for _, s := range e.sub {
			if err := visit(s); err != nil {
				return err
			}
		}
		return nil
	}
	err := visit(r.body)
	r.state = ebnfKnown
	return err
}

// regular makes patterns of the parts of a terminal that & and ~ are applied to.
func (p *larkParser) regular(e *ebnfExpr) error {
	if e.op == ebnfAnd || e.op == ebnfNot {
		d, err := p.dfa(e)
		if err != nil {
			return err
		}
		*e = ebnfExpr{op: ebnfPattern, dfa: d, at: e.at}
		return nil
	}
	for _, s := range e.sub {
		if err := p.regular(s); err != nil {
			return err
		}
	}
	return nil
}

// dfa returns the automaton of a part of a terminal.
func (p *larkParser) dfa(e *ebnfExpr) (*RuneDFA, error) {
	switch {
	case e.op == ebnfPattern:
		return e.dfa, nil
	case e.op == ebnfSeq && len(e.sub) == 1:
		return p.dfa(e.sub[0])
	case e.op == ebnfRef:
		return p.dfa(e.rule.body)
	case e.op == ebnfNot:
		d, err := p.dfa(e.sub[0])
		if err != nil {
			return nil, err
		}
		return d.Complement().Minimize(p.b), nil
	case e.op == ebnfAnd:
		d, err := p.dfa(e.sub[0])
		for _, s := range e.sub[1:] {
			if err != nil {
				return nil, err
			}
			var x *RuneDFA
			if x, err = p.dfa(s); err == nil {
				d = d.Intersect(p.b, x)
			}
		}
		return d, err
	}
	var expr strings.Builder
	if err := p.spell(e, &expr); err != nil {
		return nil, err
	}
	return p.b.Pattern(p.where(e.at), "", expr.String(), false), p.b.err
}

const larkInside = "%%regex, & and ~ cannot stand inside of what & or ~ is applied to, or of a lazy rule"

// spell writes a part of a terminal as a regular expression.
func (p *larkParser) spell(e *ebnfExpr, to *strings.Builder) error {
	if to.Len() > maxRegexSource {
		return p.fail(TooLarge, e.at, "too large: terminal under & or ~, or in a lazy rule, longer than 16 KiB")
	}
	between := ""
	switch e.op {
	case ebnfSet:
		to.WriteString("[")
		for i := 0; i < len(e.set); i += 2 {
			to.WriteString(`\x{` + strconv.FormatInt(int64(e.set[i]), 16) + `}-\x{` + strconv.FormatInt(int64(e.set[i+1]), 16) + `}`)
		}
		to.WriteString("]")
		return nil
	case ebnfRef:
		return p.spell(e.rule.body, to)
	case ebnfPattern:
		if e.expr == "" {
			return p.fail(Unsupported, e.at, larkInside)
		}
		to.WriteString("(?:" + e.expr + ")")
		return nil
	case ebnfAlt:
		between = "|"
	case ebnfSeq, ebnfRepeat:
	default:
		return p.fail(Unsupported, e.at, larkInside)
	}
	to.WriteString("(?:")
	for i, s := range e.sub {
		if i > 0 {
			to.WriteString(between)
		}
		if err := p.spell(s, to); err != nil {
			return err
		}
	}
	to.WriteString(")")
	if e.op == ebnfRepeat {
		to.WriteString("{" + strconv.Itoa(e.lo) + ",")
		if e.hi >= 0 {
			to.WriteString(strconv.Itoa(e.hi))
		}
		to.WriteString("}")
	}
	return nil
}

// shortest makes a rule with options the terminal that they say.
func (p *larkParser) shortest(l larkLazy) error {
	body := l.rule.body
	if l.suffix != nil {
		body = &ebnfExpr{op: ebnfSeq, sub: []*ebnfExpr{body, l.suffix}, at: body.at}
	}
	d, err := p.dfa(body)
	if err != nil {
		return err
	}
	if l.shortest {
		d = d.First().Minimize(p.b)
	}
	l.rule.body = &ebnfExpr{op: ebnfLexeme, sub: []*ebnfExpr{{op: ebnfPattern, dfa: d, at: body.at}}, at: body.at}
	return p.b.err
}

// First returns the automaton of the texts of d that begin with no shorter one.
func (d *RuneDFA) First() *RuneDFA {
	f := *d
	f.next = append([]int32(nil), d.next...)
	for q, final := range d.final {
		if final {
			for c := range d.k {
				f.next[q*d.k+c] = -1
			}
		}
	}
	return &f
}

// unroll writes a rule that begins with itself, "a: a x | y", as a repetition.
func unroll(r *ebnfRule) {
	alts := []*ebnfExpr{r.body}
	for len(alts) == 1 && (alts[0].op == ebnfAlt || alts[0].op == ebnfSeq && len(alts[0].sub) == 1) {
		alts = alts[0].sub
	}
	base, more := &ebnfExpr{op: ebnfAlt, at: r.body.at}, &ebnfExpr{op: ebnfAlt, at: r.body.at}
	for _, a := range alts {
		seq := []*ebnfExpr{a}
		for len(seq) == 1 && seq[0].op == ebnfSeq {
			seq = seq[0].sub
		}
		if len(seq) == 0 || seq[0].op != ebnfRef || seq[0].rule != r {
			base.sub = append(base.sub, a)
		} else if len(seq) > 1 { // "a: a" says nothing
			more.sub = append(more.sub, &ebnfExpr{op: ebnfSeq, sub: seq[1:], at: a.at})
		}
	}
	if len(base.sub) == 0 || len(base.sub) == len(alts) {
		return
	}
	again := &ebnfExpr{op: ebnfRepeat, sub: []*ebnfExpr{more}, hi: -1, at: r.body.at}
	r.body = &ebnfExpr{op: ebnfSeq, sub: []*ebnfExpr{base, again}, at: r.body.at}
	if len(more.sub) == 0 {
		r.body = base
	}
}
