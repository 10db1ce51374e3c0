package hfjinja

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/ardanlabs/jinja"
)

// gAttr is Attr(obj, "name", "desc of obj"): an attribute, else an item.
func gAttr(st *state, a []value) (value, error) {
	obj, name := a[0], a[1].AsString()
	if obj.IsUndefined() {
		return value{}, st.undefined(a[2].AsString())
	}
	if v, ok, err := st.attribute(obj, name); ok || err != nil {
		return v, err
	}
	if obj.IsDict() {
		if v, ok := obj.AsDict().Get(stringKey(name)); ok {
			return v, nil
		}
	}
	return jinja.Undefined(), nil
}

// attribute looks up a method or the attribute of an object.
func (st *state) attribute(obj value, name string) (value, bool, error) {
	if err := st.step(1); err != nil {
		return value{}, false, err
	}
	var methods map[string]fn
	switch {
	case obj.IsString():
		methods = strMethods
	case obj.IsDict():
		methods = dictMethods
	case obj.IsList():
		methods = listMethods
	case obj.IsCallable():
		o := st.object(obj)
		switch o := o.(type) {
		case attrer:
			v, ok := o.attr(st, name)
			return v, ok, nil
		case *markup:
			methods = strMethods
		case *tuple:
			if i := slices.Index(o.names, name); i >= 0 {
				return o.items[i], true, nil
			}
			if name == "index" || name == "count" {
				methods = listMethods
			}
		}
	}
	if f, ok := methods[name]; ok {
		return st.method(name, f, obj), true, nil
	}
	return value{}, false, nil
}

// gItem is Item(obj, key, "desc of obj"): an item, else an attribute.
func gItem(st *state, a []value) (value, error) {
	obj, key := a[0], a[1]
	if obj.IsUndefined() {
		return value{}, st.undefined(a[2].AsString())
	}
	return st.item(obj, key)
}

func (st *state) item(obj, key value) (value, error) {
	if obj.IsUndefined() {
		return value{}, st.undefined("")
	}
	if obj.IsDict() {
		if k, err := st.dictKey(key); err == nil {
			if v, ok := obj.AsDict().Get(k); ok {
				return v, nil
			}
		}
	}
	if name, ok := st.text(key); ok {
		if v, ok, err := st.attribute(obj, name); ok || err != nil {
			return v, err
		}
		return jinja.Undefined(), nil
	}
	i, ok := integer(key)
	if !ok {
		return jinja.Undefined(), nil
	}
	if items, ok := st.sequence(obj); ok {
		if i < 0 {
			i += int64(len(items))
		}
		if i < 0 || i >= int64(len(items)) {
			return jinja.Undefined(), nil
		}
		return items[i], nil
	}
	if s, ok := st.text(obj); ok {
		n := int64(utf8.RuneCountInString(s))
		if err := st.step(len(s) >> 6); err != nil {
			return value{}, err
		}
		if i < 0 {
			i += n
		}
		if i < 0 || i >= n {
			return jinja.Undefined(), nil
		}
		return st.likeNoAlloc(obj, runeSlice(s, int(i), int(i)+1)), nil
	}
	return jinja.Undefined(), nil
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

// bounds resolves Python slice bounds for a sequence of n items.
func (st *state) bounds(lo, hi, step value, n int) (start, stop, by int, err error) {
	get := func(v value, def int) int {
		if v.IsNone() {
			return def
		}
		i, ok := integer(v)
		if !ok {
			err = st.errorf("slice indices must be integers or none, not %s", st.typeName(v))
		}
		return int(i)
	}
	by = get(step, 1)
	if err == nil && by == 0 {
		err = st.errorf("slice step cannot be zero")
	}
	if err != nil {
		return 0, 0, 0, err
	}
	lower, upper := 0, n
	if by < 0 {
		lower, upper = -1, n-1
	}
	clamp := func(i int) int {
		if i < 0 {
			if i += n; i < 0 {
				return lower
			}
		}
		return min(max(i, lower), upper)
	}
	start, stop = upper, lower
	if by > 0 {
		start, stop = lower, upper
	}
	if !lo.IsNone() {
		start = clamp(get(lo, 0))
	}
	if !hi.IsNone() {
		stop = clamp(get(hi, 0))
	}
	return start, stop, by, err
}

// gSlice is Slice(obj, start, stop, step, "desc of obj").
func gSlice(st *state, a []value) (value, error) {
	obj := a[0]
	if obj.IsUndefined() {
		return value{}, st.undefined(a[4].AsString())
	}
	if s, ok := st.text(obj); ok {
		return st.sliceText(obj, s, a)
	}
	items, ok := st.sequence(obj)
	if !ok {
		return value{}, st.errorf("'%s' object cannot be sliced", st.typeName(obj))
	}
	start, stop, by, err := st.bounds(a[1], a[2], a[3], len(items))
	if err != nil {
		return value{}, err
	}
	n := count(start, stop, by)
	if err := st.alloc(n * itemBytes); err != nil {
		return value{}, err
	}
	out := make([]value, n)
	for i := range out {
		out[i] = items[start+i*by]
	}
	if obj.IsList() {
		return jinja.NewList(out), nil
	}
	return st.tuple(out...), nil
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

func (st *state) sliceText(obj value, s string, a []value) (value, error) {
	n := utf8.RuneCountInString(s)
	start, stop, by, err := st.bounds(a[1], a[2], a[3], n)
	if err != nil {
		return value{}, err
	}
	if err := st.alloc(len(s)); err != nil {
		return value{}, err
	}
	if by == 1 {
		return st.likeNoAlloc(obj, runeSlice(s, start, max(start, stop))), nil
	}
	if err := st.alloc(4 * n); err != nil {
		return value{}, err
	}
	runes := []rune(s)
	var b strings.Builder
	for i := range count(start, stop, by) {
		b.WriteRune(runes[start+i*by])
	}
	return st.likeNoAlloc(obj, b.String()), nil
}

// gSetAttr is SetAttr(ns, "name", v, "desc of ns").
func gSetAttr(st *state, a []value) (value, error) {
	ns, ok := st.object(a[0]).(*namespace)
	if !ok {
		return value{}, st.errorf("cannot assign attribute '%s': %s is not a namespace", a[1].AsString(), orValue(a[3].AsString()))
	}
	name := a[1].AsString()
	if strings.HasPrefix(name, "_") {
		return value{}, st.errorf("a namespace cannot have the attribute '%s'", name)
	}
	if err := st.alloc(itemBytes); err != nil {
		return value{}, err
	}
	ns.set(name, a[2])
	return jinja.NewString(""), nil
}

// gUnpack is Unpack(v, n): v as a list of exactly n items.
func gUnpack(st *state, a []value) (value, error) {
	items, err := st.items(a[0])
	if err != nil {
		return value{}, st.errorf("cannot unpack '%s' object", st.typeName(a[0]))
	}
	if n := int(a[1].AsInt()); len(items) != n {
		return value{}, st.errorf("expected %d values to unpack, got %d", n, len(items))
	}
	return jinja.NewList(items), nil
}
