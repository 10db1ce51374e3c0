package tokenizer

import (
	"math/bits"
	"math/rand/v2"
)

// trie finds all tokens that start a text. Nodes are numbered from 0, the
// root; edges are in one open-addressing table.
type trie struct {
	root  [256]int32
	edges []uint64 // parent (24 bits), byte (8), child (32); 0: empty
	shift uint
	mult  uint64
	token []int32 // by node: the token that ends there, or -1
}

// maxTrieBytes is how much text the tokens may have in all, one node a byte.
const maxTrieBytes = 1<<24 - 1

// init makes room for about n nodes; there may be more.
func (t *trie) init(n int) {
	t.mult = rand.Uint64() | 1<<63 | 1
	t.resize(bits.Len(uint(n + n/2 + 64)))
	t.token = append(make([]int32, 0, n+1), -1)
	for b := range t.root {
		t.root[b] = -1
	}
}

// resize makes the table of edges 1<<log long.
func (t *trie) resize(log int) {
	old := t.edges
	t.edges = make([]uint64, 1<<log)
	t.shift = uint(64 - log)
	for _, e := range old {
		if e != 0 {
			t.addEdge(e)
		}
	}
}

func (t *trie) insert(s string, id int32) {
	if s == "" {
		return
	}
	node := int32(0)
	for i := range len(s) {
		next := t.child(node, s[i])
		if next < 0 {
			next = int32(len(t.token))
			t.token = append(t.token, -1)
			if node == 0 {
				t.root[s[i]] = next
			} else {
				t.addEdge((uint64(node)<<8|uint64(s[i]))<<32 | uint64(next))
				if len(t.token)*3 > len(t.edges)*2 {
					t.resize(bits.Len(uint(len(t.edges))))
				}
			}
		}
		node = next
	}
	if t.token[node] < 0 {
		t.token[node] = id
	}
}

func (t *trie) addEdge(e uint64) {
	mask := uint64(len(t.edges) - 1)
	i := (e >> 32) * t.mult >> t.shift
	for t.edges[i] != 0 {
		i = (i + 1) & mask
	}
	t.edges[i] = e
}

// child returns the node reached from node by b, or -1.
func (t *trie) child(node int32, b byte) int32 {
	if node == 0 {
		return t.root[b]
	}
	key := uint64(node)<<8 | uint64(b)
	mask := uint64(len(t.edges) - 1)
	for i := key * t.mult >> t.shift; ; i = (i + 1) & mask {
		e := t.edges[i&mask]
		if e>>32 == key {
			return int32(uint32(e))
		}
		if e == 0 {
			return -1
		}
	}
}
