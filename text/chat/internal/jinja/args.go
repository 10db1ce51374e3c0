package jinja

import "strings"

// fn is a filter, test, method or function; of functions, v is nil.
type fn struct {
	params string // names of the further arguments, a required one with a leading "!"; "*" takes any
	call   func(st *state, v value, a *args) value

	name  string
	what  string // for messages
	names []string
	need  []bool
}

// table completes the functions of defs. what, with the name for %, is what
// messages call one.
func table(what string, defs map[string]fn) map[string]*fn {
	out := make(map[string]*fn, len(defs))
	for name, f := range defs {
		f.name, f.what = name, strings.Replace(what, "%", name, 1)
		for _, p := range strings.Fields(f.params) {
			f.names = append(f.names, strings.TrimPrefix(p, "!"))
			f.need = append(f.need, p[0] == '!')
		}
		out[name] = &f
	}
	return out
}

// args are arguments bound to parameters.
type args struct {
	st   *state
	fn   *fn
	vals []value // one for each parameter, missing{} if not passed; for "*" all positional ones
	kw   []kwarg // for "*"
}

// apply calls f on v.
func (st *state) apply(f *fn, v value, pos []value, kw []kwarg) value {
	st.step(1 + len(pos))
	a := &args{st: st, fn: f, vals: pos, kw: kw}
	switch {
	case f.params == "*":
	case len(pos) > len(f.names):
		panic(st.errorf("%s takes at most %d arguments, got %d", f.what, len(f.names), len(pos)))
	case len(pos) < len(f.names) || len(kw) > 0:
		a.bind(pos, kw)
	}
	return f.call(st, v, a)
}

func (a *args) bind(pos []value, kw []kwarg) {
	f := a.fn
	a.vals = make([]value, len(f.names))
	for i := copy(a.vals, pos); i < len(a.vals); i++ {
		a.vals[i] = missing{}
	}
next:
	for _, k := range kw {
		for i, n := range f.names {
			if n != k.name {
				continue
			}
			if a.given(i) {
				panic(a.st.errorf("%s got the argument '%s' twice", f.what, k.name))
			}
			a.vals[i] = k.val
			continue next
		}
		panic(a.st.errorf("%s has no argument '%s'", f.what, k.name))
	}
	for i, n := range f.names {
		if f.need[i] && !a.given(i) {
			panic(a.st.errorf("%s: missing argument '%s'", f.what, n))
		}
	}
}

// given reports whether argument i was passed.
func (a *args) given(i int) bool { _, ok := a.vals[i].(missing); return !ok }

// has reports whether argument i was passed and is not None.
func (a *args) has(i int) bool { return a.given(i) && a.vals[i] != nil }

// get returns argument i, or def when it was not passed.
func (a *args) get(i int, def value) value {
	if a.given(i) {
		return a.vals[i]
	}
	return def
}

func (a *args) truthy(i int) bool { return a.given(i) && truthy(a.vals[i]) }

// text returns argument i as a string; def when it was not passed or is None.
func (a *args) text(i int, def string) string {
	if !a.has(i) {
		return def
	}
	s, ok := text(a.vals[i])
	if !ok {
		panic(a.errorf("expected a string, got %s", typeName(a.vals[i])))
	}
	return s
}

// int returns argument i as an integer; def when it was not passed or is None.
func (a *args) int(i, def int) int {
	if !a.has(i) {
		return def
	}
	n, ok := integer(a.vals[i])
	if !ok {
		panic(a.errorf("expected an integer, got %s", typeName(a.vals[i])))
	}
	return n
}

// errorf is an error that starts with the name of the function.
func (a *args) errorf(format string, args ...any) *Error {
	return a.st.errorf(a.fn.what+": "+format, args...)
}

// call calls f, which source spells desc.
func (st *state) call(f value, desc string, pos []value, kw []kwarg) value {
	st.step(1 + len(pos))
	switch f := f.(type) {
	case *builtin:
		return st.apply(f.fn, f.self, pos, kw)
	case *macro:
		return f.call(st, pos, kw)
	case *loop:
		return f.call(st, pos, kw)
	case undefined:
		panic(st.undefinedError(desc))
	}
	panic(st.errorf("%s: '%s' object is not callable", orValue(desc), typeName(f)))
}
