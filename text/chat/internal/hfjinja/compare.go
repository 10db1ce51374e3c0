package hfjinja

import (
	"strings"

	"github.com/ardanlabs/jinja"
)

// equal is Python's ==.
func (st *state) equal(a, b value) (bool, error) { return st.equalAt(a, b, 0) }

func (st *state) equalAt(a, b value, depth int) (bool, error) {
	if depth > maxValueDepth {
		return false, st.errorf("value nested deeper than %d", maxValueDepth)
	}
	if err := st.step(1); err != nil {
		return false, err
	}
	if x, ok := integer(a); ok {
		if y, ok := integer(b); ok {
			return x == y, nil
		}
	}
	if x, ok := number(a); ok {
		y, ok := number(b)
		return ok && x == y, nil
	}
	if x, ok := st.text(a); ok {
		y, ok := st.text(b)
		if err := st.step(min(len(x), len(y)) >> 6); err != nil {
			return false, err
		}
		return ok && x == y, nil
	}
	switch {
	case a.IsUndefined() || a.IsNone():
		return a.IsUndefined() && b.IsUndefined() || a.IsNone() && b.IsNone(), nil
	case a.IsList():
		if !b.IsList() {
			return false, nil
		}
		return st.equalSeq(a.AsList().Items, b.AsList().Items, depth)
	case a.IsDict():
		return st.equalDict(a, b, depth)
	}
	switch x := st.object(a).(type) {
	case *tuple:
		y, ok := st.object(b).(*tuple)
		if !ok {
			return false, nil
		}
		return st.equalSeq(x.items, y.items, depth)
	case *bigInt:
		y, ok := st.object(b).(*bigInt)
		return ok && x.n.Cmp(y.n) == 0, nil
	case nil:
		return false, nil
	default:
		return st.object(b) == x, nil
	}
}

func (st *state) equalItems(a, b []value) (bool, error) { return st.equalSeq(a, b, 0) }

func (st *state) equalSeq(a, b []value, depth int) (bool, error) {
	if len(a) != len(b) {
		return false, nil
	}
	for i := range a {
		if same, err := st.equalAt(a[i], b[i], depth+1); !same || err != nil {
			return false, err
		}
	}
	return true, nil
}

func (st *state) equalDict(a, b value, depth int) (bool, error) {
	if !b.IsDict() || a.AsDict().Len() != b.AsDict().Len() {
		return false, nil
	}
	for _, k := range a.AsDict().Keys {
		v, ok := b.AsDict().Get(k)
		if !ok {
			return false, nil
		}
		if same, err := st.equalAt(a.AsDict().Data[k], v, depth+1); !same || err != nil {
			return false, err
		}
	}
	return true, nil
}

// order returns the sign of a - b for values that Python can order; op is for
// the message.
func (st *state) order(a, b value, op string) (int, error) { return st.orderAt(a, b, op, 0) }

func (st *state) orderAt(a, b value, op string, depth int) (int, error) {
	if depth > maxValueDepth {
		return 0, st.errorf("value nested deeper than %d", maxValueDepth)
	}
	if err := st.step(1); err != nil {
		return 0, err
	}
	if x, ok := integer(a); ok {
		if y, ok := integer(b); ok {
			return sign(x < y, x > y), nil
		}
	}
	if x, ok := number(a); ok {
		if y, ok := number(b); ok {
			return sign(x < y, x > y), nil
		}
	}
	if x, ok := st.bigInteger(a); ok {
		if y, ok := st.bigInteger(b); ok {
			return x.Cmp(y), nil
		}
	}
	if x, ok := st.text(a); ok {
		if y, ok := st.text(b); ok {
			if err := st.step(min(len(x), len(y)) >> 6); err != nil {
				return 0, err
			}
			return strings.Compare(x, y), nil
		}
	}
	x, ok1 := st.sequence(a)
	y, ok2 := st.sequence(b)
	if ok1 && ok2 && a.IsList() == b.IsList() {
		for i := range min(len(x), len(y)) {
			same, err := st.equalAt(x[i], y[i], depth+1)
			if err != nil {
				return 0, err
			}
			if !same {
				return st.orderAt(x[i], y[i], op, depth+1)
			}
		}
		return sign(len(x) < len(y), len(x) > len(y)), nil
	}
	if a.IsUndefined() || b.IsUndefined() {
		return 0, st.errorf("undefined value in a comparison ('%s')", op)
	}
	return 0, st.errorf("'%s' not supported between instances of '%s' and '%s'", op, st.typeName(a), st.typeName(b))
}

func sign(less, greater bool) int {
	switch {
	case less:
		return -1
	case greater:
		return 1
	}
	return 0
}

// contains is Python's "item in container".
func (st *state) contains(container, item value) (bool, error) {
	if s, ok := st.text(container); ok {
		sub, ok := st.text(item)
		if !ok {
			return false, st.errorf("'in <string>' requires string as left operand, not %s", st.typeName(item))
		}
		if err := st.step(len(s) >> 6); err != nil {
			return false, err
		}
		return strings.Contains(s, sub), nil
	}
	if container.IsDict() {
		k, err := st.dictKey(item)
		if err != nil && (item.IsList() || item.IsDict()) {
			return false, st.errorf("unhashable type: '%s'", st.typeName(item))
		}
		return err == nil && container.AsDict().Has(k), nil
	}
	items, err := st.items(container)
	if err != nil {
		return false, err
	}
	for _, v := range items {
		if same, err := st.equal(v, item); same || err != nil {
			return same, err
		}
	}
	return false, nil
}

// compareOp evaluates one comparison.
func (st *state) compareOp(op string, a, b value) (bool, error) {
	switch op {
	case "==":
		return st.equal(a, b)
	case "!=":
		same, err := st.equal(a, b)
		return !same, err
	case "in":
		return st.contains(b, a)
	case "not in":
		in, err := st.contains(b, a)
		return !in, err
	}
	n, err := st.order(a, b, op)
	switch op {
	case "<":
		return n < 0, err
	case "<=":
		return n <= 0, err
	case ">":
		return n > 0, err
	default:
		return n >= 0, err
	}
}

// gCompare evaluates "a op b op c ...", each operand once.
func gCompare(st *state, a []value) (value, error) {
	for i := 0; i+2 < len(a); i += 2 {
		ok, err := st.compareOp(a[i+1].AsString(), a[i], a[i+2])
		if err != nil || !ok {
			return jinja.NewBool(false), err
		}
	}
	return jinja.NewBool(true), nil
}
