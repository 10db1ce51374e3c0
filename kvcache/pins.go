package kvcache

// Pin keeps what the tree has of tokens under salt from eviction, as long as
// anything that is not pinned can go, and returns how many pages it keeps that
// were not kept before. It returns false if the tree does not have all of the
// tokens, or if layers cannot be continued behind them.
func (t *Tree) Pin(salt string, tokens []int32) (pages int, ok bool) {
	n, m := t.resume(t.walk(salt, tokens))
	if n == 0 || n < len(tokens) {
		return 0, false
	}
	before := 0
	for _, i := range t.path {
		before = max(before, t.nodes[i].keep)
	}
	if m != none {
		if mk := &t.marks[m]; !mk.pinned {
			mk.pinned, mk.firm = true, true
			mk.each(func(int32) { pages++ })
		}
	}
	last := &t.nodes[t.path[len(t.path)-1]]
	last.keep = max(last.keep, n)
	return pages + t.full*max(0, t.pool.pagesOf(n)-t.pool.pagesOf(before)), true
}

// Unpin ends all pins.
func (t *Tree) Unpin() {
	for i := range t.nodes {
		t.nodes[i].keep = 0
	}
	for i := range t.marks {
		t.marks[i].pinned = false
	}
}

// splitPin gives the pin of node i to the node before it, if it is that one's.
func (t *Tree) splitPin(i, up int32, n int) {
	if t.nodes[i].keep > 0 && t.nodes[i].keep <= n {
		t.nodes[up].keep, t.nodes[i].keep = t.nodes[i].keep, 0
	}
}

// Hold is Match of tokens all of which the tree has, for who only looks at them:
// it counts as no use. It returns nil if the tree does not have them.
func (t *Tree) Hold(salt string, tokens []int32) *Seq {
	n, m := t.resume(t.walk(salt, tokens))
	if n == 0 || n < len(tokens) {
		return nil
	}
	return t.take(n, m)
}
