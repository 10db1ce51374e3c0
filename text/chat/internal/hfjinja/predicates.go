package hfjinja

import "github.com/ardanlabs/jinja"

// predicate is a test ("v is name"), with parameters as in fn.
type predicate struct {
	params string
	call   func(st *state, v value, a args) (bool, error)
}

// tests are jinja2's tests. They say of what a value is what Python would:
// "number" is true of booleans, "sequence" of dicts.
var tests map[string]predicate

func init() {
	is := func(f func(st *state, v value) bool) predicate {
		return predicate{"", func(st *state, v value, _ args) (bool, error) { return f(st, v), nil }}
	}
	cmp := func(op string) predicate {
		return predicate{"!other", func(st *state, v value, a args) (bool, error) { return st.compareOp(op, v, a.vals[0]) }}
	}
	tests = map[string]predicate{
		"defined":   is(func(_ *state, v value) bool { return !v.IsUndefined() }),
		"undefined": is(func(_ *state, v value) bool { return v.IsUndefined() }),
		"none":      is(func(_ *state, v value) bool { return v.IsNone() }),
		"boolean":   is(func(_ *state, v value) bool { return v.IsBool() }),
		"true":      is(func(_ *state, v value) bool { return v.IsBool() && v.AsBool() }),
		"false":     is(func(_ *state, v value) bool { return v.IsBool() && !v.AsBool() }),
		"integer":   is(isInteger),
		"float":     is(func(_ *state, v value) bool { return v.IsFloat() }),
		"number":    is(func(st *state, v value) bool { return v.IsBool() || v.IsFloat() || isInteger(st, v) }),
		"string":    is(func(st *state, v value) bool { _, ok := st.text(v); return ok }),
		"mapping":   is(func(_ *state, v value) bool { return v.IsDict() }),
		"sequence":  is(isSequence),
		"iterable":  is(isIterable),
		"callable":  is(func(st *state, v value) bool { _, ok := st.object(v).(caller); return ok || v.IsUndefined() }),
		"escaped":   is(func(st *state, v value) bool { _, ok := st.object(v).(*markup); return ok }),
		"lower":     {"", func(st *state, v value, _ args) (bool, error) { s, err := st.print(v); return isLower(s), err }},
		"upper":     {"", func(st *state, v value, _ args) (bool, error) { s, err := st.print(v); return isUpper(s), err }},
		"odd":       {"", func(st *state, v value, _ args) (bool, error) { return st.remainder(v, jinja.NewInt(2), 1) }},
		"even":      {"", func(st *state, v value, _ args) (bool, error) { return st.remainder(v, jinja.NewInt(2), 0) }},
		"divisibleby": {"!num", func(st *state, v value, a args) (bool, error) {
			return st.remainder(v, a.vals[0], 0)
		}},
		"filter": is(func(st *state, v value) bool { s, _ := st.text(v); _, ok := filters[s]; return ok }),
		"test":   is(func(st *state, v value) bool { s, _ := st.text(v); _, ok := tests[s]; return ok }),
		"in":     {"!seq", func(st *state, v value, a args) (bool, error) { return st.contains(a.vals[0], v) }},
		"sameas": {"!other", sameAs},
		"==":     cmp("=="), "eq": cmp("=="), "equalto": cmp("=="),
		"!=": cmp("!="), "ne": cmp("!="),
		">": cmp(">"), "gt": cmp(">"), "greaterthan": cmp(">"),
		"<": cmp("<"), "lt": cmp("<"), "lessthan": cmp("<"),
		">=": cmp(">="), "ge": cmp(">="), "<=": cmp("<="), "le": cmp("<="),
	}
}

func isInteger(st *state, v value) bool {
	if v.IsInt() {
		return true
	}
	_, ok := st.object(v).(*bigInt)
	return ok
}

// isSequence: has a length and items.
func isSequence(st *state, v value) bool {
	if v.IsList() || v.IsDict() {
		return true
	}
	if _, ok := st.text(v); ok {
		return true
	}
	_, ok := st.object(v).(*tuple)
	return ok
}

func isIterable(st *state, v value) bool {
	if v.IsUndefined() || isSequence(st, v) {
		return true
	}
	_, ok := st.object(v).(*iterator)
	return ok
}

func (st *state) remainder(v, by value, want int64) (bool, error) {
	r, err := gMod(st, []value{v, by})
	if err != nil {
		return false, err
	}
	return st.equal(r, jinja.NewInt(want))
}

// sameAs is Python's "is", for the values of which that can be told.
func sameAs(st *state, v value, a args) (bool, error) {
	o := a.vals[0]
	if st.typeName(v) != st.typeName(o) {
		return false, nil
	}
	switch {
	case v.IsList():
		return v.AsList() == o.AsList(), nil
	case v.IsDict():
		return v.AsDict() == o.AsDict(), nil
	}
	return st.equal(v, o)
}
