package jinja

import "slices"

// globals are the functions a template can call by name.
var globals = map[string]*builtin{}

func init() { // not in the declaration, which the functions' names would repeat
	for name, call := range map[string]func(st *state, pos []value, kw []kwarg) value{
		"namespace": newNamespace, "dict": newDict, "range": newRange,
		"raise_exception": raiseException, "strftime_now": strftimeNow,
		"joiner": newJoiner, "cycler": newCycler,
	} {
		globals[name] = &builtin{name, call}
	}
}

// newDict is dict(): of mappings or pairs, then keywords.
func newDict(st *state, pos []value, kw []kwarg) value {
	out := &dict{}
	for _, v := range pos {
		st.merge(out, v)
	}
	st.merge(out, keywordDict(kw))
	return out
}

func newNamespace(st *state, pos []value, kw []kwarg) value {
	return &namespace{*newDict(st, pos, kw).(*dict)}
}

// maxRange is the longest range the reference's sandbox gives.
const maxRange = 100_000

func newRange(st *state, pos []value, kw []kwarg) value {
	if len(pos) < 1 || len(pos) > 3 || len(kw) > 0 {
		panic(st.errorf("range() takes 1 to 3 arguments, got %d", len(pos)+len(kw)))
	}
	n := [3]int{2: 1}
	for i, v := range pos {
		var ok bool
		if n[i], ok = integer(v); !ok {
			panic(st.errorf("range(): '%s' object cannot be interpreted as an integer", typeName(v)))
		}
	}
	if len(pos) == 1 {
		n[0], n[1] = 0, n[0]
	}
	start, stop, by := n[0], n[1], n[2]
	if by == 0 {
		panic(st.errorf("range(): step must not be zero"))
	}
	// In floats first: the distance may not fit in an integer.
	far := (float64(stop)-float64(start))/float64(by) > maxRange+1
	if far || count(start, stop, by) > maxRange {
		panic(st.errorf("range(): more than %d items", maxRange))
	}
	return st.span(start, stop, by)
}

// span makes a range.
func (st *state) span(start, stop, by int) value {
	out := make([]value, count(start, stop, by))
	st.alloc(len(out) * itemBytes)
	for i := range out {
		out[i] = start + i*by
	}
	return &tuple{items: out, kind: "range", span: [3]int{start, stop, by}}
}

// raiseException is how a template refuses its input.
func raiseException(st *state, pos []value, _ []kwarg) value {
	e := st.errorf("raise_exception() takes 1 argument, got %d", len(pos))
	if len(pos) == 1 {
		e = &Error{Line: st.line, Msg: st.str(pos[0]), Raised: true}
	}
	panic(e)
}

func strftimeNow(st *state, pos []value, _ []kwarg) value {
	if len(pos) != 1 {
		panic(st.errorf("strftime_now() takes 1 argument, got %d", len(pos)))
	}
	format, ok := text(pos[0])
	if !ok {
		panic(st.errorf("strftime_now(): expected a string, got %s", typeName(pos[0])))
	}
	st.allocEach(len(format), 16)
	return strftime(st.now(), format)
}

func newJoiner(_ *state, pos []value, _ []kwarg) value {
	sep, used := value(", "), false
	if len(pos) > 0 {
		sep = pos[0]
	}
	return &builtin{"joiner", func(*state, []value, []kwarg) value {
		if !used {
			used = true
			return ""
		}
		return sep
	}}
}

// cycler gives its items in turn.
type cycler struct {
	items []value
	pos   int
}

func (c *cycler) attr(name string) (value, bool) {
	switch name {
	case "current":
		return c.items[c.pos], true
	case "next":
		return &builtin{"next", func(*state, []value, []kwarg) value {
			v := c.items[c.pos]
			c.pos = (c.pos + 1) % len(c.items)
			return v
		}}, true
	case "reset":
		return &builtin{"reset", func(*state, []value, []kwarg) value { c.pos = 0; return nil }}, true
	}
	return undefined{}, false
}

func newCycler(st *state, pos []value, _ []kwarg) value {
	if len(pos) == 0 {
		panic(st.errorf("cycler() needs at least one item"))
	}
	return &cycler{items: slices.Clone(pos)}
}
