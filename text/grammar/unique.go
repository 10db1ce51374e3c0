package grammar

import "strings"

// A unique repetition is one of which no two texts are equal. What has come is
// not a matter of states: it is remembered with the stack. The node below a text
// of the repetition has a note: the texts that have come, and how far the current
// one has been read. So a situation is still one object, found again by pointer,
// and a state that could only end in a text that has come is never entered.

// uniqueNote is what a node of a unique repetition knows.
type uniqueNote struct {
	seen *seenTexts
	text string // of the current text, so far
}

// seenTexts are the texts that have come.
type seenTexts struct {
	before *seenTexts // without the last one; nil for none
	text   string
	n      int
}

var noTexts seenTexts

// has reports whether a text has come.
func (s *seenTexts) has(text string) bool {
	for ; s.n > 0; s = s.before {
		if s.text == text {
			return true
		}
	}
	return false
}

// begin returns how many of the texts begin so.
func (s *seenTexts) begin(prefix string) (n int64) {
	for ; s.n > 0; s = s.before {
		if strings.HasPrefix(s.text, prefix) {
			n++
		}
	}
	return n
}

// maxUnique bounds the texts of a unique repetition.
const maxUnique = 1024

// Unique returns a new rule that is body repeated with between in between, lo to
// hi times, at least once (hi < 0: no bound, but for 1024), such that no two texts of
// body are equal. Body has no calls and is used for nothing else.
func (b *Builder) Unique(name string, body, between *Rule, lo, hi int) *Rule {
	if hi < 0 || hi > maxUnique {
		hi = maxUnique
	}
	r := b.Loop(name, body, max(lo, 1), hi)
	r.unique, r.between, body.tracked = true, between.id, true
	return r
}

// States of a unique repetition: where it begins, during a text, and after what
// is in between.
const (
	uniqueText = 1 + iota
	uniqueBetween
	uniqueStates
)

const manyTexts = int64(1) << 40 // a number of texts that counts as no bound

// setTexts counts the texts that the states of tracked rules lead to.
func (p *program) setTexts() {
	for i := range p.rules {
		r := &p.rules[i]
		if !r.tracked {
			continue
		}
		if p.texts == nil {
			p.texts = make([]int64, len(p.states))
		}
		state := make([]uint8, r.hi-r.lo) // 1: on the way, 2: known
		for q := r.lo; q < r.hi; q++ {
			p.countTexts(q, r.lo, state)
		}
	}
}

// countTexts fills in texts for q, on a stack of its own: the ways may be long.
func (p *program) countTexts(q, lo uint32, state []uint8) {
	stack := []uint32{q}
	for len(stack) > 0 {
		q := stack[len(stack)-1]
		st := &p.states[q]
		if state[q-lo] == 2 {
			stack = stack[:len(stack)-1]
			continue
		}
		ready := true
		edges := p.bytes[st.bytes0:st.bytes1]
		if state[q-lo] == 0 {
			state[q-lo] = 1
			for _, e := range edges {
				if state[e.to-lo] == 0 {
					stack, ready = append(stack, e.to), false
				}
			}
		}
		if !ready {
			continue
		}
		n := int64(0)
		if st.final {
			n = 1
		}
		for _, e := range edges {
			to := p.texts[e.to]
			if state[e.to-lo] == 1 { // a way back: as many as one likes
				to = manyTexts
			}
			n = min(n+int64(e.hi-e.lo+1)*to, manyTexts)
		}
		p.texts[q], state[q-lo] = n, 2
		stack = stack[:len(stack)-1]
	}
}

// noted returns the node like n with another note.
func (m *machine) noted(n *node, seen *seenTexts, text string) *node {
	return m.intern(n.items, m.noteOf(seen, text), true)
}

func (m *machine) noteOf(seen *seenTexts, text string) *uniqueNote {
	key := uniqueNote{seen, text}
	if n := m.notes[key]; n != nil {
		return n
	}
	n := &key
	m.notes[key] = n
	m.memory += 96 + len(text)
	return n
}

// with returns the texts that have come and another one.
func (m *machine) with(seen *seenTexts, text string) *seenTexts {
	key := uniqueNote{seen, text}
	if s := m.seen[key]; s != nil {
		return s
	}
	s := &seenTexts{before: seen, text: text, n: seen.n + 1}
	m.seen[key] = s
	m.memory += 96 + len(text)
	return s
}

// tracked returns the node below state to of a tracked rule after a byte, nil if
// only texts that have come could end there.
func (m *machine) tracked(below *node, to uint32, b byte) *node {
	if below.note == nil { // a local walk
		return below
	}
	seen, text := below.note.seen, below.note.text+string([]byte{b})
	m.spend(1 + seen.n/8)
	if m.p.texts[to] <= seen.begin(text) {
		return nil
	}
	return m.noted(below, seen, text)
}

// returnTo queues what follows where a rule ends.
func (m *machine) returnTo(n *node) {
	if n.note == nil {
		m.queue = append(m.queue, n.items...)
		return
	}
	for _, it := range n.items {
		l, i := m.p.loopAt(it.q)
		if i == uniqueBetween {
			m.enterUnique(l, it.below, n.note.seen)
			continue
		}
		if n.note.seen.has(n.note.text) {
			continue
		}
		seen := m.with(n.note.seen, n.note.text)
		if seen.n >= int(l.min) {
			m.returnTo(it.below)
		}
		if seen.n < int(l.max) && m.p.texts[l.body] > int64(seen.n) && m.fits(it.below.depth+1+m.p.heightOf(l.between)) {
			one := [1]item{{l.base + uniqueBetween, it.below}}
			m.queue = append(m.queue, item{l.between, m.intern(one[:], m.noteOf(seen, ""), false)})
		}
	}
}

// enterUnique begins a text of a unique repetition.
func (m *machine) enterUnique(l *ploop, below *node, seen *seenTexts) {
	if m.fits(below.depth + 1 + m.p.heightOf(l.body)) {
		one := [1]item{{l.base + uniqueText, below}}
		m.queue = append(m.queue, item{l.body, m.intern(one[:], m.noteOf(seen, ""), false)})
	}
}

// trackedMask marks the tokens that may follow in a state of a tracked rule.
func (m *machine) trackedMask(it item, local *localMask) {
	note := it.below.note
	inside := make([]uint64, len(m.bits))
	local.inside.addTo(inside)
	for s := note.seen; s.n > 0; s = s.before {
		if !strings.HasPrefix(s.text, note.text) {
			continue
		}
		// Along the text, as far as tokens go: what leads nowhere else is left out.
		q, at := it.q, uint32(0)
		for i := len(note.text); i < len(s.text); i++ {
			if at = m.v.child(at, s.text[i]); at == 0 {
				break
			}
			if q = m.p.step(q, m.p.class[s.text[i]]); m.p.texts[q] <= note.seen.begin(s.text[:i+1]) {
				for _, id := range m.v.below(at) {
					inside[id>>6] &^= 1 << (id & 63)
				}
				break
			}
		}
		m.spend(len(s.text))
	}
	for i, w := range inside {
		m.bits[i] |= w
	}
	var path []byte
	for _, at := range local.exits {
		path = m.v.pathTo(path[:0], at)
		text := note.text + string(path)
		m.spend(1 + note.seen.n/8)
		if note.seen.has(text) {
			continue
		}
		m.walk(at, m.closedOf(m.noted(it.below, note.seen, text)), m.path, nil)
		if m.err != nil {
			return
		}
	}
}

// step returns the state after a byte of a class; there is one.
func (p *program) step(q uint32, class uint8) uint32 {
	st := &p.states[q]
	for _, e := range p.bytes[st.bytes0:st.bytes1] {
		if e.lo <= class && class <= e.hi {
			return e.to
		}
	}
	return q
}

// pathTo appends the bytes on the way to a node of the trie.
func (v *Vocabulary) pathTo(dst []byte, node uint32) []byte {
	for at := uint32(0); at != node; {
		j := at + 1
		for j+v.nodes[j].size <= node {
			j += v.nodes[j].size
		}
		dst = append(dst, v.nodes[j].b)
		at = j
	}
	return dst
}
