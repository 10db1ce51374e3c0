package hfjinja

import (
	"slices"

	"github.com/ardanlabs/jinja"
)

// Methods of dict and list. Those that change the object are refused by the
// reference's sandbox; they are provided because templates written for other
// engines use them, and they only ever change the rendering's own copies.
var dictMethods, listMethods map[string]fn

func init() {
	dictMethods = map[string]fn{
		"items":      {"", dictItems},
		"keys":       {"", dictKeys},
		"values":     {"", dictValues},
		"get":        {"!key default", dictGet},
		"copy":       {"", dictCopy},
		"pop":        {"!key default", dictPop},
		"setdefault": {"!key default", dictSetDefault},
		"update":     {"!other", dictUpdate},
	}
	listMethods = map[string]fn{
		"index":  {"!item", listIndex},
		"count":  {"!item", listCount},
		"copy":   {"", listCopy},
		"append": {"!item", listAppend},
		"extend": {"!items", listExtend},
		"insert": {"!index !item", listInsert},
		"pop":    {"index", listPop},
	}
}

// dictItems returns a list of (key, value) tuples.
func dictItems(st *state, v value, _ args) (value, error) {
	d := v.AsDict()
	if err := st.alloc(d.Len() * 3 * itemBytes); err != nil {
		return value{}, err
	}
	out := make([]value, d.Len())
	for i, k := range d.Keys {
		out[i] = st.tuple(keyValue(k), d.Data[k])
	}
	return jinja.NewList(out), nil
}

func dictKeys(st *state, v value, _ args) (value, error) {
	keys, err := st.items(v)
	return jinja.NewList(keys), err
}

func dictValues(st *state, v value, _ args) (value, error) {
	d := v.AsDict()
	if err := st.alloc(d.Len() * itemBytes); err != nil {
		return value{}, err
	}
	out := make([]value, d.Len())
	for i, k := range d.Keys {
		out[i] = d.Data[k]
	}
	return jinja.NewList(out), nil
}

func dictGet(st *state, v value, a args) (value, error) {
	if k, err := st.dictKey(a.vals[0]); err == nil {
		if x, ok := v.AsDict().Get(k); ok {
			return x, nil
		}
	}
	return a.get(1, jinja.None()), nil
}

func dictCopy(st *state, v value, _ args) (value, error) {
	out := jinja.NewDict()
	return out, st.mergeDict(out, v)
}

// mergeDict sets the entries of the dict from in the dict to.
func (st *state) mergeDict(to, from value) error {
	if !from.IsDict() {
		return st.errorf("'%s' object is not a mapping", st.typeName(from))
	}
	d := from.AsDict()
	if err := st.alloc(d.Len() * 2 * itemBytes); err != nil {
		return err
	}
	for _, k := range slices.Clone(d.Keys) {
		to.AsDict().Set(k, d.Data[k])
	}
	return nil
}

func dictPop(st *state, v value, a args) (value, error) {
	k, err := st.dictKey(a.vals[0])
	if err != nil {
		return value{}, err
	}
	d := v.AsDict()
	x, ok := d.Get(k)
	if !ok {
		if a.set[1] {
			return a.vals[1], nil
		}
		return value{}, st.errorf("pop(): no key '%s'", keyJSON(k))
	}
	delete(d.Data, k)
	if i := slices.Index(d.Keys, k); i >= 0 {
		d.Keys = slices.Delete(slices.Clone(d.Keys), i, i+1)
	}
	return x, st.alloc(len(d.Keys) * itemBytes)
}

func dictSetDefault(st *state, v value, a args) (value, error) {
	k, err := st.dictKey(a.vals[0])
	if err != nil {
		return value{}, err
	}
	if x, ok := v.AsDict().Get(k); ok {
		return x, nil
	}
	x := a.get(1, jinja.None())
	v.AsDict().Set(k, x)
	return x, st.alloc(2 * itemBytes)
}

func dictUpdate(st *state, v value, a args) (value, error) {
	return jinja.None(), st.mergeDict(v, a.vals[0])
}

func listIndex(st *state, v value, a args) (value, error) {
	items, _ := st.sequence(v)
	for i, x := range items {
		same, err := st.equal(x, a.vals[0])
		if err != nil {
			return value{}, err
		}
		if same {
			return jinja.NewInt(int64(i)), nil
		}
	}
	return value{}, st.errorf("index(): item not found")
}

func listCount(st *state, v value, a args) (value, error) {
	items, _ := st.sequence(v)
	n := int64(0)
	for _, x := range items {
		same, err := st.equal(x, a.vals[0])
		if err != nil {
			return value{}, err
		}
		if same {
			n++
		}
	}
	return jinja.NewInt(n), nil
}

func listCopy(st *state, v value, _ args) (value, error) {
	items, _ := st.sequence(v)
	if err := st.alloc(len(items) * itemBytes); err != nil {
		return value{}, err
	}
	return jinja.NewList(slices.Clone(items)), nil
}

func listAppend(st *state, v value, a args) (value, error) {
	v.AsList().Append(a.vals[0])
	return jinja.None(), st.alloc(itemBytes)
}

func listExtend(st *state, v value, a args) (value, error) {
	items, err := st.items(a.vals[0])
	if err != nil {
		return value{}, err
	}
	if err := st.alloc(len(items) * itemBytes); err != nil {
		return value{}, err
	}
	l := v.AsList()
	l.Items = append(l.Items, items...)
	return jinja.None(), nil
}

func listInsert(st *state, v value, a args) (value, error) {
	i, err := a.int(0, 0)
	if err != nil {
		return value{}, err
	}
	l := v.AsList()
	if i < 0 {
		i = max(0, i+l.Len())
	}
	// A new slice: a loop may be going over the old one.
	if err := st.alloc((l.Len() + 1) * itemBytes); err != nil {
		return value{}, err
	}
	l.Items = slices.Insert(slices.Clone(l.Items), min(i, l.Len()), a.vals[1])
	return jinja.None(), nil
}

func listPop(st *state, v value, a args) (value, error) {
	l := v.AsList()
	i, err := a.int(0, -1)
	if err != nil {
		return value{}, err
	}
	if i < 0 {
		i += l.Len()
	}
	if i < 0 || i >= l.Len() {
		return value{}, st.errorf("pop(): index out of range")
	}
	x := l.Items[i]
	if err := st.alloc(l.Len() * itemBytes); err != nil {
		return value{}, err
	}
	l.Items = slices.Delete(slices.Clone(l.Items), i, i+1)
	return x, nil
}
