package hfjinja

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/ardanlabs/jinja"
)

// Limits of a template's source.
const (
	maxSource    = 1 << 20 // bytes
	maxStmtDepth = 100     // nesting of blocks
)

// Program is a compiled template. It is immutable and may be rendered by
// several goroutines at once.
type Program struct {
	tmpl *jinja.Template
	free map[string]string // variable of the template → name in the translation
	used map[string]bool   // guards the translation calls
}

// Compile translates and compiles a template. Errors are of type *Error.
func Compile(source string) (*Program, error) {
	if len(source) > maxSource {
		return nil, syntaxErr(1, "template of %d bytes, the limit is %d", len(source), maxSource)
	}
	toks, err := lex(source)
	if err != nil {
		return nil, err
	}
	c := &compiler{toks: toks, used: map[string]bool{}, free: map[string]string{}}
	c.scope = &scope{names: c.free}
	code := c.statements()
	if c.err == nil && c.cur().kind != tokEOF {
		c.fail("unexpected tag '%s'", c.peek(1).text)
	}
	if c.err != nil {
		return nil, c.err
	}
	tmpl, err := jinja.Compile(code)
	if err != nil {
		return nil, syntaxErr(1, "internal: translation not accepted: %v", err)
	}
	return &Program{tmpl: tmpl, free: c.free, used: c.used}, nil
}

// Uses reports whether the template refers to the variable name.
func (p *Program) Uses(name string) bool {
	_, ok := p.free[name]
	return ok
}

// compiler translates tokens in one pass.
type compiler struct {
	toks  []token
	pos   int
	err   error
	scope *scope
	free  map[string]string
	used  map[string]bool
	syms  int // names given out
	nest  int // expressions being parsed inside each other
	depth int // blocks being parsed inside each other
	soft  int // conditions around the current point
	loops int // loops of the current macro around the current point
	text  int // bytes of text and code of the body being translated
}

func (c *compiler) fail(format string, args ...any) {
	if c.err == nil {
		c.err = syntaxErr(c.cur().line, format, args...)
	}
}

func (c *compiler) cur() token { return c.peek(0) }

func (c *compiler) peek(n int) token {
	return c.toks[min(c.pos+n, len(c.toks)-1)]
}

func (c *compiler) isOp(s string) bool   { t := c.cur(); return t.kind == tokOp && t.text == s }
func (c *compiler) isName(s string) bool { t := c.cur(); return t.kind == tokName && t.text == s }

func (c *compiler) acceptOp(s string) bool {
	if c.err == nil && c.isOp(s) {
		c.pos++
		return true
	}
	return false
}

func (c *compiler) acceptName(s string) bool {
	if c.err == nil && c.isName(s) {
		c.pos++
		return true
	}
	return false
}

func (c *compiler) expectOp(s string) {
	if c.err == nil && !c.acceptOp(s) {
		c.fail("expected '%s', got %s", s, describe(c.cur()))
	}
}

func (c *compiler) expectName(what string) string {
	t := c.cur()
	if t.kind != tokName {
		c.fail("expected %s, got %s", what, describe(t))
		return ""
	}
	c.pos++
	return t.text
}

func (c *compiler) expectKind(k tokKind, what string) {
	if c.err != nil {
		return
	}
	if c.cur().kind != k {
		c.fail("expected %s, got %s", what, describe(c.cur()))
		return
	}
	c.pos++
}

func describe(t token) string {
	switch t.kind {
	case tokEOF:
		return "end of template"
	case tokBlockEnd:
		return "end of statement"
	case tokVarEnd:
		return "end of print statement"
	case tokString:
		return "a string"
	}
	return fmt.Sprintf("'%s'", t.text)
}

// sym returns a fresh name of the translation.
func (c *compiler) sym() string {
	c.syms++
	return "v" + strconv.Itoa(c.syms)
}

// at spells a guard that notes the current line and counts a step. It is
// false, so that "at or x" is x.
func (c *compiler) at(line int) string { return c.guard("At", strconv.Itoa(line)) }

// scope is a region of the template in which {% set %} makes new variables.
// The library's own scopes differ from jinja2's (a set leaks from one pass of
// a loop into the next, and out of set and filter blocks), so every variable
// of every scope gets a name of its own.
type scope struct {
	parent *scope
	names  map[string]string // variable → name in the translation
	inits  []string          // statements to run when the scope is entered
	loop   bool              // a loop body: has the variable loop
	macro  map[string]string // a macro: hidden parameters it turned out to use
}

// resolve returns the name of the translation for a variable that is read.
func (s *scope) resolve(c *compiler, name string) string {
	for ; s != nil; s = s.parent {
		if v, ok := s.names[name]; ok {
			return v
		}
		if s.loop && name == "loop" {
			v := c.sym()
			s.names[name] = v
			s.inits = append(s.inits, "{% set "+v+" = "+c.guard("Current")+" %}")
			return v
		}
		if s.macro != nil && (name == "caller" || name == "varargs" || name == "kwargs") {
			v := c.sym()
			s.names[name], s.macro[name] = v, v
			return v
		}
		if s.parent == nil {
			v := c.sym()
			s.names[name] = v
			return v
		}
	}
	return ""
}

// assign returns the name of the translation for a variable that is set in s.
// It starts out with what the enclosing scope knows under that name.
func (s *scope) assign(c *compiler, name string) string {
	if v, ok := s.names[name]; ok {
		return v
	}
	if s.parent == nil {
		return s.resolve(c, name)
	}
	outer := s.parent.resolve(c, name)
	v := c.sym()
	s.names[name] = v
	s.inits = append(s.inits, "{% set "+v+" = "+outer+" %}")
	return v
}

// declare gives the variable a fresh name in s, with no value.
func (s *scope) declare(c *compiler, name string) string {
	v := c.sym()
	s.names[name] = v
	return v
}

// push opens a scope.
func (c *compiler) push() *scope {
	c.scope = &scope{parent: c.scope, names: map[string]string{}}
	return c.scope
}

// pop closes the scope and returns body with the scope's entry statements
// before it.
func (c *compiler) pop(body string) string {
	s := c.scope
	c.scope = s.parent
	return strings.Join(s.inits, "") + body
}
