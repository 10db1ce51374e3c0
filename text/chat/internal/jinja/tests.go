package jinja

import "strings"

// tests are jinja2's tests. They say of what a value is what Python would:
// "number" is true of booleans, "sequence" of dicts.
var tests map[string]*fn

func init() { // not in the declaration: test refers to it
	is := func(f func(v value) bool) fn {
		return fn{call: func(_ *state, v value, _ *args) value { return f(v) }}
	}
	defs := map[string]fn{
		"defined":   is(func(v value) bool { return !isUndefined(v) }),
		"undefined": is(isUndefined),
		"none":      is(func(v value) bool { return v == nil }),
		"boolean":   is(func(v value) bool { _, ok := v.(bool); return ok }),
		"true":      is(func(v value) bool { b, ok := v.(bool); return ok && b }),
		"false":     is(func(v value) bool { b, ok := v.(bool); return ok && !b }),
		"integer":   is(func(v value) bool { return typeName(v) == "int" }),
		"float":     is(func(v value) bool { return typeName(v) == "float" }),
		"number":    is(func(v value) bool { return strings.Contains(" int float bool ", " "+typeName(v)+" ") }),
		"string":    is(func(v value) bool { _, ok := text(v); return ok }),
		"mapping":   is(func(v value) bool { return typeName(v) == "dict" }),
		"sequence":  is(isSequence),
		"iterable": is(func(v value) bool {
			return isSequence(v) || isView(v) || typeName(v) == "generator" || typeName(v) == "LoopContext"
		}),
		"callable": is(isCallable),
		"escaped":  is(isSafe),
		"lower":    strIs(isLower),
		"upper":    strIs(isUpper),
		"odd":      {call: func(st *state, v value, _ *args) value { return st.equal(mod(st, v, 2), 1) }},
		"even":     {call: func(st *state, v value, _ *args) value { return st.equal(mod(st, v, 2), 0) }},
		"divisibleby": {params: "!num", call: func(st *state, v value, a *args) value {
			return st.equal(mod(st, v, a.vals[0]), 0)
		}},
		"filter": is(func(v value) bool { s, _ := text(v); return filters[s] != nil }),
		"test":   is(func(v value) bool { s, _ := text(v); return tests[s] != nil }),
		"sameas": {params: "!other", call: sameAs},
	}
	for names, op := range map[string]string{
		"== eq equalto": "==", "!= ne": "!=", "> gt greaterthan": ">", "< lt lessthan": "<",
		">= ge": ">=", "<= le": "<=", "in": "in",
	} {
		compare := comparisons[op]
		for _, name := range strings.Fields(names) {
			defs[name] = fn{params: "!other", call: func(st *state, v value, a *args) value { return compare(st, v, a.vals[0]) }}
		}
	}
	tests = table("test '%'", defs)
}

// isSequence: has a length and items by index; in Python, undefined has both.
func isSequence(v value) bool {
	switch v := v.(type) {
	case string, markup, *traced, *list, *dict, undefined:
		return true
	case *tuple:
		return !strings.HasPrefix(v.kind, "dict_")
	}
	return false
}

func isCallable(v value) bool {
	switch v.(type) {
	case *builtin, *macro, *loop, undefined:
		return true
	}
	return false
}

// sameAs is Python's "is", for the values of which that can be told.
func sameAs(st *state, v value, a *args) value {
	o := a.vals[0]
	if typeName(v) != typeName(o) {
		return false
	}
	switch v.(type) {
	case *list, *dict, *tuple, *namespace, *iterator:
		return v == o
	}
	return st.equal(v, o)
}
