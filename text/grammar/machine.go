package grammar

import (
	"errors"
	"slices"
	"sync"
)

// The machine runs a program. Where the text may have been read in several ways
// there are several stacks; they are kept as a graph that shares what they have
// in common (a graph-structured stack, M. Tomita, 1985), every part of which is
// interned: a node is a set of places to return to, a config is a set of states
// that can read a byte, each with the node below it. Equal sets are one object,
// so what has been computed for a config (its successors, its mask) is found
// again by pointer.
//
// A config never has the same state twice: the nodes below are joined, which
// loses nothing, because what may follow a state does not depend on how it was
// reached. Its size is thus bounded by the program, however ambiguous.

// item is a state and what is on the stack below it.
type item struct {
	q     uint32
	below *node
}

// node is an interned set of return states, ascending and each once.
type node struct {
	items  []item
	note   *uniqueNote // see unique.go; nil for most
	id     uint64
	depth  int32   // height of the highest stack
	closed *config // what can be read after returning here, once known
	short  *node   // the node with its counts clamped, once known
	next   *node   // in the table
}

// config is an interned set of states with byte edges, ascending and each once,
// with what is known of it.
type config struct {
	items  []item
	accept bool  // the text may end here
	left   bool  // the rule of a local walk may be finished here
	need   int32 // highest stack that finding it asked for

	step   []*config // class → successor, nil where not known yet
	mask   *tokenSet // allowed tokens, once known
	forced *string   // bytes that must follow, once known
	jump   *[]int32  // tokens that spell them, once known
	loops  uint64    // groups of bytes that lead back here, once looked for
	looped bool
	next   *config // in the table
}

// Pseudo states at the bottom of stacks.
const (
	atEnd  = ^uint32(0)     // returning here completes the text
	atExit = ^uint32(0) - 1 // returning here leaves the rule of a local walk
)

var dead = &config{} // no way on

// ErrTooAmbiguous is the error of a state whose text has more readings than are
// followed.
var ErrTooAmbiguous = errors.New("grammar: text: too ambiguous: more than the allowed work for one token")

type machine struct {
	mu       sync.Mutex
	p        *program
	v        *Vocabulary // may be nil
	maxDepth int32

	nodes   map[uint64]*node
	configs map[uint64]*config
	ids     uint64
	memory  int // bytes of what is remembered, about
	limit   int
	local   []*localMask // state → what is known of it

	bottom, exit *node
	root, led    *config

	work int   // elementary steps of the current operation
	need int32 // highest stack that the current closure asked for
	err  error

	// Scratch of closure; the queue is empty between calls.
	queue   []item
	found   []item   // real states and what is below them
	virtual []item   // the same for virtual states
	stamp   []uint32 // real state → the last round in which it was found
	place   []int32  // and its index in found
	round   uint32
	unions  map[[2]*node]*node
	notes   map[uniqueNote]*uniqueNote
	seen    map[uniqueNote]*seenTexts
	// Scratch of the walks.
	path  []*config
	path2 []*config
	bits  []uint64
}

func newMachine(p *program, v *Vocabulary, maxDepth int) (*machine, error) {
	m := &machine{p: p, v: v, maxDepth: int32(maxDepth), limit: maxMachineBytes, unions: map[[2]*node]*node{}, notes: map[uniqueNote]*uniqueNote{}, seen: map[uniqueNote]*seenTexts{}}
	m.stamp, m.place = make([]uint32, len(p.states)), make([]int32, len(p.states))
	m.bottom = &node{items: []item{{q: atEnd}}, id: 1}
	m.exit = &node{items: []item{{q: atExit}}, id: 2}
	m.ids = 2
	m.nodes = map[uint64]*node{}
	m.configs = map[uint64]*config{}
	if v != nil {
		m.local = make([]*localMask, len(p.states))
		m.path = make([]*config, v.longest+1)
		m.path2 = make([]*config, v.longest+1)
		m.bits = make([]uint64, v.words())
	}
	m.visit(p.root, m.bottom)
	m.root = m.closure()
	m.visit(p.led, m.bottom)
	m.led = m.closure()
	if m.err != nil {
		return nil, m.err
	}
	if v != nil {
		m.prepare()
	}
	return m, nil
}

// begin starts an operation: it forgets what was remembered if that has become
// too much. The configs that are in use stay valid; they only lose what was
// computed for them.
func (m *machine) begin() {
	m.work, m.err = 0, nil
	if m.round > 1<<31 {
		clear(m.stamp)
		m.round = 0
	}
	if m.memory < m.limit {
		return
	}
	for _, c := range m.configs {
		for ; c != nil; c = c.next {
			c.step, c.mask, c.forced, c.jump = nil, nil, nil, nil
		}
	}
	for _, n := range m.nodes {
		for ; n != nil; n = n.next {
			n.closed, n.short = nil, nil
		}
	}
	for _, c := range [...]*config{m.root, m.led} {
		c.step, c.mask, c.forced, c.jump = nil, nil, nil, nil
	}
	m.bottom.closed, m.exit.closed = nil, nil
	clear(m.nodes)
	clear(m.configs)
	clear(m.local)
	clear(m.unions)
	clear(m.notes)
	clear(m.seen)
	m.memory = 0
}

func (m *machine) spend(n int) {
	m.work += n
	if m.work > maxOpWork {
		m.err = ErrTooAmbiguous
	}
}

// hashItems mixes the states and nodes of a set.
func hashItems(items []item) uint64 {
	h := uint64(14695981039346656037)
	for _, it := range items {
		id := uint64(0)
		if it.below != nil {
			id = it.below.id
		}
		h = (h ^ uint64(it.q)) * 0x9E3779B97F4A7C15
		h = (h ^ (h >> 29) ^ id) * 0xBF58476D1CE4E5B9
		h ^= h >> 32
	}
	return h
}

// config returns the config with the given items, which are sorted and are
// copied.
func (m *machine) config(items []item, accept, left bool) *config {
	if len(items) == 0 && !accept && !left {
		return dead
	}
	h := hashItems(items)
	if accept {
		h ^= 0x5555
	}
	if left {
		h ^= 0xAAAA0000
	}
	head := m.configs[h]
	for c := head; c != nil; c = c.next {
		if c.accept == accept && c.left == left && slices.Equal(c.items, items) {
			return c
		}
	}
	c := &config{items: slices.Clone(items), accept: accept, left: left, next: head}
	m.configs[h] = c
	m.memory += 160 + 16*len(items)
	return c
}

// closure returns the config that the items of m.queue lead to without reading
// a byte, and empties the queue. For each state it keeps one node, the union of
// those that it was reached with, and follows the state again when that grows:
// the work is bounded by states and heights, not by the number of stacks.
func (m *machine) closure() *config {
	m.round++
	m.found = m.found[:0]
	m.virtual = m.virtual[:0]
	accept, left := false, false
	for len(m.queue) > 0 && m.err == nil {
		it := m.queue[len(m.queue)-1]
		m.queue = m.queue[:len(m.queue)-1]
		m.spend(4)
		switch {
		case it.q == atEnd:
			accept = true
		case it.q == atExit:
			left = true
		case it.q >= uint32(len(m.p.states)):
			if m.reach(&it, m.virtualSlot(it.q)) {
				m.enterLoop(it)
			}
		default:
			if m.reach(&it, m.slot(it.q)) {
				m.enter(it)
			}
		}
	}
	m.queue = m.queue[:0]
	c := dead
	if m.err == nil {
		c = m.config(m.takeLeaves(), accept, left)
	}
	if c != dead {
		c.need = max(c.need, m.need)
	}
	m.need = 0
	return c
}

// slot returns where the node of a real state is kept during a closure.
func (m *machine) slot(q uint32) *item {
	if m.stamp[q] != m.round {
		m.stamp[q], m.place[q] = m.round, int32(len(m.found))
		m.found = append(m.found, item{q: q})
	}
	return &m.found[m.place[q]]
}

func (m *machine) virtualSlot(q uint32) *item {
	for i := range m.virtual {
		if m.virtual[i].q == q {
			return &m.virtual[i]
		}
	}
	m.spend(len(m.virtual))
	m.virtual = append(m.virtual, item{q: q})
	return &m.virtual[len(m.virtual)-1]
}

// reach joins what is below it with what the slot holds, and reports whether
// that is news.
func (m *machine) reach(it *item, slot *item) bool {
	if slot.below == nil {
		slot.below = it.below
		return true
	}
	all := m.union(slot.below, it.below)
	if all == slot.below {
		return false
	}
	slot.below, it.below = all, all
	return true
}

// fits reports whether the stack may grow to a height.
func (m *machine) fits(height int32) bool {
	if height > m.maxDepth {
		return false
	}
	m.need = max(m.need, height)
	return true
}

// enter follows what leaves a state without reading.
func (m *machine) enter(it item) {
	st := &m.p.states[it.q]
	for _, to := range m.p.eps[st.eps0:st.eps1] {
		m.read(st, to, it.below, 0)
	}
	for _, c := range m.p.calls[st.calls0:st.calls1] {
		if m.p.states[c.to].last { // nothing to come back for
			m.visit(c.start, it.below)
		} else if m.fits(it.below.depth+1+m.p.heightOf(c.start)) && m.fits(it.below.depth+m.p.height[c.to]) {
			m.queue = append(m.queue, item{c.start, m.push(c.to, it.below)})
		}
	}
	if st.final {
		m.returnTo(it.below)
	}
}

// visit queues a state if what it needs fits on the stack.
func (m *machine) visit(q uint32, below *node) {
	if m.fits(below.depth + m.p.heightOf(q)) {
		m.queue = append(m.queue, item{q, below})
	}
}

func (m *machine) enterLoop(it item) {
	l, i := m.p.loopAt(it.q)
	switch {
	case l.unique:
		m.enterUnique(l, it.below, &noTexts)
		return
	case l.measured && i == 0:
		m.enterMeasured(it, l)
		return
	case i >= l.min:
		m.returnTo(it.below)
	}
	switch {
	case l.measured:
	case l.max < 0 || i+1 < l.max:
		if m.fits(it.below.depth + 1 + m.p.heightOf(l.body)) {
			m.queue = append(m.queue, item{l.body, m.push(l.next(i), it.below)})
		}
	case i < l.max: // the last time
		m.visit(l.body, it.below)
	}
}

// takeLeaves returns the states found that can read a byte, in order.
func (m *machine) takeLeaves() []item {
	out := m.found[:0]
	for _, it := range m.found {
		if st := &m.p.states[it.q]; st.bytes0 < st.bytes1 {
			out = append(out, it)
		}
	}
	if len(out) > maxItems {
		m.err = ErrTooAmbiguous
		return nil
	}
	slices.SortFunc(out, func(a, b item) int { return int(a.q) - int(b.q) })
	return out
}

// after returns the config that follows c when a byte of the class is read.
func (m *machine) after(c *config, class uint8) *config {
	if c.step == nil {
		if len(c.items) == 0 {
			return dead
		}
		c.step = make([]*config, len(m.p.first))
		m.memory += 8 * len(c.step)
	}
	if next := c.step[class]; next != nil {
		return next
	}
	for _, it := range c.items {
		st := &m.p.states[it.q]
		n := m.p.reads(st)
		for _, e := range m.p.bytes[st.bytes0:st.bytes1] {
			if e.lo <= class && class <= e.hi {
				below := it.below
				if st.tracked {
					if below = m.tracked(below, e.to, m.p.first[class]); below == nil {
						continue
					}
				}
				m.read(st, e.to, below, n)
			}
		}
		m.spend(1 + int(st.bytes1-st.bytes0)/8)
	}
	next := m.closure()
	if m.err == nil {
		c.step[class] = next
	}
	return next
}

// closedOf returns the config after returning to n.
func (m *machine) closedOf(n *node) *config {
	if n.closed == nil {
		m.returnTo(n)
		c := m.closure()
		if m.err != nil {
			return dead
		}
		n.closed = c
	}
	return n.closed
}
