package model

import "bytes"

// strictJSON returns JSON as Python writes it in a form that JSON readers take:
// Infinity, -Infinity and NaN, which are no JSON, become strings. So a value that
// nobody reads does no harm, and a number that is read is an error that shows it.
func strictJSON(b []byte) []byte {
	if !bytes.Contains(b, []byte("Infinity")) && !bytes.Contains(b, []byte("NaN")) {
		return b
	}
	var out []byte
	for i := 0; i < len(b); {
		n := word(b[i:])
		if b[i] == '"' {
			n = quoted(b[i:])
			out = append(out, b[i:i+n]...)
		} else if n > 0 {
			out = append(append(append(out, '"'), b[i:i+n]...), '"')
		} else {
			n = 1
			out = append(out, b[i])
		}
		i += n
	}
	return out
}

// word returns the length of the number that is none at the start of b, 0 for none.
func word(b []byte) int {
	for _, w := range []string{"-Infinity", "Infinity", "NaN"} {
		if bytes.HasPrefix(b, []byte(w)) {
			return len(w)
		}
	}
	return 0
}

// quoted returns the length of the string at the start of b.
func quoted(b []byte) int {
	for i := 1; i < len(b); i++ {
		switch b[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(b)
}
