package hfjinja

import (
	"math"
	"strings"

	"github.com/ardanlabs/jinja"
)

// operands reports why a and b cannot be combined by op.
func (st *state) operands(op string, a, b value) error {
	if a.IsUndefined() || b.IsUndefined() {
		return st.errorf("undefined value used with '%s'", op)
	}
	_, aText := st.text(a)
	if op == "+" && aText {
		return st.errorf(`can only concatenate str (not "%s") to str`, st.typeName(b))
	}
	return st.errorf("unsupported operand types for %s: '%s' and '%s'", op, st.typeName(a), st.typeName(b))
}

// ints returns both operands as integers.
func ints(a, b value) (x, y int64, ok bool) {
	x, ok1 := integer(a)
	y, ok2 := integer(b)
	return x, y, ok1 && ok2
}

// floats returns both operands as floats.
func floats(a, b value) (x, y float64, ok bool) {
	x, ok1 := number(a)
	y, ok2 := number(b)
	return x, y, ok1 && ok2
}

func (st *state) overflow(op string) error {
	return st.errorf("result of '%s' does not fit in 64 bits", op)
}

func gAdd(st *state, a []value) (value, error) {
	l, r := a[0], a[1]
	if x, y, ok := ints(l, r); ok {
		s := x + y
		if (s > x) != (y > 0) {
			return value{}, st.overflow("+")
		}
		return jinja.NewInt(s), nil
	}
	if x, y, ok := floats(l, r); ok {
		return jinja.NewFloat(x + y), nil
	}
	if x, ok := st.text(l); ok {
		if y, ok := st.text(r); ok {
			return st.addText(l, r, x, y)
		}
	}
	x, ok1 := st.sequence(l)
	y, ok2 := st.sequence(r)
	if ok1 && ok2 && l.IsList() == r.IsList() {
		if err := st.alloc((len(x) + len(y)) * itemBytes); err != nil {
			return value{}, err
		}
		items := append(append(make([]value, 0, len(x)+len(y)), x...), y...)
		if l.IsList() {
			return jinja.NewList(items), nil
		}
		return st.tuple(items...), nil
	}
	return value{}, st.operands("+", l, r)
}

// addText concatenates strings; one marked safe has the other escaped.
func (st *state) addText(l, r value, x, y string) (value, error) {
	_, lm := st.object(l).(*markup)
	_, rm := st.object(r).(*markup)
	if lm && !rm {
		y = escapeHTML(y)
	} else if rm && !lm {
		x = escapeHTML(x)
	}
	if err := st.alloc(len(x) + len(y)); err != nil {
		return value{}, err
	}
	if lm || rm {
		return st.markup(x + y), nil
	}
	return jinja.NewString(x + y), nil
}

var htmlEscaper = strings.NewReplacer("&", "&amp;", ">", "&gt;", "<", "&lt;", "'", "&#39;", `"`, "&#34;")

func escapeHTML(s string) string { return htmlEscaper.Replace(s) }

func gSub(st *state, a []value) (value, error) {
	if x, y, ok := ints(a[0], a[1]); ok {
		s := x - y
		if (s < x) != (y > 0) {
			return value{}, st.overflow("-")
		}
		return jinja.NewInt(s), nil
	}
	if x, y, ok := floats(a[0], a[1]); ok {
		return jinja.NewFloat(x - y), nil
	}
	return value{}, st.operands("-", a[0], a[1])
}

func mulInt(x, y int64) (int64, bool) {
	if x == 0 || y == 0 {
		return 0, true
	}
	p := x * y
	return p, p/y == x && !(x == -1 && y == math.MinInt64) && !(y == -1 && x == math.MinInt64)
}

func gMul(st *state, a []value) (value, error) {
	l, r := a[0], a[1]
	if x, y, ok := ints(l, r); ok {
		p, ok := mulInt(x, y)
		if !ok {
			return value{}, st.overflow("*")
		}
		return jinja.NewInt(p), nil
	}
	if x, y, ok := floats(l, r); ok {
		return jinja.NewFloat(x * y), nil
	}
	n, ok := integer(r)
	if !ok {
		if n, ok = integer(l); ok {
			l = r
		}
	}
	if !ok {
		return value{}, st.operands("*", a[0], a[1])
	}
	return st.repeat(l, n, a)
}

// repeat is seq * n.
func (st *state) repeat(seq value, n int64, a []value) (value, error) {
	if s, ok := st.text(seq); ok {
		if n <= 0 || s == "" {
			return st.like(seq, "")
		}
		if n > int64(st.bytes/len(s)) {
			return value{}, st.alloc(st.bytes + 1)
		}
		if err := st.alloc(len(s) * int(n)); err != nil {
			return value{}, err
		}
		return st.likeNoAlloc(seq, strings.Repeat(s, int(n))), nil
	}
	items, ok := st.sequence(seq)
	if !ok {
		return value{}, st.operands("*", a[0], a[1])
	}
	if n > int64(st.bytes/itemBytes) {
		return value{}, st.alloc(st.bytes + 1)
	}
	var out []value
	if n > 0 && len(items) > 0 {
		if err := st.alloc(min(st.bytes+1, len(items)*int(n)*itemBytes)); err != nil {
			return value{}, err
		}
		for range n {
			out = append(out, items...)
		}
	}
	if seq.IsList() {
		return jinja.NewList(out), nil
	}
	return st.tuple(out...), nil
}

func gDiv(st *state, a []value) (value, error) {
	x, y, ok := floats(a[0], a[1])
	if !ok {
		return value{}, st.operands("/", a[0], a[1])
	}
	if y == 0 {
		return value{}, st.errorf("division by zero")
	}
	return jinja.NewFloat(x / y), nil
}

func gFloorDiv(st *state, a []value) (value, error) {
	if x, y, ok := ints(a[0], a[1]); ok {
		if y == 0 {
			return value{}, st.errorf("integer division or modulo by zero")
		}
		if x == math.MinInt64 && y == -1 {
			return value{}, st.overflow("//")
		}
		q := x / y
		if x%y != 0 && (x < 0) != (y < 0) {
			q--
		}
		return jinja.NewInt(q), nil
	}
	x, y, ok := floats(a[0], a[1])
	if !ok {
		return value{}, st.operands("//", a[0], a[1])
	}
	if y == 0 {
		return value{}, st.errorf("float floor division by zero")
	}
	return jinja.NewFloat(math.Floor(x / y)), nil
}

func gMod(st *state, a []value) (value, error) {
	if _, ok := st.text(a[0]); ok {
		return st.percent(a[0], a[1])
	}
	if x, y, ok := ints(a[0], a[1]); ok {
		if y == 0 {
			return value{}, st.errorf("integer modulo by zero")
		}
		if y == -1 {
			return jinja.NewInt(0), nil
		}
		m := x % y
		if m != 0 && (m < 0) != (y < 0) {
			m += y
		}
		return jinja.NewInt(m), nil
	}
	x, y, ok := floats(a[0], a[1])
	if !ok {
		return value{}, st.operands("%", a[0], a[1])
	}
	if y == 0 {
		return value{}, st.errorf("float modulo")
	}
	m := math.Mod(x, y)
	if m != 0 && (m < 0) != (y < 0) {
		m += y
	}
	return jinja.NewFloat(m), nil
}

func gPow(st *state, a []value) (value, error) {
	if x, y, ok := ints(a[0], a[1]); ok && y >= 0 {
		p := int64(1)
		for ; y > 0; y >>= 1 {
			if y&1 == 1 {
				if p, ok = mulInt(p, x); !ok {
					return value{}, st.overflow("**")
				}
			}
			if y > 1 {
				if x, ok = mulInt(x, x); !ok {
					return value{}, st.overflow("**")
				}
			}
		}
		return jinja.NewInt(p), nil
	}
	x, y, ok := floats(a[0], a[1])
	if !ok {
		return value{}, st.operands("**", a[0], a[1])
	}
	p := math.Pow(x, y)
	if math.IsNaN(p) || math.IsInf(p, 0) {
		return value{}, st.errorf("result of '**' is not a number")
	}
	return jinja.NewFloat(p), nil
}

func gNeg(st *state, a []value) (value, error) {
	if n, ok := integer(a[0]); ok && n != math.MinInt64 {
		return jinja.NewInt(-n), nil
	}
	if a[0].IsFloat() {
		return jinja.NewFloat(-a[0].AsFloat()), nil
	}
	return value{}, st.errorf("bad operand type for unary -: '%s'", st.typeName(a[0]))
}

func gPos(st *state, a []value) (value, error) {
	if n, ok := integer(a[0]); ok {
		return jinja.NewInt(n), nil
	}
	if a[0].IsFloat() {
		return a[0], nil
	}
	return value{}, st.errorf("bad operand type for unary +: '%s'", st.typeName(a[0]))
}

// gConcat is the operator ~.
func gConcat(st *state, a []value) (value, error) {
	parts := make([]string, len(a))
	n := 0
	for i, v := range a {
		s, err := st.print(v)
		if err != nil {
			return value{}, err
		}
		parts[i] = s
		n += len(s)
	}
	if err := st.alloc(n); err != nil {
		return value{}, err
	}
	return jinja.NewString(strings.Join(parts, "")), nil
}
