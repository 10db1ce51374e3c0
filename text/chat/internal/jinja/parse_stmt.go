package jinja

import (
	"slices"
	"strings"
)

// statements parses up to a tag named in ends, which becomes the current
// token, or to the end of the template.
func (p *parser) statements(ends ...string) []stmt {
	var out []stmt
	for {
		t := p.cur()
		switch t.kind {
		case tokEOF:
			if len(ends) > 0 {
				panic(p.errorf("unexpected end of template, expected '%s'", strings.Join(ends, "' or '")))
			}
			return out
		case tokData:
			p.pos++
			out = append(out, textStmt(t.text))
		case tokVarBegin:
			p.pos++
			out = append(out, &output{t.line, p.tuple(false, true, "").node})
			p.expect(tokVarEnd, "'}}'")
		case tokBlockBegin:
			p.pos++
			if n := p.cur(); n.kind == tokName && slices.Contains(ends, n.text) {
				return out
			}
			out = append(out, p.statement(ends)...)
			p.expect(tokBlockEnd, "'%}'")
		default:
			panic(p.errorf("unexpected %s", describe(t)))
		}
	}
}

// body parses the inside of a block, from the end of its opening tag to one
// of the tags in ends, and moves past that tag's name, which it returns.
func (p *parser) body(ends ...string) (stmts []stmt, end string) {
	p.acceptOp(":")
	p.expect(tokBlockEnd, "'%}'")
	stmts = p.statements(ends...)
	end = p.cur().text
	p.pos++
	return stmts, end
}

// scoped parses a body in a scope of its own.
func (p *parser) scoped(end string) block {
	s := p.push()
	stmts, _ := p.body(end)
	p.pop()
	return block{s.inits, stmts}
}

// statement parses one block; the tag's name is the current token.
func (p *parser) statement(ends []string) []stmt {
	if p.depth++; p.depth > maxStmtDepth {
		panic(p.errorf("blocks nested deeper than %d", maxStmtDepth))
	}
	defer func() { p.depth-- }()
	line := p.cur().line
	switch tag := p.expect(tokName, "a tag name"); tag {
	case "set":
		return []stmt{p.set(line)}
	case "if":
		p.soft++
		defer func() { p.soft-- }()
		return []stmt{p.ifBlock(line)}
	case "for":
		return []stmt{p.forBlock(line)}
	case "macro":
		name := p.expect(tokName, "a macro name")
		slot := p.assign(name)
		def, _ := p.function(name, "endmacro")
		return []stmt{&macroStmt{slot, def}}
	case "call":
		def, call := p.function("caller", "endcall")
		return []stmt{&callStmt{line, call, def}}
	case "filter":
		return []stmt{p.textOf(line, p.filter, "endfilter", true)}
	case "with":
		return []stmt{p.with(line)}
	case "generation": // marks what the assistant wrote; prints its body
		loops := p.loops
		p.loops = 0 // a function of its own in the reference
		b := p.scoped("endgeneration")
		p.loops = loops
		return []stmt{&withStmt{line: line, body: b}}
	case "print":
		return p.print(line)
	case "break", "continue":
		if p.loops == 0 {
			panic(p.errorf("'%s' outside of a loop", tag))
		}
		if tag == "break" {
			return []stmt{jump(breaks)}
		}
		return []stmt{jump(continues)}
	case "include", "import", "from", "extends", "block":
		panic(p.errorf("'%s' is not supported: a chat template is one file", tag))
	case "autoescape":
		panic(p.errorf("'autoescape' is not supported"))
	default:
		if len(ends) > 0 {
			panic(p.errorf("unknown tag '%s', expected '%s'", tag, strings.Join(ends, "' or '")))
		}
		panic(p.errorf("unknown tag '%s'", tag))
	}
}

func (p *parser) print(line int) (out []stmt) {
	for p.cur().kind != tokBlockEnd {
		out = append(out, &output{line, p.expression().node})
		if p.cur().kind != tokBlockEnd {
			p.expectOp(",")
		}
	}
	return out
}

// target parses an assignment target; attrs says that ns.x is one, end is the
// keyword that may follow. See bind for the slots.
func (p *parser) target(attrs bool, end string) target {
	var items []target
	many := false
	for !p.tupleEnd(end) {
		items = append(items, p.oneTarget(attrs))
		if !p.acceptOp(",") {
			break
		}
		many = true
	}
	if len(items) == 0 {
		panic(p.errorf("expected a variable name, got %s", describe(p.cur())))
	}
	if many {
		return target{items: items}
	}
	return items[0]
}

func (p *parser) oneTarget(attrs bool) target {
	if p.acceptOp("(") {
		defer p.deeper()()
		t := p.target(attrs, "")
		p.expectOp(")")
		return t
	}
	name := p.expect(tokName, "a variable name")
	switch name {
	case "true", "false", "none", "True", "False", "None":
		panic(p.errorf("cannot assign to %s", name))
	}
	if attrs && p.acceptOp(".") {
		return target{name: name, attr: p.expect(tokName, "an attribute name")}
	}
	return target{name: name}
}

// bind gives the variables of t the slots that slot returns.
func (p *parser) bind(t *target, slot func(name string) int) {
	switch {
	case t.attr != "":
		t.ns = p.variable(t.name)
	case t.items == nil:
		t.slot = slot(t.name)
	}
	for i := range t.items {
		p.bind(&t.items[i], slot)
	}
}

func (p *parser) set(line int) stmt {
	t := p.target(true, "")
	if !p.acceptOp("=") {
		s := p.textOf(line, func(e expr) expr {
			if p.acceptOp("|") {
				e = p.filter(e)
			}
			return e
		}, "endset", false)
		p.bind(&t, p.assign)
		s.to = t
		return s
	}
	val := p.tuple(false, true, "").node
	p.bind(&t, p.assign)
	return &setStmt{line: line, to: t, val: val}
}

// textOf parses a block of which the text is filtered: first parses the first
// filter, if any.
func (p *parser) textOf(line int, first func(expr) expr, end string, prints bool) *setStmt {
	s := &setStmt{line: line, slot: p.fun.slot(), prints: prints}
	val := first(expr{&variable{slot: s.slot}, 0})
	for p.acceptOp("|") {
		val = p.filter(val)
	}
	body := p.scoped(end)
	s.val, s.body = val.node, &body
	return s
}

func (p *parser) ifBlock(line int) stmt {
	s := &ifStmt{}
	for end := "elif"; end == "elif"; line = p.cur().line {
		b := branch{line: line, cond: p.tuple(false, false, "").node}
		b.body.stmts, end = p.body("elif", "else", "endif")
		s.branches = append(s.branches, b)
		if end == "else" {
			s.otherwise.stmts, _ = p.body("endif")
		}
	}
	return s
}

// isRecursive looks ahead to the end of a for tag.
func (p *parser) isRecursive() bool {
	i := p.pos
	for p.toks[i].kind != tokBlockEnd && p.toks[i].kind != tokEOF {
		i++
	}
	t := p.toks[i-1]
	return t.kind == tokName && t.text == "recursive"
}

func (p *parser) forBlock(line int) stmt {
	s := &forStmt{line: line, to: p.target(false, "in"), recursive: p.isRecursive()}
	if !p.acceptName("in") {
		panic(p.errorf("expected 'in', got %s", describe(p.cur())))
	}
	s.seq = p.tuple(false, false, "recursive").node
	sc := p.scope
	if s.recursive {
		sc = p.pushFunction()
	}
	if p.acceptName("if") {
		inner := p.push()
		s.condTo = s.to
		s.condTo.items = slices.Clone(s.to.items)
		p.bind(&s.condTo, inner.declare)
		s.cond = p.expression().node
		p.pop()
	}
	p.acceptName("recursive")
	body := p.push()
	p.bind(&s.to, func(name string) int {
		p.noLoop(sc, name)
		return body.declare(name)
	})
	body.withSpecial("loop")
	p.loops++
	var end string
	s.body.stmts, end = p.body("endfor", "else")
	p.loops--
	s.body.inits = body.inits
	p.later(func() { s.loopSlot = body.special["loop"] })
	p.pop()
	if end == "else" {
		s.otherwise = p.scoped("endfor")
	}
	if s.recursive {
		s.fun = p.fun
		p.pop()
	}
	return s
}

// function parses a macro or the block of a call, of which it also returns
// the call.
func (p *parser) function(name, end string) (*macroDef, *call) {
	d := &macroDef{name: name}
	outer, outerScope, loops := p.fun, p.scope, p.loops
	s := p.pushFunction()
	if end == "endmacro" || p.isOp("(") {
		p.signature(d, s)
	}
	var c *call
	if end == "endcall" {
		// The call itself stands between the parameters and the body, and
		// belongs to the outer scope.
		inner := p.fun
		p.fun, p.scope = outer, outerScope
		var ok bool
		if c, ok = p.expression().node.(*call); !ok {
			panic(p.errorf("expected a call after 'call'"))
		}
		p.fun, p.scope = inner, s
	}
	s.withSpecial("caller", "varargs", "kwargs")
	p.loops = 0
	d.body.stmts, _ = p.body(end)
	p.loops = loops
	d.body.inits, d.fun = s.inits, p.fun
	p.later(func() {
		d.caller, d.varargs, d.kwargs = s.special["caller"], s.special["varargs"], s.special["kwargs"]
	})
	p.pop()
	return d, c
}

// signature parses a parameter list.
func (p *parser) signature(d *macroDef, s *scope) {
	p.expectOp("(")
	p.list(")", func() expr {
		name := p.expect(tokName, "a parameter name")
		if _, twice := s.names[name]; twice {
			panic(p.errorf("parameter '%s' appears twice", name))
		}
		d.params = append(d.params, name)
		s.declare(name)
		if p.acceptOp("=") {
			d.defaults = append(d.defaults, p.expression().node)
		} else if len(d.defaults) > 0 {
			panic(p.errorf("parameter '%s' without a default after one with", name))
		}
		return expr{}
	})
}

func (p *parser) with(line int) stmt {
	s := &withStmt{line: line}
	for p.cur().kind != tokBlockEnd {
		s.to = append(s.to, p.target(false, ""))
		p.expectOp("=")
		s.vals = append(s.vals, p.expression().node)
		if p.cur().kind != tokBlockEnd {
			p.expectOp(",")
		}
	}
	sc := p.push()
	for i := range s.to {
		p.bind(&s.to[i], func(name string) int {
			p.noLoop(sc, name)
			return sc.declare(name)
		})
	}
	stmts, _ := p.body("endwith")
	s.body = block{sc.inits, stmts}
	p.pop()
	return s
}
