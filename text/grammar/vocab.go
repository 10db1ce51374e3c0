package grammar

import (
	"bytes"
	"slices"
	"sync"
)

// Vocabulary holds the tokens of a tokenizer as a trie of their bytes, and what
// is known of them for the states of the grammars compiled for it. It may be
// used by several goroutines.
type Vocabulary struct {
	n       int
	text    []byte   // the bytes of all tokens
	offset  []uint32 // token → where its bytes start; n+1 entries
	ends    tokenSet // tokens that end a text
	nodes   []trieNode
	sorted  []int32  // all tokens of texts in the order of the trie
	within  []uint64 // node → the groups of the bytes below it
	same    []int32  // token → next token with the same bytes or -1; nil if there is none
	longest int      // bytes of the longest token

	// encode spells a text that follows another one; nil: see SpellWith.
	encode func(text string) []int32

	mu     sync.Mutex
	known  map[localKey]*localMask
	memory int // bytes of known
	tags   map[string]*tagTable
}

// trieNode is a node of the trie in preorder: its subtree is the size nodes
// from it on, so a walk reads memory forwards and skips with one addition.
type trieNode struct {
	size  uint32
	token int32  // a token that ends here, or -1
	first uint32 // where the tokens of the subtree begin in sorted
	depth uint16
	b     byte
}

// groupOf puts bytes into 64 groups that grammars seldom tell apart: what is
// below a node is known by its groups, and a state that stays where it is on all
// of them takes the whole subtree in one go.
var groupOf = func() (g [256]uint8) {
	next := uint8(0)
	group := func(lo, hi int) {
		for b := lo; b <= hi; b++ {
			g[b] = next
		}
		next++
	}
	each := func(lo, hi int) {
		for b := lo; b <= hi; b++ {
			group(b, b)
		}
	}
	group(0x00, 0x08)
	each('\t', '\n')
	group(0x0B, 0x1F)
	each(' ', '0')
	group('1', '9')
	each(':', '@')
	group('A', 'F')
	group('G', 'Z')
	each('[', '`')
	group('a', 'f')
	group('g', 'z')
	each('{', '~')
	for _, lo := range [...]int{0x7F, 0x80, 0xC0, 0xE0, 0xF0} {
		group(lo, 255) // what follows overwrites the rest
	}
	return g
}()

const maxTokenBytes = 2048 // longer tokens are never allowed

// NewVocabulary returns the vocabulary of the tokens 0 … n-1. piece returns the
// raw bytes of a token; it is called once for each and its result is copied.
// The tokens in end end a text: they are allowed where a grammar is complete,
// and only there. Tokens for which special returns true (nil: none) are never
// part of a text.
func NewVocabulary(piece func(id int32) []byte, n int, end []int32, special func(id int32) bool) *Vocabulary {
	n = max(n, 0)
	v := &Vocabulary{n: n, offset: make([]uint32, n+1), known: map[localKey]*localMask{}}
	for _, id := range end {
		if id >= 0 && int(id) < n && !slices.Contains(v.ends.list, id) {
			v.ends.list = append(v.ends.list, id)
		}
	}
	slices.Sort(v.ends.list)
	ids := make([]int32, 0, n)
	for id := range int32(n) {
		if !slices.Contains(v.ends.list, id) && (special == nil || !special(id)) {
			if b := piece(id); len(b) > 0 && len(b) <= maxTokenBytes {
				v.text = append(v.text, b...)
				v.longest = max(v.longest, len(b))
				ids = append(ids, id)
			}
		}
		v.offset[id+1] = uint32(len(v.text))
	}
	v.build(ids)
	return v
}

// Size returns the number of tokens.
func (v *Vocabulary) Size() int { return v.n }

// Bytes returns the bytes of a token, none if it is not part of texts. They must
// not be changed.
func (v *Vocabulary) Bytes(id int32) []byte {
	if id < 0 || int(id) >= v.n {
		return nil
	}
	return v.text[v.offset[id]:v.offset[id+1]]
}

// IsEnd reports whether a token ends a text.
func (v *Vocabulary) IsEnd(id int32) bool { return slices.Contains(v.ends.list, id) }

// words is the length of a mask.
func (v *Vocabulary) words() int { return (v.n + 63) / 64 }

// build makes the trie of the given tokens.
func (v *Vocabulary) build(ids []int32) {
	slices.SortStableFunc(ids, func(a, b int32) int { return bytes.Compare(v.Bytes(a), v.Bytes(b)) })
	v.sorted = ids
	v.nodes = append(v.nodes, trieNode{token: -1})
	var path []uint32 // path[d] is the node at depth d+1 on the way to the last token
	var last []byte
	end := func(depth int) { // subtrees below depth are complete
		for len(path) > depth {
			i := path[len(path)-1]
			v.nodes[i].size = uint32(len(v.nodes)) - i
			path = path[:len(path)-1]
		}
	}
	for i, id := range ids {
		b := v.Bytes(id)
		if i > 0 && bytes.Equal(b, last) {
			v.addSame(ids[i-1], id)
			continue
		}
		shared := 0
		for shared < len(b) && shared < len(last) && b[shared] == last[shared] {
			shared++
		}
		end(shared)
		for d := shared; d < len(b); d++ {
			path = append(path, uint32(len(v.nodes)))
			v.nodes = append(v.nodes, trieNode{token: -1, first: uint32(i), depth: uint16(d + 1), b: b[d]})
		}
		v.nodes[len(v.nodes)-1].token = id
		last = b
	}
	end(0)
	v.nodes[0].size = uint32(len(v.nodes))
	v.within = make([]uint64, len(v.nodes))
	for i := len(v.nodes) - 1; i >= 0; i-- {
		for j := i + 1; j < i+int(v.nodes[i].size); j += int(v.nodes[j].size) {
			v.within[i] |= v.within[j] | 1<<groupOf[v.nodes[j].b]
		}
	}
}

// below returns the tokens of the subtree of node i.
func (v *Vocabulary) below(i uint32) []int32 {
	end := uint32(len(v.sorted))
	if next := i + v.nodes[i].size; next < uint32(len(v.nodes)) {
		end = v.nodes[next].first
	}
	return v.sorted[v.nodes[i].first:end]
}

func (v *Vocabulary) addSame(first, id int32) {
	if v.same == nil {
		v.same = make([]int32, v.n)
		for i := range v.same {
			v.same[i] = -1
		}
	}
	v.same[first] = id
}

// localKey names a state of a rule, whatever grammar the rule is in.
type localKey struct {
	rule     ruleKey
	state    uint32
	maxDepth int32
}

// localMask is what a state says of the tokens whatever is on the stack below
// its rule.
type localMask struct {
	// inside holds the tokens that stay inside the rule: allowed in any case.
	inside tokenSet
	// exits are the nodes of the trie at which the rule may be finished and
	// from which tokens go on.
	exits []uint32
	// need is how high above the rule the stack had to grow.
	need int32
	// failed: too much work; nothing is known.
	failed bool
}

func (l *localMask) size() int { return l.inside.size() + 4*len(l.exits) + 96 }

// lookup returns what is known of a state, or nil.
func (v *Vocabulary) lookup(k localKey) *localMask {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.known[k]
}

// learn remembers l. When memory is used up everything is forgotten: what is
// needed is found again.
func (v *Vocabulary) learn(k localKey, l *localMask) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.memory += l.size(); v.memory > maxVocabBytes {
		clear(v.known)
		v.memory = l.size()
	}
	v.known[k] = l
}

// tokenSet is a set of tokens: a list where they are few, a bitset otherwise.
type tokenSet struct {
	list []int32
	bits []uint64
}

func (s *tokenSet) size() int { return 4*len(s.list) + 8*len(s.bits) }

// addTo adds the tokens of s to a mask.
func (s *tokenSet) addTo(mask []uint64) {
	for _, id := range s.list {
		mask[id>>6] |= 1 << (id & 63)
	}
	for i, w := range s.bits {
		mask[i] |= w
	}
}
