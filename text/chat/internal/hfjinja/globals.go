package hfjinja

import (
	"github.com/ardanlabs/jinja"
)

// globals are the functions a template can call by name.
var globals = map[string]func(st *state, args []value, kw []kwarg) (value, error){
	"namespace":       newNamespace,
	"dict":            newDict,
	"range":           newRange,
	"raise_exception": raiseException,
	"strftime_now":    strftimeNow,
	"joiner":          newJoiner,
	"cycler":          newCycler,
}

// fields reads the arguments of namespace() and dict(): mappings, then
// keywords.
func (st *state) fields(args []value, kw []kwarg) (value, error) {
	out := jinja.NewDict()
	for _, a := range args {
		if a.IsDict() {
			if err := st.mergeDict(out, a); err != nil {
				return value{}, err
			}
			continue
		}
		pairs, err := st.items(a)
		if err != nil {
			return value{}, err
		}
		for _, p := range pairs {
			kv, err := st.items(p)
			if err != nil {
				return value{}, err
			}
			if len(kv) != 2 {
				return value{}, st.errorf("expected pairs of a key and a value")
			}
			k, err := st.dictKey(kv[0])
			if err != nil {
				return value{}, err
			}
			out.AsDict().Set(k, kv[1])
		}
	}
	for _, k := range kw {
		out.AsDict().Set(stringKey(k.name), k.val)
	}
	return out, st.alloc(2 * itemBytes * out.AsDict().Len())
}

func newNamespace(st *state, args []value, kw []kwarg) (value, error) {
	v, err := st.fields(args, kw)
	if err != nil {
		return value{}, err
	}
	ns := &namespace{vals: map[string]value{}}
	for _, k := range v.AsDict().Keys {
		ns.set(k, v.AsDict().Data[k])
	}
	return st.carry(ns), nil
}

func newDict(st *state, args []value, kw []kwarg) (value, error) { return st.fields(args, kw) }

// maxRange is the longest range the reference's sandbox gives.
const maxRange = 100_000

func newRange(st *state, args []value, kw []kwarg) (value, error) {
	var n [3]int
	if len(args) < 1 || len(args) > 3 || len(kw) > 0 {
		return value{}, st.errorf("range() takes 1 to 3 arguments, got %d", len(args)+len(kw))
	}
	for i, a := range args {
		x, ok := integer(a)
		if !ok {
			return value{}, st.errorf("range(): '%s' object cannot be interpreted as an integer", st.typeName(a))
		}
		n[i] = int(x)
	}
	start, stop, by := 0, n[0], 1
	if len(args) > 1 {
		start, stop = n[0], n[1]
	}
	if len(args) == 3 {
		by = n[2]
	}
	if by == 0 {
		return value{}, st.errorf("range(): step must not be zero")
	}
	// In floats first: the distance may not fit in an integer.
	if (float64(stop)-float64(start))/float64(by) > maxRange {
		return value{}, st.errorf("range(): more than %d items", maxRange)
	}
	c := count(start, stop, by)
	if c > maxRange {
		return value{}, st.errorf("range(): more than %d items", maxRange)
	}
	if err := st.alloc(c * itemBytes); err != nil {
		return value{}, err
	}
	out := make([]value, c)
	for i := range out {
		out[i] = jinja.NewInt(int64(start + i*by))
	}
	return jinja.NewList(out), nil
}

// raiseException is how a template refuses its input.
func raiseException(st *state, args []value, _ []kwarg) (value, error) {
	if len(args) != 1 {
		return value{}, st.errorf("raise_exception() takes 1 argument, got %d", len(args))
	}
	s, err := st.print(args[0])
	if err != nil {
		return value{}, err
	}
	return value{}, &Error{Line: st.line, Msg: s, Raised: true}
}

func strftimeNow(st *state, args []value, _ []kwarg) (value, error) {
	if len(args) != 1 {
		return value{}, st.errorf("strftime_now() takes 1 argument, got %d", len(args))
	}
	format, ok := st.text(args[0])
	if !ok {
		return value{}, st.errorf("strftime_now(): expected a string, got %s", st.typeName(args[0]))
	}
	if err := st.alloc(16 * len(format)); err != nil {
		return value{}, err
	}
	return jinja.NewString(strftime(st.now(), format)), nil
}

func newJoiner(st *state, args []value, _ []kwarg) (value, error) {
	sep := jinja.NewString(", ")
	if len(args) > 0 {
		sep = args[0]
	}
	used := false
	return st.carry(&builtin{"joiner", func(*state, []value, []kwarg) (value, error) {
		if !used {
			used = true
			return jinja.NewString(""), nil
		}
		return sep, nil
	}}), nil
}

// cycler gives its items in turn.
type cycler struct {
	items []value
	pos   int
}

func (*cycler) pyType() string { return "Cycler" }

func (c *cycler) attr(st *state, name string) (value, bool) {
	switch name {
	case "current":
		return c.items[c.pos], true
	case "next":
		return st.carry(&builtin{"next", func(*state, []value, []kwarg) (value, error) {
			v := c.items[c.pos]
			c.pos = (c.pos + 1) % len(c.items)
			return v, nil
		}}), true
	case "reset":
		return st.carry(&builtin{"reset", func(*state, []value, []kwarg) (value, error) {
			c.pos = 0
			return jinja.None(), nil
		}}), true
	}
	return value{}, false
}

func newCycler(st *state, args []value, _ []kwarg) (value, error) {
	if len(args) == 0 {
		return value{}, st.errorf("cycler() needs at least one item")
	}
	return st.carry(&cycler{items: args}), nil
}
