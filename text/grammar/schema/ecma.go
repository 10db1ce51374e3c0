package schema

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"

	"ridge/internal/diag"
	"ridge/text/grammar"
)

// What \s matches in ECMAScript, and what it does not, as ranges of a class.
const (
	ecmaSpace    = `\t-\r \x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}\x{feff}`
	ecmaNotSpace = `\x00-\x08\x0e-\x1f!-\x{9f}\x{a1}-\x{167f}\x{1681}-\x{1fff}\x{200b}-\x{2027}\x{202a}-\x{202e}` +
		`\x{2030}-\x{205e}\x{2060}-\x{2fff}\x{3001}-\x{fefe}\x{ff00}-\x{10ffff}`
)

// fromECMA rewrites what RE2 has not, or has with another meaning: \uXXXX and
// \u{X} become \x{X}, \s and \S and properties become the classes that they are in
// ECMAScript, where a class may contain [ and may be empty or everything.
func fromECMA(expr string) (re2 string, err error) {
	e := &ecmaReader{expr: expr}
	for e.i < len(expr) && e.err == nil {
		e.next()
	}
	return e.out.String(), e.err
}

type ecmaReader struct {
	expr  string
	i     int
	class bool
	out   strings.Builder
	err   error
}

// next rewrites what comes next.
func (e *ecmaReader) next() {
	rest := e.expr[e.i:]
	switch {
	case strings.HasPrefix(rest, `\u`):
		e.unicode()
	case strings.HasPrefix(rest, `\p{`), strings.HasPrefix(rest, `\P{`):
		e.property()
	case rest[0] == '\\' && len(rest) > 1:
		e.write(escape(rest[:2], e.class), 2)
	case e.class:
		if rest[0] == '[' { // RE2 has classes with names there
			e.write(`\[`, 1)
			return
		}
		e.class = rest[0] != ']'
		e.write(rest[:1], 1)
	case strings.HasPrefix(rest, "[^]"):
		e.write(`[\x{0}-\x{10ffff}]`, 3)
	case rest[0] == '[':
		e.class = true
		n := 1
		for _, more := range []string{"^", "]"} { // a bracket that comes first is one, as elsewhere
			if strings.HasPrefix(rest[n:], more) {
				n++
			}
		}
		e.write(rest[:n], n)
	default:
		e.write(rest[:1], 1)
	}
}

func (e *ecmaReader) write(s string, n int) {
	e.out.WriteString(s)
	e.i += n
}

// unit reads \uXXXX at i.
func (e *ecmaReader) unit(i int) (rune, bool) {
	if i+6 > len(e.expr) || e.expr[i:i+2] != `\u` {
		return 0, false
	}
	n, err := strconv.ParseUint(e.expr[i+2:i+6], 16, 16)
	return rune(n), err == nil
}

func (e *ecmaReader) unicode() {
	r, ok := e.unit(e.i)
	n := 6
	if end := strings.IndexByte(e.expr[e.i:], '}'); !ok && strings.HasPrefix(e.expr[e.i:], `\u{`) && end > 0 {
		x, err := strconv.ParseUint(e.expr[e.i+3:e.i+end], 16, 32)
		r, n, ok = rune(x), end+1, err == nil && x <= unicode.MaxRune
	}
	if !ok {
		e.write(`\u`, 2) // RE2 says what is wrong
		return
	}
	if utf16.IsSurrogate(r) {
		low, _ := e.unit(e.i + 6)
		if r = utf16.DecodeRune(r, low); r == unicode.ReplacementChar {
			e.err = fmt.Errorf("half of a surrogate pair in a regular expression")
			return
		}
		n += 6
	}
	e.write(`\x{`+strconv.FormatInt(int64(r), 16)+`}`, n)
}

// property rewrites \p{NAME}, \p{NAME=VALUE} and their complements.
func (e *ecmaReader) property() {
	end := strings.IndexByte(e.expr[e.i:], '}')
	if end < 0 {
		e.write(e.expr[e.i:e.i+2], 2)
		return
	}
	name, not := e.expr[e.i+3:e.i+end], e.expr[e.i+1] == 'P'
	if key, value, ok := strings.Cut(name, "="); ok && slices.Contains([]string{"Script", "sc", "Script_Extensions", "scx", "General_Category", "gc"}, key) {
		name = value
	}
	set, known := propertyOf(name)
	switch {
	case !known && !slices.Contains([]string{"Any", "ASCII", "Assigned", "LC"}, name) && unicode.Scripts[name] == nil && unicode.Categories[name] == nil && unicode.CategoryAliases[name] == "":
		e.err = fmt.Errorf("property %s in a regular expression", diag.Quote(name))
	case !known:
		e.write(e.expr[e.i:e.i+2]+"{"+name+"}", end+1)
	default:
		if not {
			set = set.Complement()
		}
		text := ranges(set)
		if !e.class {
			text = "[" + text + "]"
		}
		e.write(text, end+1)
	}
}

// propertyOf returns the characters of a property that RE2 does not have.
func propertyOf(name string) (grammar.RuneSet, bool) {
	if s, ok := emoji[name]; ok {
		return s, true
	}
	var tables []*unicode.RangeTable
	switch name {
	case "Alphabetic", "Alpha":
		tables = []*unicode.RangeTable{unicode.L, unicode.Nl, unicode.Other_Alphabetic}
	case "Uppercase", "Upper":
		tables = []*unicode.RangeTable{unicode.Lu, unicode.Other_Uppercase}
	case "Lowercase", "Lower":
		tables = []*unicode.RangeTable{unicode.Ll, unicode.Other_Lowercase}
	default:
		t, ok := unicode.Properties[name]
		if !ok {
			return nil, false
		}
		tables = []*unicode.RangeTable{t}
	}
	return grammar.Runes(tables...), true
}

// ranges writes a set as the inside of a class.
func ranges(set grammar.RuneSet) string {
	var b strings.Builder
	for i := 0; i < len(set); i += 2 {
		fmt.Fprintf(&b, `\x{%x}-\x{%x}`, set[i], set[i+1])
	}
	return b.String()
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
