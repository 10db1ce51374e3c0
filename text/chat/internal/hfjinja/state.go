package hfjinja

import (
	"fmt"
	"time"

	"github.com/ardanlabs/jinja"
)

// Limits bound one rendering. The zero value of a field means its default.
type Limits struct {
	Time  time.Duration // wall clock; default 10 s
	Steps int           // statements, loop passes and items handled; default 20 million
	Bytes int           // bytes of all strings and lists made; default 512 MiB
	Calls int           // macros and recursive loops inside each other; default 100
}

func (l Limits) withDefaults() Limits {
	if l.Time <= 0 {
		l.Time = 10 * time.Second
	}
	if l.Steps <= 0 {
		l.Steps = 20_000_000
	}
	if l.Bytes <= 0 {
		l.Bytes = 512 << 20
	}
	if l.Calls <= 0 {
		l.Calls = 100
	}
	return l
}

// value is a value of the library. Python types that the library has no kind
// for (tuples, big integers, safe strings, iterators, functions) travel in it
// as callables that hand out an object; see state.carry.
type value = jinja.Value

// state is one rendering: its budget, its clock, its loops.
type state struct {
	limits   Limits
	now      func() time.Time
	deadline time.Time
	line     int // of the statement being run
	steps    int // left
	bytes    int // left
	check    int // steps until the clock is looked at
	calls    int // macros being run inside each other
	loops    []*loop
	depth    int    // recursion depth of the next recursive loop
	got      object // what the last carrier called handed out
}

func newState(l Limits, now func() time.Time) *state {
	l = l.withDefaults()
	if now == nil {
		now = time.Now
	}
	return &state{
		limits: l, now: now, deadline: time.Now().Add(l.Time),
		steps: l.Steps, bytes: l.Bytes, check: checkEvery, line: 1,
	}
}

const checkEvery = 4096

func (st *state) errorf(format string, args ...any) error {
	return &Error{Line: st.line, Msg: fmt.Sprintf(format, args...)}
}

// step counts n units of work.
func (st *state) step(n int) error {
	st.steps -= n
	if st.steps < 0 {
		return st.errorf("template takes more than %d steps", st.limits.Steps)
	}
	if st.check -= n; st.check < 0 {
		st.check = checkEvery
		if time.Now().After(st.deadline) {
			return st.errorf("template takes longer than %v", st.limits.Time)
		}
	}
	return nil
}

// alloc counts n bytes about to be allocated, and the work of filling them.
func (st *state) alloc(n int) error {
	if n < 0 || n > st.bytes {
		return st.errorf("template makes more than %d bytes of text and lists", st.limits.Bytes)
	}
	st.bytes -= n
	return st.step(n >> 6)
}

const itemBytes = 48 // a list's slot and the boxed value in it

// str returns a string value.
func (st *state) str(s string) (value, error) {
	if err := st.alloc(len(s)); err != nil {
		return value{}, err
	}
	return jinja.NewString(s), nil
}

// list returns a list value that takes over items.
func (st *state) list(items []value) (value, error) {
	if err := st.alloc(len(items) * itemBytes); err != nil {
		return value{}, err
	}
	return jinja.NewList(items), nil
}

// object is a Python value that the library has no kind for.
type object interface {
	// pyType is the name of the value's Python type, for messages.
	pyType() string
}

// attrer is an object with attributes; not found is jinja2's undefined.
type attrer interface {
	attr(st *state, name string) (value, bool)
}

// caller is an object that can be called.
type caller interface {
	call(st *state, args []value, kw []kwarg) (value, error)
}

type kwarg struct {
	name string
	val  value
}

// carry wraps an object in a value.
func (st *state) carry(o object) value {
	return jinja.NewCallable(o.pyType(), func([]value, map[string]value) (value, error) {
		st.got = o
		return jinja.None(), nil
	})
}

// object returns the object that v carries, or nil.
func (st *state) object(v value) object {
	if !v.IsCallable() {
		return nil
	}
	st.got = nil
	// A macro of the library is a callable too, but never reaches here: the
	// translation wraps it in an object at once.
	if _, err := v.AsCallable().Fn(nil, nil); err != nil {
		return nil
	}
	o := st.got
	st.got = nil
	return o
}

// Objects without behaviour of their own.
type (
	tuple struct {
		items []value  // never changed
		names []string // of the items, for a named tuple
	}
	markup   struct{ s string }      // text marked safe: escapes what is added to it
	missing  struct{}                // a parameter that was not passed
	iterator struct{ items []value } // a generator: can be gone through once
)

func (*tuple) pyType() string    { return "tuple" }
func (*markup) pyType() string   { return "Markup" }
func (*missing) pyType() string  { return "missing" }
func (*iterator) pyType() string { return "generator" }

func (st *state) tuple(items ...value) value { return st.carry(&tuple{items: items}) }

func (st *state) iterator(items []value) (value, error) {
	if err := st.alloc(len(items) * itemBytes); err != nil {
		return value{}, err
	}
	return st.carry(&iterator{items}), nil
}

// builtin is a function or a bound method.
type builtin struct {
	name string
	fn   func(st *state, args []value, kw []kwarg) (value, error)
}

func (*builtin) pyType() string { return "builtin_function_or_method" }

func (b *builtin) call(st *state, args []value, kw []kwarg) (value, error) {
	return b.fn(st, args, kw)
}

// loop is the variable "loop" of a for statement.
type loop struct {
	items   []value
	idx     int
	depth   int   // 0 for a loop that is not inside its own recursion
	body    value // the library's macro of a recursive loop
	recurse bool
	changed []value // what loop.changed saw last
}

func (*loop) pyType() string { return "LoopContext" }

func (l *loop) attr(st *state, name string) (value, bool) {
	n := len(l.items)
	item := func(i int) value {
		if i < 0 || i >= n {
			return jinja.Undefined()
		}
		return l.items[i]
	}
	switch name {
	case "index":
		return jinja.NewInt(int64(l.idx + 1)), true
	case "index0":
		return jinja.NewInt(int64(l.idx)), true
	case "revindex":
		return jinja.NewInt(int64(n - l.idx)), true
	case "revindex0":
		return jinja.NewInt(int64(n - l.idx - 1)), true
	case "first":
		return jinja.NewBool(l.idx == 0), true
	case "last":
		return jinja.NewBool(l.idx == n-1), true
	case "length":
		return jinja.NewInt(int64(n)), true
	case "previtem":
		return item(l.idx - 1), true
	case "nextitem":
		return item(l.idx + 1), true
	case "depth":
		return jinja.NewInt(int64(l.depth + 1)), true
	case "depth0":
		return jinja.NewInt(int64(l.depth)), true
	case "cycle":
		return st.carry(&builtin{"cycle", l.cycle}), true
	case "changed":
		return st.carry(&builtin{"changed", l.hasChanged}), true
	}
	return value{}, false
}

func (l *loop) cycle(st *state, args []value, _ []kwarg) (value, error) {
	if len(args) == 0 {
		return value{}, st.errorf("loop.cycle needs at least one argument")
	}
	return args[l.idx%len(args)], nil
}

func (l *loop) hasChanged(st *state, args []value, _ []kwarg) (value, error) {
	same, err := st.equalItems(l.changed, args)
	if err != nil {
		return value{}, err
	}
	if l.changed != nil && same {
		return jinja.NewBool(false), nil
	}
	l.changed = append([]value{}, args...)
	return jinja.NewBool(true), nil
}

// call renders the body of a recursive loop over other items.
func (l *loop) call(st *state, args []value, _ []kwarg) (value, error) {
	if !l.recurse {
		return value{}, st.errorf("the loop is not recursive: 'recursive' is missing")
	}
	if len(args) != 1 {
		return value{}, st.errorf("loop() takes 1 argument, got %d", len(args))
	}
	st.depth = l.depth + 1
	return l.body.AsCallable().Fn(args, nil)
}

// macro is a {% macro %} or the body of a {% call %}.
type macro struct {
	name     string
	params   []string
	required int      // parameters, the first ones, without a default
	hidden   []string // of caller, varargs, kwargs, those that the body reads
	bytes    int      // of text and code in the body
	body     value    // the library's macro; takes params, then hidden
}

func (*macro) pyType() string { return "Macro" }

func (m *macro) attr(_ *state, name string) (value, bool) {
	if name == "name" {
		return jinja.NewString(m.name), true
	}
	return value{}, false
}

func (m *macro) call(st *state, args []value, kw []kwarg) (value, error) {
	return m.invoke(st, args, kw, jinja.Undefined())
}

func (m *macro) invoke(st *state, args []value, kw []kwarg, caller value) (value, error) {
	if st.calls >= st.limits.Calls {
		return value{}, st.errorf("macro '%s' called more than %d deep", m.name, st.limits.Calls)
	}
	if err := st.alloc(m.bytes + 64); err != nil {
		return value{}, err
	}
	bound := make([]value, len(m.params), len(m.params)+len(m.hidden))
	var extra []kwarg
	for i := range bound {
		if i < len(args) {
			bound[i] = args[i]
		} else if i >= m.required {
			bound[i] = st.carry(&missing{})
		}
	}
next:
	for _, k := range kw {
		for i, p := range m.params {
			if p != k.name {
				continue
			}
			if i < len(args) {
				return value{}, st.errorf("macro '%s' got the argument '%s' twice", m.name, p)
			}
			bound[i] = k.val
			continue next
		}
		if k.name == "caller" {
			caller = k.val
			continue
		}
		extra = append(extra, k)
	}
	bound, err := m.bindHidden(st, bound, args, extra, caller)
	if err != nil {
		return value{}, err
	}
	st.calls++
	out, err := m.body.AsCallable().Fn(bound, nil)
	st.calls--
	return out, err
}

// bindHidden appends the hidden parameters, and refuses arguments that have
// nowhere to go.
func (m *macro) bindHidden(st *state, bound, args []value, extra []kwarg, caller value) ([]value, error) {
	var varargs, kwargs, takesCaller bool
	for _, h := range m.hidden {
		switch h {
		case "caller":
			takesCaller = true
			bound = append(bound, caller)
		case "varargs":
			varargs = true
			bound = append(bound, st.tuple(args[min(len(args), len(m.params)):]...))
		case "kwargs":
			kwargs = true
			d := jinja.NewDict()
			for _, k := range extra {
				d.AsDict().Set(stringKey(k.name), k.val)
			}
			bound = append(bound, d)
		}
	}
	switch {
	case len(args) > len(m.params) && !varargs:
		return nil, st.errorf("macro '%s' takes at most %d arguments, got %d", m.name, len(m.params), len(args))
	case len(extra) > 0 && !kwargs:
		return nil, st.errorf("macro '%s' has no parameter '%s'", m.name, extra[0].name)
	case !caller.IsUndefined() && !takesCaller:
		return nil, st.errorf("macro '%s' was invoked with a call block but has no 'caller'", m.name)
	}
	return bound, nil
}
