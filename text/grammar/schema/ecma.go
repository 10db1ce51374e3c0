package schema

import (
	"strconv"
	"strings"
	"unicode/utf16"
)

// What \s matches in ECMAScript, and what it does not, as ranges of a class.
const (
	ecmaSpace    = `\t-\r \x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}\x{feff}`
	ecmaNotSpace = `\x00-\x08\x0e-\x1f!-\x{9f}\x{a1}-\x{167f}\x{1681}-\x{1fff}\x{200b}-\x{2027}\x{202a}-\x{202e}` +
		`\x{2030}-\x{205e}\x{2060}-\x{2fff}\x{3001}-\x{fefe}\x{ff00}-\x{10ffff}`
)

// fromECMA rewrites what RE2 has not, or has with another meaning: \uXXXX becomes
// \x{XXXX}, and \s and \S become the classes that they are in ECMAScript. ok is
// false if there is half of a surrogate pair.
func fromECMA(expr string) (re2 string, ok bool) {
	unit := func(i int) (rune, bool) {
		if i+6 > len(expr) || expr[i:i+2] != `\u` {
			return 0, false
		}
		n, err := strconv.ParseUint(expr[i+2:i+6], 16, 16)
		return rune(n), err == nil
	}
	var b strings.Builder
	class := false
	for i := 0; i < len(expr); i++ {
		r, ok := unit(i)
		switch {
		case ok:
			i += 5
			if utf16.IsSurrogate(r) {
				low, _ := unit(i + 1)
				if r = utf16.DecodeRune(r, low); r == 0xFFFD {
					return "", false
				}
				i += 6
			}
			b.WriteString(`\x{` + strconv.FormatInt(int64(r), 16) + `}`)
		case expr[i] == '\\' && i+1 < len(expr):
			b.WriteString(escape(expr[i:i+2], class))
			i++
		default:
			switch expr[i] {
			case '[':
				class = true
			case ']':
				class = false
			}
			b.WriteByte(expr[i])
		}
	}
	return b.String(), true
}

// escape rewrites a backslash and what follows, inside a class or not.
func escape(s string, class bool) string {
	ranges := ""
	switch s {
	case `\s`:
		ranges = ecmaSpace
	case `\S`:
		ranges = ecmaNotSpace
	default:
		return s
	}
	if class {
		return ranges
	}
	return "[" + ranges + "]"
}
