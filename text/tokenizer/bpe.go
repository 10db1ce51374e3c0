package tokenizer

import (
	"fmt"
	"math/bits"
	"math/rand/v2"
	"unicode/utf8"
)

// bpe is byte-pair encoding (Sennrich et al., 2016): pairs merge in the order
// of the merge list. It works on the bytes of a piece when the vocabulary is
// byte-level, else on its characters.
type bpe struct {
	v      *vocab
	merges pairTable

	bytes  [256]int32 // byte-level: the token of each byte, -1 where none
	byByte bool       // the vocabulary is byte-level

	ascii        [utf8.RuneSelf]int32 // by character: the token of each, -1 where none
	fallback     [256]int32           // byte fallback: the tokens <0xHH>
	byteFallback bool
	prefix       string // before the text of tokens that do not start a piece
	suffix       string // after the text of tokens that end a piece

	unk     int32 // -1: text without a token is dropped
	fuseUnk bool  // a run of text without tokens is one unk

	wholeFirst bool // a piece that is a token is not merged (ignore_merges)
}

// pairTable maps a pair of tokens to the rank of their merge and what they
// become. A slot packs left (21 bits), right (21) and rank (22); rank order is
// the order of the merge list.
type pairTable struct {
	slots   []uint64
	shift   uint
	mult    uint64
	product []int32 // by rank
}

const (
	rankBits  = 22
	emptySlot = 1<<64 - 1
)

func newPairTable(n int) (pairTable, error) {
	if n > maxMerges {
		return pairTable{}, fmt.Errorf("%d merges, at most %d are supported", n, maxMerges)
	}
	log := bits.Len(uint(n + n/2 + 8))
	t := pairTable{
		slots: make([]uint64, 1<<log),
		shift: uint(64 - log),
		// Odd and not guessable, so that no file can be made to collide.
		mult:    rand.Uint64() | 1<<63 | 1,
		product: make([]int32, 0, n),
	}
	for i := range t.slots {
		t.slots[i] = emptySlot
	}
	return t, nil
}

// noMerge as the left token takes a rank that no pair has.
const noMerge = -1

// add appends a merge. Of equal pairs the last one counts.
func (t *pairTable) add(left, right, product int32) {
	key := uint64(left)<<21 | uint64(right)
	rank := uint64(len(t.product))
	t.product = append(t.product, product)
	if left == noMerge {
		return
	}
	mask := uint64(len(t.slots) - 1)
	for i := key * t.mult >> t.shift; ; i = (i + 1) & mask {
		if t.slots[i] == emptySlot || t.slots[i]>>rankBits == key {
			t.slots[i] = key<<rankBits | rank
			return
		}
	}
}

func (t *pairTable) find(left, right int32) (rank uint32, product int32) {
	key := uint64(left)<<21 | uint64(right)
	mask := uint64(len(t.slots) - 1)
	for i := key * t.mult >> t.shift; ; i = (i + 1) & mask {
		e := t.slots[i&mask]
		if e>>rankBits == key {
			if e == emptySlot {
				break
			}
			r := uint32(e & (1<<rankBits - 1))
			return r, t.product[r]
		}
		if e == emptySlot {
			break
		}
	}
	return noRank, -1
}

func (m *bpe) pair(_ string, left, right span) (uint32, int32) {
	if left.id < 0 || right.id < 0 {
		return noRank, -1
	}
	return m.merges.find(left.id, right.id)
}

// addMerge resolves one merge of left and right, given as token texts, and
// appends it. guess is a token that the product, or the one before the
// product, may well be.
func (m *bpe) addMerge(left, right string, buf []byte, guess int32) ([]byte, int32, error) {
	l, r := m.v.find(left), m.v.find(right)
	if l < 0 || r < 0 {
		missing := left
		if l >= 0 {
			missing = right
		}
		return buf, -1, fmt.Errorf("%.60q of the pair %.60q %.60q is not in the vocabulary", missing, left, right)
	}
	tail := right
	if m.prefix != "" && len(tail) >= len(m.prefix) {
		tail = tail[len(m.prefix):]
	}
	p := guess
	if !m.spells(p, left, tail) {
		p++
	}
	if !m.spells(p, left, tail) {
		buf = append(append(buf[:0], left...), tail...)
		if p = m.v.find(view(buf)); p < 0 {
			return buf, -1, fmt.Errorf("%.60q of the pair %.60q %.60q is not in the vocabulary", buf, left, right)
		}
	}
	if m.v.typ[p] == tokControl {
		l = noMerge // text never becomes a mark
	}
	m.merges.add(l, r, p)
	return buf, p, nil
}

// spells reports whether id is a token with the text left + right.
func (m *bpe) spells(id int32, left, right string) bool {
	if !m.v.valid(id) {
		return false
	}
	t := m.v.text[id]
	return len(t) == len(left)+len(right) && t[:len(left)] == left && t[len(left):] == right
}

// initBytes finds the tokens of the 256 bytes of a byte-level vocabulary; unk
// must be set.
func (m *bpe) initBytes() {
	m.byByte = true
	for b := range m.bytes {
		id := m.v.find(byteText[b])
		if id >= 0 && m.v.typ[id] == tokUser {
			id = -1 // a text that happens to look like the byte's character
		}
		if id < 0 {
			id = m.unk
		}
		m.bytes[b] = id
	}
}

// initChars finds the tokens of the ASCII characters and, where the
// vocabulary has them, of bytes.
func (m *bpe) initChars() {
	for c := range m.ascii {
		m.ascii[c] = m.v.find(string(rune(c)))
	}
	if m.byteFallback {
		m.fallback, _ = m.v.byteTokens()
	}
}

func (m *bpe) encode(sc *scratch, dst []int32, piece string) []int32 {
	if m.byByte {
		return m.encodeBytes(sc, dst, piece)
	}
	return m.encodeChars(sc, dst, piece)
}

func (m *bpe) encodeBytes(sc *scratch, dst []int32, piece string) []int32 {
	if m.wholeFirst {
		sc.key = appendByteText(sc.key[:0], piece)
		if id := m.v.find(view(sc.key)); id >= 0 {
			return append(dst, id)
		}
	}
	sc.syms = grow(sc.syms, len(piece))
	syms := sc.syms
	n := 0
	for i := range len(piece) {
		// A byte without a token is gone before merging: what is around it
		// may merge.
		if id := m.bytes[piece[i]]; id >= 0 {
			syms[n] = span{id, int32(i), int32(i) + 1}
			n++
		}
	}
	for _, s := range sc.merge(m, piece, syms[:n]) {
		dst = append(dst, s.id)
	}
	return dst
}

func (m *bpe) encodeChars(sc *scratch, dst []int32, piece string) []int32 {
	if m.wholeFirst {
		if id := m.v.find(piece); id >= 0 {
			return append(dst, id)
		}
	}
	syms := sc.syms[:0]
	fused := false // the last symbol is an unk that may take in more
	for i := 0; i < len(piece); {
		n := 1
		if piece[i] >= utf8.RuneSelf {
			_, n = utf8.DecodeRuneInString(piece[i:])
		}
		lo, hi := int32(i), int32(i+n)
		id := m.char(sc, piece, i, n)
		i += n
		switch {
		case id >= 0:
			syms = append(syms, span{id, lo, hi})
		case m.byteFallback && m.hasBytes(piece[lo:hi]):
			for j := lo; j < hi; j++ {
				syms = append(syms, span{m.fallback[piece[j]], j, j + 1})
			}
		case m.unk < 0:
			continue
		case fused && m.fuseUnk:
			syms[len(syms)-1].hi = hi
			continue
		default:
			syms = append(syms, span{m.unk, lo, hi})
			fused = true
			continue
		}
		fused = false
	}
	sc.syms = syms
	for _, s := range sc.merge(m, piece, syms) {
		dst = append(dst, s.id)
	}
	return dst
}

// char returns the token of the character of piece at i, n bytes long, or -1.
func (m *bpe) char(sc *scratch, piece string, i, n int) int32 {
	if m.prefix == "" && m.suffix == "" {
		if n == 1 && piece[i] < utf8.RuneSelf {
			return m.ascii[piece[i]]
		}
		return m.v.find(piece[i : i+n])
	}
	sc.key = sc.key[:0]
	if i > 0 {
		sc.key = append(sc.key, m.prefix...)
	}
	sc.key = append(sc.key, piece[i:i+n]...)
	if i+n == len(piece) {
		sc.key = append(sc.key, m.suffix...)
	}
	return m.v.find(view(sc.key))
}

// hasBytes reports whether every byte of s has a token.
func (m *bpe) hasBytes(s string) bool {
	for i := range len(s) {
		if m.fallback[s[i]] < 0 {
			return false
		}
	}
	return true
}
