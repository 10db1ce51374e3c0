package kvcache

import (
	"fmt"
	"slices"
	"time"
)

// Tree is a radix tree over the tokens of sequences that were computed: it
// finds the longest prefix of a new sequence whose keys and values exist
// already. Prefixes are found to the token, though memory is shared by pages
// (RadixAttention: Zheng et al., SGLang: Efficient Execution of Structured
// Language Model Programs, 2024).
//
// What a layer stores for a token depends on the tokens up to it and on
// nothing else, so equal prefixes have equal pages. This holds only for
// sequences whose keys and values are what the model computed: one that was
// changed by an eviction policy must not be inserted.
//
// Each tenant has a tree of its own, chosen by a salt: a tenant never hits
// what another has computed, and so cannot learn it from the time it takes.
//
// A run of tokens that ends within a page is continued by its children in
// copies of that page. The page is kept by the children then, each its own;
// only a leaf keeps a page that is not full. So every page is in one node, and
// any child of a node has the page that the node's last tokens lie in.
//
// Nodes have the pages of groups that see all tokens. If there are layers with
// windows or states, a sequence can only be continued at some lengths: see mark.
type Tree struct {
	pool     *Pool
	full     int // groups that see all tokens, and so pages of a node for one page of tokens
	nodes    []node
	spare    []int32 // unused nodes
	roots    map[string]int32
	children map[edge]int32
	path     []int32 // of the walk at hand
	marks    []mark
	unused   []int32 // marks
	stats    TreeStats
	now      time.Duration // see Tick
}

// nodes[0] ends the list of nodes by their last use: newest first.
const listEnd = 0

// none is the missing parent, child or sibling.
const none = 0

// edge leads from a node to the child whose first token is given.
type edge struct{ node, token int32 }

// node is a run of tokens. A root has no tokens.
type node struct {
	tokens []int32
	start  int     // tokens before the run
	keep   int     // length up to which it is pinned, 0 for not at all
	pages  []int32 // from page start/PageTokens on, of each full group: all of a leaf's, the full ones of others
	marks  []int32 // by length

	parent, child, next, prev int32 // first child; siblings
	newer, older              int32 // neighbours in the order of last use
	salt                      string

	used        time.Duration // when it was used last
	hits, saved int64         // see MapNode
}

func (n *node) end() int { return n.start + len(n.tokens) }

// TreeStats are counters of a tree. Hit and miss count tokens that Match was
// asked for.
type TreeStats struct {
	Lookups, Hits         int64 // calls of Match, and those that found something
	HitTokens, MissTokens int64
	Inserted              int64 // tokens
	Shared                int64 // pages of inserted sequences that the tree had already and that were given back
	Evicted               int64 // pages
	Nodes, Pages          int   // now
	Marks                 int   // now: lengths at which layers with windows or states can continue
}

// NewTree returns an empty tree over the pages of p. A pool has one tree; it
// panics if p has one.
func NewTree(p *Pool) *Tree {
	if p.tree != nil {
		panic("kvcache: the pool has a tree already")
	}
	t := &Tree{pool: p, full: p.full, nodes: make([]node, 1), marks: make([]mark, 1), roots: map[string]int32{}, children: map[edge]int32{}}
	p.tree = t
	return t
}

// Stats returns the tree's counters.
func (t *Tree) Stats() TreeStats {
	s := t.stats
	s.Nodes, s.Marks = len(t.nodes)-1-len(t.spare), len(t.marks)-1-len(t.unused)
	return s
}

// walk follows tokens from the root of salt, as far as they are known, and
// leaves the nodes on the way in t.path. It returns the number of tokens that
// were found; the last of them may be within the last node.
func (t *Tree) walk(salt string, tokens []int32) int {
	t.path = t.path[:0]
	at, ok := t.roots[salt]
	if !ok {
		return 0
	}
	t.path = append(t.path, at)
	n := 0
	for n < len(tokens) {
		c, ok := t.children[edge{at, tokens[n]}]
		if !ok {
			break
		}
		t.path = append(t.path, c)
		run := t.nodes[c].tokens
		m := common(run, tokens[n:])
		n += m
		if m < len(run) {
			break
		}
		at = c
	}
	return n
}

// common returns the length of the common prefix of a and b.
func common(a, b []int32) int {
	n := min(len(a), len(b))
	for i, x := range a[:n] {
		if b[i] != x {
			return i
		}
	}
	return n
}

// prefixPages calls do with the pages that the full groups have of the first n
// tokens on t.path, in order; i counts them.
func (t *Tree) prefixPages(n int, do func(i int, id int32)) {
	have, want := 0, t.pool.pagesOf(n)*t.full
	for _, i := range t.path {
		for _, id := range t.nodes[i].pages {
			if have < want {
				do(have, id)
				have++
			}
		}
	}
	if have < want {
		// The last tokens are in a page of which each child has a copy.
		for _, id := range t.tailPages(t.path[len(t.path)-1]) {
			do(have, id)
			have++
		}
	}
}

// tailPages returns pages that have the tokens of node i after its last full
// page.
func (t *Tree) tailPages(i int32) []int32 {
	for i = t.nodes[i].child; len(t.nodes[i].pages) == 0; {
		i = t.nodes[i].child
	}
	return t.nodes[i].pages[:t.full]
}

// Match returns a sequence that holds the longest prefix of tokens that is
// known under salt and that all layers can continue. It shares the tree's pages,
// which stay as long as the sequence has them. A caller that wants logits leaves
// the last token out: one must be computed.
func (t *Tree) Match(salt string, tokens []int32) *Seq {
	n, m := t.resume(t.walk(salt, tokens))
	if m != none {
		t.touchMark(m)
	}
	t.touch(n)
	t.stats.Lookups++
	t.stats.HitTokens += int64(n)
	t.stats.MissTokens += int64(len(tokens) - n)
	if n > 0 {
		t.stats.Hits++
		t.hit(n)
	}
	return t.take(n, m)
}

// take returns a sequence of the first n tokens of t.path, which continues with
// what mark m has.
func (t *Tree) take(n int, m int32) *Seq {
	s := t.pool.NewSeq()
	if n == 0 {
		return s
	}
	t.prefixPages(n, func(i int, id int32) {
		t.pool.share(id)
		t.pool.push(&s.tables[i%t.full], id)
	})
	if m != none {
		t.shareMark(s, m, n)
	}
	s.n = n
	return s
}

// Peek tells what Match would find, without any effect: the tokens, their
// pages, and how many of these are available until Match takes them.
func (t *Tree) Peek(salt string, tokens []int32) (n, pages, available int) {
	n, m := t.resume(t.walk(salt, tokens))
	if n == 0 {
		return 0, 0, 0
	}
	count := func(id int32) {
		pages++
		if t.pool.pages[id].onlyCached() {
			available++
		}
	}
	t.prefixPages(n, func(_ int, id int32) { count(id) })
	if m != none {
		t.markPages(m, n, func(_ int, id int32) { count(id) })
	}
	return n, pages, available
}

// Need returns the tokens that Match would find, and the pages that must be
// available before it so that the sequence can grow to wanted tokens, by step at
// a time as [Pool.PagesInSteps] says.
func (t *Tree) Need(salt string, tokens []int32, wanted, step int) (found, need int) {
	p := t.pool
	found, m := t.resume(t.walk(salt, tokens))
	need = p.PagesInSteps(nil, wanted, step)
	if found == 0 {
		return 0, need
	}
	if found%p.cfg.PageTokens != 0 {
		need += len(p.groups) // for copies of the pages that the prefix ends in
	}
	has := func(id int32) { // it does not count, but must not be counted as available either
		if !p.pages[id].onlyCached() {
			need--
		}
	}
	t.prefixPages(found, func(_ int, id int32) { has(id) })
	if m != none {
		t.markPages(m, found, func(g int, id int32) {
			// What leaves the window again is no gain.
			if g >= 0 && p.spanOf(p.groups[g].window, wanted, step) == p.pagesOf(wanted) {
				has(id)
			}
		})
	}
	return found, need
}

// Insert publishes under salt the sequence s, whose first tokens are given and
// computed, and returns how many of them are new. The tree shares the pages of
// s. Where it knows the tokens already, s gets the tree's full pages and its
// own are given back. A page that is published under another salt is not
// published again, nor is a sequence that could not be continued at its end
// because it lacks a window or a state there.
func (t *Tree) Insert(salt string, tokens []int32, s *Seq) int {
	return t.insert(salt, tokens, s, true)
}

// InsertPart is Insert for a sequence that goes on at once: when it has been
// published up to a longer length, it need not be continued at this one. Nothing
// is different for a model that only has layers that see all tokens.
func (t *Tree) InsertPart(salt string, tokens []int32, s *Seq) int {
	return t.insert(salt, tokens, s, false)
}

func (t *Tree) insert(salt string, tokens []int32, s *Seq, firm bool) int {
	if len(tokens) > s.n {
		panic(fmt.Sprintf("kvcache: insert: %d tokens of a sequence of %d", len(tokens), s.n))
	}
	marked := t.Marked()
	if len(tokens) == 0 || marked && !t.canMark(s, len(tokens)) {
		return 0
	}
	n := t.walk(salt, tokens)
	t.adopt(s, n)
	end := max(n, t.unpublished(s, n, len(tokens)))
	if marked && !t.canMark(s, end) {
		end = n
	}
	if n < end {
		t.add(salt, tokens[:end], s, n)
	}
	if marked && (n < end || firm && end == len(tokens)) {
		t.mark(t.path[len(t.path)-1], s, end, firm)
	}
	t.touch(end)
	t.stats.Inserted += int64(end - n)
	return end - n
}

// unpublished returns the end of the tokens of s, from n up to end, whose pages
// the tree does not have yet; it may have those that n is in, at the end of
// t.path.
func (t *Tree) unpublished(s *Seq, n, end int) int {
	size, own := t.pool.cfg.PageTokens, []int32(nil)
	if len(t.path) > 0 {
		if last := &t.nodes[t.path[len(t.path)-1]]; last.end() == n && len(last.pages) > 0 {
			own = last.pages[len(last.pages)-t.full:]
		}
	}
	for i := n / size; i*size < end; i++ {
		for g := range t.full {
			if id := s.tables[g].pages[i]; !slices.Contains(own, id) && t.pool.pages[id].cached > 0 {
				return i * size
			}
		}
	}
	return end
}

// adopt replaces the pages of s that n known tokens fill by those of the tree.
func (t *Tree) adopt(s *Seq, n int) {
	full := n / t.pool.cfg.PageTokens
	t.prefixPages(n, func(i int, id int32) {
		if k := i / t.full; k < full {
			t.swap(&s.tables[i%t.full], k, id)
		}
	})
}

// swap replaces page i of a sequence's table by a page of the tree with the same
// contents.
func (t *Tree) swap(tab *table, i int, id int32) {
	if old := tab.pages[i]; old != id {
		t.pool.share(id)
		t.pool.release(old)
		tab.pages[i], tab.bases[i] = id, &t.pool.bytes(id)[0]
		t.stats.Shared++
	}
}

// add stores the tokens of s from the n-th on; t.path leads to them.
func (t *Tree) add(salt string, tokens []int32, s *Seq, n int) {
	if len(t.path) == 0 {
		r := t.newNode()
		t.nodes[r].salt = salt
		t.roots[salt] = r
		t.path = append(t.path, r)
	}
	at := t.path[len(t.path)-1]
	if n < t.nodes[at].end() {
		at = t.split(at, n)
		t.path[len(t.path)-1] = at
	}
	switch nd := &t.nodes[at]; {
	case nd.child != none || nd.parent == none:
		if nd.parent != none && t.Marked() && t.canMark(s, n) {
			t.mark(at, s, n, true) // others are likely to come here, too
		}
		leaf := t.newNode()
		t.nodes[leaf].start = n
		t.link(leaf, at, tokens[n])
		t.list(leaf, t.nodes[listEnd].older)
		t.path = append(t.path, leaf)
		at = leaf
		t.extend(at, tokens, s, n)
	default:
		t.extend(at, tokens, s, n)
		t.passed(at, n)
	}
}

// extend appends the tokens from the n-th on to leaf at, which ends there.
func (t *Tree) extend(at int32, tokens []int32, s *Seq, n int) {
	nd, size := &t.nodes[at], t.pool.cfg.PageTokens
	nd.tokens = append(nd.tokens, tokens[n:]...)
	first := nd.start / size
	for i := n / size; i < t.pool.pagesOf(len(tokens)); i++ {
		for g := range t.full {
			id := s.tables[g].pages[i]
			switch k := (i-first)*t.full + g; {
			case k == len(nd.pages):
				nd.pages = append(nd.pages, id)
			case nd.pages[k] == id:
				continue // s went on in the page that the tree has
			default:
				t.drop(nd.pages[k])
				nd.pages[k] = id
			}
			t.hold(id)
		}
	}
}

// hold keeps a page of a sequence.
func (t *Tree) hold(id int32) {
	if t.pool.hold(id) {
		t.stats.Pages++
	}
}

// drop gives one hold of a page up and says whether the page became free.
func (t *Tree) drop(id int32) bool {
	if t.pool.pages[id].cached == 1 {
		t.stats.Pages--
	}
	return t.pool.drop(id)
}

// split cuts node i before token n and returns the new node with the tokens
// before it.
func (t *Tree) split(i int32, n int) int32 {
	up := t.newNode()
	head, tail := &t.nodes[up], &t.nodes[i]
	cut, pages := n-tail.start, (n/t.pool.cfg.PageTokens-tail.start/t.pool.cfg.PageTokens)*t.full
	head.start, head.tokens, head.pages = tail.start, tail.tokens[:cut:cut], tail.pages[:pages:pages]
	parent := tail.parent
	t.unlink(i)
	t.link(up, parent, head.tokens[0])
	tail.start, tail.tokens, tail.pages = n, tail.tokens[cut:], tail.pages[pages:]
	t.link(i, up, tail.tokens[0])
	t.list(up, i)
	t.splitMarks(i, up, n)
	t.splitPin(i, up, n)
	t.splitHits(i, up)
	return up
}
