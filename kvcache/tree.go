package kvcache

import (
	"fmt"
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
type Tree struct {
	pool     *Pool
	nodes    []node
	spare    []int32 // unused nodes
	roots    map[string]int32
	children map[edge]int32
	path     []int32 // of the walk at hand
	stats    TreeStats
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
	pages  []int32 // from page start/PageTokens on: all of a leaf's, the full ones of others

	parent, child, next, prev int32 // first child; siblings
	newer, older              int32 // neighbours in the order of last use
	salt                      string
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
}

// NewTree returns an empty tree over the pages of p. A pool has one tree; it
// panics if p has one.
func NewTree(p *Pool) *Tree {
	if p.tree != nil {
		panic("kvcache: the pool has a tree already")
	}
	t := &Tree{pool: p, nodes: make([]node, 1), roots: map[string]int32{}, children: map[edge]int32{}}
	p.tree = t
	return t
}

// Stats returns the tree's counters.
func (t *Tree) Stats() TreeStats {
	s := t.stats
	s.Nodes = len(t.nodes) - 1 - len(t.spare)
	return s
}

// usable says whether sequences of the pool can be shared at all. The state of
// a recurrent layer at a prefix is gone when the sequence has moved on.
func (t *Tree) usable() bool { return t.pool.states.bytes == 0 }

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

// prefixPages calls do with the pages of the first n tokens on t.path, in
// order.
func (t *Tree) prefixPages(n int, do func(id int32)) {
	have, want := 0, t.pool.pagesOf(n)
	for _, i := range t.path {
		for _, id := range t.nodes[i].pages {
			if have < want {
				do(id)
				have++
			}
		}
	}
	if have < want {
		// The last tokens are in a page of which each child has a copy.
		do(t.tailPage(t.path[len(t.path)-1]))
	}
}

// tailPage returns a page that has the tokens of node i after its last full
// page.
func (t *Tree) tailPage(i int32) int32 {
	for i = t.nodes[i].child; len(t.nodes[i].pages) == 0; {
		i = t.nodes[i].child
	}
	return t.nodes[i].pages[0]
}

// Match returns a sequence that holds the longest prefix of tokens that is
// known under salt. It shares the tree's pages, which stay as long as the
// sequence has them. A caller that wants logits leaves the last token out:
// one must be computed.
func (t *Tree) Match(salt string, tokens []int32) *Seq {
	s := t.pool.NewSeq()
	n := t.walk(salt, tokens)
	t.touch()
	t.stats.Lookups++
	t.stats.HitTokens += int64(n)
	t.stats.MissTokens += int64(len(tokens) - n)
	if n == 0 {
		return s
	}
	t.stats.Hits++
	t.prefixPages(n, func(id int32) {
		t.pool.share(id)
		s.pages = append(s.pages, id)
		s.bases = append(s.bases, &t.pool.bytes(id)[0])
	})
	s.n = n
	return s
}

// Peek tells what Match would find, without any effect: the tokens, their
// pages, and how many of these are available until Match takes them.
func (t *Tree) Peek(salt string, tokens []int32) (n, pages, available int) {
	n = t.walk(salt, tokens)
	if n > 0 {
		t.prefixPages(n, func(id int32) {
			pages++
			if t.pool.pages[id].refs == 1 {
				available++
			}
		})
	}
	return n, pages, available
}

// Insert publishes under salt the sequence s, whose first tokens are given and
// computed, and returns how many of them are new. The tree shares the pages of
// s. Where it knows the tokens already, s gets the tree's full pages and its
// own are given back. A sequence that has slid, or has a recurrent state, is
// not published, nor is a page that is published under another salt.
func (t *Tree) Insert(salt string, tokens []int32, s *Seq) int {
	if len(tokens) > s.n {
		panic(fmt.Sprintf("kvcache: insert: %d tokens of a sequence of %d", len(tokens), s.n))
	}
	if !t.usable() || s.first > 0 || len(tokens) == 0 {
		return 0
	}
	n := t.walk(salt, tokens)
	t.adopt(s, n)
	tokens = tokens[:max(n, t.unpublished(s, n, len(tokens)))]
	if n < len(tokens) {
		t.add(salt, tokens, s, n)
	}
	t.touch()
	t.stats.Inserted += int64(len(tokens) - n)
	return len(tokens) - n
}

// unpublished returns the end of the tokens of s, from n up to end, whose pages
// the tree does not have yet; it may have the one that n is in, at the end of
// t.path.
func (t *Tree) unpublished(s *Seq, n, end int) int {
	size, own := t.pool.cfg.PageTokens, int32(noPage)
	if len(t.path) > 0 {
		if last := &t.nodes[t.path[len(t.path)-1]]; last.end() == n && len(last.pages) > 0 {
			own = last.pages[len(last.pages)-1]
		}
	}
	for i := n / size; i*size < end; i++ {
		if id := s.pages[i]; id != own && t.pool.pages[id].cached {
			return i * size
		}
	}
	return end
}

// adopt replaces the pages of s that n known tokens fill by those of the tree.
func (t *Tree) adopt(s *Seq, n int) {
	i, full := 0, n/t.pool.cfg.PageTokens
	t.prefixPages(n, func(id int32) {
		if old := s.pages[i]; i < full && old != id {
			t.pool.share(id)
			t.pool.release(old)
			s.pages[i], s.bases[i] = id, &t.pool.bytes(id)[0]
			t.stats.Shared++
		}
		i++
	})
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
	if nd := &t.nodes[at]; nd.child != none || nd.parent == none {
		leaf := t.newNode()
		t.nodes[leaf].start = n
		t.link(leaf, at, tokens[n])
		t.list(leaf, t.nodes[listEnd].older)
		t.path = append(t.path, leaf)
		at = leaf
	}
	t.extend(at, tokens, s, n)
}

// extend appends the tokens from the n-th on to leaf at, which ends there.
func (t *Tree) extend(at int32, tokens []int32, s *Seq, n int) {
	nd, size := &t.nodes[at], t.pool.cfg.PageTokens
	nd.tokens = append(nd.tokens, tokens[n:]...)
	first := nd.start / size
	for i := n / size; i < t.pool.pagesOf(len(tokens)); i++ {
		id := s.pages[i]
		switch k := i - first; {
		case k == len(nd.pages):
			nd.pages = append(nd.pages, id)
		case nd.pages[k] == id:
			continue // s went on in the page that the tree has
		default:
			t.drop(nd.pages[k])
			nd.pages[k] = id
		}
		t.pool.hold(id)
		t.stats.Pages++
	}
}

// drop gives one of the tree's pages up.
func (t *Tree) drop(id int32) bool {
	t.stats.Pages--
	return t.pool.drop(id)
}

// split cuts node i before token n and returns the new node with the tokens
// before it.
func (t *Tree) split(i int32, n int) int32 {
	up := t.newNode()
	head, tail := &t.nodes[up], &t.nodes[i]
	cut, pages := n-tail.start, n/t.pool.cfg.PageTokens-tail.start/t.pool.cfg.PageTokens
	head.start, head.tokens, head.pages = tail.start, tail.tokens[:cut:cut], tail.pages[:pages:pages]
	parent := tail.parent
	t.unlink(i)
	t.link(up, parent, head.tokens[0])
	tail.start, tail.tokens, tail.pages = n, tail.tokens[cut:], tail.pages[pages:]
	t.link(i, up, tail.tokens[0])
	t.list(up, i)
	return up
}
