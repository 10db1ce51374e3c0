package jinja

import (
	"math/big"
	"slices"
	"strings"
)

// equal is Python's ==.
func (st *state) equal(a, b value) bool { return st.equalAt(a, b, 0) }

func (st *state) equalAt(a, b value, depth int) bool {
	if depth > maxValueDepth {
		panic(st.errorf("value nested deeper than %d", maxValueDepth))
	}
	st.step(1)
	if x, ok := text(a); ok {
		y, ok := text(b)
		st.step(min(len(x), len(y)) >> 6)
		return ok && x == y
	}
	if x, y, ok := ints(a, b); ok {
		return x == y
	}
	if x, ok := number(a); ok {
		y, ok := number(b)
		return ok && x == y
	}
	switch x := a.(type) {
	case *list:
		y, ok := b.(*list)
		return ok && st.equalSeq(x.items, y.items, depth)
	case *tuple:
		y, ok := b.(*tuple)
		return ok && x.kind == y.kind && st.equalSeq(x.items, y.items, depth)
	case *dict:
		y, ok := b.(*dict)
		return ok && st.equalDict(x, y, depth)
	case *bigInt:
		y, ok := b.(*bigInt)
		return ok && x.n.Cmp(y.n) == 0
	}
	return a == b
}

func (st *state) equalSeq(a, b []value, depth int) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !st.equalAt(a[i], b[i], depth+1) {
			return false
		}
	}
	return true
}

func (st *state) equalDict(a, b *dict, depth int) bool {
	if len(a.entries) != len(b.entries) {
		return false
	}
	for _, e := range a.entries {
		v, ok := b.get(e.hash)
		if !ok || !st.equalAt(e.val, v, depth+1) {
			return false
		}
	}
	return true
}

// unordered is what order returns for NaN: neither less, equal nor greater.
const unordered = 2

// order returns the sign of a - b for values that Python can order; op is for
// the message.
func (st *state) order(a, b value, op string) int { return st.orderAt(a, b, op, 0) }

func (st *state) orderAt(a, b value, op string, depth int) int {
	if depth > maxValueDepth {
		panic(st.errorf("value nested deeper than %d", maxValueDepth))
	}
	st.step(1)
	if x, y, ok := ints(a, b); ok {
		return sign(x < y, x > y, true)
	}
	if x, y, ok := floats(a, b); ok {
		return sign(x < y, x > y, x == y)
	}
	if x, ok := bigInteger(a); ok {
		if y, ok := bigInteger(b); ok {
			return x.Cmp(y)
		}
	}
	if x, ok := text(a); ok {
		if y, ok := text(b); ok {
			st.step(min(len(x), len(y)) >> 6)
			return strings.Compare(x, y)
		}
	}
	x, ok1 := sequence(a)
	y, ok2 := sequence(b)
	if ok1 && ok2 && typeName(a) == typeName(b) && !isView(a) {
		for i := range min(len(x), len(y)) {
			if !st.equalAt(x[i], y[i], depth+1) {
				return st.orderAt(x[i], y[i], op, depth+1)
			}
		}
		return sign(len(x) < len(y), len(x) > len(y), true)
	}
	if isUndefined(a) || isUndefined(b) {
		panic(st.errorf("undefined value in a comparison ('%s')", op))
	}
	panic(st.errorf("'%s' not supported between instances of '%s' and '%s'", op, typeName(a), typeName(b)))
}

func sign(less, greater, same bool) int {
	switch {
	case less:
		return -1
	case greater:
		return 1
	case same:
		return 0
	}
	return unordered
}

// bigInteger returns v as an integer of any size.
func bigInteger(v value) (*big.Int, bool) {
	if n, ok := integer(v); ok {
		return big.NewInt(int64(n)), true
	}
	if b, ok := v.(*bigInt); ok {
		return b.n, true
	}
	return nil, false
}

// contains is Python's "item in container".
func (st *state) contains(container, item value) bool {
	if s, ok := text(container); ok {
		sub, ok := text(item)
		if !ok {
			panic(st.errorf("'in <string>' requires string as left operand, not %s", typeName(item)))
		}
		st.step(len(s) >> 6)
		return strings.Contains(s, sub)
	}
	if d, ok := container.(*dict); ok {
		return d.find(st.hash(item)) >= 0
	}
	if t, ok := container.(*tuple); ok && t.kind == "dict_keys" {
		st.hash(item)
	}
	return slices.ContainsFunc(st.items(container), func(v value) bool { return st.equal(v, item) })
}

// comparisons are the comparison operators.
var comparisons = map[string]func(st *state, a, b value) bool{
	"==":     func(st *state, a, b value) bool { return st.equal(a, b) },
	"!=":     func(st *state, a, b value) bool { return !st.equal(a, b) },
	"in":     func(st *state, a, b value) bool { return st.contains(b, a) },
	"not in": func(st *state, a, b value) bool { return !st.contains(b, a) },
	"<":      func(st *state, a, b value) bool { return st.order(a, b, "<") == -1 },
	">":      func(st *state, a, b value) bool { return st.order(a, b, ">") == 1 },
	"<=":     func(st *state, a, b value) bool { return st.order(a, b, "<=") <= 0 },
	">=":     func(st *state, a, b value) bool { n := st.order(a, b, ">="); return n == 0 || n == 1 },
}
