package tokenizer

import (
	"fmt"
	"hash/maphash"
	"math/bits"
	"unicode/utf8"
)

// Limits of what a vocabulary may hold. The merge table packs two ids and a
// rank into one 64-bit word; the largest published vocabularies hold about a
// quarter of this.
const (
	maxTokens = 1<<21 - 1
	maxMerges = 1<<22 - 2
)

// tokenType says what a token is for; the values are those of GGUF's
// tokenizer.ggml.token_type.
type tokenType uint8

const (
	tokAbsent  tokenType = iota // a hole in the numbering
	tokNormal                   // text
	tokUnknown                  // stands for text that has no token
	tokControl                  // a mark that is not text: <s>, <|im_end|>
	tokUser                     // text that is always one token
	tokUnused                   // reserved
	tokByte                     // one byte: <0x0A>
)

// vocab holds the tokens of a model and finds ids by text. It is read-only
// once built.
type vocab struct {
	text []string    // by id; owned by the caller's metadata or by an arena
	typ  []tokenType // by id

	// Open addressing over text: a slot is 0 or the upper half of the hash
	// and the id + 1.
	slots []uint64
	mask  uint64
	seed  maphash.Seed
}

// newVocab indexes texts. types has the same length; absent tokens are not
// indexed. Where a text occurs twice, the first id is found.
func newVocab(texts []string, types []tokenType) (*vocab, error) {
	if len(texts) > maxTokens {
		return nil, fmt.Errorf("%d tokens, at most %d are supported", len(texts), maxTokens)
	}
	size := uint64(1) << bits.Len(uint(len(texts)+len(texts)/2+8))
	v := &vocab{
		text:  texts,
		typ:   types,
		slots: make([]uint64, size),
		mask:  size - 1,
		seed:  maphash.MakeSeed(),
	}
	for id, s := range texts {
		if types[id] != tokAbsent {
			v.insert(s, int32(id))
		}
	}
	return v, nil
}

func (v *vocab) insert(s string, id int32) {
	h := maphash.String(v.seed, s)
	tag := h &^ (1<<32 - 1)
	for i := h & v.mask; ; i = (i + 1) & v.mask {
		e := v.slots[i]
		if e == 0 {
			v.slots[i] = tag | uint64(id+1)
			return
		}
		if e&^(1<<32-1) == tag && v.text[uint32(e)-1] == s {
			return
		}
	}
}

// find returns the id of the token with the text s, or -1.
func (v *vocab) find(s string) int32 {
	h := maphash.String(v.seed, s)
	tag := h >> 32
	for i := h & v.mask; ; i = (i + 1) & v.mask {
		e := v.slots[i]
		if e == 0 {
			return -1
		}
		if e>>32 == tag && v.text[uint32(e)-1] == s {
			return int32(uint32(e)) - 1
		}
	}
}

// size is the number of ids, holes included.
func (v *vocab) size() int { return len(v.text) }

// longest is the number of bytes of the longest token's text.
func (v *vocab) longest() (n int) {
	for _, s := range v.text {
		n = max(n, len(s))
	}
	return n
}

// valid reports whether id names a token.
func (v *vocab) valid(id int32) bool {
	return id >= 0 && int(id) < len(v.text) && v.typ[id] != tokAbsent
}

// byteTokens returns the ids of the tokens <0x00> to <0xFF>, -1 where there
// is none, and how many there are.
func (v *vocab) byteTokens() (ids [256]int32, n int) {
	name := []byte("<0x00>")
	const hex = "0123456789ABCDEF"
	for b := range ids {
		name[3], name[4] = hex[b>>4], hex[b&15]
		if ids[b] = v.find(string(name)); ids[b] >= 0 {
			n++
		}
	}
	return ids, n
}

// byteValue returns the byte that a token text of the form <0xHH> stands for.
func byteValue(text string) (b byte, ok bool) {
	if len(text) != 6 || text[:3] != "<0x" || text[5] != '>' {
		return 0, false
	}
	hi, lo := unhex(text[3]), unhex(text[4])
	return byte(hi<<4 | lo), hi >= 0 && lo >= 0
}

func unhex(c byte) int {
	switch {
	case '0' <= c && c <= '9':
		return int(c - '0')
	case 'A' <= c && c <= 'F':
		return int(c-'A') + 10
	case 'a' <= c && c <= 'f':
		return int(c-'a') + 10
	}
	return -1
}

// Byte-level vocabularies write a byte as a printable character: the byte
// itself where Latin-1 prints it, else the next character from U+0100 on.
var (
	byteRune [256]rune    // the character that stands for a byte
	runeByte [0x144]int16 // the byte that a character stands for, or -1
	byteText [256]string  // byteRune as UTF-8
)

func init() {
	for i := range runeByte {
		runeByte[i] = -1
	}
	next := rune(0x100)
	for b := range 256 {
		r := rune(b)
		if b <= 0x20 || 0x7F <= b && b <= 0xA0 || b == 0xAD {
			r = next
			next++
		}
		byteRune[b], runeByte[r] = r, int16(b)
		byteText[b] = string(r)
	}
}

// appendByteText appends the byte-level form of s to dst.
func appendByteText(dst []byte, s string) []byte {
	for i := range len(s) {
		dst = append(dst, byteText[s[i]]...)
	}
	return dst
}

// appendTextBytes appends the bytes that the byte-level text s stands for.
// A text with a character that stands for no byte is taken as it is, which is
// what the marks among the tokens are.
func appendTextBytes(dst []byte, s string) []byte {
	n := len(dst)
	for i := 0; i < len(s); {
		if c := s[i]; c < utf8.RuneSelf {
			if runeByte[c] < 0 {
				return append(dst[:n], s...)
			}
			dst = append(dst, c)
			i++
			continue
		}
		r, w := utf8.DecodeRuneInString(s[i:])
		if int(r) >= len(runeByte) || runeByte[r] < 0 {
			return append(dst[:n], s...)
		}
		dst = append(dst, byte(runeByte[r]))
		i += w
	}
	return dst
}
