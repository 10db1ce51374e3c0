package tokenizer

import (
	"sync"
	"unicode"
	"unicode/utf8"
)

// Character classes as pre-tokenizer patterns use them, one bit each.
// A character without any bit is a control, a format character, a private
// one or not assigned.
const (
	clL     uint8 = 1 << iota // \p{L}
	clN                       // \p{N}
	clM                       // \p{M}
	clP                       // \p{P}
	clS                       // \p{S}
	clSpace                   // \s: Unicode White_Space
	clUpper                   // \p{Lu} or \p{Lt}, beside clL
	clLower                   // \p{Ll}, beside clL
)

// classTable holds the class bits of every code point. It lives in BSS, so
// only pages of assigned characters take memory; classes fills it on first use.
var (
	classTable [utf8.MaxRune + 1]uint8
	classOnce  sync.Once
)

// asciiClass is the part of classTable that loops over bytes read; it is 0 for
// bytes from 0x80 on, which are parts of longer characters.
var asciiClass [256]uint8

// initClasses fills the tables: the categories that the unicode package knows
// plus the characters that newer Unicode versions added.
func initClasses() {
	set := func(t *unicode.RangeTable, bits uint8) {
		for _, r := range t.R16 {
			for c := int(r.Lo); c <= int(r.Hi); c += int(r.Stride) {
				classTable[c] |= bits
			}
		}
		for _, r := range t.R32 {
			for c := int(r.Lo); c <= int(r.Hi); c += int(r.Stride) {
				classTable[c] |= bits
			}
		}
	}
	set(unicode.L, clL)
	set(unicode.Lu, clUpper)
	set(unicode.Lt, clUpper)
	set(unicode.Ll, clLower)
	set(unicode.N, clN)
	set(unicode.M, clM)
	set(unicode.P, clP)
	set(unicode.S, clS)
	set(unicode.White_Space, clSpace)
	for _, n := range unicode16 {
		for c := n.lo; c <= n.hi; c++ {
			classTable[c] |= n.bits
		}
	}
	copy(asciiClass[:utf8.RuneSelf], classTable[:utf8.RuneSelf])
}

// classes makes sure that the class tables are filled.
func classes() { classOnce.Do(initClasses) }

// class returns the class bits and the length in bytes of the character of s
// at i < len(s). An invalid byte is one character of the class of U+FFFD.
func class(s string, i int) (bits uint8, n int) {
	if c := s[i]; c < utf8.RuneSelf {
		return asciiClass[c], 1
	}
	r, n := utf8.DecodeRuneInString(s[i:])
	return classTable[r], n
}

// classBefore is class for the character that ends at i > 0.
func classBefore(s string, i int) (bits uint8, n int) {
	r, n := utf8.DecodeLastRuneInString(s[:i])
	return classTable[r], n
}

// skipClass returns the end of the run of characters of s from i on that have
// one of the given bits.
func skipClass(s string, i int, bits uint8) int {
	for i < len(s) {
		c := s[i]
		if asciiClass[c]&bits != 0 {
			i++
			continue
		}
		if c < utf8.RuneSelf {
			break
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		if classTable[r]&bits == 0 {
			break
		}
		i += n
	}
	return i
}

// skipOther returns the end of the run of characters of s from i on that have
// none of the given bits.
func skipOther(s string, i int, bits uint8) int {
	for i < len(s) {
		b, n := class(s, i)
		if b&bits != 0 {
			break
		}
		i += n
	}
	return i
}

// unicode16 lists the characters that Unicode 15.1 and 16 added: the
// tokenizers of published models are run with those tables.
var unicode16 = []struct {
	lo, hi rune
	bits   uint8
}{
	{0x897, 0x897, clM}, {0x1B4E, 0x1B4F, clP}, {0x1B7F, 0x1B7F, clP}, {0x1C89, 0x1C89, clL | clUpper},
	{0x1C8A, 0x1C8A, clL | clLower}, {0x2427, 0x2429, clS}, {0x2FFC, 0x2FFF, clS}, {0x31E4, 0x31E5, clS},
	{0x31EF, 0x31EF, clS}, {0xA7CB, 0xA7CC, clL | clUpper}, {0xA7CD, 0xA7CD, clL | clLower},
	{0xA7DA, 0xA7DA, clL | clUpper}, {0xA7DB, 0xA7DB, clL | clLower}, {0xA7DC, 0xA7DC, clL | clUpper},
	{0x105C0, 0x105F3, clL}, {0x10D40, 0x10D49, clN}, {0x10D4A, 0x10D4F, clL},
	{0x10D50, 0x10D65, clL | clUpper}, {0x10D69, 0x10D6D, clM}, {0x10D6E, 0x10D6E, clP},
	{0x10D6F, 0x10D6F, clL}, {0x10D70, 0x10D85, clL | clLower}, {0x10D8E, 0x10D8F, clS}, {0x10EC2, 0x10EC4, clL},
	{0x10EFC, 0x10EFC, clM}, {0x11380, 0x11389, clL}, {0x1138B, 0x1138B, clL}, {0x1138E, 0x1138E, clL},
	{0x11390, 0x113B5, clL}, {0x113B7, 0x113B7, clL}, {0x113B8, 0x113C0, clM}, {0x113C2, 0x113C2, clM},
	{0x113C5, 0x113C5, clM}, {0x113C7, 0x113CA, clM}, {0x113CC, 0x113D0, clM}, {0x113D1, 0x113D1, clL},
	{0x113D2, 0x113D2, clM}, {0x113D3, 0x113D3, clL}, {0x113D4, 0x113D5, clP}, {0x113D7, 0x113D8, clP},
	{0x113E1, 0x113E2, clM}, {0x116D0, 0x116E3, clN}, {0x11BC0, 0x11BE0, clL}, {0x11BE1, 0x11BE1, clP},
	{0x11BF0, 0x11BF9, clN}, {0x11F5A, 0x11F5A, clM}, {0x13460, 0x143FA, clL}, {0x16100, 0x1611D, clL},
	{0x1611E, 0x1612F, clM}, {0x16130, 0x16139, clN}, {0x16D40, 0x16D6C, clL},
	{0x16D6D, 0x16D6F, clP}, {0x16D70, 0x16D79, clN}, {0x18CFF, 0x18CFF, clL},
	{0x1CC00, 0x1CCEF, clS}, {0x1CCF0, 0x1CCF9, clN}, {0x1CD00, 0x1CEB3, clS}, {0x1E5D0, 0x1E5ED, clL},
	{0x1E5EE, 0x1E5EF, clM}, {0x1E5F0, 0x1E5F0, clL}, {0x1E5F1, 0x1E5FA, clN}, {0x1E5FF, 0x1E5FF, clP},
	{0x1F8B2, 0x1F8BB, clS}, {0x1F8C0, 0x1F8C1, clS}, {0x1FA89, 0x1FA89, clS}, {0x1FA8F, 0x1FA8F, clS},
	{0x1FABE, 0x1FABE, clS}, {0x1FAC6, 0x1FAC6, clS}, {0x1FADC, 0x1FADC, clS}, {0x1FADF, 0x1FADF, clS},
	{0x1FAE9, 0x1FAE9, clS}, {0x1FBCB, 0x1FBEF, clS}, {0x2EBF0, 0x2EE5D, clL},
}
