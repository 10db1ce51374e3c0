package kvcache

import "fmt"

// Check verifies the pool's bookkeeping against the sequences given, which
// must be all that hold tokens: every page is either free or held, and by
// exactly those who are counted; the tree is whole; and the sums are right. It is
// for tests and for an idle server.
func (p *Pool) Check(seqs ...*Seq) error {
	held := make([]int32, len(p.pages))
	refs := 0
	for i, s := range seqs {
		if err := p.checkSeq(s, held); err != nil {
			return fmt.Errorf("kvcache: sequence %d of %d tokens: %w", i, s.n, err)
		}
		refs += s.Pages()
	}
	if refs != p.seqRefs {
		return fmt.Errorf("kvcache: page tables: expected %d entries, found %d", refs, p.seqRefs)
	}
	inTree := make([]int32, len(p.pages))
	if p.tree != nil {
		if err := p.tree.check(inTree); err != nil {
			return fmt.Errorf("kvcache: tree: %w", err)
		}
	}
	if err := p.checkPages(held, inTree); err != nil {
		return err
	}
	return p.checkChunks()
}

// checkSeq checks one sequence and counts its pages in held.
func (p *Pool) checkSeq(s *Seq, held []int32) error {
	if len(s.tables) != len(p.groups) {
		return fmt.Errorf("expected %d page tables, found %d", len(p.groups), len(s.tables))
	}
	for g := range s.tables {
		if err := p.checkTable(s, g, held); err != nil {
			return fmt.Errorf("group %d: %w", g, err)
		}
	}
	if len(s.kept.pages) > 0 {
		return fmt.Errorf("a state is kept that no step is to return to")
	}
	if want := p.statePages; s.n > 0 && len(s.state) != want || s.n == 0 && len(s.state)+len(s.saved) > 0 {
		return fmt.Errorf("expected a state of %d pages, found %d and %d checkpoints", want, len(s.state), len(s.saved))
	}
	last := 0
	states := [][]int32{s.state}
	for _, c := range s.saved {
		if c.n <= last || c.n > s.n || len(c.pages) != p.statePages || len(s.saved) > p.cfg.Checkpoints {
			return fmt.Errorf("checkpoint at %d tokens after one at %d, of %d", c.n, last, len(s.saved))
		}
		last = c.n
		states = append(states, c.pages)
	}
	for _, pages := range states {
		for _, id := range pages {
			if int(p.pages[id].fill) != p.cfg.PageTokens {
				return fmt.Errorf("page %d of a state has %d slots filled", id, p.pages[id].fill)
			}
			held[id]++
		}
	}
	return nil
}

// checkTable checks the page table that s has for group g.
func (p *Pool) checkTable(s *Seq, g int, held []int32) error {
	t, size := &s.tables[g], p.cfg.PageTokens
	if want := p.pagesOf(s.n); len(t.pages) != want || len(t.bases) != want {
		return fmt.Errorf("expected %d pages, found %d and %d addresses", want, len(t.pages), len(t.bases))
	}
	if t.first > p.since(g, s.n) || t.first%TileTokens != 0 {
		return fmt.Errorf("first token %d", t.first)
	}
	for i, id := range t.pages {
		if gone := i < t.first/size; gone != (id == noPage) || gone != (t.bases[i] == nil) {
			return fmt.Errorf("entry %d is page %d, the first token is %d", i, id, t.first)
		}
		if id == noPage {
			continue
		}
		if t.bases[i] != &p.bytes(id)[0] {
			return fmt.Errorf("entry %d has the address of another page", i)
		}
		if used := min(s.n-i*size, size); used > int(p.pages[id].fill) {
			return fmt.Errorf("entry %d holds %d tokens, its page is filled up to %d", i, used, p.pages[id].fill)
		}
		held[id]++
	}
	return nil
}

// checkPages checks each page against who holds it, and the sums over pages.
func (p *Pool) checkPages(held, inTree []int32) error {
	free := make([]bool, len(p.pages))
	for _, id := range p.free {
		if free[id] {
			return fmt.Errorf("kvcache: page %d is free twice", id)
		}
		free[id] = true
	}
	reclaimable, inUse, cached := 0, 0, 0
	for id := range p.pages {
		pg, want := &p.pages[id], held[id]+inTree[id]
		if pg.refs != want || pg.cached != inTree[id] || free[id] != (want == 0 && p.has(int32(id))) {
			return fmt.Errorf("kvcache: page %d: expected %d holders, %d of them in the tree, found %d, %d, free: %v", id, want, inTree[id], pg.refs, pg.cached, free[id])
		}
		if pg.fill < 0 || int(pg.fill) > p.cfg.PageTokens {
			return fmt.Errorf("kvcache: page %d: %d slots filled", id, pg.fill)
		}
		switch {
		case held[id] > 0:
			inUse += int(pg.fill)
		case inTree[id] > 0:
			reclaimable++
			cached += int(pg.fill)
		}
	}
	if reclaimable != p.reclaimable || inUse != p.filledInUse || cached != p.filledInCached {
		return fmt.Errorf("kvcache: sums: expected %d reclaimable pages, %d and %d slots, found %d, %d and %d",
			reclaimable, inUse, cached, p.reclaimable, p.filledInUse, p.filledInCached)
	}
	return nil
}

// check verifies the tree's structure and counts its holds of pages.
func (t *Tree) check(inTree []int32) error {
	live := 0
	for salt, r := range t.roots {
		if n := &t.nodes[r]; n.salt != salt || n.parent != none || len(n.tokens) != 0 || n.child == none {
			return fmt.Errorf("root of %q: %+v", salt, *n)
		}
		n, err := t.checkNode(r, inTree)
		if err != nil {
			return err
		}
		live += n
	}
	if live != len(t.nodes)-1-len(t.spare) {
		return fmt.Errorf("expected %d nodes, found %d of which %d are spare", live, len(t.nodes)-1, len(t.spare))
	}
	if live != len(t.children)+len(t.roots) {
		return fmt.Errorf("%d nodes have %d edges and %d roots", live, len(t.children), len(t.roots))
	}
	pages := 0
	for _, in := range inTree {
		if in > 0 {
			pages++
		}
	}
	if pages != t.stats.Pages {
		return fmt.Errorf("expected %d pages, found %d", t.stats.Pages, pages)
	}
	if err := t.checkMarks(); err != nil {
		return err
	}
	return t.checkList(live - len(t.roots))
}

// checkNode checks node i and those below it, and returns how many they are.
func (t *Tree) checkNode(i int32, inTree []int32) (int, error) {
	n, size := &t.nodes[i], t.pool.cfg.PageTokens
	want := n.end()/size - n.start/size
	if n.child == none {
		want = t.pool.pagesOf(n.end()) - n.start/size
	}
	if len(n.pages) != want*t.full || n.parent != none && len(n.tokens) == 0 {
		return 0, fmt.Errorf("node %d: tokens %d to %d, leaf: %v: expected %d pages of each group, found %d in all", i, n.start, n.end(), n.child == none, want, len(n.pages))
	}
	for k, id := range n.pages {
		if inTree[id] > 0 {
			return 0, fmt.Errorf("page %d is in two nodes, or in a node and a mark; one is %d", id, i)
		}
		inTree[id]++
		if used := min(n.end()-(n.start/size+k/t.full)*size, size); used > int(t.pool.pages[id].fill) {
			return 0, fmt.Errorf("node %d: entry %d holds %d tokens, its page is filled up to %d", i, k, used, t.pool.pages[id].fill)
		}
	}
	if err := t.checkNodeMarks(i, inTree); err != nil {
		return 0, fmt.Errorf("node %d: %w", i, err)
	}
	count, prev := 1, int32(none)
	for c := n.child; c != none; c = t.nodes[c].next {
		cn := &t.nodes[c]
		if cn.parent != i || cn.prev != prev || cn.start != n.end() || len(cn.tokens) == 0 || t.children[edge{i, cn.tokens[0]}] != c {
			return 0, fmt.Errorf("node %d is not linked to its child %d", i, c)
		}
		below, err := t.checkNode(c, inTree)
		if err != nil {
			return 0, err
		}
		count, prev = count+below, c
	}
	return count, nil
}

// checkNodeMarks checks the marks of node i.
func (t *Tree) checkNodeMarks(i int32, inTree []int32) error {
	n, size, last := &t.nodes[i], t.pool.cfg.PageTokens, t.nodes[i].start
	for _, k := range n.marks {
		m := &t.marks[k]
		if m.node != i || m.n <= last || m.n > n.end() || len(m.windows) != len(t.pool.groups)-t.full || len(m.state) != t.pool.statePages {
			return fmt.Errorf("mark %+v after token %d", *m, last)
		}
		last = m.n
		for g, w := range m.windows {
			if w.from > t.pool.since(t.full+g, m.n) || len(w.pages) != t.pool.pagesOf(m.n)-w.from/size {
				return fmt.Errorf("mark at %d tokens: %d pages from token %d on", m.n, len(w.pages), w.from)
			}
			for k, id := range w.pages {
				if used := min(m.n-(w.from/size+k)*size, size); used > int(t.pool.pages[id].fill) {
					return fmt.Errorf("mark at %d tokens: entry %d holds %d, its page is filled up to %d", m.n, k, used, t.pool.pages[id].fill)
				}
			}
		}
		m.each(func(id int32) { inTree[id]++ })
	}
	if t.Marked() && n.child == none && last != n.end() {
		return fmt.Errorf("the leaf ends at %d tokens, its last mark is at %d", n.end(), last)
	}
	return nil
}

// checkMarks checks the list of last use of marks.
func (t *Tree) checkMarks() error {
	n := 0
	for i := t.marks[listEnd].newer; i != listEnd; i = t.marks[i].newer {
		if n++; n > len(t.marks) || t.marks[t.marks[i].newer].older != i || t.marks[i].node == none {
			return fmt.Errorf("list of marks is broken at %d", i)
		}
	}
	if n != len(t.marks)-1-len(t.unused) {
		return fmt.Errorf("list of marks: expected %d, found %d", len(t.marks)-1-len(t.unused), n)
	}
	return nil
}

// checkList checks the list of last use, which must have the given length.
func (t *Tree) checkList(want int) error {
	age := make([]int, len(t.nodes)) // place in the list, from the oldest
	n := 0
	for i := t.nodes[listEnd].newer; i != listEnd; i = t.nodes[i].newer {
		if n++; n > want || t.nodes[t.nodes[i].older].newer != i {
			return fmt.Errorf("list of last use is broken at node %d", i)
		}
		age[i] = n
	}
	if n != want {
		return fmt.Errorf("list of last use: expected %d nodes, found %d", want, n)
	}
	for i := range t.nodes {
		if p := t.nodes[i].parent; p != none && t.nodes[p].parent != none && age[p] < age[i] {
			return fmt.Errorf("node %d was used after its parent %d", i, p)
		}
	}
	return nil
}
