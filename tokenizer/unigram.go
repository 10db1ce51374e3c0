package tokenizer

import (
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"unicode/utf8"
)

// unigram picks the split of a piece into tokens with the highest sum of
// scores (Kudo, 2018), by the Viterbi algorithm over a trie of the tokens.
type unigram struct {
	v        *vocab
	score    []float64 // by id: log probabilities
	trie     trie
	unk      int32
	unkScore float64 // of a character without a token

	bytes        [256]int32 // byte fallback: the tokens <0xHH>
	byteFallback bool       // all 256 of them are used instead of unk
}

// unkPenalty is how much worse than the worst token an unknown character is.
const unkPenalty = 10

func newUnigram(v *vocab, scores []float64, unk int32, byteFallback bool) (*unigram, error) {
	m := &unigram{v: v, score: scores, unk: unk}
	total := 0
	least := math.Inf(1)
	for id, s := range v.text {
		if math.IsNaN(scores[id]) || math.IsInf(scores[id], 0) {
			return nil, fmt.Errorf("the score of token %d (%q) is %v", id, s, scores[id])
		}
		switch v.typ[id] {
		case tokNormal:
			least = min(least, scores[id])
		case tokUser, tokUnused:
		default:
			continue
		}
		total += len(s)
	}
	if math.IsInf(least, 1) {
		least = 0
	}
	m.unkScore = least - unkPenalty
	if total > maxTrieNodes {
		return nil, fmt.Errorf("%d bytes of token text, at most %d are supported", total, maxTrieNodes)
	}
	m.trie.init(total)
	for id, s := range v.text {
		if t := v.typ[id]; t == tokNormal || t == tokUser || t == tokUnused {
			m.trie.insert(s, int32(id))
		}
	}
	if byteFallback {
		var n int
		m.bytes, n = v.byteTokens()
		m.byteFallback = n == 256
	}
	return m, nil
}

// step is the best way to reach a position of the piece.
type step struct {
	score float64
	from  int32 // where its last token starts
	id    int32 // its last token; unk's where the text has no token, -1: not reached
}

func (m *unigram) encode(sc *scratch, dst []int32, piece string) []int32 {
	n := len(piece)
	sc.steps = grow(sc.steps, n+1)
	best := sc.steps
	for i := range best {
		best[i].id = -1
	}
	best[0] = step{}
	for i := 0; i < n; {
		at := best[i].score
		_, w := utf8.DecodeRuneInString(piece[i:])
		single := false
		node := int32(0)
		for j := i; j < n; {
			if node = m.trie.child(node, piece[j]); node < 0 {
				break
			}
			j++
			id := m.trie.token[node]
			if id < 0 {
				continue
			}
			s := at
			if m.v.typ[id] != tokUser {
				s += m.score[id]
			}
			if best[j].id < 0 || s > best[j].score {
				best[j] = step{s, int32(i), id}
			}
			single = single || j == i+w
		}
		if !single {
			s := at + m.unkScore
			if best[i+w].id < 0 || s > best[i+w].score {
				best[i+w] = step{s, int32(i), m.unk}
			}
		}
		i += w
	}
	start := len(dst)
	for j := n; j > 0; {
		id, hi := best[j].id, j
		for j = int(best[j].from); id == m.unk && j > 0 && best[j].id == m.unk; {
			j = int(best[j].from)
		}
		if id != m.unk || !m.byteFallback {
			if id >= 0 {
				dst = append(dst, id)
			}
			continue
		}
		for k := hi - 1; k >= j; k-- {
			dst = append(dst, m.bytes[piece[k]])
		}
	}
	for a, b := start, len(dst)-1; a < b; a, b = a+1, b-1 {
		dst[a], dst[b] = dst[b], dst[a]
	}
	return dst
}

// trie finds all tokens that start a text. Nodes are numbered from 0, the
// root; edges are in one open-addressing table.
type trie struct {
	root  [256]int32
	edges []uint64 // parent (24 bits), byte (8), child (32); 0: empty
	shift uint
	mult  uint64
	token []int32 // by node: the token that ends there, or -1
}

const maxTrieNodes = 1<<24 - 1

// init makes room for tokens of size bytes in all.
func (t *trie) init(size int) {
	log := bits.Len(uint(size + size/2 + 8))
	t.edges = make([]uint64, 1<<log)
	t.shift = uint(64 - log)
	t.mult = rand.Uint64() | 1<<63 | 1
	t.token = append(make([]int32, 0, size/2+1), -1)
	for b := range t.root {
		t.root[b] = -1
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
				t.addEdge(node, s[i], next)
			}
		}
		node = next
	}
	if t.token[node] < 0 {
		t.token[node] = id
	}
}

func (t *trie) addEdge(node int32, b byte, next int32) {
	key := uint64(node)<<8 | uint64(b)
	mask := uint64(len(t.edges) - 1)
	i := key * t.mult >> t.shift
	for t.edges[i] != 0 {
		i = (i + 1) & mask
	}
	t.edges[i] = key<<32 | uint64(next)
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
