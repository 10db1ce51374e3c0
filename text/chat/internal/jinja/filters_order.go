package jinja

import (
	"slices"
	"strings"
)

// keyed are items with what to order them by.
type keyed struct {
	item value
	keys []value
}

// keys computes what to order items by: the item itself, or the attributes
// named in attr, separated by commas.
func (st *state) keys(items []value, attr, def value, caseSensitive bool) []keyed {
	attrs := []value{attr}
	if s, ok := text(attr); ok {
		attrs = nil
		for part := range strings.SplitSeq(s, ",") {
			attrs = append(attrs, part)
		}
	}
	st.allocEach(len(items), (2+len(attrs))*itemBytes)
	out := make([]keyed, len(items))
	for i, x := range items {
		out[i] = keyed{x, make([]value, len(attrs))}
		for j, a := range attrs {
			k := x
			if a != nil {
				k = st.path(x, a, def)
			}
			if s, ok := text(k); ok && !caseSensitive {
				st.alloc(len(s))
				k = strings.ToLower(s)
			}
			out[i].keys[j] = k
		}
	}
	return out
}

// sortKeyed sorts stably; reverse keeps equal items in order, as Python does.
func (st *state) sortKeyed(items []keyed, reverse bool) {
	slices.SortStableFunc(items, func(x, y keyed) int {
		for i := range x.keys {
			if st.equal(x.keys[i], y.keys[i]) {
				continue
			}
			n := st.order(x.keys[i], y.keys[i], "<")
			if n == unordered {
				n = 0
			}
			if reverse {
				return -n
			}
			return n
		}
		return 0
	})
}

func (st *state) unkey(items []keyed) value {
	out := make([]value, len(items))
	for i := range items {
		out[i] = items[i].item
	}
	return st.newList(out)
}

func filterSort(st *state, v value, a *args) value {
	ks := st.keys(st.items(v), a.get(2, nil), undefined{}, a.truthy(1))
	st.sortKeyed(ks, a.truthy(0))
	return st.unkey(ks)
}

func filterDictSort(st *state, v value, a *args) value {
	if _, ok := v.(*dict); !ok {
		panic(a.errorf("expected a dict, got %s", typeName(v)))
	}
	by := slices.Index([]string{"key", "value"}, a.text(1, "key"))
	if by < 0 {
		panic(a.errorf("can only sort by 'key' or 'value', not '%s'", a.text(1, "")))
	}
	ks := st.keys(st.items(dictItems(st, v, nil)), by, undefined{}, a.truthy(0))
	st.sortKeyed(ks, a.truthy(2))
	return st.unkey(ks)
}

func filterUnique(st *state, v value, a *args) value {
	seen := make(map[value]bool)
	var out []value
	for _, k := range st.keys(st.items(v), a.get(1, nil), undefined{}, a.truthy(0)) {
		if h := st.hash(k.keys[0]); !seen[h] {
			seen[h] = true
			out = append(out, k.item)
		}
	}
	return st.newIterator(out)
}

func filterMinMax(want int) func(*state, value, *args) value {
	return func(st *state, v value, a *args) value {
		ks := st.keys(st.items(v), a.get(1, nil), undefined{}, a.truthy(0))
		if len(ks) == 0 {
			return undefined{}
		}
		best := ks[0]
		for _, k := range ks[1:] {
			if st.order(k.keys[0], best.keys[0], "<") == want {
				best = k
			}
		}
		return best.item
	}
}

func filterSum(st *state, v value, a *args) value {
	total := a.get(1, 0)
	if _, ok := text(total); ok {
		panic(a.errorf("can't sum strings"))
	}
	for _, x := range st.items(v) {
		if a.has(0) {
			x = st.path(x, a.vals[0], undefined{})
		}
		total = add(st, total, x)
	}
	return total
}

// filterGroupBy returns (grouper, list) tuples, one for each value of an
// attribute, in the order of the values.
func filterGroupBy(st *state, v value, a *args) value {
	def := a.get(1, undefined{})
	ks := st.keys(st.items(v), a.vals[0], def, a.truthy(2))
	st.sortKeyed(ks, false)
	var out []value
	for i := 0; i < len(ks); {
		if isUndefined(ks[i].keys[0]) && len(ks) > 1 {
			panic(a.errorf("an item has no attribute %s", st.repr(a.vals[0])))
		}
		j := i + 1
		for j < len(ks) && st.equalSeq(ks[i].keys, ks[j].keys, 0) {
			j++
		}
		name := st.path(ks[i].item, a.vals[0], def)
		out = append(out, &tuple{items: []value{name, st.unkey(ks[i:j])}, names: []string{"grouper", "list"}})
		i = j
	}
	return st.newList(out)
}
