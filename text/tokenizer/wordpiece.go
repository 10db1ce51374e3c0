package tokenizer

import "unicode/utf8"

// wordPiece takes the longest token that starts a word, then the longest that
// continues it, and so on; a word that cannot be taken apart is unk.
type wordPiece struct {
	v      *vocab
	start  string // before the text of tokens that start a word
	cont   string // before the text of tokens that continue one
	unk    int32
	maxLen int // longest token, in bytes
	maxRun int // words of more characters are unk
}

func newWordPiece(v *vocab, start, cont string, unk int32, maxRun int) *wordPiece {
	m := &wordPiece{v: v, start: start, cont: cont, unk: unk, maxRun: maxRun}
	for _, s := range v.text {
		m.maxLen = max(m.maxLen, len(s))
	}
	return m
}

func (m *wordPiece) encode(sc *scratch, dst []int32, piece string) []int32 {
	if len(piece) > m.maxRun && utf8.RuneCountInString(piece) > m.maxRun {
		return append(dst, m.unk)
	}
	n := len(dst)
	mark := m.start
	for i := 0; i < len(piece); {
		id, end := int32(-1), min(len(piece), i+m.maxLen)
		sc.key = append(append(sc.key[:0], mark...), piece[i:end]...)
		for ; end > i; end-- {
			if end < len(piece) && !utf8.RuneStart(piece[end]) {
				continue
			}
			if id = m.v.find(view(sc.key[:len(mark)+end-i])); id >= 0 {
				break
			}
		}
		if id < 0 {
			return append(dst[:n], m.unk)
		}
		dst = append(dst, id)
		i, mark = end, m.cont
	}
	return dst
}

// wordLevel knows whole words only.
type wordLevel struct {
	v   *vocab
	unk int32 // -1: unknown words are dropped
}

func (m *wordLevel) encode(_ *scratch, dst []int32, piece string) []int32 {
	if id := m.v.find(piece); id >= 0 {
		return append(dst, id)
	} else if m.unk >= 0 {
		return append(dst, m.unk)
	}
	return dst
}
