package hfjinja

import (
	"slices"
	"strings"

	"github.com/ardanlabs/jinja"
)

// fold is what sorting ignores case by.
func (st *state) fold(v value, caseSensitive bool) (value, error) {
	if s, ok := st.text(v); ok && !caseSensitive {
		return st.str(strings.ToLower(s))
	}
	return v, nil
}

// keyed are items with what to order them by.
type keyed struct {
	item value
	keys []value
}

// keys computes what to order items by: the item itself, or the attributes
// named in attr, separated by commas.
func (st *state) keys(items []value, attr, def value, caseSensitive bool) ([]keyed, error) {
	var attrs []value
	if s, ok := st.text(attr); ok {
		for part := range strings.SplitSeq(s, ",") {
			attrs = append(attrs, jinja.NewString(part))
		}
	} else if attr.IsInt() {
		attrs = []value{attr}
	}
	if err := st.alloc(len(items) * (2 + len(attrs)) * itemBytes); err != nil {
		return nil, err
	}
	out := make([]keyed, len(items))
	for i, x := range items {
		out[i].item = x
		vals := []value{x}
		for j, a := range attrs {
			v, err := st.path(x, a, def)
			if err != nil {
				return nil, err
			}
			vals = append(vals[:j], v)
		}
		for _, v := range vals {
			v, err := st.fold(v, caseSensitive)
			if err != nil {
				return nil, err
			}
			out[i].keys = append(out[i].keys, v)
		}
	}
	return out, nil
}

// sortKeyed sorts stably; reverse keeps equal items in order, as Python does.
func (st *state) sortKeyed(items []keyed, reverse bool) error {
	var err error
	slices.SortStableFunc(items, func(x, y keyed) int {
		if err != nil {
			return 0
		}
		n := 0
		for i := range x.keys {
			var same bool
			if same, err = st.equal(x.keys[i], y.keys[i]); err != nil || same {
				continue
			}
			n, err = st.order(x.keys[i], y.keys[i], "<")
			break
		}
		if reverse {
			return -n
		}
		return n
	})
	return err
}

func (st *state) unkey(items []keyed) (value, error) {
	out := make([]value, len(items))
	for i := range items {
		out[i] = items[i].item
	}
	return st.list(out)
}

func filterSort(st *state, v value, a args) (value, error) {
	items, err := st.items(v)
	if err != nil {
		return value{}, err
	}
	ks, err := st.keys(items, a.get(2, value{}), value{}, a.truthy(1))
	if err != nil {
		return value{}, err
	}
	if err := st.sortKeyed(ks, a.truthy(0)); err != nil {
		return value{}, err
	}
	return st.unkey(ks)
}

func filterDictSort(st *state, v value, a args) (value, error) {
	if !v.IsDict() {
		return value{}, st.errorf("filter 'dictsort': expected a dict, got %s", st.typeName(v))
	}
	by, err := a.text(1, "key")
	if err != nil {
		return value{}, err
	}
	which := int64(0)
	if by == "value" {
		which = 1
	} else if by != "key" {
		return value{}, st.errorf("filter 'dictsort': can only sort by 'key' or 'value', not '%s'", by)
	}
	pairs, err := dictItems(st, v, args{})
	if err != nil {
		return value{}, err
	}
	ks, err := st.keys(pairs.AsList().Items, jinja.NewInt(which), value{}, a.truthy(0))
	if err != nil {
		return value{}, err
	}
	if err := st.sortKeyed(ks, a.truthy(2)); err != nil {
		return value{}, err
	}
	return st.unkey(ks)
}

// hashKey is a map key that is equal for values that Python finds equal.
func (st *state) hashKey(v value) (string, error) {
	if f, ok := number(v); ok {
		return "n" + pyFloat(f), nil
	}
	if s, ok := st.text(v); ok {
		return "s" + s, st.step(len(s) >> 6)
	}
	if v.IsList() || v.IsDict() {
		return "", st.errorf("unhashable type: '%s'", st.typeName(v))
	}
	s, err := st.repr(v)
	return "o" + s, err
}

func filterUnique(st *state, v value, a args) (value, error) {
	items, err := st.items(v)
	if err != nil {
		return value{}, err
	}
	ks, err := st.keys(items, a.get(1, value{}), value{}, a.truthy(0))
	if err != nil {
		return value{}, err
	}
	seen := make(map[string]bool)
	var out []value
	for _, k := range ks {
		h, err := st.hashKey(k.keys[0])
		if err != nil {
			return value{}, err
		}
		if !seen[h] {
			seen[h] = true
			out = append(out, k.item)
		}
	}
	return st.iterator(out)
}

func filterMinMax(want int) func(*state, value, args) (value, error) {
	return func(st *state, v value, a args) (value, error) {
		items, err := st.items(v)
		if err != nil || len(items) == 0 {
			return jinja.Undefined(), err
		}
		ks, err := st.keys(items, a.get(1, value{}), value{}, a.truthy(0))
		if err != nil {
			return value{}, err
		}
		best := ks[0]
		for _, k := range ks[1:] {
			n, err := st.order(k.keys[0], best.keys[0], "<")
			if err != nil {
				return value{}, err
			}
			if n == want {
				best = k
			}
		}
		return best.item, nil
	}
}

func filterSum(st *state, v value, a args) (value, error) {
	items, err := st.items(v)
	if err != nil {
		return value{}, err
	}
	total := a.get(1, jinja.NewInt(0))
	for _, x := range items {
		if a.has(0) {
			if x, err = st.path(x, a.vals[0], value{}); err != nil {
				return value{}, err
			}
		}
		if _, ok := st.text(total); ok {
			return value{}, st.errorf("filter 'sum': can't sum strings")
		}
		if total, err = gAdd(st, []value{total, x}); err != nil {
			return value{}, err
		}
	}
	return total, nil
}

// filterGroupBy returns (grouper, list) tuples, one for each value of an
// attribute, in the order of the values.
func filterGroupBy(st *state, v value, a args) (value, error) {
	items, err := st.items(v)
	if err != nil {
		return value{}, err
	}
	def := a.get(1, value{})
	ks, err := st.keys(items, a.vals[0], def, a.truthy(2))
	if err != nil {
		return value{}, err
	}
	if err := st.sortKeyed(ks, false); err != nil {
		return value{}, err
	}
	var out []value
	for i := 0; i < len(ks); {
		if ks[i].keys[0].IsUndefined() && len(ks) > 1 {
			return value{}, st.errorf("filter 'groupby': an item has no attribute %s", orValue(self(st, a.vals[0])))
		}
		j := i + 1
		for j < len(ks) {
			same, err := st.equalItems(ks[i].keys, ks[j].keys)
			if err != nil {
				return value{}, err
			}
			if !same {
				break
			}
			j++
		}
		list, err := st.unkey(ks[i:j])
		if err != nil {
			return value{}, err
		}
		name, err := st.path(ks[i].item, a.vals[0], def)
		if err != nil {
			return value{}, err
		}
		out = append(out, st.carry(&tuple{[]value{name, list}, []string{"grouper", "list"}}))
		i = j
	}
	return st.list(out)
}
