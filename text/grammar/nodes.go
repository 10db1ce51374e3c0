package grammar

import "slices"

// node returns the node with the given items, which are sorted; it may keep the
// slice.
func (m *machine) node(items []item, own bool) *node {
	return m.intern(items, nil, own)
}

// intern is node for one with a note.
func (m *machine) intern(items []item, note *uniqueNote, own bool) *node {
	h := hashItems(items)
	if note != nil {
		h ^= uint64(len(note.text)+note.seen.n<<8) * 0x9E3779B97F4A7C15
	}
	head := m.nodes[h]
	for n := head; n != nil; n = n.next {
		if n.note == note && slices.Equal(n.items, items) {
			return n
		}
	}
	if !own {
		items = slices.Clone(items)
	}
	m.ids++
	n := &node{items: items, note: note, id: m.ids, next: head}
	for _, it := range items {
		if it.below != nil {
			n.depth = max(n.depth, it.below.depth)
		}
	}
	n.depth++
	m.nodes[h] = n
	m.memory += 96 + 16*len(items)
	return n
}

// union returns the node that returns to wherever a or b do.
func (m *machine) union(a, b *node) *node {
	if a == b {
		return a
	}
	if a.id > b.id {
		a, b = b, a
	}
	key := [2]*node{a, b}
	if u := m.unions[key]; u != nil {
		return u
	}
	m.spend(2 + len(a.items) + len(b.items))
	out := make([]item, 0, len(a.items)+len(b.items))
	i, j := 0, 0
	for i < len(a.items) && j < len(b.items) {
		x, y := a.items[i], b.items[j]
		switch {
		case x.q < y.q:
			out = append(out, x)
			i++
		case x.q > y.q:
			out = append(out, y)
			j++
		default:
			if x.below != nil && m.err == nil {
				x.below = m.union(x.below, y.below)
			}
			out = append(out, x)
			i++
			j++
		}
	}
	out = append(append(out, a.items[i:]...), b.items[j:]...)
	if a.note != b.note { // the same place in two repetitions: no text of JSON is
		m.err = ErrTooAmbiguous
	}
	u := m.intern(out, a.note, true)
	if m.err == nil {
		m.unions[key] = u
		m.memory += 48
	}
	return u
}

// push returns the node that returns to state to and then to below.
func (m *machine) push(to uint32, below *node) *node {
	one := [1]item{{to, below}}
	return m.node(one[:], false)
}

// joined returns the node with the given items in any order and with repeated
// states.
func (m *machine) joined(items []item) *node {
	slices.SortStableFunc(items, func(a, b item) int {
		switch {
		case a.q < b.q:
			return -1
		case a.q > b.q:
			return 1
		}
		return 0
	})
	out := items[:0]
	for _, it := range items {
		if n := len(out); n > 0 && out[n-1].q == it.q {
			if it.below != nil {
				out[n-1].below = m.union(out[n-1].below, it.below)
			}
		} else {
			out = append(out, it)
		}
	}
	return m.node(out, true)
}
