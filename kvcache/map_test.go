package kvcache

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"ridge/weights/tensor"
)

// checkMap compares the map of the pool with a plain walk over all that holds pages.
func (w *world) checkMap() error {
	if w.tree != nil {
		w.tree.Tick(w.tree.now + time.Second)
	}
	now := time.Duration(math.MaxInt64)
	if w.tree != nil {
		now = w.tree.now
	}
	m := w.p.Map(w.seqs, MapOptions{Now: now, Nodes: math.MaxInt, Head: 3})
	type page struct {
		seqs       []int
		state      bool
		tree, pins int
	}
	pages := make([]page, len(w.p.pages))
	for i, s := range w.seqs {
		hold := func(id int32, state bool) {
			if id != noPage && !slices.Contains(pages[id].seqs, i) {
				pages[id].seqs, pages[id].state = append(pages[id].seqs, i), state
			}
		}
		for _, t := range s.tables {
			for _, id := range t.pages {
				hold(id, false)
			}
		}
		states := slices.Clone(s.state)
		for _, c := range s.saved {
			states = append(states, c.pages...)
		}
		for _, id := range states {
			hold(id, true)
		}
	}
	if w.tree != nil {
		for i := range w.tree.nodes {
			n := &w.tree.nodes[i]
			for k, id := range n.pages {
				pages[id].tree++
				if first := n.start - n.start%w.size + k/w.p.full*w.size; first < n.keep {
					pages[id].pins++
				}
			}
		}
		for i := range w.tree.marks {
			w.tree.marks[i].each(func(id int32) {
				pages[id].tree++
				if w.tree.marks[i].pinned {
					pages[id].pins++
				}
			})
		}
	}
	counts, tokens := map[PageUse]int{}, map[PageUse]int{}
	for id, p := range pages {
		use, owner := PageFree, int32(-1)
		switch {
		case len(p.seqs) > 0 && p.state:
			use = PageState
		case len(p.seqs) > 1:
			use = PageShared
		case len(p.seqs) == 1:
			use = PageUsed
		case p.pins > 0:
			use = PagePinned
		case p.tree > 0:
			use = PageCached
		}
		if len(p.seqs) > 0 {
			owner = int32(p.seqs[0])
		}
		if m.Use[id] != use || m.Owner[id] != owner || int(m.Owners[id]) != len(p.seqs) || len(p.seqs) > 0 && m.Age[id] != 0 {
			return fmt.Errorf("map: page %d: %c of %d, %d owners, age %d; want %c, %d, %d", id, m.Use[id], m.Owner[id], m.Owners[id], m.Age[id], use, owner, len(p.seqs))
		}
		counts[use]++
		tokens[use] += int(m.Tokens[id])
	}
	st, u := w.p.Stats(), w.p.Usage()
	if counts[PageFree] != st.Free || counts[PageCached]+counts[PagePinned] != st.Cached || tokens[PageUsed]+tokens[PageShared]+tokens[PageState] != u.Used || tokens[PageFree] != 0 {
		return fmt.Errorf("map: pages %v, slots %v; the pool has %+v, %+v", counts, tokens, st, u)
	}
	return w.checkNodes(m)
}

// checkNodes compares the runs of tokens of a map with a walk from the roots.
func (w *world) checkNodes(m *Map) error {
	if w.tree == nil {
		return nil
	}
	seen, saved := map[int32]*MapNode{}, int64(0)
	for i := range m.Nodes {
		x := &m.Nodes[i]
		seen[x.Node] = x
		if saved += x.Saved; x.Saved > 0 && x.Hits == 0 || x.Parent >= 0 && seen[x.Parent] == nil {
			return fmt.Errorf("map: node %+v", *x)
		}
	}
	if st := w.tree.Stats(); saved > st.HitTokens {
		return fmt.Errorf("map: %d tokens were saved, the tree counts %+v", saved, st)
	}
	n := 0
	var walk func(i, parent int32, salt string) (users int, err error)
	walk = func(i, parent int32, salt string) (users int, err error) {
		nd := &w.tree.nodes[i]
		for c := nd.child; c != none; c = w.tree.nodes[c].next {
			p := i
			if nd.parent == none {
				p = -1
			}
			below, err := walk(c, p, salt)
			if err != nil {
				return 0, err
			}
			users += below
		}
		if nd.parent == none {
			return users, nil
		}
		n++
		if len(nd.pages) > 0 {
			users = 0
			for _, s := range w.seqs {
				if slices.Contains(s.tables[0].pages, nd.pages[0]) {
					users++
				}
			}
		}
		x := seen[i]
		if x == nil || x.Parent != parent || x.Salt != salt || x.Start != nd.start || x.Tokens != len(nd.tokens) || x.Users != users || x.Pinned != (nd.keep > nd.start) || !slices.Equal(x.Head, nd.tokens[:min(3, len(nd.tokens))]) {
			return 0, fmt.Errorf("map: node %d is %+v, want %+v with %d users", i, x, *nd, users)
		}
		return users, nil
	}
	for salt, r := range w.tree.roots {
		if _, err := walk(r, -1, salt); err != nil {
			return err
		}
	}
	if n != len(m.Nodes) {
		return fmt.Errorf("map: %d nodes, want %d", len(m.Nodes), n)
	}
	few := w.p.Map(w.seqs, MapOptions{Nodes: 3}).Nodes
	for i, x := range few {
		if len(few) > 3 || x.Parent >= 0 && !slices.ContainsFunc(few[:i], func(y MapNode) bool { return y.Node == x.Parent }) {
			return fmt.Errorf("map: of few nodes %+v", few)
		}
	}
	return nil
}

// Who is found often is told first, with what it saved, also when it is cut in two.
func TestMapHits(t *testing.T) {
	p, err := New(Config{Layers: []LayerShape{{Heads: 1, KDim: 8, VDim: 8}}, PageTokens: 16, DType: tensor.F16, MaxBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	tree := NewTree(p)
	tokens := make([]int32, 100)
	for i := range tokens {
		tokens[i] = int32(i)
	}
	publish := func(tokens []int32) {
		s := tree.Match("", tokens)
		if err := p.Grow(s, len(tokens)-s.Len()); err != nil {
			t.Fatal(err)
		}
		tree.Insert("", tokens, s)
		p.Free(s)
	}
	publish(tokens)
	tree.Tick(5 * time.Second)
	p.Free(tree.Match("", tokens))
	tree.Tick(7 * time.Second)
	publish(append(slices.Clone(tokens[:60]), 7, 7, 7)) // found 60, and cuts behind them
	m := p.Map(nil, MapOptions{Now: 10 * time.Second, Nodes: 10})
	got := ""
	for _, n := range m.Nodes {
		got += fmt.Sprintf("%d+%d hits %d saved %d age %v; ", n.Start, n.Tokens, n.Hits, n.Saved, n.Age)
	}
	if want := "0+60 hits 2 saved 120 age 3s; 60+40 hits 1 saved 40 age 3s; 60+3 hits 0 saved 0 age 3s; "; got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
	if m.Age[0] != 3 {
		t.Errorf("ages %v", m.Age[:10])
	}
}

// BenchmarkMap looks at ten thousand pages of some sequences and a large tree.
func BenchmarkMap(b *testing.B) {
	cfg := Config{Layers: []LayerShape{{Heads: 1, KDim: 8, VDim: 8}}, PageTokens: 16, DType: tensor.F16, MaxBytes: 1}
	p, err := New(cfg)
	if err != nil {
		b.Fatal(err)
	}
	cfg.MaxBytes = 10000 * p.PageBytes()
	p.Close()
	if p, err = New(cfg); err != nil {
		b.Fatal(err)
	}
	defer p.Close()
	tree := NewTree(p)
	var seqs []*Seq
	for i := range 1200 {
		tokens := make([]int32, 128)
		for k := range tokens {
			tokens[k] = int32(min(k, 40) + i*(k/40))
		}
		s := tree.Match("", tokens)
		if err := p.Grow(s, len(tokens)-s.Len()); err != nil {
			b.Fatal(err)
		}
		tree.Insert("", tokens, s)
		if seqs = append(seqs, s); len(seqs) > 64 {
			p.Free(seqs[0])
			seqs = seqs[1:]
		}
	}
	for b.Loop() {
		p.Map(seqs, MapOptions{Nodes: 500, Head: 40})
	}
}
