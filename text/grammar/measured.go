package grammar

// A measured rule is a rule whose texts have a bounded number of characters. An
// automaton that counts them would have a state for each state of the rule and
// each count; instead the count is kept on the stack: the rule is called with a
// virtual state to return to, which is the count, and reading a character replaces
// it by the next one. A state knows the least number of characters to the end,
// so that nothing is entered that could not be finished within the bound.

// Measured returns a new rule of the texts of body that have at most most
// characters. Body is made by Spell and used for nothing else.
func (b *Builder) Measured(name string, body *Rule, most int) *Rule {
	r := b.Loop(name, body, 1, most+1)
	r.measured, body.counted = true, true
	return r
}

// reads returns the number of characters that begin with what is read in a state.
func (p *program) reads(st *pstate) int32 {
	if st.begins {
		return 1
	}
	return 0
}

// setLeast computes, for the states of rules that measured ones call, the least
// number of characters to the end, and for each measured rule the largest of them.
func (p *program) setLeast() {
	for i := range p.loops {
		l := &p.loops[i]
		if !l.measured {
			continue
		}
		if p.least == nil {
			p.least = make([]int32, len(p.states))
		}
		r := &p.rules[l.bodyRule]
		if !r.known {
			p.leastOf(r.lo, r.hi)
			r.known = true
		}
		for q := r.lo; q < r.hi; q++ {
			if p.least[q] < never {
				l.widest = max(l.widest, p.least[q])
			}
		}
	}
}

// leastOf fills in least for the states of a rule, which has no calls.
func (p *program) leastOf(lo, hi uint32) {
	type edge struct {
		from uint32
		n    int32
	}
	back := make([][]edge, hi-lo)
	var level []uint32
	for q := lo; q < hi; q++ {
		st := &p.states[q]
		n := p.reads(st)
		for _, e := range p.bytes[st.bytes0:st.bytes1] {
			back[e.to-lo] = append(back[e.to-lo], edge{q, n})
		}
		for _, to := range p.eps[st.eps0:st.eps1] {
			back[to-lo] = append(back[to-lo], edge{q, 0})
		}
		p.least[q] = never
		if st.final {
			p.least[q] = 0
			level = append(level, q)
		}
	}
	// Level by level; within one, edges that count nothing are followed at once.
	for n := int32(0); len(level) > 0; n++ {
		var next []uint32
		for i := 0; i < len(level); i++ {
			for _, e := range back[level[i]-lo] {
				if p.least[e.from] > n+e.n {
					p.least[e.from] = n + e.n
					if e.n == 0 {
						level = append(level, e.from)
					} else {
						next = append(next, e.from)
					}
				}
			}
		}
		level = next
	}
}

// counted returns the node below state to of a rule that measured ones call,
// after n more characters: without the counts from which the end cannot be
// reached. It returns nil if none is left.
func (m *machine) counted(below *node, to uint32, n int32) *node {
	items := make([]item, 0, len(below.items))
	same := true
	for _, it := range below.items {
		if it.below != nil { // not the end of a local walk
			l, done := m.p.loopAt(it.q)
			if done-1+n+m.p.least[to] > l.max-1 {
				same = false
				continue
			}
			it.q += uint32(n)
			same = same && n == 0
		}
		items = append(items, it)
	}
	switch {
	case len(items) == 0:
		return nil
	case same:
		return below
	}
	m.spend(len(items))
	return m.node(items, true)
}

// nearBound reports whether a token could use up a count that is below a state.
func (m *machine) nearBound(it item) bool {
	if !m.p.states[it.q].counted {
		return false
	}
	for _, x := range it.below.items {
		if x.below != nil && m.clampState(x.q) == x.q {
			if l, done := m.p.loopAt(x.q); l.max-done <= l.widest+int32(m.v.longest) {
				return true
			}
		}
	}
	return false
}

// read queues a state of the same rule as st, with n more characters read.
func (m *machine) read(st *pstate, to uint32, below *node, n int32) {
	if st.counted {
		if below = m.counted(below, to, n); below == nil {
			return
		}
	}
	m.visit(to, below)
}

// enterMeasured begins a text of a measured rule.
func (m *machine) enterMeasured(it item, l *ploop) {
	if m.fits(it.below.depth + 1 + m.p.heightOf(l.body)) {
		m.queue = append(m.queue, item{l.body, m.push(l.base+1, it.below)})
	}
}
