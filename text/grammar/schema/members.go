package schema

import (
	"slices"
	"sort"

	"ridge/text/grammar"
)

// nameTree is a trie of the names of members, as they are written. What may
// follow in a node depends on the members that may still come, of which only
// those below the node matter: so it depends on the first of them, and there is a
// state for each name and each of its prefixes.
type nameTree struct {
	members []int   // whose names begin so, ascending
	states  []int32 // for each of them, the state in which it is the first that may come
	bytes   []byte  // of the branches, ascending
	next    []*nameTree
}

// newNameTree returns the trie of names, all members in one list of states for
// each node.
func newNameTree(names []string) *nameTree {
	root := &nameTree{}
	for i, name := range names {
		n := root
		text := quote(name)
		for k := 0; ; k++ {
			n.members = append(n.members, i)
			if k == len(text) {
				break
			}
			at, found := slices.BinarySearch(n.bytes, text[k])
			if !found {
				n.bytes = slices.Insert(n.bytes, at, text[k])
				n.next = slices.Insert(n.next, at, &nameTree{})
			}
			n = n.next[at]
		}
	}
	return root
}

// addInOrder adds objects whose named members come in their order, those that
// nothing names after them. Nothing in it has two ways to go on with a byte.
func (c *schemaCompiler) addInOrder(r *grammar.Rule, from int32, p objectPlan, to int32) {
	n := len(p.names)
	last := make([]int, n+1) // member → the first from it on that is required
	last[n] = n
	for i := n - 1; i >= 0; i-- {
		if last[i] = last[i+1]; p.required[i] {
			last[i] = i
		}
	}
	open, first, closing, extra := r.State(), r.State(), r.State(), r.State()
	r.Bytes(from, '{', '{', open)
	r.Bytes(closing, '}', '}', to)
	c.j.gap(r, open, afterOpen, first)
	if last[0] == n {
		r.Bytes(open, '}', '}', to)
	}
	tree := newNameTree(p.names)
	c.addNames(r, tree, last)
	// begin adds, to a state, the members from i on.
	begin := func(at int32, i int) {
		if i < n {
			r.Skip(at, tree.states[i])
		}
		if last[i] == n && p.extra != nil {
			r.Call(at, p.extra, extra)
		}
	}
	// end adds, to a state after a member, what follows if the members from i on
	// have not come.
	end := func(at int32, i int) {
		if last[i] == n {
			c.j.gap(r, at, beforeClose, closing)
		}
		if i < n || p.extra != nil {
			comma := r.State()
			c.addComma(r, at, comma)
			begin(comma, i)
		}
	}
	begin(first, 0)
	tree.leaves(func(i int, at int32) {
		if c.stopped() {
			return
		}
		colon, value, after := r.State(), r.State(), r.State()
		r.Bytes(at, ':', ':', colon)
		c.j.gap(r, colon, afterColon, value)
		c.addValue(r, value, p.values[i], after)
		end(after, i+1)
	})
	end(extra, n)
}

// addNames adds the states of a node and of what is below it. last is, for each
// member, the first from it on that is required: it is not passed by.
func (c *schemaCompiler) addNames(r *grammar.Rule, t *nameTree, last []int) {
	t.states = make([]int32, len(t.members))
	for k := range t.states {
		t.states[k] = r.State()
	}
	for b, next := range t.next {
		if c.stopped() {
			return
		}
		c.addNames(r, next, last)
		for k, i := range t.members {
			at := sort.SearchInts(next.members, i)
			if at < len(next.members) && next.members[at] <= last[i] {
				r.Bytes(t.states[k], t.bytes[b], t.bytes[b], next.states[at])
			}
		}
	}
}

// leaves calls do for every member with the state after its name.
func (t *nameTree) leaves(do func(i int, at int32)) {
	if len(t.next) == 0 && len(t.states) > 0 {
		do(t.members[0], t.states[0])
	}
	for _, next := range t.next {
		next.leaves(do)
	}
}
