package jinja

// forStmt is a loop. A recursive one is a function.
type forStmt struct {
	line      int
	to        target
	seq       node
	cond      node // of items to loop over; nil for all
	condTo    target
	loopSlot  int // of the variable loop; -1 if it is not read
	body      block
	otherwise block
	recursive bool
	fun       *function
}

// loop is the variable "loop" of a for statement.
type loop struct {
	stmt    *forStmt
	frame   *frame // around the function of a recursive loop
	items   []value
	idx     int
	depth   int     // 0 for a loop that is not inside its own recursion
	changed []value // what loop.changed saw last
}

func (s *forStmt) exec(st *state) control {
	st.at(s.line)
	seq := s.seq.eval(st)
	if !s.recursive {
		return s.run(st, seq, 0, nil)
	}
	st.printValue(s.recurse(st, seq, 0, st.frame))
	return next
}

// recurse returns what the loop prints for the items of seq.
func (s *forStmt) recurse(st *state, seq value, depth int, up *frame) (out value) {
	st.enter("recursive loop", s.fun.slots, up, func() {
		out = st.capture(func() { s.run(st, seq, depth, up) })
	})
	return out
}

func (s *forStmt) run(st *state, seq value, depth int, up *frame) control {
	items := st.items(seq)
	if s.cond != nil {
		items = s.filter(st, items)
	}
	l := &loop{stmt: s, frame: up, items: items, depth: depth}
	ran := false // to its end, once: as in jinja2, else is about that
	for i, v := range items {
		st.alloc(64)
		l.idx = i
		if s.loopSlot >= 0 {
			st.frame.slots[s.loopSlot] = l
		}
		st.assign(&s.to, v)
		switch s.body.exec(st) {
		case next:
			ran = true
			continue
		case continues:
			continue
		}
		break
	}
	if ran {
		return next
	}
	return s.otherwise.exec(st)
}

func (s *forStmt) filter(st *state, items []value) []value {
	var kept []value
	for _, v := range items {
		st.alloc(64)
		st.assign(&s.condTo, v)
		if truthy(s.cond.eval(st)) {
			kept = append(kept, v)
		}
	}
	return kept
}

func (l *loop) attr(name string) (value, bool) {
	n := len(l.items)
	item := func(i int) value {
		if i < 0 || i >= n {
			return undefined{}
		}
		return l.items[i]
	}
	switch name {
	case "index":
		return l.idx + 1, true
	case "index0":
		return l.idx, true
	case "revindex":
		return n - l.idx, true
	case "revindex0":
		return n - l.idx - 1, true
	case "first":
		return l.idx == 0, true
	case "last":
		return l.idx == n-1, true
	case "length":
		return n, true
	case "previtem":
		return item(l.idx - 1), true
	case "nextitem":
		return item(l.idx + 1), true
	case "depth":
		return l.depth + 1, true
	case "depth0":
		return l.depth, true
	}
	return undefined{}, false
}

var loopMethods = table("loop.%()", map[string]fn{
	"cycle": {params: "*", call: func(_ *state, v value, a *args) value {
		if len(a.vals) == 0 {
			panic(a.errorf("expected at least one argument"))
		}
		return a.vals[v.(*loop).idx%len(a.vals)]
	}},
	"changed": {params: "*", call: func(st *state, v value, a *args) value {
		l := v.(*loop)
		if l.changed != nil && st.equalSeq(l.changed, a.vals, 0) {
			return false
		}
		l.changed = append([]value{}, a.vals...)
		return true
	}},
})

// call renders the body of a recursive loop over other items.
func (l *loop) call(st *state, pos []value, kw []kwarg) value {
	if !l.stmt.recursive {
		panic(st.errorf("the loop is not recursive: 'recursive' is missing"))
	}
	if len(pos) != 1 || len(kw) > 0 {
		panic(st.errorf("loop() takes 1 argument, got %d", len(pos)+len(kw)))
	}
	return l.stmt.recurse(st, pos[0], l.depth+1, l.frame)
}
