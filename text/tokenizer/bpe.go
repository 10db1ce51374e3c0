package tokenizer

import (
	"fmt"
	"math/bits"
	"math/rand/v2"
	"slices"
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
	longest    int  // bytes of a token, as the vocabulary has them
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
	if m.wholeFirst && len(piece) <= m.longest {
		key := piece
		if m.byByte {
			sc.key = appendByteText(sc.key[:0], piece)
			key = view(sc.key)
		}
		if id := m.v.find(key); id >= 0 {
			return append(dst, id)
		}
	}
	if len(piece) > windowSyms {
		old := len(dst)
		if sc.mergeWindows(m, piece, windowSyms, func(out []span) { dst = sc.appendIDs(dst, out) }) {
			return dst
		}
		dst = dst[:old]
	}
	sc.syms, _ = m.symbols(sc, sc.syms[:0], piece, 0, len(piece), len(piece))
	return sc.appendIDs(dst, sc.merge(m, piece, sc.syms))
}

// appendIDs appends the ids of tokens to dst.
func (sc *scratch) appendIDs(dst []int32, tokens []span) []int32 {
	dst = sc.room(dst, len(tokens))
	for _, s := range tokens {
		dst = append(dst, s.id)
	}
	return dst
}

// apart is false within a run of text without tokens that is one symbol.
func (m *bpe) apart(left, right span) bool {
	return !m.fuseUnk || m.unk < 0 || left.id != m.unk || right.id != m.unk
}

func (m *bpe) symbols(sc *scratch, dst []span, piece string, lo, hi, n int) ([]span, int) {
	if !m.byByte {
		return m.charSymbols(sc, dst, piece, lo, hi, n)
	}
	dst = slices.Grow(dst, min(n, hi-lo))
	i := lo
	for ; i < hi && n > 0; i++ {
		// A byte without a token is gone before merging: what is around it
		// may merge.
		if id := m.bytes[piece[i]]; id >= 0 {
			dst = append(dst, span{id, int32(i), int32(i) + 1})
			n--
		}
	}
	return dst, i
}

// charSymbols is symbols for a vocabulary of characters.
func (m *bpe) charSymbols(sc *scratch, dst []span, piece string, lo, hi, n int) ([]span, int) {
	fused := false // the last symbol is an unk that may take in more
	n += len(dst)
	i := lo
	for i < hi && len(dst) < n {
		w := 1
		if piece[i] >= utf8.RuneSelf {
			_, w = utf8.DecodeRuneInString(piece[i:hi])
		}
		lo, hi := int32(i), int32(i+w)
		id := m.char(sc, piece, i, w)
		i += w
		switch {
		case id >= 0:
			dst = append(dst, span{id, lo, hi})
		case m.byteFallback && m.hasBytes(piece[lo:hi]):
			for j := lo; j < hi; j++ {
				dst = append(dst, span{m.fallback[piece[j]], j, j + 1})
			}
		case m.unk < 0:
			continue
		case fused && m.fuseUnk:
			dst[len(dst)-1].hi = hi
			continue
		default:
			dst = append(dst, span{m.unk, lo, hi})
			fused = true
			continue
		}
		fused = false
	}
	return dst, i
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
