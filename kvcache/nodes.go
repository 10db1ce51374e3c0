package kvcache

import "slices"

// The links of the tree's nodes, and eviction.

// newNode returns an empty node. It is in no list yet.
func (t *Tree) newNode() int32 {
	if n := len(t.spare); n > 0 {
		i := t.spare[n-1]
		t.spare = t.spare[:n-1]
		return i
	}
	t.nodes = append(t.nodes, node{})
	return int32(len(t.nodes) - 1)
}

// list puts node i into the list of last use, as next newer than node at. The
// list is a ring: its end is next newer than the newest node.
func (t *Tree) list(i, at int32) {
	newer := t.nodes[at].newer
	t.nodes[i].newer, t.nodes[i].older = newer, at
	t.nodes[newer].older, t.nodes[at].newer = i, i
}

// unlist takes node i from the list of last use.
func (t *Tree) unlist(i int32) {
	n := &t.nodes[i]
	t.nodes[n.newer].older, t.nodes[n.older].newer = n.older, n.newer
}

// touch makes the nodes of t.path, and the marks up to n tokens in them, the last
// used ones. A parent is always newer than its children, so the oldest node is a
// leaf. Roots are not listed.
func (t *Tree) touch(n int) {
	for k := len(t.path) - 1; k > 0; k-- {
		t.unlist(t.path[k])
		t.list(t.path[k], t.nodes[listEnd].older)
		t.nodes[t.path[k]].used = t.now
		for _, m := range slices.Backward(t.nodes[t.path[k]].marks) {
			if t.marks[m].n <= n {
				t.touchMark(m)
			}
		}
	}
}

// link makes node i, whose run starts with token, a child of parent.
func (t *Tree) link(i, parent, token int32) {
	n, p := &t.nodes[i], &t.nodes[parent]
	n.parent, n.prev, n.next = parent, none, p.child
	if p.child != none {
		t.nodes[p.child].prev = i
	}
	p.child = i
	t.children[edge{parent, token}] = i
}

// unlink takes node i from its parent.
func (t *Tree) unlink(i int32) {
	n := &t.nodes[i]
	delete(t.children, edge{n.parent, n.tokens[0]})
	if n.prev != none {
		t.nodes[n.prev].next = n.next
	} else {
		t.nodes[n.parent].child = n.next
	}
	if n.next != none {
		t.nodes[n.next].prev = n.prev
	}
	n.parent, n.prev, n.next = none, none, none
}

// remove forgets leaf i, which has given its pages away, and its root if that
// has no other child.
func (t *Tree) remove(i int32) {
	for i != none {
		n := &t.nodes[i]
		parent := n.parent
		if parent != none {
			t.unlink(i)
			t.unlist(i)
		} else {
			delete(t.roots, n.salt)
		}
		*n = node{}
		t.spare = append(t.spare, i)
		if parent == none || t.nodes[parent].parent != none || t.nodes[parent].child != none {
			return
		}
		i = parent
	}
}

// Evict frees at least the given number of pages, if there are as many that
// only the tree holds, and returns how many it freed. It shortens the leaf
// that was not used for longest from its end, then the next. Leaves that a
// sequence uses are passed over as long as there are others. In a tree with
// marks it is these that go, the one that was not used for longest first, and
// what only led to them: then more pages may become free. What is pinned goes
// last.
func (t *Tree) Evict(pages int) int {
	if t.Marked() {
		return t.evictMarks(pages)
	}
	freed := 0
	for pass := range 4 {
		used, pinned := pass%2 == 1, pass >= 2
		for i := t.nodes[listEnd].newer; i != listEnd && freed < pages && t.pool.reclaimable > 0; {
			newer := t.nodes[i].newer
			if t.nodes[i].child == none {
				freed += t.trim(i, pages-freed, used, pinned)
			}
			i = newer
		}
	}
	t.stats.Evicted += int64(freed)
	return freed
}

// Clear forgets all prefixes. Pages that sequences hold stay theirs.
func (t *Tree) Clear() {
	t.eachMark(func(i int32) { t.dropMark(i) })
	for i := t.nodes[listEnd].newer; i != listEnd; {
		newer := t.nodes[i].newer
		t.trim(i, len(t.pool.pages)+1, true, true)
		i = newer
	}
}

// Forget forgets a prefix as far as nothing else in the tree goes on from it: what
// other sequences share stays, and pages that sequences hold stay theirs.
func (t *Tree) Forget(salt string, tokens []int32) {
	n := t.walk(salt, tokens)
	path := slices.Clone(t.path)
	for k := len(path) - 1; k > 0; k-- {
		i := path[k]
		if t.nodes[i].child != none || t.nodes[i].end() > n {
			return
		}
		for len(t.nodes[i].marks) > 0 {
			t.dropMark(t.nodes[i].marks[len(t.nodes[i].marks)-1])
		}
		if len(t.nodes[i].pages) > 0 { // else its last mark took it along
			t.trim(i, len(t.pool.pages)+1, true, true)
		}
	}
}

// trim shortens leaf i of a tree without marks by whole pages until that has freed the given number,
// and returns how many it freed. It stops at a page that a sequence holds
// unless used is set, and at one that is pinned unless pinned is. When the first page goes, too, the leaf is removed.
func (t *Tree) trim(i int32, pages int, used, pinned bool) int {
	n, size, freed := &t.nodes[i], t.pool.cfg.PageTokens, 0
	for freed < pages && len(n.pages) > 0 {
		last := len(n.pages) - 1
		id := n.pages[last]
		if t.pool.pages[id].refs > 1 && !used {
			return freed
		}
		at := (n.start/size + last) * size
		if at < n.keep {
			if !pinned {
				return freed
			}
			n.keep = 0
		}
		if at > n.start {
			n.tokens = n.tokens[:at-n.start]
		} else if p := &t.nodes[n.parent]; at < n.start && p.child == i && n.next == none {
			// The parent's last tokens are in this page, too, and no other
			// child has them.
			p.pages = append(p.pages, id)
			n.pages = n.pages[:last]
			break
		}
		n.pages = n.pages[:last]
		if t.drop(id) {
			freed++
		}
	}
	if len(n.pages) == 0 {
		t.remove(i)
	}
	return freed
}
