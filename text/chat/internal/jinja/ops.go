package jinja

import (
	"math"
	"strings"
)

// operator evaluates one binary operator.
type operator func(st *state, a, b value) value

var (
	addOps = map[string]operator{"+": add, "-": arithmetic("-", subInts, subFloats)}
	mulOps = map[string]operator{
		"*": mul, "/": arithmetic("/", divInts, divFloats),
		"//": arithmetic("//", floorDivInts, floorDivFloats), "%": mod,
	}
	powOps = map[string]operator{"**": arithmetic("**", powInts, powFloats)}
)

// arithmetic is an operator that only numbers have.
func arithmetic(op string, onInts func(st *state, x, y int) value, onFloats func(st *state, x, y float64) value) operator {
	return func(st *state, a, b value) value {
		if x, y, ok := ints(a, b); ok {
			return onInts(st, x, y)
		}
		x, y, ok := floats(a, b)
		if !ok {
			panic(st.operands(op, a, b))
		}
		return onFloats(st, x, y)
	}
}

// operands is the error of combining a and b by op.
func (st *state) operands(op string, a, b value) *Error {
	if isUndefined(a) || isUndefined(b) {
		return st.errorf("undefined value used with '%s'", op)
	}
	if _, ok := text(a); ok && op == "+" {
		return st.errorf(`can only concatenate str (not "%s") to str`, typeName(b))
	}
	return st.errorf("unsupported operand types for %s: '%s' and '%s'", op, typeName(a), typeName(b))
}

// ints returns both operands as integers.
func ints(a, b value) (x, y int, ok bool) {
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

func (st *state) overflow(op string) *Error {
	return st.errorf("result of '%s' does not fit in 64 bits", op)
}

func add(st *state, a, b value) value {
	if x, ok := text(a); ok {
		if y, ok := text(b); ok {
			return st.addText(a, b, x, y)
		}
	}
	if x, y, ok := ints(a, b); ok {
		s := x + y
		if (s > x) != (y > 0) {
			panic(st.overflow("+"))
		}
		return s
	}
	if x, y, ok := floats(a, b); ok {
		return x + y
	}
	x, ok1 := sequence(a)
	y, ok2 := sequence(b)
	if !ok1 || !ok2 || typeName(a) != typeName(b) || isView(a) {
		panic(st.operands("+", a, b))
	}
	st.alloc((len(x) + len(y)) * itemBytes)
	items := append(append(make([]value, 0, len(x)+len(y)), x...), y...)
	if _, ok := a.(*list); ok {
		return &list{items}
	}
	return newTuple(items...)
}

// isView reports whether v is a range or a view of a dict, which cannot be
// added or repeated.
func isView(v value) bool {
	t, ok := v.(*tuple)
	return ok && t.kind != ""
}

// addText concatenates strings; one marked safe has the other escaped.
func (st *state) addText(a, b value, x, y string) value {
	am, bm := isSafe(a), isSafe(b)
	if am && !bm {
		b = st.escaped(b)
	} else if bm && !am {
		a = st.escaped(a)
	} else if !am && spansOf(a) == nil && spansOf(b) == nil {
		st.alloc(len(x) + len(y))
		return x + y
	}
	return st.joined([]value{a, b}, "", am || bm)
}

var htmlEscaper = strings.NewReplacer("&", "&amp;", ">", "&gt;", "<", "&lt;", "'", "&#39;", `"`, "&#34;")

func (st *state) escape(s string) string {
	st.allocEach(len(s), 5)
	return htmlEscaper.Replace(s)
}

// escaped is escape of a text with given parts.
func (st *state) escaped(v value) value {
	s, _ := text(v)
	return st.like(v, st.escape(s))
}

func subInts(st *state, x, y int) value {
	s := x - y
	if (s < x) != (y > 0) {
		panic(st.overflow("-"))
	}
	return s
}

func subFloats(_ *state, x, y float64) value { return x - y }

func (st *state) mulInt(x, y int, op string) int {
	if x == 0 || y == 0 {
		return 0
	}
	p := x * y
	if p/y != x || x == -1 && y == math.MinInt || y == -1 && x == math.MinInt {
		panic(st.overflow(op))
	}
	return p
}

func mul(st *state, a, b value) value {
	if x, y, ok := ints(a, b); ok {
		return st.mulInt(x, y, "*")
	}
	if x, y, ok := floats(a, b); ok {
		return x * y
	}
	seq := a
	n, ok := integer(b)
	if !ok {
		seq = b
		n, ok = integer(a)
	}
	n = max(n, 0)
	if s, isText := text(seq); ok && isText {
		st.allocEach(n, len(s))
		if s == "" {
			return seq
		}
		return st.like(seq, strings.Repeat(s, n))
	}
	items, isSeq := sequence(seq)
	if !ok || !isSeq || isView(seq) {
		panic(st.operands("*", a, b))
	}
	var out []value
	if len(items) > 0 {
		st.allocEach(n, len(items)*itemBytes)
		out = make([]value, 0, n*len(items))
		for range n {
			out = append(out, items...)
		}
	}
	if _, ok := seq.(*list); ok {
		return &list{out}
	}
	return newTuple(out...)
}

func divInts(st *state, x, y int) value { return divFloats(st, float64(x), float64(y)) }

func divFloats(st *state, x, y float64) value {
	if y == 0 {
		panic(st.errorf("division by zero"))
	}
	return x / y
}

func floorDivInts(st *state, x, y int) value {
	if y == 0 {
		panic(st.errorf("integer division or modulo by zero"))
	}
	if x == math.MinInt && y == -1 {
		panic(st.overflow("//"))
	}
	q := x / y
	if x%y != 0 && (x < 0) != (y < 0) {
		q--
	}
	return q
}

func floorDivFloats(st *state, x, y float64) value {
	// As Python does it: from the remainder, which is exact.
	q := (x - modFloats(st, x, y).(float64)) / y
	if q == 0 {
		return math.Copysign(0, x/y)
	}
	f := math.Floor(q)
	if q-f > 0.5 {
		f++
	}
	return f
}

func mod(st *state, a, b value) value {
	if _, ok := text(a); ok {
		return st.percent(a, b, isSafe(a))
	}
	return modNumbers(st, a, b)
}

var modNumbers = arithmetic("%", modInts, modFloats)

func modInts(st *state, x, y int) value {
	switch y {
	case 0:
		panic(st.errorf("integer modulo by zero"))
	case -1:
		return 0
	}
	m := x % y
	if m != 0 && (m < 0) != (y < 0) {
		m += y
	}
	return m
}

func modFloats(st *state, x, y float64) value {
	if y == 0 {
		panic(st.errorf("float division or modulo by zero"))
	}
	m := math.Mod(x, y)
	if m == 0 {
		return math.Copysign(0, y)
	}
	if (m < 0) != (y < 0) {
		m += y
	}
	return m
}

func powInts(st *state, x, y int) value {
	if y < 0 {
		return powFloats(st, float64(x), float64(y))
	}
	p := 1
	for ; y > 0; y >>= 1 {
		if y&1 == 1 {
			p = st.mulInt(p, x, "**")
		}
		if y > 1 {
			x = st.mulInt(x, x, "**")
		}
	}
	return p
}

func powFloats(st *state, x, y float64) value {
	p := math.Pow(x, y)
	if math.IsNaN(p) || math.IsInf(p, 0) {
		panic(st.errorf("result of '**' is not a number"))
	}
	return p
}

func neg(st *state, v value) value {
	if n, ok := integer(v); ok && n != math.MinInt {
		return -n
	}
	if f, ok := v.(float64); ok {
		return -f
	}
	panic(st.errorf("bad operand type for unary -: '%s'", typeName(v)))
}

func pos(st *state, v value) value {
	if n, ok := integer(v); ok {
		return n
	}
	if _, ok := v.(float64); ok {
		return v
	}
	panic(st.errorf("bad operand type for unary +: '%s'", typeName(v)))
}
