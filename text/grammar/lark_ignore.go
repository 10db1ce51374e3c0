package grammar

// larkGaps puts what is ignored between lexemes: before each, but not before the
// first one of the text. So a rule is there twice if it may begin the text.
type larkGaps struct {
	p       *larkParser
	between *ebnfExpr
	pending []*ebnfRule // of which the second is not made yet
	made    int         // expressions
}

// gaps returns the rule of the whole text.
func (p *larkParser) gaps(start *ebnfRule) (*ebnfRule, error) {
	if len(p.ignore) == 0 {
		return start, nil
	}
	if err := p.findNullable(); err != nil {
		return nil, err
	}
	ignored := &ebnfRule{name: "%ignore", defined: true}
	ignored.body = &ebnfExpr{op: ebnfRepeat, sub: []*ebnfExpr{{op: ebnfAlt, sub: p.ignore}}, hi: -1}
	if p.once {
		ignored.body.hi = 1
	}
	g := &larkGaps{p: p, between: &ebnfExpr{op: ebnfRef, rule: ignored}}
	whole := &ebnfRule{name: "start", defined: true}
	whole.body = g.first(&ebnfExpr{op: ebnfRef, rule: start})
	if start.nullable {
		whole.body = &ebnfExpr{op: ebnfRepeat, sub: []*ebnfExpr{whole.body}, hi: 1}
	}
	rules := p.order
	for len(g.pending) > 0 && g.made < MaxSource {
		r := g.pending[len(g.pending)-1]
		g.pending = g.pending[:len(g.pending)-1]
		r.first.body = g.first(r.body)
		p.order = append(p.order, r.first)
	}
	for _, r := range rules {
		r.body = g.gapped(r.body)
	}
	if g.made >= MaxSource {
		return nil, tooLarge("lark", "", "more than %d expressions with %%ignore between their parts", MaxSource)
	}
	p.order = append(p.order, ignored, whole)
	return whole, nil
}

// gapped is e with what is ignored before each lexeme.
func (g *larkGaps) gapped(e *ebnfExpr) *ebnfExpr {
	if g.made++; g.made >= MaxSource {
		return e
	}
	if e.op == ebnfLexeme {
		return &ebnfExpr{op: ebnfSeq, sub: []*ebnfExpr{g.between, e.sub[0]}}
	}
	if len(e.sub) == 0 {
		return e
	}
	out := *e
	out.sub = make([]*ebnfExpr, len(e.sub))
	for i, s := range e.sub {
		out.sub[i] = g.gapped(s)
	}
	return &out
}

// first is of the texts of e that are not empty, or of a lexeme, with what is ignored
// before each lexeme but the first.
func (g *larkGaps) first(e *ebnfExpr) *ebnfExpr {
	if g.made++; g.made >= MaxSource {
		return e
	}
	alt := &ebnfExpr{op: ebnfAlt}
	switch e.op {
	case ebnfLexeme:
		return e.sub[0]
	case ebnfRef:
		r := e.rule
		if r.first == nil {
			r.first = &ebnfRule{name: r.name, defined: true}
			g.pending = append(g.pending, r)
		}
		return &ebnfExpr{op: ebnfRef, rule: r.first}
	case ebnfAlt:
		for _, s := range e.sub {
			alt.sub = append(alt.sub, g.first(s))
		}
	case ebnfSeq:
		for i, s := range e.sub { // what comes before s is empty
			seq := &ebnfExpr{op: ebnfSeq, sub: []*ebnfExpr{g.first(s)}}
			for _, after := range e.sub[i+1:] {
				seq.sub = append(seq.sub, g.gapped(after))
			}
			alt.sub = append(alt.sub, seq)
			if !s.nullable() || g.made >= MaxSource {
				break
			}
		}
	case ebnfRepeat:
		if e.hi == 0 {
			break // nothing
		}
		rest := *e
		rest.sub = []*ebnfExpr{g.gapped(e.sub[0])}
		rest.lo, rest.hi = max(e.lo-1, 0), max(e.hi-1, -1)
		return &ebnfExpr{op: ebnfSeq, sub: []*ebnfExpr{g.first(e.sub[0]), &rest}}
	default:
		return e
	}
	return alt
}

// findNullable finds the rules whose text may be empty.
func (p *larkParser) findNullable() error {
	sizes := make([]int, len(p.order))
	for i, r := range p.order {
		sizes[i] = r.body.nodes()
	}
	for again := true; again; {
		again = false
		for i, r := range p.order {
			if !p.b.Spend(sizes[i]) {
				return p.b.err
			}
			if !r.nullable && r.body.nullable() {
				r.nullable, again = true, true
			}
		}
	}
	return nil
}

// nodes returns the number of expressions in e.
func (e *ebnfExpr) nodes() int {
	n := 1
	for _, s := range e.sub {
		n += s.nodes()
	}
	return n
}

// nullable reports whether the text of e may be empty, as far as is known of rules.
func (e *ebnfExpr) nullable() bool {
	switch e.op {
	case ebnfRef:
		return e.rule.nullable
	case ebnfPattern:
		return e.dfa.final[e.dfa.start]
	case ebnfSubstring:
		return true
	case ebnfRepeat:
		return e.lo == 0 || e.sub[0].nullable()
	case ebnfAlt:
		for _, s := range e.sub {
			if s.nullable() {
				return true
			}
		}
		return false
	case ebnfSeq, ebnfLexeme:
		for _, s := range e.sub {
			if !s.nullable() {
				return false
			}
		}
		return true
	}
	return false
}
