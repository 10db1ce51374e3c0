package hfjinja

import "strings"

func (c *compiler) postfix(e expr) expr {
	for c.err == nil && c.cur().kind == tokOp {
		switch c.cur().text {
		case ".":
			e = c.dot(e)
		case "[":
			e = c.subscript(e)
		case "(":
			e = c.callExpr(e)
		default:
			return e
		}
	}
	return e
}

func (c *compiler) dot(e expr) expr {
	c.pos++
	t := c.cur()
	c.pos++
	switch t.kind {
	case tokName:
		out := c.node(c.guard("Attr", e.code, quote(t.text), quote(e.desc)), e)
		if e.desc != "" {
			out.desc = e.desc + "." + t.text
		}
		return out
	case tokInt:
		return c.node(c.guard("Item", e.code, c.integer(t.text).code, quote(e.desc)), e)
	}
	c.fail("expected name or number after '.', got %s", describe(t))
	return expr{}
}

func (c *compiler) subscript(e expr) expr {
	c.expectOp("[")
	var bounds [3]string
	depth := []expr{e}
	slice := false
	for i := 0; i < 3 && c.err == nil; i++ {
		bounds[i] = "none"
		if !c.isOp(":") && !c.isOp("]") {
			b := c.expression()
			bounds[i] = b.code
			depth = append(depth, b)
		} else if i == 0 && c.isOp("]") {
			c.fail("expected an index, got ']'")
		}
		if !c.acceptOp(":") {
			break
		}
		slice = true
	}
	if c.isOp(",") {
		c.fail("subscripts with several indices are not supported")
	}
	c.expectOp("]")
	if !slice {
		out := c.node(c.guard("Item", e.code, bounds[0], quote(e.desc)), depth...)
		if e.desc != "" && strings.HasPrefix(bounds[0], `"`) {
			out.desc = e.desc + "[" + strings.ReplaceAll(bounds[0], `"`, "'") + "]"
		}
		return out
	}
	for i := range bounds {
		bounds[i] = orNone(bounds[i])
	}
	return c.node(c.guard("Slice", e.code, bounds[0], bounds[1], bounds[2], quote(e.desc)), depth...)
}

func (c *compiler) callExpr(fn expr) expr {
	a := c.callArgs()
	out := c.node(c.guard("Call", append([]string{quote(fn.desc), fn.code}, a.list()...)...), fn, expr{depth: a.depth})
	out.call = &callParts{fn, a}
	return out
}

func (c *compiler) callArgs() callArgs {
	var a callArgs
	c.expectOp("(")
	bad := func(wrong bool) {
		if wrong {
			c.fail("invalid order of call arguments")
		}
	}
	for c.err == nil && !c.isOp(")") {
		var e expr
		switch {
		case c.acceptOp("*"):
			bad(a.dynPos != "" || a.dynKw != "")
			e = c.expression()
			a.dynPos = e.code
		case c.acceptOp("**"):
			bad(a.dynKw != "")
			e = c.expression()
			a.dynKw = e.code
		case c.cur().kind == tokName && c.peek(1).kind == tokOp && c.peek(1).text == "=":
			bad(a.dynKw != "")
			name := c.cur().text
			c.pos += 2
			e = c.expression()
			a.kw = append(a.kw, quote(name), e.code)
		default:
			bad(a.dynPos != "" || a.dynKw != "" || len(a.kw) > 0)
			e = c.expression()
			a.pos = append(a.pos, e.code)
		}
		a.depth = max(a.depth, e.depth)
		if !c.isOp(")") {
			c.expectOp(",")
		}
	}
	c.expectOp(")")
	return a
}

// filterExpr translates what may follow an operand: filters, tests, calls.
func (c *compiler) filterExpr(e expr) expr {
	for c.err == nil {
		switch {
		case c.isOp("|"):
			c.pos++
			e = c.filter(e)
		case c.isName("is"):
			e = c.test(e)
		case c.isOp("("):
			e = c.callExpr(e)
		default:
			return e
		}
	}
	return e
}

// filter translates one filter application; the name is the current token.
func (c *compiler) filter(e expr) expr {
	name := c.dottedName("filter")
	var a callArgs
	if c.isOp("(") {
		a = c.callArgs()
	}
	if c.err != nil {
		return expr{}
	}
	if _, ok := filters[name]; !ok {
		return c.unknown("no filter named '" + name + "'")
	}
	return c.node(c.guard("Filter", append([]string{quote(name), e.code}, a.list()...)...), e, expr{depth: a.depth})
}

func (c *compiler) test(e expr) expr {
	c.pos++
	negated := c.acceptName("not")
	name := c.dottedName("test")
	var a callArgs
	t := c.cur()
	switch {
	case c.err != nil:
		return expr{}
	case c.isOp("("):
		a = c.callArgs()
	case c.isName("is"):
		c.fail("tests with is cannot be chained")
	case t.kind == tokString || t.kind == tokInt || t.kind == tokFloat || c.isOp("[") || c.isOp("{") ||
		t.kind == tokName && t.text != "else" && t.text != "or" && t.text != "and":
		arg := c.postfix(c.primary())
		a = callArgs{pos: []string{arg.code}, depth: arg.depth}
	}
	if c.err != nil {
		return expr{}
	}
	if _, ok := tests[name]; !ok {
		return c.unknown("no test named '" + name + "'")
	}
	out := c.node(c.guard("Test", append([]string{quote(name), e.code}, a.list()...)...), e, expr{depth: a.depth})
	if negated {
		out = c.node("(not "+out.code+")", out)
	}
	return out
}

// unknown is an error of the template, unless a condition decides whether it
// is reached: then, as in jinja2, an error of the rendering.
func (c *compiler) unknown(msg string) expr {
	if c.soft == 0 {
		c.fail("%s", msg)
		return expr{}
	}
	return c.node(c.guard("Fail", quote(msg)))
}

func (c *compiler) dottedName(what string) string {
	name := c.expectName(what + " name")
	for c.err == nil && c.acceptOp(".") {
		name += "." + c.expectName(what+" name")
	}
	return name
}
