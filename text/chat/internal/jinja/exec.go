package jinja

// stmt is a statement of the tree.
type stmt interface {
	exec(st *state) control
}

// control says how a statement ended.
type control uint8

const (
	next      control = iota // the usual way
	breaks                   // the innermost loop ends
	continues                // the innermost loop goes to its next pass
)

type (
	textStmt string
	output   struct {
		line int
		expr node
	}
	// setStmt assigns a value, or the filtered text of a body.
	setStmt struct {
		line   int
		to     target
		val    node // for a body, of its text in slot
		slot   int
		body   *block
		prints bool // the value, instead of assigning it: a filter block
	}
	ifStmt struct {
		branches  []branch
		otherwise block
	}
	branch struct {
		line int
		cond node
		body block
	}
	withStmt struct {
		line int
		to   []target
		vals []node
		body block
	}
	macroStmt struct {
		slot int
		def  *macroDef
	}
	callStmt struct {
		line int
		call *call
		def  *macroDef
	}
	jump control
)

// block is the body of a statement, with a scope of its own or not.
type block struct {
	inits []initial
	stmts []stmt
}

func (b *block) exec(st *state) control {
	st.step(len(b.inits))
	for _, in := range b.inits {
		st.frame.slots[in.slot] = in.from.eval(st)
	}
	for _, s := range b.stmts {
		if c := s.exec(st); c != next {
			return c
		}
	}
	return next
}

// target is what an assignment assigns to: a variable of the current frame,
// an attribute of a namespace, or several targets.
type target struct {
	name, attr string
	items      []target
	slot       int
	ns         *variable // with an attribute
}

func (st *state) assign(t *target, v value) {
	switch {
	case t.ns != nil:
		ns, ok := t.ns.eval(st).(*namespace)
		if !ok {
			panic(st.errorf("cannot assign attribute '%s': '%s' is not a namespace", t.attr, t.name))
		}
		st.alloc(itemBytes)
		ns.set(t.attr, t.attr, v)
	case t.items == nil:
		st.frame.slots[t.slot] = v
	default:
		for i, x := range st.unpack(v, len(t.items)) {
			st.assign(&t.items[i], x)
		}
	}
}

func (st *state) at(line int) {
	st.line = line
	st.step(1)
}

func (s textStmt) exec(st *state) control {
	st.step(1)
	st.print(string(s), nil)
	return next
}

func (s *output) exec(st *state) control {
	st.at(s.line)
	st.printValue(s.expr.eval(st))
	return next
}

func (s *setStmt) exec(st *state) control {
	if s.body != nil {
		c := next
		text := st.capture(func() { c = s.body.exec(st) })
		if c != next {
			return c
		}
		st.frame.slots[s.slot] = text
	}
	st.at(s.line)
	v := s.val.eval(st)
	if s.prints {
		st.printValue(v)
	} else {
		st.assign(&s.to, v)
	}
	return next
}

func (s *ifStmt) exec(st *state) control {
	for i := range s.branches {
		b := &s.branches[i]
		st.at(b.line)
		if truthy(b.cond.eval(st)) {
			return b.body.exec(st)
		}
	}
	return s.otherwise.exec(st)
}

func (s *withStmt) exec(st *state) control {
	st.at(s.line)
	for i := range s.to {
		st.assign(&s.to[i], s.vals[i].eval(st))
	}
	return s.body.exec(st)
}

func (s *macroStmt) exec(st *state) control {
	st.alloc(itemBytes)
	st.frame.slots[s.slot] = &macro{s.def, st.frame}
	return next
}

func (s *callStmt) exec(st *state) control {
	st.at(s.line)
	st.alloc(itemBytes)
	st.printValue(s.call.invoke(st, &macro{s.def, st.frame}))
	return next
}

func (s jump) exec(st *state) control {
	st.step(1)
	return control(s)
}
