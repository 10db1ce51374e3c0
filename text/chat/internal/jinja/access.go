package jinja

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// undefinedError is the error of using a value that is not there.
func (st *state) undefinedError(desc string) *Error {
	return st.errorf("%s is undefined", orValue(desc))
}

func orValue(desc string) string {
	if desc == "" {
		return "value"
	}
	return "'" + desc + "'"
}

// methodsOf returns the methods of v's type.
func methodsOf(v value) map[string]*fn {
	switch v := v.(type) {
	case string, markup, *traced:
		return strMethods
	case *dict:
		return dictMethods
	case *list:
		return listMethods
	case *tuple:
		if !strings.HasPrefix(v.kind, "dict_") {
			return tupleMethods
		}
	case *loop:
		return loopMethods
	case *cycler:
		return cyclerMethods
	}
	return nil
}

// attribute looks up a method or the attribute of an object; without one, the
// result is undefined.
func (st *state) attribute(obj value, name string) (value, bool) {
	st.step(1)
	if strings.HasPrefix(name, "_") { // the reference's sandbox hides these
		return undefined{}, false
	}
	if f, ok := methodsOf(obj)[name]; ok {
		return &builtin{f, obj}, true
	}
	switch o := obj.(type) {
	case *loop:
		return o.attr(name)
	case *namespace:
		return o.get(name)
	case *cycler:
		if name == "current" {
			return o.items[o.pos], true
		}
	case *macro:
		if name == "name" {
			return o.def.name, true
		}
	case *tuple:
		if i := slices.Index(o.names, name); i >= 0 && o.kind == "" {
			return o.items[i], true
		}
	}
	return undefined{}, false
}

// getAttr is obj.name: an attribute, else an item.
func (st *state) getAttr(obj value, name string) value {
	v, ok := st.attribute(obj, name)
	if d, isDict := obj.(*dict); !ok && isDict {
		v, _ = d.get(name)
	}
	return v
}

// getItem is obj[key]: an item, else an attribute.
func (st *state) getItem(obj, key value) value {
	switch o := obj.(type) {
	case undefined:
		panic(st.undefinedError(""))
	case *dict:
		if st.hashable(key, 0) {
			if v, ok := o.get(st.hash(key)); ok {
				return v
			}
		}
	}
	if name, ok := text(key); ok {
		v, _ := st.attribute(obj, name)
		return v
	}
	i, ok := integer(key)
	if !ok {
		return undefined{}
	}
	if items, ok := sequence(obj); ok {
		if i, ok := index(i, len(items)); ok {
			return items[i]
		}
	} else if s, ok := text(obj); ok {
		st.step(len(s) >> 6)
		if i, ok := index(i, utf8.RuneCountInString(s)); ok {
			return st.like(obj, runeSlice(s, i, i+1))
		}
	}
	return undefined{}
}

// index resolves a Python index into n items.
func index(i, n int) (int, bool) {
	if i < 0 {
		i += n
	}
	return i, i >= 0 && i < n
}

// runeSlice returns characters lo up to hi of s; 0 <= lo <= hi <= its length.
func runeSlice(s string, lo, hi int) string {
	if isASCII(s) {
		return s[lo:hi]
	}
	from, n := len(s), 0
	for i := range s {
		if n == lo {
			from = i
		}
		if n == hi {
			return s[min(from, i):i]
		}
		n++
	}
	return s[from:]
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// bounds resolves Python slice bounds, nil where absent, for n items.
func (st *state) bounds(lo, hi, step value, n int) (start, stop, by int) {
	get := func(v value, absent int) int {
		if v == nil {
			return absent
		}
		i, ok := integer(v)
		if !ok {
			panic(st.errorf("slice indices must be integers or none, not %s", typeName(v)))
		}
		return i
	}
	if by = get(step, 1); by == 0 {
		panic(st.errorf("slice step cannot be zero"))
	}
	lower, upper := 0, n
	if by < 0 {
		lower, upper = -1, n-1
	}
	clamp := func(v value, absent int) int {
		if v == nil {
			return absent
		}
		i := get(v, 0)
		if i < 0 {
			i += n
		}
		return min(max(i, lower), upper)
	}
	if by < 0 {
		return clamp(lo, upper), clamp(hi, lower), by
	}
	return clamp(lo, lower), clamp(hi, upper), by
}

// count is how many items a resolved slice or a range has.
func count(start, stop, by int) int {
	switch {
	case by > 0 && start < stop:
		return (stop-start-1)/by + 1
	case by < 0 && start > stop && by != -by: // not the smallest int
		return (start-stop-1)/-by + 1
	case by < 0 && start > stop:
		return 1
	}
	return 0
}

// slice is obj[lo:hi:step], with nil for absent bounds.
func (st *state) slice(obj, lo, hi, step value) value {
	if s, ok := text(obj); ok {
		start, stop, by := st.bounds(lo, hi, step, utf8.RuneCountInString(s))
		st.alloc(len(s))
		if by == 1 {
			return st.like(obj, runeSlice(s, start, max(start, stop)))
		}
		st.allocEach(len(s), 4)
		runes := []rune(s)
		var b strings.Builder
		for i := range count(start, stop, by) {
			b.WriteRune(runes[start+i*by])
		}
		return st.like(obj, b.String())
	}
	items, ok := sequence(obj)
	if !ok {
		panic(st.errorf("'%s' object cannot be sliced", typeName(obj)))
	}
	start, stop, by := st.bounds(lo, hi, step, len(items))
	t, isTuple := obj.(*tuple)
	if isTuple && t.kind == "range" {
		from, step := t.span[0], t.span[2]
		return st.span(from+start*step, from+stop*step, step*by)
	}
	n := count(start, stop, by)
	st.alloc(n * itemBytes)
	out := make([]value, n)
	for i := range out {
		out[i] = items[start+i*by]
	}
	if isTuple {
		return newTuple(out...)
	}
	return &list{out}
}

// unpack returns v as exactly n items.
func (st *state) unpack(v value, n int) []value {
	items := st.items(v)
	if len(items) != n {
		panic(st.errorf("expected %d values to unpack, got %d", n, len(items)))
	}
	return items
}
