package tokenizer

import (
	"unicode"
	"unsafe"
)

// view returns b as a string without copying: it is valid until b changes.
func view(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// isWordRune is the rare part of isWord: characters of \w that are neither
// letters nor marks.
func isWordRune(r rune) bool {
	return unicode.In(r, unicode.Nd, unicode.Nl, unicode.Pc, unicode.Other_Alphabetic, unicode.Join_Control)
}
