package hfjinja

import (
	"math"
	"math/big"
	"strconv"
	"strings"
	"unicode"

	"github.com/ardanlabs/jinja"
)

// maxValueDepth bounds the nesting of values that are printed, compared or
// encoded: a list can be made to contain itself.
const maxValueDepth = 200

// bigInt is an integer that does not fit in 64 bits. It can be printed and
// compared, not calculated with.
type bigInt struct{ n *big.Int }

func (*bigInt) pyType() string { return "int" }

// namespace is what namespace() makes: the one object whose attributes a
// template may set from within a loop.
type namespace struct {
	keys []string
	vals map[string]value
}

func (*namespace) pyType() string { return "Namespace" }

func (n *namespace) attr(_ *state, name string) (value, bool) {
	v, ok := n.vals[name]
	return v, ok
}

func (n *namespace) set(name string, v value) {
	if _, ok := n.vals[name]; !ok {
		n.keys = append(n.keys, name)
	}
	n.vals[name] = v
}

// typeName is the name of v's Python type.
func (st *state) typeName(v value) string {
	switch {
	case v.IsUndefined():
		return "Undefined"
	case v.IsNone():
		return "NoneType"
	case v.IsBool():
		return "bool"
	case v.IsInt():
		return "int"
	case v.IsFloat():
		return "float"
	case v.IsString():
		return "str"
	case v.IsList():
		return "list"
	case v.IsDict():
		return "dict"
	}
	if o := st.object(v); o != nil {
		return o.pyType()
	}
	return "object"
}

// text returns the characters of a string, safe or not.
func (st *state) text(v value) (string, bool) {
	if v.IsString() {
		return v.AsString(), true
	}
	if m, ok := st.object(v).(*markup); ok {
		return m.s, true
	}
	return "", false
}

// like makes a string that is safe if v is.
func (st *state) like(v value, s string) (value, error) {
	if err := st.alloc(len(s)); err != nil {
		return value{}, err
	}
	return st.likeNoAlloc(v, s), nil
}

func (st *state) likeNoAlloc(v value, s string) value {
	if _, ok := st.object(v).(*markup); ok {
		return st.markup(s)
	}
	return jinja.NewString(s)
}

// markup makes a safe string. An empty one is an ordinary string: the library
// takes every object to be true.
func (st *state) markup(s string) value {
	if s == "" {
		return jinja.NewString("")
	}
	return st.carry(&markup{s})
}

// items returns what iterating over v gives. The slice may be shared with v.
func (st *state) items(v value) ([]value, error) {
	switch {
	case v.IsUndefined():
		return nil, nil
	case v.IsList():
		return v.AsList().Items, nil
	case v.IsDict():
		keys := v.AsDict().Keys
		if err := st.alloc(len(keys) * itemBytes); err != nil {
			return nil, err
		}
		out := make([]value, len(keys))
		for i, k := range keys {
			out[i] = keyValue(k)
		}
		return out, nil
	}
	switch o := st.object(v).(type) {
	case *tuple:
		return o.items, nil
	case *iterator:
		items := o.items
		o.items = nil
		return items, nil
	}
	if s, ok := st.text(v); ok {
		if err := st.alloc(len(s) * itemBytes); err != nil {
			return nil, err
		}
		out := make([]value, 0, len(s))
		for _, r := range s {
			out = append(out, jinja.NewString(string(r)))
		}
		return out, nil
	}
	return nil, st.errorf("'%s' object is not iterable", st.typeName(v))
}

// sequence returns the items of a list or tuple.
func (st *state) sequence(v value) ([]value, bool) {
	if v.IsList() {
		return v.AsList().Items, true
	}
	if t, ok := st.object(v).(*tuple); ok {
		return t.items, true
	}
	return nil, false
}

// integer returns v as Python's index protocol does: int or bool.
func integer(v value) (int64, bool) {
	switch {
	case v.IsInt():
		return v.AsInt(), true
	case v.IsBool():
		if v.AsBool() {
			return 1, true
		}
		return 0, true
	}
	return 0, false
}

// bigInteger returns v as an integer of any size.
func (st *state) bigInteger(v value) (*big.Int, bool) {
	if n, ok := integer(v); ok {
		return big.NewInt(n), true
	}
	if b, ok := st.object(v).(*bigInt); ok {
		return b.n, true
	}
	return nil, false
}

// number returns v as a float, for int, bool and float.
func number(v value) (float64, bool) {
	if v.IsFloat() {
		return v.AsFloat(), true
	}
	i, ok := integer(v)
	return float64(i), ok
}

// print returns str(v).
func (st *state) print(v value) (string, error) {
	if v.IsString() {
		return v.AsString(), nil
	}
	if v.IsUndefined() {
		return "", nil
	}
	if m, ok := st.object(v).(*markup); ok {
		return m.s, nil
	}
	return st.repr(v)
}

// repr returns repr(v).
func (st *state) repr(v value) (string, error) {
	var b strings.Builder
	if err := st.writeRepr(&b, v, 0); err != nil {
		return "", err
	}
	return b.String(), nil
}

func (st *state) writeRepr(b *strings.Builder, v value, depth int) error {
	if depth > maxValueDepth {
		return st.errorf("value nested deeper than %d", maxValueDepth)
	}
	if err := st.alloc(8); err != nil {
		return err
	}
	switch {
	case v.IsUndefined():
		b.WriteString("Undefined")
	case v.IsNone():
		b.WriteString("None")
	case v.IsBool():
		if v.AsBool() {
			b.WriteString("True")
		} else {
			b.WriteString("False")
		}
	case v.IsInt():
		b.WriteString(strconv.FormatInt(v.AsInt(), 10))
	case v.IsFloat():
		b.WriteString(pyFloat(v.AsFloat()))
	case v.IsString():
		return st.writeStrRepr(b, v.AsString())
	case v.IsList():
		return st.writeItems(b, "[", "]", v.AsList().Items, depth)
	case v.IsDict():
		d := v.AsDict()
		b.WriteByte('{')
		for i, k := range d.Keys {
			if i > 0 {
				b.WriteString(", ")
			}
			if err := st.writeRepr(b, keyValue(k), depth+1); err != nil {
				return err
			}
			b.WriteString(": ")
			if err := st.writeRepr(b, d.Data[k], depth+1); err != nil {
				return err
			}
		}
		b.WriteByte('}')
	default:
		return st.writeObjectRepr(b, st.object(v), depth)
	}
	return nil
}

func (st *state) writeObjectRepr(b *strings.Builder, o object, depth int) error {
	switch o := o.(type) {
	case *markup:
		b.WriteString("Markup(")
		if err := st.writeStrRepr(b, o.s); err != nil {
			return err
		}
		b.WriteByte(')')
	case *tuple:
		end := ")"
		if len(o.items) == 1 {
			end = ",)"
		}
		return st.writeItems(b, "(", end, o.items, depth)
	case *bigInt:
		b.WriteString(o.n.String())
	case *loop:
		b.WriteString("<LoopContext " + strconv.Itoa(o.idx+1) + "/" + strconv.Itoa(len(o.items)) + ">")
	case *macro:
		b.WriteString("<Macro '" + o.name + "'>")
	case *namespace:
		b.WriteString("<Namespace {")
		for i, k := range o.keys {
			if i > 0 {
				b.WriteString(", ")
			}
			if err := st.writeStrRepr(b, k); err != nil {
				return err
			}
			b.WriteString(": ")
			if err := st.writeRepr(b, o.vals[k], depth+1); err != nil {
				return err
			}
		}
		b.WriteString("}>")
	case *builtin:
		b.WriteString("<built-in function " + o.name + ">")
	default:
		b.WriteString("<object>")
	}
	return nil
}

func (st *state) writeItems(b *strings.Builder, open, end string, items []value, depth int) error {
	b.WriteString(open)
	for i, v := range items {
		if i > 0 {
			b.WriteString(", ")
		}
		if err := st.writeRepr(b, v, depth+1); err != nil {
			return err
		}
	}
	b.WriteString(end)
	return nil
}

func (st *state) writeStrRepr(b *strings.Builder, s string) error {
	if err := st.alloc(len(s) + 2); err != nil {
		return err
	}
	q := byte('\'')
	if strings.Contains(s, "'") && !strings.Contains(s, `"`) {
		q = '"'
	}
	b.WriteByte(q)
	for _, r := range s {
		switch {
		case r == rune(q) || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
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
	b.WriteByte(q)
	return nil
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
