package jinja

import (
	"math/big"
	"strconv"
	"strings"
)

// expr is a parsed expression and the nesting of it.
type expr struct {
	node
	depth int
}

// built returns n, made from parts, and checks the nesting.
func (p *parser) built(n node, parts ...expr) expr {
	d := 0
	for _, e := range parts {
		d = max(d, e.depth)
	}
	if d >= maxExprDepth {
		panic(p.errorf("expression nested deeper than %d", maxExprDepth))
	}
	return expr{n, d + 1}
}

// deeper counts a recursion of the parser until the function it returns.
func (p *parser) deeper() func() {
	if p.nest++; p.nest > maxExprDepth {
		panic(p.errorf("expression nested deeper than %d", maxExprDepth))
	}
	return func() { p.nest-- }
}

func nodes(exprs []expr) []node {
	out := make([]node, len(exprs))
	for i, e := range exprs {
		out[i] = e.node
	}
	return out
}

// expression parses a conditional expression, the outermost kind.
func (p *parser) expression() expr {
	defer p.deeper()()
	unknown := p.unknown
	e := p.or()
	for p.acceptName("if") {
		p.unknown = unknown // e stands in a condition too
		p.soft++
		cond, alt := p.or(), expr{constant{undefined{}}, 0}
		if p.acceptName("else") {
			alt = p.expression()
		}
		p.soft--
		e = p.built(&conditional{cond.node, e.node, alt.node}, e, cond, alt)
	}
	return e
}

func (p *parser) or() expr  { return p.logical("or", p.and) }
func (p *parser) and() expr { return p.logical("and", p.not) }

func (p *parser) logical(op string, operand func() expr) expr {
	e := operand()
	for p.acceptName(op) {
		r := operand()
		e = p.built(&logical{e.node, r.node, op == "or"}, e, r)
	}
	return e
}

func (p *parser) not() expr {
	n := 0
	for p.acceptName("not") {
		n++
	}
	e := p.compare()
	for range min(n, 2-n%2) { // not not not x == not x
		e = p.built(&not{e.node}, e)
	}
	return e
}

func (p *parser) compare() expr {
	parts := []expr{p.sum()}
	var ops []func(st *state, a, b value) bool
	for {
		t := p.cur()
		op := t.text
		if p.isName("not") && p.peek(1).kind == tokName && p.peek(1).text == "in" {
			op = "not in"
		}
		f, ok := comparisons[op]
		if !ok || t.kind != tokOp && t.kind != tokName {
			break
		}
		p.pos += 1 + strings.Count(op, " ")
		ops, parts = append(ops, f), append(parts, p.sum())
	}
	if len(ops) == 0 {
		return parts[0]
	}
	return p.built(&comparison{nodes(parts), ops}, parts...)
}

// chain parses left-associative operators of one precedence level.
func (p *parser) chain(ops map[string]operator, operand func() expr) expr {
	e := operand()
	for p.cur().kind == tokOp && ops[p.cur().text] != nil {
		op := ops[p.cur().text]
		p.pos++
		r := operand()
		e = p.built(&binary{op, e.node, r.node}, e, r)
	}
	return e
}

func (p *parser) sum() expr     { return p.chain(addOps, p.concat) }
func (p *parser) product() expr { return p.chain(mulOps, p.power) }
func (p *parser) power() expr   { return p.chain(powOps, func() expr { return p.unary(true) }) }

func (p *parser) concat() expr {
	parts := []expr{p.product()}
	for p.acceptOp("~") {
		parts = append(parts, p.product())
	}
	if len(parts) == 1 {
		return parts[0]
	}
	return p.built(&concat{nodes(parts)}, parts...)
}

func (p *parser) unary(withFilter bool) expr {
	defer p.deeper()()
	var e expr
	switch {
	case p.acceptOp("-"):
		e = p.unary(false)
		e = p.built(&unary{neg, e.node}, e)
	case p.acceptOp("+"):
		e = p.unary(false)
		e = p.built(&unary{pos, e.node}, e)
	default:
		e = p.primary()
	}
	e = p.postfix(e)
	if withFilter {
		e = p.filters(e)
	}
	return e
}

func (p *parser) primary() expr {
	t := p.cur()
	p.pos++
	switch t.kind {
	case tokName:
		switch t.text {
		case "true", "True":
			return expr{constant{true}, 0}
		case "false", "False":
			return expr{constant{false}, 0}
		case "none", "None":
			return expr{constant{nil}, 0}
		}
		return expr{p.variable(t.text), 0}
	case tokString:
		var b strings.Builder
		b.WriteString(t.text)
		for ; p.cur().kind == tokString; p.pos++ {
			b.WriteString(p.cur().text)
		}
		return expr{constant{b.String()}, 0}
	case tokInt:
		return expr{constant{p.integer(t.text)}, 0}
	case tokFloat:
		f, _ := strconv.ParseFloat(t.text, 64)
		return expr{constant{f}, 0}
	case tokOp:
		switch t.text {
		case "(":
			e := p.tuple(true, true, "")
			p.expectOp(")")
			return e
		case "[":
			items := p.list("]", p.expression)
			return p.built(&listNode{nodes(items)}, items...)
		case "{":
			return p.dict()
		}
	}
	p.pos--
	panic(p.errorf("unexpected %s", describe(t)))
}

func (p *parser) integer(s string) value {
	if strings.Trim(s, "0") == "" { // 000 is the only spelling with leading zeros
		return 0
	}
	if n, err := strconv.ParseInt(s, 0, strconv.IntSize); err == nil {
		return int(n)
	}
	n, ok := new(big.Int).SetString(s[:min(len(s), 1001)], 0)
	if !ok || len(s) > 1000 {
		panic(p.errorf("integer literal of %d digits", len(s)))
	}
	return &bigInt{n}
}

// tuple parses expressions separated by commas: one is itself, more (or a
// trailing comma) are a tuple. Without cond, they are not conditional ones;
// end names the keyword that may follow.
func (p *parser) tuple(explicit, cond bool, end string) expr {
	item := p.or
	if cond {
		item = p.expression
	}
	var items []expr
	isTuple := false
	for !p.tupleEnd(end) {
		items = append(items, item())
		if !p.acceptOp(",") {
			break
		}
		isTuple = true
	}
	if !isTuple && len(items) == 1 {
		return items[0]
	}
	if !isTuple && !explicit {
		panic(p.errorf("expected an expression, got %s", describe(p.cur())))
	}
	return p.built(&tupleNode{nodes(items)}, items...)
}

func (p *parser) tupleEnd(end string) bool {
	t := p.cur()
	return t.kind == tokVarEnd || t.kind == tokBlockEnd || t.kind == tokOp && t.text == ")" ||
		end != "" && t.kind == tokName && t.text == end
}

// list parses items separated by commas up to and with the token end.
func (p *parser) list(end string, item func() expr) []expr {
	var items []expr
	for !p.isOp(end) {
		items = append(items, item())
		if !p.isOp(end) {
			p.expectOp(",")
		}
	}
	p.pos++
	return items
}

func (p *parser) dict() expr {
	var keys []expr
	vals := p.list("}", func() expr {
		keys = append(keys, p.expression())
		p.expectOp(":")
		return p.expression()
	})
	return p.built(&dictNode{nodes(keys), nodes(vals)}, append(keys, vals...)...)
}

// postfix parses what may follow any operand: attributes, items and calls.
func (p *parser) postfix(e expr) expr {
	for {
		switch {
		case p.acceptOp("."):
			e = p.dot(e)
		case p.acceptOp("["):
			e = p.subscript(e)
		case p.isOp("("):
			e = p.callOf(e)
		default:
			return e
		}
	}
}

func (p *parser) dot(e expr) expr {
	switch t := p.cur(); t.kind {
	case tokName:
		p.pos++
		return p.built(&attribute{e.node, t.text}, e)
	case tokInt:
		p.pos++
		return p.built(&item{e.node, constant{p.integer(t.text)}}, e)
	default:
		panic(p.errorf("expected name or number after '.', got %s", describe(t)))
	}
}

func (p *parser) subscript(e expr) expr {
	bounds := [3]expr{{constant{nil}, 0}, {constant{nil}, 0}, {constant{nil}, 0}}
	isSlice := false
	for i := range bounds {
		if !p.isOp(":") && !p.isOp("]") {
			bounds[i] = p.expression()
		} else if i == 0 && p.isOp("]") {
			panic(p.errorf("expected an index, got ']'"))
		}
		if !p.acceptOp(":") {
			break
		}
		isSlice = true
	}
	if p.isOp(",") {
		panic(p.errorf("subscripts with several indices are not supported"))
	}
	p.expectOp("]")
	parts := append(bounds[:], e)
	if !isSlice {
		return p.built(&item{e.node, bounds[0].node}, parts...)
	}
	return p.built(&slice{e.node, bounds[0].node, bounds[1].node, bounds[2].node}, parts...)
}

func (p *parser) callOf(fn expr) expr {
	a, depth := p.arguments()
	return p.built(&call{fn.node, a}, fn, depth)
}

// arguments parses call arguments in parentheses; the second result only has
// their nesting.
func (p *parser) arguments() (a arguments, depth expr) {
	p.expectOp("(")
	parts := p.list(")", func() expr {
		var e expr
		wrong := a.dynKw != nil
		switch {
		case p.acceptOp("**"):
			e = p.expression()
			a.dynKw = e.node
		case p.acceptOp("*"):
			wrong = wrong || a.dynPos != nil
			e = p.expression()
			a.dynPos = e.node
		case p.cur().kind == tokName && p.peek(1).kind == tokOp && p.peek(1).text == "=":
			name := p.cur().text
			p.pos += 2
			e = p.expression()
			a.kw = append(a.kw, keyword{name, e.node})
		default:
			wrong = wrong || a.dynPos != nil || len(a.kw) > 0
			e = p.expression()
			a.pos = append(a.pos, e.node)
		}
		if wrong {
			panic(p.errorf("invalid order of call arguments"))
		}
		return e
	})
	for _, e := range parts {
		depth.depth = max(depth.depth, e.depth)
	}
	return a, depth
}

// filters parses what may follow an operand: filters, tests, calls.
func (p *parser) filters(e expr) expr {
	for {
		switch {
		case p.acceptOp("|"):
			e = p.filter(e)
		case p.acceptName("is"):
			e = p.test(e)
		case p.isOp("("):
			e = p.callOf(e)
		default:
			return e
		}
	}
}

// filter parses one filter application from the filter's name on.
func (p *parser) filter(e expr) expr {
	name := p.dottedName("filter")
	var a arguments
	var depth expr
	if p.isOp("(") {
		a, depth = p.arguments()
	}
	return p.built(p.application("filter", name, filters, e, a), e, depth)
}

func (p *parser) test(e expr) expr {
	negated := p.acceptName("not")
	name := p.dottedName("test")
	var a arguments
	var arg expr
	switch t := p.cur(); {
	case p.isOp("("):
		a, arg = p.arguments()
	case p.isName("is"):
		panic(p.errorf("tests with is cannot be chained"))
	case t.kind == tokString || t.kind == tokInt || t.kind == tokFloat || p.isOp("[") || p.isOp("{") ||
		t.kind == tokName && t.text != "else" && t.text != "or" && t.text != "and":
		arg = p.postfix(p.primary())
		a.pos = []node{arg.node}
	}
	out := p.built(p.application("test", name, tests, e, a), e, arg)
	if negated {
		out = p.built(&not{out.node}, out)
	}
	return out
}

// application is a filter or test with its arguments. One that does not exist
// is an error of the template, unless a condition decides whether it is
// reached: then, as in jinja2, an error of the rendering.
func (p *parser) application(kind, name string, in map[string]*fn, e expr, a arguments) node {
	f, ok := in[name]
	if !ok {
		msg := "no " + kind + " named '" + name + "'"
		if p.soft == 0 && p.unknown == nil {
			p.unknown = p.errorf("%s", msg)
		}
		return failure(msg)
	}
	return &application{f, e.node, a}
}

func (p *parser) dottedName(what string) string {
	name := p.expect(tokName, what+" name")
	for p.acceptOp(".") {
		name += "." + p.expect(tokName, what+" name")
	}
	return name
}
