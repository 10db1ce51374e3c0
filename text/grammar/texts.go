package grammar

import (
	"encoding/binary"
	"slices"
)

// Texts adds a list of texts between two states, in time and memory in
// proportion to their length: as the smallest automaton of them, built text by
// text in their order (J. Daciuk et al., Incremental Construction of Minimal
// Acyclic Finite-State Automata, 2000). The texts are sorted in place.
func (r *Rule) Texts(from int32, texts []string, to int32) {
	slices.Sort(texts)
	texts = slices.Compact(texts)
	t := &textTree{r: r, to: to, known: map[string]int32{}}
	path := []*textNode{{}} // of the text before
	before := ""
	for _, text := range texts {
		same := 0
		for same < len(before) && same < len(text) && before[same] == text[same] {
			same++
		}
		path = t.close(path, before, same)
		for range len(text) - same {
			path = append(path, &textNode{})
		}
		path[len(path)-1].final = true
		before = text
		if !r.b.Spend(1 + len(text)) {
			return
		}
	}
	path = t.close(path, before, 0)
	t.add(from, path[0])
}

// textNode is a node that is not closed: another branch may come.
type textNode struct {
	final bool
	edges []byteEdge // lo is hi
}

type textTree struct {
	r     *Rule
	to    int32
	known map[string]int32 // what leaves a node → its state
	key   []byte
}

// close ends the nodes of a path below a depth, deepest first, and links them.
func (t *textTree) close(path []*textNode, text string, depth int) []*textNode {
	for n := len(path) - 1; n > depth; n-- {
		state := t.state(path[n])
		path[n-1].edges = append(path[n-1].edges, byteEdge{text[n-1], text[n-1], state})
		path = path[:n]
	}
	return path
}

// state returns the state of a node, the same for nodes that are left alike.
func (t *textTree) state(n *textNode) int32 {
	if n.final && len(n.edges) == 0 {
		return t.to
	}
	t.key = append(t.key[:0], 0)
	if n.final {
		t.key[0] = 1
	}
	for _, e := range n.edges {
		t.key = binary.AppendUvarint(append(t.key, e.lo), uint64(e.to))
	}
	if s, ok := t.known[string(t.key)]; ok {
		return s
	}
	s := t.r.State()
	t.known[string(t.key)] = s
	t.add(s, n)
	return s
}

func (t *textTree) add(from int32, n *textNode) {
	if n.final {
		t.r.Skip(from, t.to)
	}
	for _, e := range n.edges {
		t.r.Bytes(from, e.lo, e.hi, e.to)
	}
}
