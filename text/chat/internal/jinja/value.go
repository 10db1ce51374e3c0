package jinja

import (
	"math"
	"math/big"
	"slices"
	"unicode/utf8"
)

// maxValueDepth bounds the nesting of values that are printed, compared or
// encoded: a list can be made to contain itself.
const maxValueDepth = 200

// value is a Python value: nil (None), bool, int, float64, string, or one of
// the types below.
type value = any

type (
	undefined struct{}
	missing   struct{}                // an argument that was not passed
	markup    string                  // text marked safe: escapes what is added to it
	list      struct{ items []value } // the one sequence that can change
	iterator  struct{ items []value } // a generator: can be gone through once
	// bigInt is an integer that does not fit in 64 bits. It can be printed
	// and compared, not calculated with.
	bigInt struct{ n *big.Int }
	// namespace is the one object whose attributes a template may set.
	namespace struct{ dict }
	// builtin is a function, or a method bound to self.
	builtin struct {
		fn   *fn
		self value
	}
)

// tuple is a sequence that does not change.
type tuple struct {
	items []value
	kind  string   // Python type, if not a tuple: "range", "dict_items", ...
	names []string // of the items, for a named tuple
	span  [3]int   // start, stop and step, for a range
}

type kwarg struct {
	name string
	val  value
}

// typeName is the name of v's Python type.
func typeName(v value) string {
	switch v := v.(type) {
	case undefined:
		return "Undefined"
	case nil:
		return "NoneType"
	case bool:
		return "bool"
	case int, *bigInt:
		return "int"
	case float64:
		return "float"
	case string:
		return "str"
	case markup:
		return "Markup"
	case *traced:
		if v.safe {
			return "Markup"
		}
		return "str"
	case *list:
		return "list"
	case *dict:
		return "dict"
	case *tuple:
		if v.kind != "" {
			return v.kind
		}
		return "tuple"
	case *iterator:
		return "generator"
	case *namespace:
		return "Namespace"
	case *builtin:
		return "builtin_function_or_method"
	case *macro:
		return "Macro"
	case *loop:
		return "LoopContext"
	case *cycler:
		return "Cycler"
	}
	return "object"
}

func isUndefined(v value) bool { _, ok := v.(undefined); return ok }

func truthy(v value) bool {
	switch v := v.(type) {
	case nil, undefined:
		return false
	case bool:
		return v
	case int:
		return v != 0
	case float64:
		return v != 0
	case string:
		return v != ""
	case markup:
		return v != ""
	case *traced:
		return v.s != ""
	case *list:
		return len(v.items) > 0
	case *tuple:
		return len(v.items) > 0
	case *dict:
		return len(v.entries) > 0
	}
	return true
}

// text returns the characters of a string, safe or not.
func text(v value) (string, bool) {
	switch v := v.(type) {
	case string:
		return v, true
	case markup:
		return string(v), true
	case *traced:
		return v.s, true
	}
	return "", false
}

// sequence returns the items of a list or tuple.
func sequence(v value) ([]value, bool) {
	switch v := v.(type) {
	case *list:
		return v.items, true
	case *tuple:
		return v.items, true
	}
	return nil, false
}

// items returns what iterating over v gives. The slice may be shared with v.
func (st *state) items(v value) []value {
	switch v := v.(type) {
	case undefined:
		return nil
	case *list:
		return v.items
	case *tuple:
		return v.items
	case *dict:
		st.alloc(len(v.entries) * itemBytes)
		out := make([]value, len(v.entries))
		for i, e := range v.entries {
			out[i] = e.key
		}
		return out
	case *iterator:
		items := v.items
		v.items = nil
		return items
	}
	s, ok := text(v)
	if !ok {
		panic(st.errorf("'%s' object is not iterable", typeName(v)))
	}
	st.allocEach(len(s), itemBytes)
	out := make([]value, 0, len(s))
	if t, ok := v.(*traced); ok {
		for len(s) > 0 {
			_, n := utf8.DecodeRuneInString(s)
			out = append(out, st.like(t, s[:n]))
			s = s[n:]
		}
		return out
	}
	for _, r := range s {
		out = append(out, string(r))
	}
	return out
}

// newList returns a list that takes over items.
func (st *state) newList(items []value) value {
	st.alloc(len(items) * itemBytes)
	return &list{items}
}

func (st *state) newIterator(items []value) value {
	st.alloc(len(items) * itemBytes)
	return &iterator{items}
}

func newTuple(items ...value) value { return &tuple{items: items} }

// integer returns v as Python's index protocol does: int or bool.
func integer(v value) (int, bool) {
	switch v := v.(type) {
	case int:
		return v, true
	case bool:
		if v {
			return 1, true
		}
		return 0, true
	}
	return 0, false
}

// number returns v as a float, for int, bool and float.
func number(v value) (float64, bool) {
	if f, ok := v.(float64); ok {
		return f, true
	}
	i, ok := integer(v)
	return float64(i), ok
}

// dict is a mapping that keeps the order of its keys.
type dict struct {
	entries []entry
	index   map[value]int // of hashes, once there are many
}

type entry struct{ hash, key, val value }

const manyKeys = 8

func (d *dict) find(hash value) int {
	if d.index != nil {
		if i, ok := d.index[hash]; ok {
			return i
		}
		return -1
	}
	for i := range d.entries {
		if d.entries[i].hash == hash {
			return i
		}
	}
	return -1
}

func (d *dict) get(hash value) (value, bool) {
	if i := d.find(hash); i >= 0 {
		return d.entries[i].val, true
	}
	return undefined{}, false
}

// set sets the value of a key, whose hash is given; a string is its own.
func (d *dict) set(hash, key, val value) {
	if i := d.find(hash); i >= 0 {
		d.entries[i].val = val
		return
	}
	d.entries = append(d.entries, entry{hash, key, val})
	switch n := len(d.entries); {
	case d.index != nil:
		d.index[hash] = n - 1
	case n > manyKeys:
		d.reindex()
	}
}

func (d *dict) remove(i int) {
	d.entries = slices.Delete(d.entries, i, i+1)
	d.reindex()
}

func (d *dict) reindex() {
	d.index = nil
	if len(d.entries) > manyKeys {
		d.index = make(map[value]int, 2*len(d.entries))
		for i := range d.entries {
			d.index[d.entries[i].hash] = i
		}
	}
}

type otherKey string // hash of a key that has no simpler one

// hash returns a Go value that is equal for keys that Python finds equal.
func (st *state) hash(v value) value {
	if !st.hashable(v, 0) {
		panic(st.errorf("unhashable type: '%s'", typeName(v)))
	}
	switch v := v.(type) {
	case string:
		st.step(len(v) >> 6)
	case markup:
		st.step(len(v) >> 6)
		return string(v)
	case *traced:
		st.step(len(v.s) >> 6)
		return v.s
	case bool:
		n, _ := integer(v)
		return n
	case float64:
		if v == math.Trunc(v) && math.Abs(v) < 1<<62 { // 1.0 and 1 are one key
			return int(v)
		}
	case *bigInt:
		return otherKey(v.n.String())
	case *tuple:
		return otherKey(st.repr(v))
	}
	return v
}

// hashable reports whether v can be a key: it is not, and has in it, nothing
// that can change.
func (st *state) hashable(v value, depth int) bool {
	switch v := v.(type) {
	case *list, *dict:
		return false
	case *tuple:
		st.step(1 + len(v.items))
		if depth > maxValueDepth {
			panic(st.errorf("value nested deeper than %d", maxValueDepth))
		}
		return !slices.ContainsFunc(v.items, func(x value) bool { return !st.hashable(x, depth+1) })
	}
	return true
}

// keywordDict makes a dict of keyword arguments.
func keywordDict(kw []kwarg) *dict {
	d := &dict{}
	for _, k := range kw {
		d.set(k.name, k.name, k.val)
	}
	return d
}
