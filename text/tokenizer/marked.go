package tokenizer

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// marked is the way from text to pieces of SentencePiece-like vocabularies:
// spaces become a mark, one may be put in front, and merging runs over the
// whole text.
//
// To run over a whole text is slow and has no use for a cache, so the text is
// cut where no token can span the cut: between two characters that no token
// has side by side. The result is the same.
type marked struct {
	mark   string // "▁"; empty: spaces stay
	prefix prefixRule
	// The mark is put in front even of a text that starts with a space.
	prefixSpaces bool
	// joins has the bit x<<8|y where a token has a character that ends with
	// the byte x before one that starts with y. A space counts as the mark.
	// It is nil where cuts are not safe.
	joins []uint64
}

// learnJoins fills joins from the tokens that merging can make.
func (m *marked) learnJoins(v *vocab) {
	m.joins = make([]uint64, 1<<16/64)
	for id, s := range v.text {
		if t := v.typ[id]; t != tokNormal && t != tokUser && t != tokUnused {
			continue
		}
		for i := 1; i < len(s); i++ {
			if y := s[i]; y&0xC0 != 0x80 {
				k := int(s[i-1])<<8 | int(y)
				m.joins[k/64] |= 1 << (k % 64)
			}
		}
	}
	if m.mark == "" {
		return
	}
	last, start := m.mark[len(m.mark)-1], m.mark[0]
	for c := range 256 {
		if m.join(last, byte(c)) {
			m.setJoin(' ', byte(c))
		}
	}
	for c := range 256 {
		if m.join(byte(c), start) {
			m.setJoin(byte(c), ' ')
		}
	}
}

// cutNewlines makes runs of \n pieces of their own.
func (m *marked) cutNewlines() {
	for c := range 256 {
		if c != '\n' {
			k := c<<8 | '\n'
			m.joins[k/64] &^= 1 << (k % 64)
			k = '\n'<<8 | c
			m.joins[k/64] &^= 1 << (k % 64)
		}
	}
}

func (m *marked) join(x, y byte) bool {
	k := int(x)<<8 | int(y)
	return m.joins[k/64]&(1<<(k%64)) != 0
}

func (m *marked) setJoin(x, y byte) {
	k := int(x)<<8 | int(y)
	m.joins[k/64] |= 1 << (k % 64)
}

// encodeMarked encodes a text without added tokens.
func (t *Tokenizer) encodeMarked(sc *scratch, s string, first bool) {
	m := t.marked
	pre := m.prefix == prefixAlways || m.prefix == prefixFirst && first
	if pre && !m.prefixSpaces && (s[0] == ' ' || strings.HasPrefix(s, m.mark)) {
		pre = false
	}
	lo := 0
	if m.joins != nil {
		for i := 1; i < len(s); i++ {
			if y := s[i]; y&0xC0 != 0x80 && !m.join(s[i-1], y) {
				t.encodeRun(sc, s[lo:i], pre)
				lo, pre = i, false
			}
		}
	}
	t.encodeRun(sc, s[lo:], pre)
}

// encodeRun encodes what lies between two cuts, with the mark in front if pre.
func (t *Tokenizer) encodeRun(sc *scratch, s string, pre bool) {
	n := len(s)
	if len(sc.out)+cacheIDs > cap(sc.out) {
		sc.out = sc.room(sc.out, cacheIDs)
	}
	switch {
	case n == 1 && !pre && t.single[s[0]] >= 0:
		sc.out = append(sc.out, t.single[s[0]])
		return
	case n > cacheKey || pre:
		for n > maxPiece {
			sc.out = t.model.encode(sc, sc.out, t.marked.rewrite(sc, s[:maxPiece], pre))
			s, n, pre = s[maxPiece:], n-maxPiece, false
		}
		sc.out = t.model.encode(sc, sc.out, t.marked.rewrite(sc, s, pre))
		return
	}
	e := sc.slot(s)
	if e.n > 0 && string(e.key[:e.len]) == s {
		sc.out = append(sc.out, e.ids[:e.n]...)
		return
	}
	old := len(sc.out)
	sc.out = t.model.encode(sc, sc.out, t.marked.rewrite(sc, s, false))
	e.remember(s, sc.out[old:])
}

// rewrite returns s with marks for spaces, and one in front if pre. The result
// is valid until the next call.
func (m *marked) rewrite(sc *scratch, s string, pre bool) string {
	if !pre && (m.mark == "" || strings.IndexByte(s, ' ') < 0) {
		return s
	}
	buf := slices.Grow(sc.piece[:0], len(s)+len(m.mark)+strings.Count(s, " ")*max(0, len(m.mark)-1))
	if pre {
		buf = append(buf, m.mark...)
	}
	for i := range len(s) {
		if s[i] == ' ' {
			buf = append(buf, m.mark...)
		} else {
			buf = append(buf, s[i])
		}
	}
	sc.piece = buf
	return view(buf)
}

// initSingle finds the tokens of pieces of one ASCII character.
func (t *Tokenizer) initSingle() {
	for b := range t.single {
		t.single[b] = -1
	}
	sc := t.pool.get(len(t.stages))
	defer t.pool.put(sc)
	var one [4]int32
	for b := range utf8.RuneSelf {
		piece := string(rune(b))
		if t.marked != nil {
			piece = t.marked.rewrite(sc, piece, false)
		}
		if ids := t.model.encode(sc, one[:0], piece); len(ids) == 1 {
			t.single[b] = ids[0]
		}
	}
}
