package tokenizer

import (
	"fmt"
	"math"
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
			return nil, fmt.Errorf("the score of token %d (%.60q) is %v", id, s, scores[id])
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
	if total > maxTrieBytes {
		return nil, fmt.Errorf("%d bytes of token text, at most %d are supported", total, maxTrieBytes)
	}
	m.trie.init(total / 4)
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
			s := at + m.score[id]
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
