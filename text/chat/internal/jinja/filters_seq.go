package jinja

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

func filterLength(st *state, v value, _ *args) value {
	switch v := v.(type) {
	case undefined:
		return 0
	case *dict:
		return len(v.entries)
	case *iterator: // an error in Python
		return len(v.items)
	case *loop:
		return len(v.items)
	}
	if items, ok := sequence(v); ok {
		return len(items)
	}
	s, ok := text(v)
	if !ok {
		panic(st.errorf("object of type '%s' has no len()", typeName(v)))
	}
	st.step(len(s) >> 6)
	return utf8.RuneCountInString(s)
}

func filterFirst(st *state, v value, _ *args) value {
	if it, ok := v.(*iterator); ok && len(it.items) > 0 {
		x := it.items[0]
		it.items = it.items[1:]
		return x
	}
	if s, ok := text(v); ok && s != "" {
		_, n := utf8.DecodeRuneInString(s)
		return st.like(v, s[:n])
	}
	if items := st.items(v); len(items) > 0 {
		return items[0]
	}
	return undefined{}
}

func filterLast(st *state, v value, a *args) value {
	if s, ok := text(v); ok && s != "" {
		_, n := utf8.DecodeLastRuneInString(s)
		return st.like(v, s[len(s)-n:])
	}
	if _, ok := v.(*iterator); ok {
		panic(a.errorf("'generator' object is not reversible"))
	}
	if items := st.items(v); len(items) > 0 {
		return items[len(items)-1]
	}
	return undefined{}
}

func filterList(st *state, v value, _ *args) value {
	return st.newList(slices.Clone(st.items(v)))
}

func filterReverse(st *state, v value, _ *args) value {
	if s, ok := text(v); ok {
		st.allocEach(len(s), 4)
		r := []rune(s)
		slices.Reverse(r)
		return st.like(v, string(r))
	}
	items := slices.Clone(st.items(v))
	slices.Reverse(items)
	return st.newIterator(items)
}

func filterJoin(st *state, v value, a *args) value {
	sep, items := st.textOf(a.get(0, "")), st.items(v)
	st.allocEach(len(items), 16)
	parts := make([]value, len(items))
	for i, x := range items {
		if a.has(1) {
			x = st.path(x, a.vals[1], undefined{})
		}
		parts[i] = st.textOf(x)
	}
	return st.joined(parts, sep, false)
}

func filterItems(st *state, v value, a *args) value {
	if isUndefined(v) {
		return st.newIterator(nil)
	}
	if _, ok := v.(*dict); !ok {
		panic(a.errorf("can only get item pairs from a mapping, not %s", typeName(v)))
	}
	return st.newIterator(st.items(dictItems(st, v, a)))
}

// path follows an attribute path: "a.b.0", or an index. def replaces what is
// not there.
func (st *state) path(v, attr, def value) value {
	keys := []value{attr}
	if s, ok := text(attr); ok {
		keys = keys[:0]
		for part := range strings.SplitSeq(s, ".") {
			if n, err := strconv.ParseUint(part, 10, 31); err == nil {
				keys = append(keys, int(n))
			} else {
				keys = append(keys, part)
			}
		}
	} else if _, ok := attr.(int); !ok {
		panic(st.errorf("an attribute must be a name or an index, not %s", typeName(attr)))
	}
	for _, k := range keys {
		if v = st.getItem(v, k); isUndefined(v) {
			v = def
		}
	}
	return v
}

// rowCount is the argument of batch and slice.
func (a *args) rowCount() int {
	n := a.int(0, 0)
	if n < 1 || n > 1<<20 {
		panic(a.errorf("count %d is not in [1, %d]", n, 1<<20))
	}
	return n
}

func filterBatch(st *state, v value, a *args) value {
	items, n := st.items(v), a.rowCount()
	st.alloc((len(items) + n) * itemBytes)
	var out []value
	for row := range slices.Chunk(items, n) {
		row = slices.Clone(row)
		for a.has(1) && len(row) < n {
			row = append(row, a.vals[1])
		}
		out = append(out, &list{row})
	}
	return st.newIterator(out)
}

func filterSlice(st *state, v value, a *args) value {
	items, n := st.items(v), a.rowCount()
	st.alloc((len(items) + n) * itemBytes)
	size, extra := len(items)/n, len(items)%n
	out := make([]value, n)
	for i := range out {
		k := size
		if i < extra {
			k++
		}
		row := slices.Clone(items[:k])
		items = items[k:]
		if a.has(1) && i >= extra {
			row = append(row, a.vals[1])
		}
		out[i] = &list{row}
	}
	return st.newIterator(out)
}

func filterAttr(st *state, v value, a *args) value {
	x, _ := st.attribute(v, a.text(0, ""))
	return x
}

// itemsIfTrue is items, but nothing for whatever is false: None has none.
func (st *state) itemsIfTrue(v value) []value {
	if !truthy(v) {
		return nil
	}
	return st.items(v)
}

// shift takes the name of a function of kind "filter" or "test", and the
// function, from the front of the positional arguments.
func (a *args) shift(kind string, in map[string]*fn) *fn {
	name, ok := text(a.vals[0])
	if !ok {
		panic(a.errorf("expected the name of a %s, got %s", kind, typeName(a.vals[0])))
	}
	f, ok := in[name]
	if !ok {
		panic(a.st.errorf("no %s named '%s'", kind, name))
	}
	a.vals = a.vals[1:]
	return f
}

// filterMap applies a filter to every item, or follows an attribute path.
func filterMap(st *state, v value, a *args) value {
	var apply func(value) value
	switch {
	case len(a.vals) == 0 && len(a.kw) > 0 && slices.ContainsFunc(a.kw, func(k kwarg) bool { return k.name == "attribute" }):
		var attr value
		def := value(undefined{})
		for _, k := range a.kw {
			switch k.name {
			case "attribute":
				attr = k.val
			case "default":
				def = k.val
			default:
				panic(st.errorf("filter 'map' has no argument '%s'", k.name))
			}
		}
		apply = func(x value) value { return st.path(x, attr, def) }
	case len(a.vals) > 0:
		f := a.shift("filter", filters)
		apply = func(x value) value { return st.apply(f, x, a.vals, a.kw) }
	default:
		panic(st.errorf("filter 'map' requires a filter argument"))
	}
	items := st.itemsIfTrue(v)
	out := make([]value, len(items))
	for i, x := range items {
		out[i] = apply(x)
	}
	return st.newIterator(out)
}

// filterSelect keeps (or drops) the items that pass a test, or of which an
// attribute does; without a test, those that are true.
func filterSelect(byAttr, keep bool) func(*state, value, *args) value {
	return func(st *state, v value, a *args) value {
		var attr value
		if byAttr {
			if len(a.vals) == 0 {
				panic(st.errorf("missing parameter for attribute name"))
			}
			attr, a.vals = a.vals[0], a.vals[1:]
		}
		var test *fn
		if len(a.vals) > 0 {
			test = a.shift("test", tests)
		}
		var out []value
		for _, item := range st.itemsIfTrue(v) {
			x := item
			if byAttr {
				x = st.path(x, attr, undefined{})
			}
			st.step(1)
			if test != nil {
				x = st.apply(test, x, a.vals, a.kw)
			}
			if truthy(x) == keep {
				out = append(out, item)
			}
		}
		return st.newIterator(out)
	}
}
