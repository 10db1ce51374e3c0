package jinja

import "fmt"

// Limits of a template's structure, and with them of the stack that parsing
// and running it take.
const (
	maxStmtDepth = 100 // nesting of blocks
	maxExprDepth = 250 // nesting of expressions
)

// parser makes a tree of the tokens, with every variable resolved to a place
// in a frame.
type parser struct {
	toks    []token
	pos     int
	fun     *function
	scope   *scope
	nest    int // expressions being parsed inside each other
	depth   int // blocks being parsed inside each other
	loops   int // loops of the current function around the current point
	soft    int // conditions around the current point
	atEnd   []func()
	unknown *Error // a filter or test that does not exist, outside of conditions
}

func (p *parser) errorf(format string, args ...any) *Error {
	return errorAt(p.cur().line, format, args...)
}

func (p *parser) cur() token { return p.peek(0) }

func (p *parser) peek(n int) token { return p.toks[min(p.pos+n, len(p.toks)-1)] }

func (p *parser) isOp(s string) bool   { t := p.cur(); return t.kind == tokOp && t.text == s }
func (p *parser) isName(s string) bool { t := p.cur(); return t.kind == tokName && t.text == s }

func (p *parser) acceptOp(s string) bool {
	ok := p.isOp(s)
	if ok {
		p.pos++
	}
	return ok
}

func (p *parser) acceptName(s string) bool {
	ok := p.isName(s)
	if ok {
		p.pos++
	}
	return ok
}

func (p *parser) expectOp(s string) {
	if !p.acceptOp(s) {
		panic(p.errorf("expected '%s', got %s", s, describe(p.cur())))
	}
}

// expect takes a token of the given kind and returns its text.
func (p *parser) expect(k tokKind, what string) string {
	t := p.cur()
	if t.kind != k {
		panic(p.errorf("expected %s, got %s", what, describe(t)))
	}
	p.pos++
	return t.text
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

// function is what has a frame when it runs: the template itself, a macro, or
// a recursive loop.
type function struct {
	level int // functions around it
	slots int // variables in a frame
}

func (f *function) slot() int {
	f.slots++
	return f.slots - 1
}

// scope is a region of the template in which {% set %} makes new variables.
// Every variable of every scope has a slot of its own in its function's frame.
type scope struct {
	parent  *scope
	fun     *function
	soft    int             // conditions around it
	names   map[string]int  // slots of variables
	special map[string]int  // slots of variables that exist if they are used; -1 until then
	seen    map[string]bool // variables read or set in it, not in a scope within
	local   map[string]bool // those that were set first
	inits   []initial
}

// initial is the value that a variable has when its scope is entered: that of
// the variable of the same name outside.
type initial struct {
	slot int
	from node
}

func (s *scope) declare(name string) int {
	slot := s.fun.slot()
	s.names[name], s.seen[name] = slot, true
	return slot
}

// lookup finds a variable; what no scope knows comes from outside.
func (s *scope) lookup(name string) (*function, int) {
	for ; ; s = s.parent {
		if slot, ok := s.names[name]; ok {
			return s.fun, slot
		}
		if slot, ok := s.special[name]; ok {
			if slot < 0 {
				slot = s.fun.slot()
				s.special[name] = slot
			}
			return s.fun, slot
		}
		if s.parent == nil {
			s.names[name] = s.fun.slot() // and it stays unseen: no statement of s has it
			return s.fun, s.names[name]
		}
	}
}

// variable returns the expression that reads a variable.
func (p *parser) variable(name string) *variable {
	p.scope.seen[name] = true
	if name != "loop" {
		// As in jinja2, all macros around have what one in them uses.
		for s := p.scope; s != nil; s = s.parent {
			if slot, ok := s.special[name]; ok && slot < 0 {
				s.special[name] = s.fun.slot()
			}
		}
	}
	v, s, level := &variable{name: name}, p.scope, p.fun.level
	p.later(func() { v.find(s, level) })
	return v
}

// find settles where a variable is that scope s reads, for a function at the
// given level. That the scope sets it may only be seen further on.
func (v *variable) find(s *scope, level int) {
	fun, slot := s.lookup(v.name)
	v.up, v.slot = level-fun.level, slot
}

// later says what to do when the scopes are complete.
func (p *parser) later(do func()) { p.atEnd = append(p.atEnd, do) }

func (p *parser) resolve() {
	for _, do := range p.atEnd {
		do()
	}
}

// assign returns the slot, in the current scope, of a variable that is set.
// As in jinja2, one that a scope sets before it reads it, other than in
// conditions, starts as undefined if no scope around it has it: it is not
// what was passed in then.
func (p *parser) assign(name string) int {
	p.noLoop(p.scope, name)
	s := p.scope
	s.local[name] = s.local[name] || !s.seen[name] && p.soft == s.soft
	s.seen[name] = true
	if slot, ok := s.names[name]; ok {
		return slot
	}
	slot := s.declare(name)
	if s.parent != nil {
		i := len(s.inits)
		s.inits = append(s.inits, initial{slot, constant{undefined{}}})
		p.later(func() {
			if !s.local[name] || s.parent.has(name) {
				v := &variable{name: name}
				v.find(s.parent, s.fun.level)
				s.inits[i].from = v
			}
		})
	}
	return slot
}

// has reports whether the variable appears in s or around it.
func (s *scope) has(name string) bool {
	for ; s != nil; s = s.parent {
		_, special := s.special[name]
		if s.seen[name] || special {
			return true
		}
	}
	return false
}

// noLoop refuses to set the variable loop within a loop.
func (p *parser) noLoop(s *scope, name string) {
	for ; s != nil && name == "loop"; s = s.parent {
		if _, ok := s.special["loop"]; ok {
			panic(p.errorf("cannot assign to the special variable 'loop' within a loop"))
		}
	}
}

func (p *parser) push() *scope {
	p.scope = &scope{
		parent: p.scope, fun: p.fun, soft: p.soft,
		names: map[string]int{}, seen: map[string]bool{}, local: map[string]bool{},
	}
	return p.scope
}

// pushFunction opens the scope of a new function.
func (p *parser) pushFunction() *scope {
	p.fun = &function{level: p.fun.level + 1}
	return p.push()
}

// pop closes the scope, and the function if it is a function's outermost.
func (p *parser) pop() {
	p.scope = p.scope.parent
	p.fun = p.scope.fun
}

// withSpecial says which variables the scope has if they are used.
func (s *scope) withSpecial(names ...string) {
	s.special = map[string]int{}
	for _, n := range names {
		s.special[n] = -1
	}
}
