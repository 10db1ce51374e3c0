package jinja

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode"
)

// str returns str(v).
func (st *state) str(v value) string {
	switch v := v.(type) {
	case string:
		return v
	case markup:
		return string(v)
	case *traced:
		return v.s
	case undefined:
		return ""
	}
	return st.repr(v)
}

// repr returns repr(v).
func (st *state) repr(v value) string {
	var b weaver
	st.writeRepr(&b, v, 0)
	return b.String()
}

func (st *state) writeRepr(b *weaver, v value, depth int) {
	if depth > maxValueDepth {
		panic(st.errorf("value nested deeper than %d", maxValueDepth))
	}
	st.step(1)
	st.alloc(8)
	switch v := v.(type) {
	case undefined:
		b.WriteString("Undefined")
	case nil:
		b.WriteString("None")
	case bool:
		if v {
			b.WriteString("True")
		} else {
			b.WriteString("False")
		}
	case int:
		b.WriteString(strconv.Itoa(v))
	case float64:
		b.WriteString(pyFloat(v))
	case string:
		st.writeStrRepr(b, v)
	case *list:
		st.writeItems(b, "[", v.items, "]", depth)
	case *dict:
		st.writeEntries(b, "{", v.entries, "}", depth)
	case *tuple:
		st.writeTuple(b, v, depth)
	case markup:
		b.WriteString("Markup(")
		st.writeStrRepr(b, string(v))
		b.WriteByte(')')
	case *traced:
		from := b.Len()
		st.writeStrRepr(b, v.s)
		b.mark(from, 1)
	case *bigInt:
		b.WriteString(v.n.String())
	case *loop:
		b.WriteString("<LoopContext " + strconv.Itoa(v.idx+1) + "/" + strconv.Itoa(len(v.items)) + ">")
	case *macro:
		b.WriteString("<Macro '" + v.def.name + "'>")
	case *namespace:
		st.writeEntries(b, "<Namespace {", v.entries, "}>", depth)
	case *builtin:
		b.WriteString("<built-in function " + v.fn.name + ">")
	default:
		b.WriteString("<object>")
	}
}

func (st *state) writeTuple(b *weaver, t *tuple, depth int) {
	switch {
	case t.kind == "range" && t.span[2] == 1:
		fmt.Fprintf(b, "range(%d, %d)", t.span[0], t.span[1])
	case t.kind == "range":
		fmt.Fprintf(b, "range(%d, %d, %d)", t.span[0], t.span[1], t.span[2])
	case t.kind != "":
		st.writeItems(b, t.kind+"([", t.items, "])", depth)
	case len(t.items) == 1:
		st.writeItems(b, "(", t.items, ",)", depth)
	default:
		st.writeItems(b, "(", t.items, ")", depth)
	}
}

func (st *state) writeItems(b *weaver, open string, items []value, end string, depth int) {
	b.WriteString(open)
	for i, v := range items {
		if i > 0 {
			b.WriteString(", ")
		}
		st.writeRepr(b, v, depth+1)
	}
	b.WriteString(end)
}

func (st *state) writeEntries(b *weaver, open string, entries []entry, end string, depth int) {
	b.WriteString(open)
	for i, e := range entries {
		if i > 0 {
			b.WriteString(", ")
		}
		st.writeRepr(b, e.key, depth+1)
		b.WriteString(": ")
		st.writeRepr(b, e.val, depth+1)
	}
	b.WriteString(end)
}

func (st *state) writeStrRepr(b *weaver, s string) {
	st.alloc(len(s) + 2)
	q := '\''
	if strings.Contains(s, "'") && !strings.Contains(s, `"`) {
		q = '"'
	}
	b.WriteRune(q)
	for _, r := range s {
		switch {
		case r == q || r == '\\':
			b.WriteString(`\` + string(r))
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\r':
			b.WriteString(`\r`)
		case r == '\t':
			b.WriteString(`\t`)
		case r == ' ' || unicode.IsPrint(r):
			b.WriteRune(r)
		case r < 0x100:
			b.WriteString(`\x` + hex(r, 2))
		case r < 0x10000:
			b.WriteString(`\u` + hex(r, 4))
		default:
			b.WriteString(`\U` + hex(r, 8))
		}
	}
	b.WriteRune(q)
}

// hex spells r in n hexadecimal digits.
func hex(r rune, n int) string {
	s := strconv.FormatInt(int64(r), 16)
	return strings.Repeat("0", max(0, n-len(s))) + s
}

// pyFloat spells f as Python's repr does: the shortest digits that read back
// as f, with an exponent from 1e16 and below 1e-4.
func pyFloat(f float64) string {
	switch {
	case math.IsNaN(f):
		return "nan"
	case math.IsInf(f, 1):
		return "inf"
	case math.IsInf(f, -1):
		return "-inf"
	}
	if a := math.Abs(f); a != 0 && (a < 1e-4 || a >= 1e16) {
		return strconv.FormatFloat(f, 'e', -1, 64)
	}
	s := strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}

// isPySpace is Python's str.isspace for one character.
func isPySpace(r rune) bool {
	return unicode.IsSpace(r) || r >= 0x1c && r <= 0x1f
}
