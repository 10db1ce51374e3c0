package tokenizer

import (
	"math"
	"unicode/utf8"
)

// spm is the BPE of SentencePiece (Kudo and Richardson, 2018): two neighbours
// merge when their text together is a token, the highest score first.
// Characters without a token become byte tokens or, where the vocabulary has
// none, a run of them becomes one unk.
type spm struct {
	v     *vocab
	rank  []uint32             // by id: scores turned into ranks, best first; noRank: never a product
	ascii [utf8.RuneSelf]int32 // the token of each ASCII character, -1 where none
	bytes [256]int32           // the tokens <0xHH>

	hasBytes bool  // all of them are there
	unk      int32 // -1: none
}

func newSPM(v *vocab, scores []float32, unk int32) *spm {
	m := &spm{v: v, rank: make([]uint32, v.size()), unk: unk}
	for id := range m.rank {
		m.rank[id] = noRank
		if t := v.typ[id]; t == tokNormal || t == tokUser || t == tokUnused {
			m.rank[id] = scoreRank(scores[id])
		}
	}
	for c := range m.ascii {
		m.ascii[c] = m.token(string(rune(c)))
	}
	var n int
	m.bytes, n = v.byteTokens()
	m.hasBytes = n == 256
	return m
}

// scoreRank maps scores to ranks so that higher scores have lower ranks.
func scoreRank(score float32) uint32 {
	b := math.Float32bits(score)
	if b>>31 != 0 {
		b = ^b
	} else {
		b |= 1 << 31
	}
	return min(^b, noRank-1)
}

// token returns the token with the text s that merging may make, or -1.
func (m *spm) token(s string) int32 {
	if id := m.v.find(s); id >= 0 && m.rank[id] != noRank {
		return id
	}
	return -1
}

func (m *spm) pair(text string, left, right span) (uint32, int32) {
	id := m.v.find(text[left.lo:right.hi])
	if id < 0 {
		return noRank, -1
	}
	return m.rank[id], id
}

func (m *spm) apart(left, right span) bool { return true }

func (m *spm) symbols(_ *scratch, dst []span, piece string, lo, hi, n int) ([]span, int) {
	i := lo
	for ; i < hi && n > 0; n-- {
		w, id := 1, int32(-1)
		if c := piece[i]; c < utf8.RuneSelf {
			id = m.ascii[c]
		} else {
			_, w = utf8.DecodeRuneInString(piece[i:])
			id = m.token(piece[i : i+w])
		}
		dst = append(dst, span{id, int32(i), int32(i + w)})
		i += w
	}
	return dst, i
}

func (m *spm) encode(sc *scratch, dst []int32, piece string) []int32 {
	old, unknown := len(dst), false
	if len(piece) > windowSyms {
		if sc.mergeWindows(m, piece, windowSyms, func(out []span) { dst, unknown = m.ids(sc, dst, piece, out, unknown) }) {
			return dst
		}
		dst = dst[:old]
	}
	sc.syms, _ = m.symbols(sc, sc.syms[:0], piece, 0, len(piece), len(piece))
	dst, _ = m.ids(sc, dst, piece, sc.merge(m, piece, sc.syms), false)
	return dst
}

// ids appends the ids of symbols of piece to dst. unknown: text without a token
// comes before them, or ends what was appended.
func (m *spm) ids(sc *scratch, dst []int32, piece string, symbols []span, unknown bool) ([]int32, bool) {
	for _, s := range symbols {
		switch {
		case s.id >= 0:
			dst = append(dst, s.id)
		case m.hasBytes:
			dst = sc.room(dst, int(s.hi-s.lo))
			for j := s.lo; j < s.hi; j++ {
				dst = append(dst, m.bytes[piece[j]])
			}
		case !unknown && m.unk >= 0:
			dst = append(dst, m.unk) // for all of a run
		}
		unknown = s.id < 0
	}
	return dst, unknown
}
