package grammar

import "math/bits"

const (
	maxList      = 512 // tokens of a set that is kept as a list
	visitsPerJob = 16  // nodes of the trie that count as one step of work
)

// maskOf returns the tokens that may follow in c, found once.
func (m *machine) maskOf(c *config) *tokenSet {
	if c.mask != nil {
		return c.mask
	}
	if short := m.clamp(c); short != c {
		set := m.maskOf(short)
		if m.err == nil {
			c.mask = set
		}
		return set
	}
	clear(m.bits)
	for _, it := range c.items {
		if m.err != nil {
			break
		}
		local := m.localOf(it.q)
		if local.failed || it.below.depth+local.need > m.maxDepth || m.nearBound(it) {
			// Near the limit of the stack what follows depends on its height, near
			// the bound of a measured rule on the count.
			one := m.config([]item{it}, false, false)
			m.walk(0, one, m.path, nil)
			continue
		}
		if it.below.note != nil && m.p.states[it.q].tracked {
			m.trackedMask(it, local)
			continue
		}
		local.inside.addTo(m.bits)
		if len(local.exits) == 0 {
			continue
		}
		outside := m.closedOf(it.below)
		if len(outside.items) == 0 {
			continue
		}
		for _, at := range local.exits {
			m.walk(at, outside, m.path, nil)
		}
	}
	if c.accept {
		for _, id := range m.v.ends.list {
			m.setBit(id)
		}
	}
	set := m.takeBits()
	if m.err != nil {
		return &tokenSet{}
	}
	c.mask = set
	return set
}

func (m *machine) setBit(id int32) { m.bits[id>>6] |= 1 << (id & 63) }

// setToken marks a token and those with the same bytes.
func (m *machine) setToken(token int32) {
	m.setBit(token)
	if m.v.same != nil {
		for id := m.v.same[token]; id >= 0; id = m.v.same[id] {
			m.setBit(id)
		}
	}
}

// takeBits returns the set in m.bits.
func (m *machine) takeBits() *tokenSet {
	n := 0
	for _, w := range m.bits {
		n += bits.OnesCount64(w)
	}
	s := &tokenSet{}
	if n <= maxList {
		s.list = make([]int32, 0, n)
		for i, w := range m.bits {
			for ; w != 0; w &= w - 1 {
				s.list = append(s.list, int32(i<<6+bits.TrailingZeros64(w)))
			}
		}
	} else {
		s.bits = append(make([]uint64, 0, len(m.bits)), m.bits...)
	}
	m.memory += s.size()
	return s
}

const worthLoop = 24 // nodes of a subtree that make it worth to look for loops

// walk follows the tokens that go on from a node of the trie, starting in c, and
// marks those that can be read. With l it also notes there where the rule may be
// left.
func (m *machine) walk(from uint32, c *config, path []*config, l *localMask) {
	nodes := m.v.nodes
	path[nodes[from].depth] = c
	end := from + nodes[from].size
	visits := 0
	for i := from + 1; i < end; {
		t := &nodes[i]
		visits++
		at := path[t.depth-1]
		class := m.p.class[t.b]
		var next *config
		if at.step != nil {
			next = at.step[class]
		}
		if next == nil {
			next = m.after(at, class)
			if m.err != nil {
				return
			}
		}
		if next == dead {
			i += t.size
			continue
		}
		if l != nil {
			l.need = max(l.need, next.need)
			if next.left && t.size > 1 {
				l.exits = append(l.exits, i)
			}
		}
		if next == at && t.size >= worthLoop && !next.left && m.v.within[i]&^m.loopsOf(next) == 0 {
			for _, id := range m.v.below(i) { // it stays here whatever follows
				m.setBit(id)
			}
			i += t.size
			continue
		}
		path[t.depth] = next
		if t.token >= 0 {
			m.setToken(t.token)
		}
		i++
	}
	m.spend(visits / visitsPerJob)
}

// loopsOf returns the groups of bytes on all of which c stays what it is.
func (m *machine) loopsOf(c *config) uint64 {
	if !c.looped {
		loops := ^uint64(0)
		for b := range 256 {
			if loops>>groupOf[b]&1 != 0 && m.after(c, m.p.class[b]) != c {
				loops &^= 1 << groupOf[b]
			}
		}
		if m.err != nil {
			return 0
		}
		c.loops, c.looped = loops, true
	}
	return c.loops
}

// prepare finds what the states say of the tokens before the first is asked for,
// as far as that is quick; the rest is found when it is needed.
func (m *machine) prepare() {
	for q := range m.p.states {
		if st := &m.p.states[q]; st.bytes0 < st.bytes1 {
			m.localOf(uint32(q))
		}
		if m.work > prepareWork || m.memory > m.limit/2 {
			break
		}
	}
	m.work, m.err = 0, nil
}

// localOf returns what state q says of the tokens whatever is on the stack.
func (m *machine) localOf(q uint32) *localMask {
	if l := m.local[q]; l != nil {
		return l
	}
	rule := m.p.states[q].rule
	key := localKey{m.p.keys[rule], q - m.p.rules[rule].lo, m.maxDepth}
	l := m.v.lookup(key)
	if l == nil {
		l = m.findLocal(q)
		if l.failed {
			return l
		}
		m.v.learn(key, l)
	}
	m.local[q] = l
	m.memory += l.size() // held from here too
	return l
}

// findLocal walks the whole trie from q with an unknown stack. m.bits is kept.
func (m *machine) findLocal(q uint32) *localMask {
	saved := m.bits
	m.bits = make([]uint64, len(saved))
	defer func() { m.bits = saved }()
	l := &localMask{}
	start := m.config([]item{{q, m.exit}}, false, false)
	m.walk(0, start, m.path2, l)
	if m.err != nil {
		return &localMask{failed: true}
	}
	l.inside = *m.takeBits()
	return l
}

// clamp returns a config with the same mask as c in which counts of repetitions
// that no single token can use up are replaced by one representative, so that
// the masks along a long counted repetition are found once.
func (m *machine) clamp(c *config) *config {
	if len(m.p.loops) == 0 {
		return c
	}
	changed := false
	items := make([]item, len(c.items))
	for i, it := range c.items {
		items[i] = item{it.q, m.clampNode(it.below)}
		changed = changed || items[i].below != it.below
	}
	if !changed {
		return c
	}
	return m.config(items, c.accept, c.left)
}

func (m *machine) clampNode(n *node) *node {
	if n.short != nil {
		return n.short
	}
	if n == m.bottom || n == m.exit || n.note != nil || m.err != nil {
		return n
	}
	m.spend(len(n.items))
	items := make([]item, 0, len(n.items))
	changed := false
	for _, it := range n.items {
		to := it
		if it.below != nil {
			to.below = m.clampNode(it.below)
			to.q = m.clampState(it.q)
		}
		changed = changed || to != it
		items = append(items, to)
	}
	short := n
	if changed {
		short = m.joined(items)
	}
	if m.err != nil {
		return n
	}
	n.short, short.short = short, short
	return short
}

// clampState replaces the count of a virtual state by one that behaves alike
// for as many bytes as a token has.
func (m *machine) clampState(q uint32) uint32 {
	if q < uint32(len(m.p.states)) || q == atEnd || q == atExit {
		return q
	}
	l, i := m.p.loopAt(q)
	far := int32(m.v.longest)
	switch {
	case l.measured && (i == 0 || l.max-i <= far+l.widest):
		return q
	case l.measured:
		return l.base + 1
	case l.max >= 0 && l.max-i <= far:
		return q
	case i < l.min && l.min-i <= far:
		return q
	case i < l.min:
		return l.base
	}
	return l.base + uint32(l.min)
}
