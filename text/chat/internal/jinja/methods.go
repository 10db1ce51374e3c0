package jinja

import "slices"

// Methods of dict, list and tuple. Those that change the object are refused
// by the reference's sandbox; they are provided because templates written for
// other engines use them, and they only ever change the rendering's own copies.
var (
	dictMethods = table("%()", map[string]fn{
		"items":      {call: dictItems},
		"keys":       {call: dictKeys},
		"values":     {call: dictValues},
		"get":        {params: "!key default", call: dictGet},
		"copy":       {call: dictCopy},
		"pop":        {params: "!key default", call: dictPop},
		"setdefault": {params: "!key default", call: dictSetDefault},
		"update":     {params: "!other", call: dictUpdate},
	})
	listMethods = table("%()", map[string]fn{
		"index":  {params: "!item", call: seqIndex},
		"count":  {params: "!item", call: seqCount},
		"copy":   {call: listCopy},
		"append": {params: "!item", call: listAppend},
		"extend": {params: "!items", call: listExtend},
		"insert": {params: "!index !item", call: listInsert},
		"pop":    {params: "index", call: listPop},
	})
	tupleMethods = table("%()", map[string]fn{
		"index": {params: "!item", call: seqIndex},
		"count": {params: "!item", call: seqCount},
	})
)

// dictItems returns the view of (key, value) tuples.
func dictItems(st *state, v value, _ *args) value {
	entries := v.(*dict).entries
	st.alloc(len(entries) * 3 * itemBytes)
	out := make([]value, len(entries))
	for i, e := range entries {
		out[i] = newTuple(e.key, e.val)
	}
	return &tuple{items: out, kind: "dict_items"}
}

func dictKeys(st *state, v value, _ *args) value {
	return &tuple{items: st.items(v), kind: "dict_keys"}
}

func dictValues(st *state, v value, _ *args) value {
	entries := v.(*dict).entries
	st.alloc(len(entries) * itemBytes)
	out := make([]value, len(entries))
	for i, e := range entries {
		out[i] = e.val
	}
	return &tuple{items: out, kind: "dict_values"}
}

func dictGet(st *state, v value, a *args) value {
	if x, ok := v.(*dict).get(st.hash(a.vals[0])); ok {
		return x
	}
	return a.get(1, nil)
}

func dictCopy(st *state, v value, _ *args) value {
	out := &dict{}
	st.merge(out, v)
	return out
}

// merge sets the entries of the dict from, or the pairs in it, in the dict to.
func (st *state) merge(to *dict, from value) {
	if d, ok := from.(*dict); ok {
		st.alloc(len(d.entries) * 2 * itemBytes)
		for _, e := range d.entries {
			to.set(e.hash, e.key, e.val)
		}
		return
	}
	pairs := st.items(from)
	st.alloc(len(pairs) * 2 * itemBytes)
	for _, p := range pairs {
		kv := st.unpack(p, 2)
		to.set(st.hash(kv[0]), kv[0], kv[1])
	}
}

func dictPop(st *state, v value, a *args) value {
	d := v.(*dict)
	i := d.find(st.hash(a.vals[0]))
	if i < 0 {
		if a.given(1) {
			return a.vals[1]
		}
		panic(a.errorf("no key %s", st.repr(a.vals[0])))
	}
	st.alloc(len(d.entries) * itemBytes)
	x := d.entries[i].val
	d.remove(i)
	return x
}

func dictSetDefault(st *state, v value, a *args) value {
	d, hash := v.(*dict), st.hash(a.vals[0])
	if x, ok := d.get(hash); ok {
		return x
	}
	st.alloc(2 * itemBytes)
	d.set(hash, a.vals[0], a.get(1, nil))
	return a.get(1, nil)
}

func dictUpdate(st *state, v value, a *args) value {
	st.merge(v.(*dict), a.vals[0])
	return nil
}

func seqIndex(st *state, v value, a *args) value {
	items, _ := sequence(v)
	i := slices.IndexFunc(items, func(x value) bool { return st.equal(x, a.vals[0]) })
	if i < 0 {
		panic(a.errorf("item not found"))
	}
	return i
}

func seqCount(st *state, v value, a *args) value {
	items, _ := sequence(v)
	n := 0
	for _, x := range items {
		if st.equal(x, a.vals[0]) {
			n++
		}
	}
	return n
}

func listCopy(st *state, v value, _ *args) value {
	return st.newList(slices.Clone(v.(*list).items))
}

func listAppend(st *state, v value, a *args) value {
	st.alloc(itemBytes)
	l := v.(*list)
	l.items = append(l.items, a.vals[0])
	return nil
}

func listExtend(st *state, v value, a *args) value {
	items := st.items(a.vals[0])
	st.alloc(len(items) * itemBytes)
	l := v.(*list)
	l.items = append(l.items, items...)
	return nil
}

func listInsert(st *state, v value, a *args) value {
	l := v.(*list)
	i, _ := index(a.int(0, 0), len(l.items))
	// A new slice: a loop may be going over the old one.
	st.alloc((len(l.items) + 1) * itemBytes)
	l.items = slices.Insert(slices.Clone(l.items), min(max(i, 0), len(l.items)), a.vals[1])
	return nil
}

func listPop(st *state, v value, a *args) value {
	l := v.(*list)
	i, ok := index(a.int(0, -1), len(l.items))
	if !ok {
		panic(a.errorf("index out of range"))
	}
	x := l.items[i]
	st.alloc(len(l.items) * itemBytes)
	l.items = slices.Delete(slices.Clone(l.items), i, i+1)
	return x
}
