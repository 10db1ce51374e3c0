package grammar

import (
	"container/heap"
	"crypto/sha256"
	"encoding/binary"
	"hash"
)

// measure computes, for every state, the least number of bytes to the end of
// its rule and the least height of stack with which the end can be reached.
func (p *program) measure() {
	p.cost = p.solve(func(v int64) int64 { return v + 1 },
		func(callee, rest int64) int64 { return callee + rest },
		func(l *ploop, body int64) int64 { return int64(l.min) * body })
	p.height = p.solve(func(v int64) int64 { return v },
		func(callee, rest int64) int64 { return max(callee+1, rest) },
		func(l *ploop, body int64) int64 { return body + 1 })
}

// costOf and heightOf extend the tables to virtual states.
func (p *program) costOf(q uint32) int32 {
	if q < uint32(len(p.states)) {
		return p.cost[q]
	}
	l, i := p.loopAt(q)
	if i >= l.min {
		return 0
	}
	c := p.costOf(l.body)
	if c == never {
		return never
	}
	return int32(min(int64(l.min-i)*int64(c), never-1))
}

func (p *program) heightOf(q uint32) int32 {
	if q < uint32(len(p.states)) {
		return p.height[q]
	}
	l, i := p.loopAt(q)
	if i >= l.min {
		return 0
	}
	h := p.heightOf(l.body)
	if h == never {
		return never
	}
	return min(h+1, never-1)
}

// solve finds the least solution of the equations
//
//	v(q) = min(0 if q is final; overByte(v(t)) for byte edges to t; v(t) for
//	       empty edges; overCall(v(callee), v(t)) for calls returning to t)
//
// with Knuth's generalization of Dijkstra's algorithm (A generalization of
// Dijkstra's algorithm, 1977): each function is at least as large as its
// arguments, so values become final in ascending order.
func (p *program) solve(overByte func(int64) int64, overCall func(callee, rest int64) int64, overLoop func(*ploop, int64) int64) []int32 {
	n := len(p.states)
	s := &solver{val: make([]int64, n+len(p.loops))}
	for i := range s.val {
		s.val[i] = never
	}
	done := make([]bool, len(s.val))
	back := p.backEdges()
	for i := range p.states {
		if p.states[i].final {
			s.lower(int32(i), 0)
		}
	}
	for i := range p.loops {
		if p.loops[i].min == 0 {
			s.lower(int32(n+i), 0)
		}
	}
	for s.Len() > 0 {
		at := heap.Pop(s).(ranked)
		if done[at.node] {
			continue
		}
		done[at.node] = true
		v := s.val[at.node]
		for _, e := range back[at.node] {
			switch e.kind {
			case backByte:
				s.lower(e.from, overByte(v))
			case backEps:
				s.lower(e.from, v)
			case backLoop:
				l := &p.loops[int(e.from)-n]
				if l.min > 0 {
					s.lower(e.from, overLoop(l, v))
				}
			case backReturn:
				if done[e.other] {
					s.lower(e.from, overCall(s.val[e.other], v))
				}
			case backCallee:
				if done[e.other] {
					s.lower(e.from, overCall(v, s.val[e.other]))
				}
			}
		}
	}
	out := make([]int32, n)
	for i := range out {
		out[i] = int32(s.val[i])
	}
	return out
}

const (
	backByte = iota
	backEps
	backLoop
	backReturn // the edge is a call that returns here; other is the callee
	backCallee // the edge is a call of this; other is where it returns
)

type backEdge struct {
	from, other int32
	kind        uint8
}

// backEdges returns, for each node, the equations that its value is part of. A
// state is a node by its number, a repetition (its start) by its index after
// the states.
func (p *program) backEdges() [][]backEdge {
	n := len(p.states)
	back := make([][]backEdge, n+len(p.loops))
	add := func(to int32, e backEdge) { back[to] = append(back[to], e) }
	starts := make([]int32, len(p.rules))
	for i := range p.rules {
		starts[i] = int32(p.rules[i].start)
		if l := p.rules[i].loop; l >= 0 {
			starts[i] = int32(n) + l
		}
	}
	for i := range p.states {
		st, from := &p.states[i], int32(i)
		prev := never // neighbouring ranges often lead to the same state
		for _, e := range p.bytes[st.bytes0:st.bytes1] {
			if int(e.to) != prev {
				add(int32(e.to), backEdge{from, 0, backByte})
			}
			prev = int(e.to)
		}
		for _, to := range p.eps[st.eps0:st.eps1] {
			add(int32(to), backEdge{from, 0, backEps})
		}
		for _, c := range p.calls[st.calls0:st.calls1] {
			callee := starts[c.rule]
			add(int32(c.to), backEdge{from, callee, backReturn})
			add(callee, backEdge{from, int32(c.to), backCallee})
		}
	}
	for i := range p.loops {
		add(starts[p.loops[i].bodyRule], backEdge{int32(n + i), 0, backLoop})
	}
	return back
}

// solver is a priority queue of nodes by value.
type solver struct {
	val  []int64
	heap []ranked
}

type ranked struct {
	val  int64
	node int32
}

func (s *solver) lower(node int32, v int64) {
	v = min(v, never-1)
	if v < s.val[node] {
		s.val[node] = v
		heap.Push(s, ranked{v, node})
	}
}

func (s *solver) Len() int           { return len(s.heap) }
func (s *solver) Less(i, j int) bool { return s.heap[i].val < s.heap[j].val }
func (s *solver) Swap(i, j int)      { s.heap[i], s.heap[j] = s.heap[j], s.heap[i] }
func (s *solver) Push(x any)         { s.heap = append(s.heap, x.(ranked)) }
func (s *solver) Pop() any {
	x := s.heap[len(s.heap)-1]
	s.heap = s.heap[:len(s.heap)-1]
	return x
}

// leftCalls returns the rules that rule may call before it reads a byte.
func (p *program) leftCalls(rule int32) []int32 {
	if i := p.rules[rule].loop; i >= 0 {
		if p.loops[i].max == 0 {
			return nil
		}
		return []int32{p.loops[i].bodyRule}
	}
	var out []int32
	seen := map[uint32]bool{}
	work := []uint32{p.rules[rule].start}
	for len(work) > 0 {
		q := work[len(work)-1]
		work = work[:len(work)-1]
		if seen[q] {
			continue
		}
		seen[q] = true
		st := &p.states[q]
		work = append(work, p.eps[st.eps0:st.eps1]...)
		for _, c := range p.calls[st.calls0:st.calls1] {
			out = append(out, c.rule)
			if p.costOf(c.start) == 0 {
				work = append(work, c.to)
			}
		}
	}
	return out
}

// leftRecursion returns the names along a cycle of rules that call each other
// before reading a byte, or nil.
func (p *program) leftRecursion() []string {
	const open, closed = 1, 2
	colour := make([]uint8, len(p.rules))
	type frame struct {
		rule int32
		rest []int32
	}
	for r := range p.rules {
		if colour[r] != 0 {
			continue
		}
		colour[r] = open
		stack := []frame{{int32(r), p.leftCalls(int32(r))}}
		for len(stack) > 0 {
			top := &stack[len(stack)-1]
			if len(top.rest) == 0 {
				colour[top.rule] = closed
				stack = stack[:len(stack)-1]
				continue
			}
			next := top.rest[0]
			top.rest = top.rest[1:]
			switch colour[next] {
			case 0:
				colour[next] = open
				stack = append(stack, frame{next, p.leftCalls(next)})
			case open:
				var names []string
				for i := range stack {
					if len(names) > 0 || stack[i].rule == next {
						names = append(names, p.rules[stack[i].rule].name)
					}
				}
				return append(names, p.rules[next].name)
			}
		}
	}
	return nil
}

// ruleKey identifies a rule by its states, edges and callees: rules of
// different grammars with the same key have the same states in the same order
// and spell the same texts.
type ruleKey [16]byte

// identify computes the keys of all rules. A rule that needs few others is
// identified by these alone, so that it is recognized in other grammars; the
// rest are identified by the whole grammar.
func (p *program) identify() {
	p.keys = make([]ruleKey, len(p.rules))
	callees := make([][]int32, len(p.rules))
	for r := range p.rules {
		callees[r] = p.callees(int32(r))
	}
	var whole []byte
	for r := range p.rules {
		group := []int32{int32(r)}
		seen := map[int32]int32{int32(r): 0}
		for i := 0; i < len(group) && len(group) <= 16; i++ {
			for _, c := range callees[group[i]] {
				if _, ok := seen[c]; !ok {
					seen[c] = int32(len(group))
					group = append(group, c)
				}
			}
		}
		h := sha256.New()
		if len(group) <= 16 {
			for _, g := range group {
				p.hashRule(h, g, func(c int32) int32 { return seen[c] })
			}
		} else {
			if whole == nil {
				all := sha256.New()
				for g := range p.rules {
					p.hashRule(all, int32(g), func(c int32) int32 { return c })
				}
				whole = all.Sum(nil)
			}
			h.Write(whole)
			binary.Write(h, binary.LittleEndian, int32(r))
		}
		copy(p.keys[r][:], h.Sum(nil))
	}
}

func (p *program) callees(rule int32) []int32 {
	var out []int32
	seen := map[int32]bool{}
	add := func(c int32) {
		if !seen[c] {
			seen[c] = true
			out = append(out, c)
		}
	}
	if i := p.rules[rule].loop; i >= 0 {
		add(p.loops[i].bodyRule)
	}
	for q := p.rules[rule].lo; q < p.rules[rule].hi; q++ {
		for _, c := range p.calls[p.states[q].calls0:p.states[q].calls1] {
			add(c.rule)
		}
	}
	return out
}

func (p *program) hashRule(h hash.Hash, rule int32, number func(int32) int32) {
	r := &p.rules[rule]
	var buf []byte
	put := func(v ...uint32) {
		for _, x := range v {
			buf = binary.AppendUvarint(buf, uint64(x))
		}
		if len(buf) > 4096 {
			h.Write(buf)
			buf = buf[:0]
		}
	}
	if r.loop >= 0 {
		l := &p.loops[r.loop]
		if l.measured {
			put(3)
		}
		if l.unique {
			put(4, l.between)
		}
		put(1, uint32(l.min), uint32(l.max+1), uint32(number(l.bodyRule)))
	}
	put(2, r.hi-r.lo)
	for q := r.lo; q < r.hi; q++ {
		st := &p.states[q]
		flag := uint32(0)
		if st.final {
			flag = 1
		}
		put(flag, st.bytes1-st.bytes0, st.calls1-st.calls0, st.eps1-st.eps0)
		for _, e := range p.bytes[st.bytes0:st.bytes1] {
			last := uint32(255)
			if int(e.hi)+1 < len(p.first) {
				last = uint32(p.first[e.hi+1]) - 1
			}
			put(uint32(p.first[e.lo]), last, e.to-r.lo)
		}
		for _, c := range p.calls[st.calls0:st.calls1] {
			put(uint32(number(c.rule)), c.to-r.lo)
		}
		for _, to := range p.eps[st.eps0:st.eps1] {
			put(to - r.lo)
		}
	}
	h.Write(buf)
}
