package kvcache

import (
	"cmp"
	"slices"
	"time"
)

// PageUse says what a page is used for.
type PageUse byte

// The uses. Each page has one.
const (
	PageFree   PageUse = 'f' // nobody holds it, or its memory is not taken yet
	PageUsed   PageUse = 'u' // a sequence holds it
	PageShared PageUse = 's' // several sequences do
	PageState  PageUse = 'r' // it has a recurrent state of a sequence
	PageCached PageUse = 'c' // only the prefix tree holds it: it is given when needed
	PagePinned PageUse = 'p' // only the tree does, and gives it last
)

// Map is what all pages of a pool are used for at one moment. Its slices but Nodes have
// an entry for each page.
type Map struct {
	Use    []PageUse
	Owner  []int32 // index of the first sequence that holds it, -1 for none
	Owners []int32 // sequences that hold it
	Tokens []int32 // slots filled
	Age    []int32 // seconds since its last use; 0 while a sequence holds it

	PageTokens int
	PageBytes  int64
	Windows    []int // of each group of layers, in tokens; 0 for all
	Nodes      []MapNode
}

// MapNode is a run of tokens in the prefix tree.
type MapNode struct {
	Node   int32
	Parent int32 // -1 for none
	Salt   string
	Start  int // tokens before it
	Tokens int
	Users  int   // sequences that hold pages of it
	Hits   int64 // how often sequences found it, or some of its tokens
	Saved  int64 // tokens of it that did not have to be computed therefore
	Pinned bool
	Age    time.Duration // since its last use
	Head   []int32       // its first tokens, if they were asked for
}

// MapOptions say how much a map has.
type MapOptions struct {
	Now   time.Duration // on the clock of [Tree.Tick]
	Nodes int           // at most, the most used ones, with all that lead to them
	Head  int           // tokens of each that are copied
}

// Tick tells the tree what time it is: what is used from now on was used then.
func (t *Tree) Tick(now time.Duration) { t.now = now }

// Map looks at all pages once. seqs must be all sequences that hold tokens.
func (p *Pool) Map(seqs []*Seq, o MapOptions) *Map {
	n := len(p.pages)
	m := &Map{Use: make([]PageUse, n), Owner: make([]int32, n), Owners: make([]int32, n), Tokens: make([]int32, n), Age: make([]int32, n),
		PageTokens: p.cfg.PageTokens, PageBytes: int64(p.pageBytes)}
	for _, g := range p.groups {
		m.Windows = append(m.Windows, g.window)
	}
	for i := range m.Use {
		m.Use[i], m.Owner[i] = PageFree, -1
		if pg := &p.pages[i]; pg.refs > 0 {
			m.Use[i], m.Tokens[i] = PageCached, pg.fill
		}
	}
	if p.tree != nil {
		p.tree.mapPages(m, o.Now)
	}
	last := make([]int32, n) // the last sequence that was counted, its index and one
	for i, s := range seqs {
		hold := func(id int32, use PageUse) {
			if last[id] == int32(i)+1 {
				return
			}
			last[id] = int32(i) + 1
			if m.Owners[id]++; m.Owners[id] == 1 {
				m.Owner[id], m.Use[id], m.Age[id] = int32(i), use, 0
			} else if m.Use[id] == PageUsed {
				m.Use[id] = PageShared
			}
		}
		for g := range s.tables {
			for _, id := range s.tables[g].held(p.cfg.PageTokens) {
				hold(id, PageUsed)
			}
		}
		for _, id := range s.state {
			hold(id, PageState)
		}
		for _, c := range s.saved {
			for _, id := range c.pages {
				hold(id, PageState)
			}
		}
	}
	if p.tree != nil {
		m.Nodes = p.tree.mapNodes(o)
	}
	return m
}

// mapPages enters the pages that t holds, with their age and whether they are pinned.
func (t *Tree) mapPages(m *Map, now time.Duration) {
	note := func(id int32, used time.Duration, pinned bool) {
		if pinned {
			m.Use[id] = PagePinned
		}
		age := int32(max(0, now-used)/time.Second) + 1 // 0 for none yet
		if m.Age[id] == 0 || age < m.Age[id] {
			m.Age[id] = age
		}
	}
	size := t.pool.cfg.PageTokens
	for i := range t.nodes {
		n := &t.nodes[i]
		for k, id := range n.pages {
			note(id, n.used, (n.start/size+k/t.full)*size < n.keep)
		}
	}
	t.eachMark(func(i int32) {
		mk := &t.marks[i]
		mk.each(func(id int32) { note(id, mk.used, mk.pinned) })
	})
	for i := range m.Age {
		m.Age[i] = max(0, m.Age[i]-1)
	}
}

// mapNodes lists runs of tokens, the most used ones first.
func (t *Tree) mapNodes(o MapOptions) []MapNode {
	var live []int32
	for i := range t.nodes {
		if t.nodes[i].parent != none {
			live = append(live, int32(i))
		}
	}
	slices.SortFunc(live, func(a, b int32) int {
		x, y := &t.nodes[a], &t.nodes[b]
		return cmp.Or(cmp.Compare(y.hits, x.hits), cmp.Compare(y.used, x.used), cmp.Compare(x.start, y.start), cmp.Compare(a, b))
	})
	in := map[int32]bool{}
	var out []MapNode
	var path []int32
	for _, i := range live {
		path = path[:0]
		for at := i; t.nodes[at].parent != none && !in[at]; at = t.nodes[at].parent {
			path = append(path, at)
		}
		if len(out)+len(path) > o.Nodes {
			continue
		}
		for _, at := range slices.Backward(path) {
			in[at] = true
			out = append(out, t.mapNode(at, &o))
		}
	}
	return out
}

func (t *Tree) mapNode(i int32, o *MapOptions) MapNode {
	n := &t.nodes[i]
	x := MapNode{Node: i, Parent: n.parent, Start: n.start, Tokens: len(n.tokens), Users: t.users(i), Hits: n.hits, Saved: n.saved,
		Pinned: n.keep > n.start, Age: max(0, o.Now-n.used), Head: slices.Clone(n.tokens[:min(len(n.tokens), o.Head)])}
	if t.nodes[n.parent].parent == none {
		x.Parent = -1
	}
	root := i
	for t.nodes[root].parent != none {
		root = t.nodes[root].parent
	}
	x.Salt = t.nodes[root].salt
	return x
}

// users returns the sequences that hold the first page of node i; where that is in its
// children, those of all of them.
func (t *Tree) users(i int32) (count int) {
	n := &t.nodes[i]
	if len(n.pages) > 0 {
		pg := &t.pool.pages[n.pages[0]]
		return int(pg.refs - pg.cached)
	}
	for c := n.child; c != none; c = t.nodes[c].next {
		count += t.users(c)
	}
	return count
}

// hit notes that a sequence found the first n tokens of t.path.
func (t *Tree) hit(n int) {
	for _, i := range t.path {
		if nd := &t.nodes[i]; nd.start < n && nd.parent != none {
			nd.hits++
			nd.saved += int64(min(nd.end(), n) - nd.start)
		}
	}
}

// splitHits divides what is known of the use of node i, from which the node up before it
// was cut off: whoever came to i had found all of up, or was the one who ended there.
func (t *Tree) splitHits(i, up int32) {
	head, tail := &t.nodes[up], &t.nodes[i]
	head.used, head.hits = tail.used, tail.hits
	head.saved = min(tail.saved, tail.hits*int64(len(head.tokens)))
	tail.saved -= head.saved
	length := int64(len(tail.tokens))
	tail.hits = min(tail.hits, (tail.saved+length-1)/length)
}
