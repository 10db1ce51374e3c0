package hfjinja

import (
	"slices"
	"strconv"
	"strings"
)

// statements translates up to a tag named in ends, which becomes the current
// token, or to the end of the template.
func (c *compiler) statements(ends ...string) string {
	var b strings.Builder
	for c.err == nil {
		t := c.cur()
		switch t.kind {
		case tokEOF:
			if len(ends) > 0 {
				c.fail("unexpected end of template, expected '%s'", strings.Join(ends, "' or '"))
			}
			return b.String()
		case tokData:
			c.pos++
			c.text += len(t.text)
			b.WriteString("{{ " + quote(t.text) + " }}")
		case tokVarBegin:
			c.pos++
			e := c.tuple(false, true, "")
			c.expectKind(tokVarEnd, "'}}'")
			b.WriteString("{{ " + c.guard("Out", c.at(t.line), e.code) + " }}")
		case tokBlockBegin:
			if n := c.peek(1); n.kind == tokName && slices.Contains(ends, n.text) {
				c.pos++
				return b.String()
			}
			c.pos++
			b.WriteString(c.statement(ends))
			c.expectKind(tokBlockEnd, "'%}'")
		default:
			c.fail("unexpected %s", describe(t))
		}
		c.text += 16
	}
	return b.String()
}

// body translates the inside of a block, from the end of its opening tag to
// one of the tags in ends, and moves past that tag's name, which it returns.
func (c *compiler) body(ends ...string) (code, end string) {
	c.acceptOp(":")
	c.expectKind(tokBlockEnd, "'%}'")
	code = c.statements(ends...)
	if c.err != nil {
		return "", ""
	}
	end = c.cur().text
	c.pos++
	return code, end
}

// statement translates one block; the tag's name is the current token.
func (c *compiler) statement(ends []string) string {
	if c.depth++; c.depth > maxStmtDepth {
		c.fail("blocks nested deeper than %d", maxStmtDepth)
		return ""
	}
	defer func() { c.depth-- }()
	line := c.cur().line
	tag := c.expectName("a tag name")
	switch tag {
	case "set":
		return c.set(line)
	case "if":
		return c.ifBlock(line)
	case "for":
		return c.forBlock(line)
	case "macro":
		return c.macro(line)
	case "call":
		return c.callBlock(line)
	case "filter":
		return c.filterBlock(line)
	case "with":
		return c.with(line)
	case "generation": // marks what the assistant wrote; prints its body
		c.push()
		body, _ := c.body("endgeneration")
		return c.pop(body)
	case "print":
		return c.print(line)
	case "break", "continue":
		if c.loops == 0 {
			c.fail("'%s' outside of a loop", tag)
		}
		return "{% " + tag + " %}"
	case "include", "import", "from", "extends", "block":
		c.fail("'%s' is not supported: a chat template is one file", tag)
	case "autoescape":
		c.fail("'autoescape' is not supported")
	case "":
	default:
		c.unknownTag(tag, ends)
	}
	return ""
}

func (c *compiler) unknownTag(tag string, ends []string) {
	if len(ends) > 0 {
		c.fail("unknown tag '%s', expected '%s'", tag, strings.Join(ends, "' or '"))
	} else {
		c.fail("unknown tag '%s'", tag)
	}
}

func (c *compiler) print(line int) string {
	var b strings.Builder
	for c.err == nil && c.cur().kind != tokBlockEnd {
		e := c.expression()
		b.WriteString("{{ " + c.guard("Out", c.at(line), e.code) + " }}")
		if c.cur().kind != tokBlockEnd {
			c.expectOp(",")
		}
	}
	return b.String()
}

// target is what an assignment assigns to: a name, an attribute of a
// namespace, or several targets.
type target struct {
	name, attr string
	items      []target
}

// target parses an assignment target; attrs says that ns.x is one, end is the
// keyword that may follow.
func (c *compiler) target(attrs bool, end string) target {
	var items []target
	many := false
	for c.err == nil {
		if c.tupleEnd(end) {
			break
		}
		items = append(items, c.oneTarget(attrs))
		if !c.acceptOp(",") {
			break
		}
		many = true
	}
	if c.err == nil && len(items) == 0 {
		c.fail("expected a variable name, got %s", describe(c.cur()))
	}
	if c.err != nil {
		return target{}
	}
	if many {
		return target{items: items}
	}
	return items[0]
}

func (c *compiler) oneTarget(attrs bool) target {
	if c.acceptOp("(") {
		if c.nest++; c.nest > maxExprDepth {
			c.fail("assignment target nested deeper than %d", maxExprDepth)
		}
		t := c.target(attrs, "")
		c.nest--
		c.expectOp(")")
		return t
	}
	name := c.expectName("a variable name")
	switch name {
	case "true", "false", "none", "True", "False", "None":
		c.fail("cannot assign to %s", name)
	}
	if attrs && c.acceptOp(".") {
		return target{name: name, attr: c.expectName("an attribute name")}
	}
	return target{name: name}
}

// store assigns the value code to t. name gives the translation's name of a
// variable.
func (c *compiler) store(t target, value string, name func(string) string) string {
	switch {
	case t.attr != "":
		return "{{ " + c.guard("SetAttr", c.scope.resolve(c, t.name), quote(t.attr), value, quote(t.name)) + " }}"
	case t.items == nil:
		return "{% set " + name(t.name) + " = " + value + " %}"
	}
	tmp := c.sym()
	var b strings.Builder
	b.WriteString("{% set " + tmp + " = " + c.guard("Unpack", value, strconv.Itoa(len(t.items))) + " %}")
	for i, item := range t.items {
		b.WriteString(c.store(item, tmp+"["+strconv.Itoa(i)+"]", name))
	}
	return b.String()
}

func (c *compiler) set(line int) string {
	t := c.target(true, "")
	assign := func(name string) string { return c.scope.assign(c, name) }
	if c.acceptOp("=") {
		e := c.tuple(false, true, "")
		if c.err != nil {
			return ""
		}
		return c.store(t, "("+c.at(line)+" or "+e.code+")", assign)
	}
	tmp := c.sym()
	value := expr{code: tmp}
	for c.err == nil && c.acceptOp("|") {
		value = c.filter(value)
	}
	c.push()
	body, _ := c.body("endset")
	body = c.pop(body)
	if c.err != nil {
		return ""
	}
	return "{% set " + tmp + " %}" + body + "{% endset %}" +
		c.store(t, "("+c.at(line)+" or "+value.code+")", assign)
}

func (c *compiler) ifBlock(line int) string {
	var b strings.Builder
	kw := "if"
	c.soft++
	defer func() { c.soft-- }()
	for c.err == nil {
		e := c.tuple(false, false, "")
		b.WriteString("{% " + kw + " " + c.at(line) + " or (" + e.code + ") %}")
		body, end := c.body("elif", "else", "endif")
		b.WriteString(body)
		switch end {
		case "elif":
			kw, line = "elif", c.cur().line
			continue
		case "else":
			body, _ = c.body("endif")
			b.WriteString("{% else %}" + body)
		}
		break
	}
	b.WriteString("{% endif %}")
	return b.String()
}

// inner translates the body of a loop or macro, which is what a step of the
// rendering may cost: it returns the bytes of text and code in it too.
func (c *compiler) inner(ends ...string) (code, end string, bytes int) {
	outer := c.text
	c.text = 0
	code, end = c.body(ends...)
	bytes, c.text = c.text, outer+c.text
	return code, end, bytes
}

func (c *compiler) forBlock(line int) string {
	t := c.target(false, "in")
	if !c.acceptName("in") {
		c.fail("expected 'in', got %s", describe(c.cur()))
	}
	iter := c.tuple(false, false, "recursive")
	seq := "(" + c.at(line) + " or " + iter.code + ")"
	if c.err != nil {
		return ""
	}
	pre := ""
	if c.acceptName("if") {
		pre, seq = c.forFilter(t, seq)
	}
	recursive := c.acceptName("recursive")

	s := c.push()
	s.loop = true
	item := c.sym()
	bind := c.store(t, item, func(name string) string { return s.declare(c, name) })
	c.loops++
	body, end, bytes := c.inner("endfor", "else")
	c.loops--
	body = bind + c.pop(body)
	alt := ""
	if end == "else" {
		c.push()
		alt, _ = c.body("endfor")
		alt = "{% else %}" + c.pop(alt)
	}
	if c.err != nil {
		return ""
	}
	loop := func(args ...string) string {
		return "{% for " + item + " in " + c.guard("Loop", args...) + " %}{{ " +
			c.guard("Next", strconv.Itoa(bytes)) + " }}" + body + alt + "{% endfor %}{{ " + c.guard("EndLoop") + " }}"
	}
	if !recursive {
		return pre + loop(seq)
	}
	m, arg := c.sym(), c.sym()
	return pre + "{% macro " + m + "(" + arg + ") %}" + loop(arg, m) + "{% endmacro %}{{ " +
		c.guard("Out", c.at(line), m+"("+seq+")") + " }}"
}

// forFilter translates "for t in seq if cond": statements that collect the
// items to loop over, and the name they collect them under.
func (c *compiler) forFilter(t target, seq string) (code, list string) {
	s := c.push()
	item := c.sym()
	bind := c.store(t, item, func(name string) string { return s.declare(c, name) })
	cond := c.expression()
	list = c.sym()
	code = "{% set " + list + " = [] %}{% for " + item + " in " + c.guard("Loop", seq) + " %}{{ " +
		c.guard("Next", strconv.Itoa(len(cond.code))) + " }}" +
		c.pop(bind+"{% if "+cond.code+" %}{{ "+c.guard("Push", list, item)+" }}{% endif %}") +
		"{% endfor %}{{ " + c.guard("EndLoop") + " }}"
	return code, list
}

// signature translates a parameter list; required counts the parameters
// without a default, and the returned statements set the others to theirs if
// they were not passed.
func (c *compiler) signature(s *scope) (params, quoted []string, required int, defaults string) {
	c.expectOp("(")
	var b strings.Builder
	for c.err == nil && !c.isOp(")") {
		name := c.expectName("a parameter name")
		v := s.declare(c, name)
		params, quoted = append(params, v), append(quoted, quote(name))
		if c.acceptOp("=") {
			e := c.expression()
			b.WriteString("{% if " + c.guard("Missing", v) + " %}{% set " + v + " = " + e.code + " %}{% endif %}")
		} else if b.Len() > 0 {
			c.fail("parameter '%s' without a default after one with", name)
		} else {
			required++
		}
		if !c.isOp(")") {
			c.expectOp(",")
		}
	}
	c.expectOp(")")
	return params, quoted, required, b.String()
}

// function translates a macro or the block of a call; it returns the macro's
// statements, the expression of its value, and for a block the call.
func (c *compiler) function(name, endTag string, hasParams bool) (code, value string, call *callParts) {
	s := c.push()
	s.macro = map[string]string{}
	var params, quoted []string
	var required int
	var defaults string
	if hasParams {
		params, quoted, required, defaults = c.signature(s)
	}
	if endTag == "endcall" {
		// The call itself stands between the parameters and the body, and
		// belongs to the outer scope.
		c.scope = s.parent
		e := c.expression()
		if c.err == nil && e.call == nil {
			c.fail("expected a call after 'call'")
		}
		c.scope = s
		if c.err != nil {
			return "", "", nil
		}
		call = e.call
	}
	loops := c.loops
	c.loops = 0
	body, _, bytes := c.inner(endTag)
	c.loops = loops
	var hidden []string
	for _, h := range []string{"caller", "varargs", "kwargs"} {
		v, used := s.macro[h]
		if used {
			params, hidden = append(params, v), append(hidden, h)
		}
	}
	body = defaults + c.pop(body)
	m := c.sym()
	args := append([]string{m, quote(name), strconv.Itoa(bytes), quote(strings.Join(hidden, " ")), strconv.Itoa(required)}, quoted...)
	return "{% macro " + m + "(" + strings.Join(params, ", ") + ") %}" + body + "{% endmacro %}",
		c.guard("Macro", args...), call
}

func (c *compiler) macro(int) string {
	name := c.expectName("a macro name")
	v := ""
	if c.err == nil {
		v = c.scope.assign(c, name)
	}
	code, value, _ := c.function(name, "endmacro", true)
	return code + "{% set " + v + " = " + value + " %}"
}

func (c *compiler) callBlock(line int) string {
	code, value, call := c.function("caller", "endcall", c.isOp("("))
	if c.err != nil {
		return ""
	}
	args := append([]string{quote(call.fn.desc), call.fn.code}, call.args.list()...)
	for len(args) < 6 {
		args = append(args, "none")
	}
	return code + "{{ " + c.guard("Out", c.at(line), c.guard("Call", append(args, value)...)) + " }}"
}

func (c *compiler) filterBlock(line int) string {
	tmp := c.sym()
	value := c.filter(expr{code: tmp})
	for c.err == nil && c.acceptOp("|") {
		value = c.filter(value)
	}
	c.push()
	body, _ := c.body("endfilter")
	body = c.pop(body)
	return "{% set " + tmp + " %}" + body + "{% endset %}{{ " + c.guard("Out", c.at(line), value.code) + " }}"
}

func (c *compiler) with(line int) string {
	var targets []target
	var values []string
	for c.err == nil && c.cur().kind != tokBlockEnd {
		targets = append(targets, c.target(false, ""))
		c.expectOp("=")
		values = append(values, "("+c.at(line)+" or "+c.expression().code+")")
		if c.cur().kind != tokBlockEnd {
			c.expectOp(",")
		}
	}
	if c.err != nil {
		return ""
	}
	s := c.push()
	var b strings.Builder
	for i, t := range targets {
		b.WriteString(c.store(t, values[i], func(name string) string { return s.declare(c, name) }))
	}
	body, _ := c.body("endwith")
	return b.String() + c.pop(body)
}
