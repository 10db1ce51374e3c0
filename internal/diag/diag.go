// Package diag keeps messages about files from strangers on one line of
// bounded length: names inside such a file, and names of files, may hold
// anything.
package diag

import (
	"strconv"
	"unicode"
	"unicode/utf8"
)

const maxQuoted = 80 // bytes of a name that a message shows

// Quote returns s in double quotes, escaped so that it stays on one line and
// cut, with its length added, where it is long.
func Quote(s string) string {
	if len(s) <= maxQuoted {
		return strconv.Quote(s)
	}
	cut := maxQuoted
	for cut > maxQuoted-utf8.UTFMax && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return strconv.Quote(s[:cut]) + "... (" + strconv.Itoa(len(s)) + " bytes)"
}

// Path returns path as it is if it is printable, quoted otherwise.
func Path(path string) string {
	if !utf8.ValidString(path) {
		return strconv.Quote(path)
	}
	for _, r := range path {
		if !unicode.IsPrint(r) {
			return strconv.Quote(path)
		}
	}
	return path
}

const maxExtents = 8 // extents of a shape that a message shows

// Shape returns the extents of a tensor in brackets, cut where there are many.
func Shape(dims []uint64) string {
	s := []byte{'['}
	for i, d := range dims {
		if i == maxExtents {
			s = append(s, " ..."...)
			break
		}
		if i > 0 {
			s = append(s, ' ')
		}
		s = strconv.AppendUint(s, d, 10)
	}
	return string(append(s, ']'))
}
