package kvcache

import "fmt"

// Check verifies the pool's bookkeeping against the sequences given, which
// must be all that hold tokens: every page is either free or held, and by
// exactly those who are counted; the same for state slots; the tree is whole;
// and the sums are right. It is for tests and for an idle server.
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
	inTree := make([]bool, len(p.pages))
	if p.tree != nil {
		if err := p.tree.check(inTree); err != nil {
			return fmt.Errorf("kvcache: tree: %w", err)
		}
	}
	if err := p.checkPages(held, inTree); err != nil {
		return err
	}
	if err := p.checkChunks(); err != nil {
		return err
	}
	return p.checkStates(seqs)
}

// checkSeq checks one sequence and counts its pages in held.
func (p *Pool) checkSeq(s *Seq, held []int32) error {
	if want := p.pagesOf(s.n); len(s.pages) != want || len(s.bases) != want {
		return fmt.Errorf("expected %d pages, found %d and %d addresses", want, len(s.pages), len(s.bases))
	}
	if s.first > s.n || s.first%TileTokens != 0 || s.first > 0 && p.window == 0 {
		return fmt.Errorf("first token %d", s.first)
	}
	for i, id := range s.pages {
		if gone := i < s.first/p.cfg.PageTokens; gone != (id == noPage) || gone != (s.bases[i] == nil) {
			return fmt.Errorf("entry %d is page %d, the first token is %d", i, id, s.first)
		}
		if id == noPage {
			continue
		}
		if s.bases[i] != &p.bytes(id)[0] {
			return fmt.Errorf("entry %d has the address of another page", i)
		}
		if used := min(s.n-i*p.cfg.PageTokens, p.cfg.PageTokens); used > int(p.pages[id].fill) {
			return fmt.Errorf("entry %d holds %d tokens, its page is filled up to %d", i, used, p.pages[id].fill)
		}
		held[id]++
	}
	return nil
}

// checkPages checks each page against who holds it, and the sums over pages.
func (p *Pool) checkPages(held []int32, inTree []bool) error {
	free := make([]bool, len(p.pages))
	for _, id := range p.free {
		if free[id] {
			return fmt.Errorf("kvcache: page %d is free twice", id)
		}
		free[id] = true
	}
	reclaimable, inUse, cached := 0, 0, 0
	for id := range p.pages {
		pg, want := &p.pages[id], held[id]
		if inTree[id] {
			want++
		}
		if pg.refs != want || pg.cached != inTree[id] || free[id] != (want == 0 && p.has(int32(id))) {
			return fmt.Errorf("kvcache: page %d: expected %d holders, in the tree: %v, found %d, %v, free: %v", id, want, inTree[id], pg.refs, pg.cached, free[id])
		}
		if pg.fill < 0 || int(pg.fill) > p.cfg.PageTokens {
			return fmt.Errorf("kvcache: page %d: %d slots filled", id, pg.fill)
		}
		switch {
		case held[id] > 0:
			inUse += int(pg.fill)
		case inTree[id]:
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

// checkStates checks that each state slot is free or belongs to one sequence.
func (p *Pool) checkStates(seqs []*Seq) error {
	owner := make([]int, p.states.slots+1)
	for _, i := range p.states.free {
		owner[i]++
	}
	for _, s := range seqs {
		if (s.state != noState) != (p.states.bytes > 0 && s.n > 0) {
			return fmt.Errorf("kvcache: a sequence of %d tokens has state %d", s.n, s.state)
		}
		if s.state != noState {
			owner[s.state]++
		}
		last := 0
		for _, c := range s.saved {
			if c.n <= last || c.n > s.n {
				return fmt.Errorf("kvcache: checkpoint at %d tokens after one at %d, in a sequence of %d", c.n, last, s.n)
			}
			last = c.n
			owner[c.slot]++
		}
	}
	for i, n := range owner[1:] {
		if n != 1 {
			return fmt.Errorf("kvcache: state slot %d has %d owners", i+1, n)
		}
	}
	return nil
}

// check verifies the tree's structure and marks its pages.
func (t *Tree) check(inTree []bool) error {
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
		if in {
			pages++
		}
	}
	if pages != t.stats.Pages {
		return fmt.Errorf("expected %d pages, found %d", t.stats.Pages, pages)
	}
	return t.checkList(live - len(t.roots))
}

// checkNode checks node i and those below it, and returns how many they are.
func (t *Tree) checkNode(i int32, inTree []bool) (int, error) {
	n, size := &t.nodes[i], t.pool.cfg.PageTokens
	want := n.end()/size - n.start/size
	if n.child == none {
		want = t.pool.pagesOf(n.end()) - n.start/size
	}
	if len(n.pages) != want || n.parent != none && len(n.tokens) == 0 {
		return 0, fmt.Errorf("node %d: tokens %d to %d, leaf: %v: expected %d pages, found %d", i, n.start, n.end(), n.child == none, want, len(n.pages))
	}
	for k, id := range n.pages {
		if inTree[id] {
			return 0, fmt.Errorf("page %d is in two nodes, one is %d", id, i)
		}
		inTree[id] = true
		if used := min(n.end()-(n.start/size+k)*size, size); used > int(t.pool.pages[id].fill) {
			return 0, fmt.Errorf("node %d: entry %d holds %d tokens, its page is filled up to %d", i, k, used, t.pool.pages[id].fill)
		}
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
