package hfjinja

import (
	"math/big"
	"strconv"
	"strings"
)

// maxExprDepth bounds the nesting of an expression, and with it the stack
// that parsing and evaluating it take.
const maxExprDepth = 250

// expr is a translated expression.
type expr struct {
	code  string // in the language of the library, guarded
	depth int    // nesting of code
	desc  string // how the source spells it, when it is a plain path: for messages
	call  *callParts
}

// callParts are the parts of an expression whose outermost node is a call.
type callParts struct {
	fn   expr
	args callArgs
}

// callArgs are translated call arguments; dynPos and dynKw are *args and
// **kwargs, "" when absent.
type callArgs struct {
	pos, kw       []string
	dynPos, dynKw string
	depth         int
}

// list returns the arguments as two or four arguments of a guard.
func (a callArgs) list() []string {
	out := []string{"[" + strings.Join(a.pos, ", ") + "]", "[" + strings.Join(a.kw, ", ") + "]"}
	if a.dynPos != "" || a.dynKw != "" {
		out = append(out, orNone(a.dynPos), orNone(a.dynKw))
	}
	return out
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}

// guard returns a call of the guard function name (see guards).
func (c *compiler) guard(name string, args ...string) string {
	c.used[name] = true
	return name + "(" + strings.Join(args, ", ") + ")"
}

// node wraps code made from parts and checks the nesting.
func (c *compiler) node(code string, parts ...expr) expr {
	d := 0
	for _, p := range parts {
		d = max(d, p.depth)
	}
	if d >= maxExprDepth {
		c.fail("expression nested deeper than %d", maxExprDepth)
	}
	return expr{code: code, depth: d + 1}
}

// quote spells a string literal of the library's language.
func quote(s string) string {
	s = strings.ReplaceAll(s, `\`, `\\`)
	return `"` + strings.ReplaceAll(s, `"`, `\"`) + `"`
}

func (c *compiler) expression() expr {
	if c.nest++; c.nest > maxExprDepth {
		c.fail("expression nested deeper than %d", maxExprDepth)
	}
	defer func() { c.nest-- }()
	return c.condExpr()
}

func (c *compiler) condExpr() expr {
	e := c.orExpr()
	for c.err == nil && c.acceptName("if") {
		cond := c.orExpr()
		if c.acceptName("else") {
			alt := c.expression()
			e = c.node("("+e.code+" if "+cond.code+" else "+alt.code+")", e, cond, alt)
		} else {
			e = c.node("("+e.code+" if "+cond.code+")", e, cond)
		}
	}
	return e
}

func (c *compiler) orExpr() expr {
	e := c.andExpr()
	for c.err == nil && c.acceptName("or") {
		r := c.andExpr()
		e = c.node("("+e.code+" or "+r.code+")", e, r)
	}
	return e
}

func (c *compiler) andExpr() expr {
	e := c.notExpr()
	for c.err == nil && c.acceptName("and") {
		r := c.notExpr()
		e = c.node("("+e.code+" and "+r.code+")", e, r)
	}
	return e
}

func (c *compiler) notExpr() expr {
	n := 0
	for c.acceptName("not") {
		n++
	}
	e := c.compare()
	for range min(n, 2-n%2) { // not not not x == not x
		e = c.node("(not "+e.code+")", e)
	}
	return e
}

func (c *compiler) compare() expr {
	e := c.math1()
	parts, codes := []expr{e}, []string{e.code}
	for c.err == nil {
		op := ""
		t := c.cur()
		switch {
		case t.kind == tokOp && strings.Contains(" == != < <= > >= ", " "+t.text+" "):
			op = t.text
		case c.isName("in"):
			op = "in"
		case c.isName("not") && c.peek(1).kind == tokName && c.peek(1).text == "in":
			op = "not in"
			c.pos++
		}
		if op == "" {
			break
		}
		c.pos++
		r := c.math1()
		parts, codes = append(parts, r), append(codes, quote(op), r.code)
	}
	if len(parts) == 1 {
		return e
	}
	return c.node(c.guard("Compare", codes...), parts...)
}

// chain translates left-associative operators of one precedence level.
func (c *compiler) chain(ops map[string]string, operand func() expr) expr {
	e := operand()
	for c.err == nil && c.cur().kind == tokOp {
		name, ok := ops[c.cur().text]
		if !ok {
			break
		}
		c.pos++
		r := operand()
		e = c.node(c.guard(name, e.code, r.code), e, r)
	}
	return e
}

var (
	addOps = map[string]string{"+": "Add", "-": "Sub"}
	mulOps = map[string]string{"*": "Mul", "/": "Div", "//": "FloorDiv", "%": "Mod"}
	powOps = map[string]string{"**": "Pow"}
)

func (c *compiler) math1() expr { return c.chain(addOps, c.concat) }
func (c *compiler) math2() expr { return c.chain(mulOps, c.pow) }
func (c *compiler) pow() expr   { return c.chain(powOps, func() expr { return c.unary(true) }) }

func (c *compiler) concat() expr {
	parts := []expr{c.math2()}
	for c.err == nil && c.acceptOp("~") {
		parts = append(parts, c.math2())
	}
	if len(parts) == 1 {
		return parts[0]
	}
	codes := make([]string, len(parts))
	for i, p := range parts {
		codes[i] = p.code
	}
	return c.node(c.guard("Concat", codes...), parts...)
}

func (c *compiler) unary(withFilter bool) expr {
	if c.nest++; c.nest > maxExprDepth {
		c.fail("expression nested deeper than %d", maxExprDepth)
	}
	defer func() { c.nest-- }()
	var e expr
	switch {
	case c.err != nil:
		return e
	case c.acceptOp("-"):
		e = c.unary(false)
		e = c.node(c.guard("Neg", e.code), e)
	case c.acceptOp("+"):
		e = c.unary(false)
		e = c.node(c.guard("Pos", e.code), e)
	default:
		e = c.primary()
	}
	e = c.postfix(e)
	if withFilter {
		e = c.filterExpr(e)
	}
	return e
}

func (c *compiler) primary() expr {
	t := c.cur()
	switch t.kind {
	case tokName:
		c.pos++
		switch t.text {
		case "true", "True":
			return expr{code: "true"}
		case "false", "False":
			return expr{code: "false"}
		case "none", "None":
			return expr{code: "none"}
		}
		return expr{code: c.scope.resolve(c, t.text), desc: t.text}
	case tokString:
		var b strings.Builder
		for c.cur().kind == tokString {
			b.WriteString(c.cur().text)
			c.pos++
		}
		return expr{code: quote(b.String())}
	case tokInt:
		c.pos++
		return c.integer(t.text)
	case tokFloat:
		c.pos++
		f, err := strconv.ParseFloat(t.text, 64)
		if err != nil {
			return c.node(c.guard("Float", quote(t.text)))
		}
		s := strconv.FormatFloat(f, 'f', -1, 64)
		if !strings.Contains(s, ".") {
			s += ".0"
		}
		return expr{code: s}
	case tokOp:
		switch t.text {
		case "(":
			c.pos++
			e := c.tuple(true, true, "")
			c.expectOp(")")
			return expr{code: e.code, depth: e.depth, desc: e.desc}
		case "[":
			return c.listLiteral()
		case "{":
			return c.dictLiteral()
		}
	}
	c.fail("unexpected %s", describe(t))
	return expr{}
}

func (c *compiler) integer(text string) expr {
	if n, err := strconv.ParseInt(text, 0, 64); err == nil && !isLegacyOctal(text) {
		return expr{code: strconv.FormatInt(n, 10)}
	}
	n, ok := new(big.Int).SetString(text, 0)
	if isLegacyOctal(text) { // 000 is the only spelling with leading zeros
		return expr{code: "0"}
	}
	if !ok || len(text) > 1000 {
		c.fail("integer literal of %d digits", len(text))
		return expr{}
	}
	return c.node(c.guard("BigInt", quote(n.String())))
}

func isLegacyOctal(s string) bool { return len(s) > 1 && strings.Trim(s, "0") == "" }

// tuple translates expressions separated by commas: one is itself, more (or a
// trailing comma) are a tuple. end names the keyword that may follow.
func (c *compiler) tuple(explicit, cond bool, end string) expr {
	var items []expr
	isTuple := false
	for c.err == nil {
		if c.tupleEnd(end) {
			break
		}
		if cond {
			items = append(items, c.expression())
		} else {
			items = append(items, c.orExpr())
		}
		if !c.acceptOp(",") {
			break
		}
		isTuple = true
	}
	if c.err != nil {
		return expr{}
	}
	if !isTuple {
		if len(items) == 1 {
			return items[0]
		}
		if !explicit {
			c.fail("expected an expression, got %s", describe(c.cur()))
			return expr{}
		}
	}
	codes := make([]string, len(items))
	for i, e := range items {
		codes[i] = e.code
	}
	return c.node(c.guard("Tuple", codes...), items...)
}

func (c *compiler) tupleEnd(end string) bool {
	t := c.cur()
	return t.kind == tokVarEnd || t.kind == tokBlockEnd || t.kind == tokOp && t.text == ")" ||
		end != "" && t.kind == tokName && t.text == end
}

func (c *compiler) listLiteral() expr {
	c.expectOp("[")
	var items []expr
	var codes []string
	for c.err == nil && !c.isOp("]") {
		e := c.expression()
		items, codes = append(items, e), append(codes, e.code)
		if !c.isOp("]") {
			c.expectOp(",")
		}
	}
	c.expectOp("]")
	return c.node("["+strings.Join(codes, ", ")+"]", items...)
}

func (c *compiler) dictLiteral() expr {
	c.expectOp("{")
	var parts []expr
	var codes []string
	for c.err == nil && !c.isOp("}") {
		k := c.expression()
		c.expectOp(":")
		v := c.expression()
		parts, codes = append(parts, k, v), append(codes, k.code, v.code)
		if !c.isOp("}") {
			c.expectOp(",")
		}
	}
	c.expectOp("}")
	return c.node(c.guard("Dict", codes...), parts...)
}
