package hfjinja

import (
	"strings"

	"github.com/ardanlabs/jinja"
)

// fn is a filter, test or method: v is what it is applied to. params names
// the further arguments, a required one with a leading "!"; "*" takes any.
type fn struct {
	params string
	call   func(st *state, v value, a args) (value, error)
}

// args are arguments bound to parameter names.
type args struct {
	st   *state
	what string // the function, for messages
	vals []value
	set  []bool
	pos  []value // all positional arguments, when params is "*"
	kw   []kwarg // all keyword arguments, when params is "*"
}

// bind matches arguments with the parameters of f.
func (st *state) bind(what string, f fn, pos []value, kw []kwarg) (args, error) {
	a := args{st: st, what: what}
	if f.params == "*" {
		a.pos, a.kw = pos, kw
		return a, nil
	}
	if f.params == "" {
		if len(pos)+len(kw) > 0 {
			return a, st.errorf("%s takes no arguments", what)
		}
		return a, nil
	}
	names := strings.Fields(f.params)
	if len(pos) > len(names) {
		return a, st.errorf("%s takes at most %d arguments, got %d", what, len(names), len(pos))
	}
	a.vals, a.set = make([]value, len(names)), make([]bool, len(names))
	for i, v := range pos {
		a.vals[i], a.set[i] = v, true
	}
next:
	for _, k := range kw {
		for i, n := range names {
			if strings.TrimPrefix(n, "!") == k.name {
				if a.set[i] {
					return a, st.errorf("%s got the argument '%s' twice", what, k.name)
				}
				a.vals[i], a.set[i] = k.val, true
				continue next
			}
		}
		return a, st.errorf("%s has no argument '%s'", what, k.name)
	}
	for i, n := range names {
		if n[0] == '!' && !a.set[i] {
			return a, st.errorf("%s: missing argument '%s'", what, n[1:])
		}
	}
	return a, nil
}

// has reports whether argument i was given and is not None.
func (a args) has(i int) bool { return a.set[i] && !a.vals[i].IsNone() }

// get returns argument i, or def when it was not given.
func (a args) get(i int, def value) value {
	if a.set[i] {
		return a.vals[i]
	}
	return def
}

func (a args) truthy(i int) bool { return a.set[i] && a.vals[i].IsTruthy() }

// text returns argument i as a string; def when it was not given or is None.
func (a args) text(i int, def string) (string, error) {
	if !a.has(i) {
		return def, nil
	}
	s, ok := a.st.text(a.vals[i])
	if !ok {
		return "", a.st.errorf("%s: expected a string, got %s", a.what, a.st.typeName(a.vals[i]))
	}
	return s, nil
}

// int returns argument i as an integer; def when it was not given or is None.
func (a args) int(i int, def int) (int, error) {
	if !a.has(i) {
		return def, nil
	}
	n, ok := integer(a.vals[i])
	if !ok {
		return 0, a.st.errorf("%s: expected an integer, got %s", a.what, a.st.typeName(a.vals[i]))
	}
	return int(n), nil
}

// callable is a value made of f applied to self.
func (st *state) method(name string, f fn, self value) value {
	return st.carry(&builtin{name, func(st *state, pos []value, kw []kwarg) (value, error) {
		a, err := st.bind(name+"()", f, pos, kw)
		if err != nil {
			return value{}, err
		}
		return f.call(st, self, a)
	}})
}

// keywords reads the flat list name, value, name, value, ... of a translated
// call.
func keywords(v value) []kwarg {
	items := v.AsList().Items
	if len(items) == 0 {
		return nil
	}
	out := make([]kwarg, 0, len(items)/2)
	for i := 0; i+1 < len(items); i += 2 {
		out = append(out, kwarg{items[i].AsString(), items[i+1]})
	}
	return out
}

// arguments reads the arguments of a translated call: [pos], [kw], and when
// present *pos, **kw.
func (st *state) arguments(a []value) (pos []value, kw []kwarg, err error) {
	pos, kw = a[0].AsList().Items, keywords(a[1])
	if len(a) > 2 && !a[2].IsNone() {
		more, err := st.items(a[2])
		if err != nil {
			return nil, nil, err
		}
		if err := st.alloc(len(more) * itemBytes); err != nil {
			return nil, nil, err
		}
		pos = append(append([]value{}, pos...), more...)
	}
	if len(a) > 3 && !a[3].IsNone() {
		if !a[3].IsDict() {
			return nil, nil, st.errorf("argument after ** must be a mapping, not %s", st.typeName(a[3]))
		}
		d := a[3].AsDict()
		if err := st.alloc(d.Len() * itemBytes); err != nil {
			return nil, nil, err
		}
		for _, k := range d.Keys {
			kw = append(kw, kwarg{keyJSON(k), d.Data[k]})
		}
	}
	return pos, kw, nil
}

// gCall is Call("desc", fn, [pos], [kw], *pos, **kw, caller).
func gCall(st *state, a []value) (value, error) {
	desc, f := a[0].AsString(), a[1]
	pos, kw, err := st.arguments(a[2:min(len(a), 6)])
	if err != nil {
		return value{}, err
	}
	if err := st.step(1 + len(pos)); err != nil {
		return value{}, err
	}
	o := st.object(f)
	if m, ok := o.(*macro); ok && len(a) > 6 {
		return m.invoke(st, pos, kw, a[6])
	}
	if len(a) > 6 {
		kw = append(kw, kwarg{"caller", a[6]})
	}
	if c, ok := o.(caller); ok {
		return c.call(st, pos, kw)
	}
	if f.IsUndefined() {
		return value{}, st.undefined(desc)
	}
	return value{}, st.errorf("%s: '%s' object is not callable", orValue(desc), st.typeName(f))
}

// undefined is the error of using a value that is not there.
func (st *state) undefined(desc string) error {
	return st.errorf("%s is undefined", orValue(desc))
}

func orValue(desc string) string {
	if desc == "" {
		return "value"
	}
	return "'" + desc + "'"
}

// gFilter is Filter("name", v, [pos], [kw], *pos, **kw).
func gFilter(st *state, a []value) (value, error) {
	pos, kw, err := st.arguments(a[2:])
	if err != nil {
		return value{}, err
	}
	return st.filter(a[0].AsString(), a[1], pos, kw)
}

func (st *state) filter(name string, v value, pos []value, kw []kwarg) (value, error) {
	f, ok := filters[name]
	if !ok {
		return value{}, st.errorf("no filter named '%s'", name)
	}
	if err := st.step(1); err != nil {
		return value{}, err
	}
	a, err := st.bind("filter '"+name+"'", f, pos, kw)
	if err != nil {
		return value{}, err
	}
	return f.call(st, v, a)
}

// gTest is Test("name", v, [pos], [kw], *pos, **kw).
func gTest(st *state, a []value) (value, error) {
	pos, kw, err := st.arguments(a[2:])
	if err != nil {
		return value{}, err
	}
	ok, err := st.test(a[0].AsString(), a[1], pos, kw)
	return jinja.NewBool(ok), err
}

func (st *state) test(name string, v value, pos []value, kw []kwarg) (bool, error) {
	t, ok := tests[name]
	if !ok {
		return false, st.errorf("no test named '%s'", name)
	}
	if err := st.step(1); err != nil {
		return false, err
	}
	a, err := st.bind("test '"+name+"'", fn{params: t.params}, pos, kw)
	if err != nil {
		return false, err
	}
	return t.call(st, v, a)
}
