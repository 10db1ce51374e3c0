package hfjinja

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/ardanlabs/jinja"
)

func filterLength(st *state, v value, _ args) (value, error) {
	switch {
	case v.IsUndefined():
		return jinja.NewInt(0), nil
	case v.IsDict():
		return jinja.NewInt(int64(v.AsDict().Len())), nil
	}
	if items, ok := st.sequence(v); ok {
		return jinja.NewInt(int64(len(items))), nil
	}
	if s, ok := st.text(v); ok {
		return jinja.NewInt(int64(utf8.RuneCountInString(s))), st.step(len(s) >> 6)
	}
	if it, ok := st.object(v).(*iterator); ok { // an error in Python
		return jinja.NewInt(int64(len(it.items))), nil
	}
	return value{}, st.errorf("object of type '%s' has no len()", st.typeName(v))
}

func filterFirst(st *state, v value, _ args) (value, error) {
	if it, ok := st.object(v).(*iterator); ok && len(it.items) > 0 {
		x := it.items[0]
		it.items = it.items[1:]
		return x, nil
	}
	if s, ok := st.text(v); ok {
		_, n := utf8.DecodeRuneInString(s)
		if n == 0 {
			return jinja.Undefined(), nil
		}
		return jinja.NewString(s[:n]), nil
	}
	items, err := st.items(v)
	if err != nil || len(items) == 0 {
		return jinja.Undefined(), err
	}
	return items[0], nil
}

func filterLast(st *state, v value, _ args) (value, error) {
	if s, ok := st.text(v); ok {
		_, n := utf8.DecodeLastRuneInString(s)
		if n == 0 {
			return jinja.Undefined(), nil
		}
		return jinja.NewString(s[len(s)-n:]), nil
	}
	items, err := st.items(v)
	if err != nil || len(items) == 0 {
		return jinja.Undefined(), err
	}
	return items[len(items)-1], nil
}

func filterList(st *state, v value, _ args) (value, error) {
	items, err := st.items(v)
	if err != nil {
		return value{}, err
	}
	return st.list(slices.Clone(items))
}

func filterReverse(st *state, v value, _ args) (value, error) {
	if s, ok := st.text(v); ok {
		if err := st.alloc(4 * len(s)); err != nil {
			return value{}, err
		}
		r := []rune(s)
		slices.Reverse(r)
		return st.likeNoAlloc(v, string(r)), nil
	}
	items, err := st.items(v)
	if err != nil {
		return value{}, err
	}
	items = slices.Clone(items)
	slices.Reverse(items)
	return st.iterator(items)
}

func filterJoin(st *state, v value, a args) (value, error) {
	sep, err := st.print(a.get(0, jinja.NewString("")))
	if err != nil {
		return value{}, err
	}
	items, err := st.items(v)
	if err != nil {
		return value{}, err
	}
	if err := st.alloc(len(items) * 16); err != nil {
		return value{}, err
	}
	parts := make([]string, len(items))
	for i, x := range items {
		if a.has(1) {
			if x, err = st.path(x, a.vals[1], value{}); err != nil {
				return value{}, err
			}
		}
		if parts[i], err = st.print(x); err != nil {
			return value{}, err
		}
	}
	return st.joined(parts, sep)
}

func filterItems(st *state, v value, a args) (value, error) {
	if v.IsUndefined() {
		return st.iterator(nil)
	}
	if !v.IsDict() {
		return value{}, st.errorf("can only get item pairs from a mapping, not %s", st.typeName(v))
	}
	pairs, err := dictItems(st, v, a)
	if err != nil {
		return value{}, err
	}
	return st.iterator(pairs.AsList().Items)
}

// path follows an attribute path: "a.b.0", or an index. def replaces what is
// not there, if it is defined.
func (st *state) path(v, attr, def value) (value, error) {
	if attr.IsInt() {
		return st.orDefault(v, attr, def)
	}
	s, ok := st.text(attr)
	if !ok {
		return value{}, st.errorf("an attribute must be a name or an index, not %s", st.typeName(attr))
	}
	for part := range strings.SplitSeq(s, ".") {
		key := jinja.NewString(part)
		if n, err := strconv.ParseUint(part, 10, 62); err == nil {
			key = jinja.NewInt(int64(n))
		}
		var err error
		if v, err = st.orDefault(v, key, def); err != nil {
			return value{}, err
		}
	}
	return v, nil
}

func (st *state) orDefault(v, key, def value) (value, error) {
	v, err := st.item(v, key)
	if err == nil && v.IsUndefined() {
		return def, nil
	}
	return v, err
}

func filterBatch(st *state, v value, a args) (value, error) {
	items, err := st.items(v)
	if err != nil {
		return value{}, err
	}
	n, err := a.int(0, 0)
	if err != nil {
		return value{}, err
	}
	if n < 1 || n > 1<<20 {
		return value{}, st.errorf("filter 'batch': line count %d is not in [1, %d]", n, 1<<20)
	}
	if err := st.alloc((len(items) + n) * itemBytes); err != nil {
		return value{}, err
	}
	var out []value
	for len(items) > 0 {
		k := min(n, len(items))
		row := slices.Clone(items[:k])
		for a.has(1) && len(row) < n {
			row = append(row, a.vals[1])
		}
		out = append(out, jinja.NewList(row))
		items = items[k:]
	}
	return st.iterator(out)
}

func filterSlice(st *state, v value, a args) (value, error) {
	items, err := st.items(v)
	if err != nil {
		return value{}, err
	}
	n, err := a.int(0, 0)
	if err != nil {
		return value{}, err
	}
	if n < 1 || n > 1<<20 {
		return value{}, st.errorf("filter 'slice': number of slices %d is not in [1, %d]", n, 1<<20)
	}
	if err := st.alloc((len(items) + n) * itemBytes); err != nil {
		return value{}, err
	}
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
		out[i] = jinja.NewList(row)
	}
	return st.iterator(out)
}

func filterAttr(st *state, v value, a args) (value, error) {
	name, err := a.text(0, "")
	if err != nil {
		return value{}, err
	}
	x, ok, err := st.attribute(v, name)
	if !ok || err != nil {
		return jinja.Undefined(), err
	}
	return x, nil
}

// itemsIfTrue is items, but nothing for whatever is false: None has none.
func (st *state) itemsIfTrue(v value) ([]value, error) {
	if !v.IsTruthy() {
		return nil, nil
	}
	return st.items(v)
}

// filterMap applies a filter to every item, or follows an attribute path.
func filterMap(st *state, v value, a args) (value, error) {
	items, err := st.itemsIfTrue(v)
	if err != nil {
		return value{}, err
	}
	var apply func(value) (value, error)
	switch {
	case len(a.pos) == 0 && len(a.kw) > 0 && a.kw[0].name == "attribute":
		var def value
		for _, k := range a.kw[1:] {
			if k.name != "default" {
				return value{}, st.errorf("filter 'map' has no argument '%s'", k.name)
			}
			def = k.val
		}
		apply = func(x value) (value, error) { return st.path(x, a.kw[0].val, def) }
	case len(a.pos) > 0:
		name, ok := st.text(a.pos[0])
		if !ok {
			return value{}, st.errorf("filter 'map': expected the name of a filter, got %s", st.typeName(a.pos[0]))
		}
		apply = func(x value) (value, error) { return st.filter(name, x, a.pos[1:], a.kw) }
	default:
		return value{}, st.errorf("filter 'map' requires a filter argument")
	}
	if err := st.alloc(len(items) * itemBytes); err != nil {
		return value{}, err
	}
	out := make([]value, len(items))
	for i, x := range items {
		if out[i], err = apply(x); err != nil {
			return value{}, err
		}
	}
	return st.iterator(out)
}

// filterSelect keeps (or drops) the items that pass a test, or of which an
// attribute does; without a test, those that are true.
func filterSelect(byAttr, keep bool) func(*state, value, args) (value, error) {
	return func(st *state, v value, a args) (value, error) {
		items, err := st.itemsIfTrue(v)
		if err != nil {
			return value{}, err
		}
		pos, attr := a.pos, value{}
		if byAttr {
			if len(pos) == 0 {
				return value{}, st.errorf("missing parameter for attribute name")
			}
			attr, pos = pos[0], pos[1:]
		}
		test := ""
		if len(pos) > 0 {
			var ok bool
			if test, ok = st.text(pos[0]); !ok {
				return value{}, st.errorf("expected the name of a test, got %s", st.typeName(pos[0]))
			}
			pos = pos[1:]
		}
		var out []value
		for _, item := range items {
			x, ok := item, false
			if byAttr {
				if x, err = st.path(x, attr, value{}); err != nil {
					return value{}, err
				}
			}
			if test == "" {
				ok, err = x.IsTruthy(), st.step(1)
			} else {
				ok, err = st.test(test, x, pos, a.kw)
			}
			if err != nil {
				return value{}, err
			}
			if ok == keep {
				out = append(out, item)
			}
		}
		return st.iterator(out)
	}
}
