package kvcache

import (
	"slices"
	"time"
)

// mark is a length at which every layer of a sequence can be continued: for each
// group with a window it has the pages that a query there sees, and a little
// before, so that shorter lengths can be continued, too, as far as these reach;
// for recurrent layers it has the state, with which only this very length can.
//
// A mark is made at the end of what is published, and where a sequence leaves a
// path that others have taken, if it still has what it takes. One within a prompt
// goes when its sequence has been published further. Nothing else keeps pages
// that have left a window. If a pool has such layers, every leaf of its tree ends
// at a mark: what lies behind the last one is of no use and is forgotten.
type mark struct {
	node         int32 // none if it is unused
	n            int   // tokens before it
	pinned       bool  // it goes after those that are not
	firm         bool  // it stays when its sequence is published further
	windows      []windowPages
	state        []int32
	newer, older int32 // neighbours in the order of last use
	used         time.Duration
}

// windowPages are the pages that one group has of the tokens from a token on.
type windowPages struct {
	from  int
	pages []int32 // the first has token from
}

// Marked says whether known prefixes can be continued at some lengths only,
// because some layers have windows or states.
func (t *Tree) Marked() bool { return t.pool.Bounded() }

// canMark says whether s has what a mark at n tokens takes.
func (t *Tree) canMark(s *Seq, n int) bool {
	return n > 0 && t.pool.continues(s, n) && (t.pool.statePages == 0 || s.stateAt(n) != nil)
}

// mark makes a mark at n tokens of s, which lie in node i. If
// there is one already, s gets its pages in place of equal ones.
func (t *Tree) mark(i int32, s *Seq, n int, firm bool) {
	at, found := slices.BinarySearchFunc(t.nodes[i].marks, n, func(m int32, n int) int { return t.marks[m].n - n })
	if found {
		m := t.nodes[i].marks[at]
		t.marks[m].firm = t.marks[m].firm || firm
		t.adoptMark(m, s)
		return
	}
	p := t.pool
	m := mark{node: i, n: n, firm: firm, state: slices.Clone(s.stateAt(n))}
	for g := t.full; g < len(s.tables); g++ {
		// One token more than needed: who asks for the same again has to compute
		// the last one.
		tab, size := &s.tables[g], p.cfg.PageTokens
		from := max(p.since(g, n-1)/size*size, tab.first)
		m.windows = append(m.windows, windowPages{from, slices.Clone(tab.pages[from/size : p.pagesOf(n)])})
	}
	m.each(func(id int32) { t.hold(id) })
	t.nodes[i].marks = slices.Insert(t.nodes[i].marks, at, t.newMark(m))
}

// each calls do with the pages of m.
func (m *mark) each(do func(id int32)) {
	for _, w := range m.windows {
		for _, id := range w.pages {
			do(id)
		}
	}
	for _, id := range m.state {
		do(id)
	}
}

// adoptMark gives s the full pages of mark m in place of its own.
func (t *Tree) adoptMark(m int32, s *Seq) {
	size := t.pool.cfg.PageTokens
	for g := range t.marks[m].windows {
		tab, w := &s.tables[t.full+g], &t.marks[m].windows[g]
		for k, id := range w.pages {
			if i := w.from/size + k; i*size >= max(w.from, tab.first) && (i+1)*size <= t.marks[m].n {
				t.swap(tab, i, id)
			}
		}
	}
}

// resume returns the longest length up to n, which are known tokens at the end of
// t.path, at which all layers can be continued, and the mark that has what it
// takes, none in a tree without marks.
func (t *Tree) resume(n int) (length int, m int32) {
	if n == 0 || !t.Marked() {
		return n, none
	}
	for k := len(t.path) - 1; k > 0; k-- {
		marks := t.nodes[t.path[k]].marks
		at, _ := slices.BinarySearchFunc(marks, n, func(m int32, n int) int { return t.marks[m].n - n })
		if at < len(marks) && t.reaches(marks[at], n) {
			return n, marks[at]
		}
		if at > 0 {
			return t.marks[marks[at-1]].n, marks[at-1]
		}
	}
	return 0, none
}

// reaches says whether a sequence can be continued at n tokens with what mark m
// has, which lies there or behind.
func (t *Tree) reaches(m int32, n int) bool {
	mk := &t.marks[m]
	if n < mk.n && t.pool.statePages > 0 {
		return false
	}
	for g, w := range mk.windows {
		if w.from > t.pool.since(t.full+g, n) {
			return false
		}
	}
	return true
}

// markPages calls do with the pages of mark m that a sequence of n tokens gets,
// and their group, -1 for those of the state.
func (t *Tree) markPages(m int32, n int, do func(g int, id int32)) {
	mk := &t.marks[m]
	for g, w := range mk.windows {
		for _, id := range w.pages[:t.pool.pagesOf(n)-w.from/t.pool.cfg.PageTokens] {
			do(t.full+g, id)
		}
	}
	for _, id := range mk.state {
		do(-1, id)
	}
}

// shareMark gives s what mark m has for n tokens.
func (t *Tree) shareMark(s *Seq, m int32, n int) {
	for g, w := range t.marks[m].windows {
		tab := &s.tables[t.full+g]
		tab.skip(w.from / t.pool.cfg.PageTokens)
		tab.first = w.from
	}
	t.markPages(m, n, func(g int, id int32) {
		t.pool.share(id)
		if g < 0 {
			s.state = append(s.state, id)
		} else {
			t.pool.push(&s.tables[g], id)
		}
	})
}

// splitMarks gives the marks of node i up to n to the node before it.
func (t *Tree) splitMarks(i, up int32, n int) {
	marks := t.nodes[i].marks
	k := 0
	for k < len(marks) && t.marks[marks[k]].n <= n {
		t.marks[marks[k]].node = up
		k++
	}
	t.nodes[up].marks, t.nodes[i].marks = marks[:k:k], marks[k:]
}

// passed drops the mark at n in leaf i, which goes on behind it, if that was only
// made for the time being. The one at its new end is to be made.
func (t *Tree) passed(i int32, n int) {
	marks := t.nodes[i].marks
	if k := len(marks) - 1; k >= 0 && t.marks[marks[k]].n == n && !t.marks[marks[k]].firm {
		t.forget(marks[k])
	}
}

// newMark stores m as the last used one.
func (t *Tree) newMark(m mark) int32 {
	var i int32
	if n := len(t.unused); n > 0 {
		i = t.unused[n-1]
		t.unused = t.unused[:n-1]
		t.marks[i] = m
	} else {
		i = int32(len(t.marks))
		t.marks = append(t.marks, m)
	}
	t.listMark(i)
	return i
}

// listMark puts mark i into the list of last use, a ring that ends at 0, as the
// newest.
func (t *Tree) listMark(i int32) {
	newest := t.marks[listEnd].older
	t.marks[i].used = t.now
	t.marks[i].newer, t.marks[i].older = listEnd, newest
	t.marks[newest].newer, t.marks[listEnd].older = i, i
}

func (t *Tree) unlistMark(i int32) {
	m := &t.marks[i]
	t.marks[m.newer].older, t.marks[m.older].newer = m.older, m.newer
}

func (t *Tree) touchMark(i int32) {
	t.unlistMark(i)
	t.listMark(i)
}

// eachMark calls do with all marks; it may drop the one at hand.
func (t *Tree) eachMark(do func(i int32)) {
	for i := range t.marks {
		if t.marks[i].node != none {
			do(int32(i))
		}
	}
}

// forget gives the pages of a mark up and returns how many became free.
func (t *Tree) forget(i int32) (freed int) {
	m := &t.marks[i]
	m.each(func(id int32) {
		if t.drop(id) {
			freed++
		}
	})
	marks := &t.nodes[m.node].marks
	k := slices.Index(*marks, i)
	*marks = slices.Delete(*marks, k, k+1)
	t.unlistMark(i)
	*m = mark{}
	t.unused = append(t.unused, i)
	return freed
}

// evictMarks is Evict for a tree with marks.
func (t *Tree) evictMarks(pages int) (freed int) {
	for pass := range 4 {
		any, pinned := pass%2 == 1, pass >= 2
		for i := t.marks[listEnd].newer; i != listEnd && freed < pages && t.pool.reclaimable > 0; {
			newer := t.marks[i].newer
			if (pinned || !t.marks[i].pinned) && (any || t.frees(i)) {
				freed += t.dropMark(i)
			}
			i = newer
		}
	}
	t.stats.Evicted += int64(freed)
	return freed
}

// frees says whether a page is free at once if mark i goes.
func (t *Tree) frees(i int32) bool {
	m := &t.marks[i]
	yes := false
	m.each(func(id int32) { yes = yes || t.pool.pages[id].refs == 1 })
	if n := &t.nodes[m.node]; n.child == none && n.end() == m.n && len(n.pages) > 0 {
		yes = yes || t.pool.pages[n.pages[len(n.pages)-1]].refs == 1
	}
	return yes
}

// dropMark forgets a mark and what only led to it, and returns how many pages
// became free.
func (t *Tree) dropMark(i int32) (freed int) {
	at := t.marks[i].node
	freed = t.forget(i)
	for at != none && t.nodes[at].child == none && t.nodes[at].parent != none {
		n, size := &t.nodes[at], t.pool.cfg.PageTokens
		end := n.start
		if k := len(n.marks); k > 0 {
			end = t.marks[n.marks[k-1]].n
		}
		if end == n.end() {
			break
		}
		keep := 0
		if end > n.start {
			keep = (t.pool.pagesOf(end) - n.start/size) * t.full
		} else if p := &t.nodes[n.parent]; n.start%size != 0 && p.parent != none && p.child == at && n.next == none {
			// The parent's last tokens are in these pages, too, and no other
			// child has them.
			p.pages = append(p.pages, n.pages[:t.full]...)
			n.pages = n.pages[t.full:]
		}
		for _, id := range n.pages[keep:] {
			if t.drop(id) {
				freed++
			}
		}
		n.pages = n.pages[:keep]
		if end > n.start {
			n.tokens = n.tokens[:end-n.start]
			break
		}
		leaf := at
		at = n.parent
		t.remove(leaf)
	}
	return freed
}
