package tokenizer

import (
	"fmt"
	"math"
	"math/bits"
	"slices"
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
	longest  int     // bytes of a token

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
		m.longest = max(m.longest, len(s))
	}
	if math.IsInf(least, 1) {
		least = 0
	}
	m.unkScore = least - unkPenalty
	if total > maxTrieBytes {
		return nil, fmt.Errorf("%d bytes of token text, at most %d are supported", total, maxTrieBytes)
	}
	if m.longest > math.MaxUint16 {
		return nil, fmt.Errorf("a token of %d bytes, at most %d are supported", m.longest, math.MaxUint16)
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

func (m *unigram) encode(sc *scratch, dst []int32, piece string) []int32 {
	if cap(sc.scores) == 0 {
		sc.scores = make([]float64, 1<<bits.Len(uint(m.longest+utf8.UTFMax)))
	}
	lens := m.split(sc, piece)
	// The way back tells how many tokens there are, and then which.
	count := 0
	for j := len(piece); j > 0; count++ {
		lo, id := m.back(lens, piece, j)
		if id == m.unk && m.byteFallback {
			count += j - lo - 1
		}
		j = lo
	}
	start := len(dst)
	dst = slices.Grow(sc.room(dst, count), count)[:start+count]
	at := len(dst)
	for j := len(piece); j > 0; {
		lo, id := m.back(lens, piece, j)
		if id == m.unk && m.byteFallback {
			for k := j - 1; k >= lo; k-- {
				at--
				dst[at] = m.bytes[piece[k]]
			}
		} else if id >= 0 {
			at--
			dst[at] = id
		}
		j = lo
	}
	return append(dst[:start], dst[at:]...)
}

// back is the last token of the best way to the place j, a run of text without
// tokens taken as one, and where it begins. Its id is that of unk for such a run.
func (m *unigram) back(lens []uint16, piece string, j int) (lo int, id int32) {
	lo, id = j-int(lens[j]), m.find(piece[j-int(lens[j]):j])
	for id == m.unk && lo > 0 {
		before := lo - int(lens[lo])
		if m.find(piece[before:lo]) != m.unk {
			break
		}
		lo = before
	}
	return lo, id
}

// find is the token of a text, unk's for none.
func (m *unigram) find(text string) int32 {
	node := int32(0)
	for i := range len(text) {
		if node = m.trie.child(node, text[i]); node < 0 {
			return m.unk
		}
	}
	if id := m.trie.token[node]; id >= 0 {
		return id
	}
	return m.unk
}

// split finds the best way to each place of piece: the length of its last token.
// 0 is for places that no way comes to. The scores are kept only of the places
// that a token can reach.
func (m *unigram) split(sc *scratch, piece string) []uint16 {
	n := len(piece)
	sc.lens = grow(sc.lens, n+1)
	lens, scores := sc.lens, sc.scores
	mask := len(scores) - 1
	clear(lens)
	scores[0] = 0
	for i := 0; i < n; {
		at := scores[i&mask]
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
			if lens[j] == 0 || s > scores[j&mask] {
				lens[j], scores[j&mask] = uint16(j-i), s
			}
			single = single || j == i+w
		}
		if !single {
			s := at + m.unkScore
			if lens[i+w] == 0 || s > scores[(i+w)&mask] {
				lens[i+w], scores[(i+w)&mask] = uint16(w), s
			}
		}
		i += w
	}
	return lens
}
