package tokenizer

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"unicode"
	"unicode/utf8"
)

// charsmap is SentencePiece's precompiled normalization: a double-array trie
// (darts-clone) from character sequences to replacements.
type charsmap struct {
	units []uint32
	texts []byte // replacements, each ended by a 0
	// By grapheme: a short cluster of characters is looked up by the first
	// key that starts it and replaced as a whole, as the tokenizers library
	// does. Else the longest key that starts the rest of the text counts, as
	// in SentencePiece itself.
	graphemes bool
}

// newCharsmap reads the format of SentencePiece: the size in bytes of the
// trie, the trie, the replacements.
func newCharsmap(b []byte, graphemes bool) (*charsmap, error) {
	if len(b) < 4 {
		return nil, fmt.Errorf("precompiled charsmap of %d bytes: too short for its header", len(b))
	}
	size := uint64(binary.LittleEndian.Uint32(b))
	if size%4 != 0 || size == 0 || size > uint64(len(b)-4) {
		return nil, fmt.Errorf("precompiled charsmap: a trie of %d bytes in %d", size, len(b)-4)
	}
	m := &charsmap{units: make([]uint32, size/4), texts: b[4+size:], graphemes: graphemes}
	for i := range m.units {
		m.units[i] = binary.LittleEndian.Uint32(b[4+4*i:])
	}
	if len(m.texts) > 0 && m.texts[len(m.texts)-1] != 0 {
		return nil, errors.New("precompiled charsmap: the last replacement does not end")
	}
	return m, nil
}

// find returns the replacement of the shortest or, with longest, the longest
// key that starts s, and the length of the key; 0 where there is none.
func (m *charsmap) find(s string, longest bool) (text []byte, n int) {
	offset := func(u uint32) uint32 { return u >> 10 << (u & (1 << 9) >> 6) }
	pos := offset(m.units[0])
	for i := range len(s) {
		c := uint32(s[i])
		if c == 0 {
			break
		}
		pos ^= c
		if int(pos) >= len(m.units) {
			break
		}
		u := m.units[pos]
		if u&(1<<31|0xFF) != c {
			break
		}
		pos ^= offset(u)
		if int(pos) >= len(m.units) {
			break
		}
		if u>>8&1 == 0 {
			continue
		}
		at := int(m.units[pos] &^ (1 << 31))
		if at >= len(m.texts) {
			break
		}
		end := bytes.IndexByte(m.texts[at:], 0)
		text, n = m.texts[at:at+end], i+1
		if !longest {
			break
		}
	}
	return text, n
}

func (m *charsmap) same(s string) bool { return s == "" }

func (m *charsmap) append(dst []byte, s string) []byte {
	for i := 0; i < len(s); {
		if m.graphemes {
			if n := grapheme(s[i:]); n < 6 {
				if text, k := m.find(s[i:i+n], false); k > 0 {
					dst = append(dst, text...)
					i += n
					continue
				}
			}
			_, n := utf8.DecodeRuneInString(s[i:])
			if text, k := m.find(s[i:i+n], false); k > 0 {
				dst = append(dst, text...)
			} else {
				dst = appendValidRune(dst, s[i:i+n])
			}
			i += n
			continue
		}
		if text, k := m.find(s[i:], true); k > 0 {
			dst = append(dst, text...)
			i += k
			continue
		}
		_, n := utf8.DecodeRuneInString(s[i:])
		dst = appendValidRune(dst, s[i:i+n])
		i += n
	}
	return dst
}

// appendValidRune appends one character, or U+FFFD for an invalid byte.
func appendValidRune(dst []byte, s string) []byte {
	if len(s) == 1 && s[0] >= utf8.RuneSelf {
		return append(dst, "\uFFFD"...)
	}
	return append(dst, s...)
}

// grapheme returns the length of the grapheme cluster that s starts with, as
// far as it matters for clusters of less than 6 bytes: a character and the
// marks and joiners after it, or a line break of two characters.
func grapheme(s string) int {
	r, n := utf8.DecodeRuneInString(s)
	if r == '\r' && len(s) > 1 && s[1] == '\n' {
		return 2
	}
	if unicode.In(r, unicode.Cc, unicode.Zl, unicode.Zp) {
		return n
	}
	for n < len(s) && n < 6 {
		r, w := utf8.DecodeRuneInString(s[n:])
		if classTable[r]&clM == 0 && r != 0x200C && r != 0x200D {
			break
		}
		n += w
	}
	return n
}
