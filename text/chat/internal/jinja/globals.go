package jinja

// globals are the functions a template can call by name.
var globals = table("%()", map[string]fn{
	"dict":            {params: "*", call: newDict},
	"namespace":       {params: "*", call: newNamespace},
	"range":           {params: "!start stop step", call: newRange},
	"raise_exception": {params: "!message", call: raiseException},
	"strftime_now":    {params: "!format", call: strftimeNow},
	"joiner":          {params: "sep", call: newJoiner},
	"cycler":          {params: "*", call: newCycler},
})

// newDict is dict(): of mappings or pairs, then keywords.
func newDict(st *state, _ value, a *args) value {
	out := &dict{}
	for _, v := range a.vals {
		st.merge(out, v)
	}
	st.merge(out, keywordDict(a.kw))
	return out
}

func newNamespace(st *state, v value, a *args) value {
	return &namespace{*newDict(st, v, a).(*dict)}
}

// maxRange is the longest range the reference's sandbox gives.
const maxRange = 100_000

func newRange(st *state, _ value, a *args) value {
	n := [3]int{2: 1}
	for i := range a.vals {
		if a.given(i) {
			var ok bool
			if n[i], ok = integer(a.vals[i]); !ok {
				panic(a.errorf("'%s' object cannot be interpreted as an integer", typeName(a.vals[i])))
			}
		}
	}
	if !a.given(1) {
		n[0], n[1] = 0, n[0]
	}
	start, stop, by := n[0], n[1], n[2]
	if by == 0 {
		panic(a.errorf("step must not be zero"))
	}
	// In floats first: the distance may not fit in an integer.
	far := (float64(stop)-float64(start))/float64(by) > maxRange+1
	if far || count(start, stop, by) > maxRange {
		panic(a.errorf("more than %d items", maxRange))
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
func raiseException(st *state, _ value, a *args) value {
	panic(&Error{Line: st.line, Msg: st.str(a.vals[0]), Raised: true})
}

func strftimeNow(st *state, _ value, a *args) value {
	format := a.text(0, "")
	st.allocEach(len(format), 16)
	return strftime(st.now(), format)
}

func newJoiner(_ *state, _ value, a *args) value {
	used := false
	return &builtin{fn: &fn{name: "joiner", what: "joiner", call: func(*state, value, *args) value {
		if !used {
			used = true
			return ""
		}
		return a.get(0, ", ")
	}}}
}

// cycler gives its items in turn.
type cycler struct {
	items []value
	pos   int
}

func newCycler(_ *state, _ value, a *args) value {
	if len(a.vals) == 0 {
		panic(a.errorf("expected at least one item"))
	}
	return &cycler{items: a.vals}
}

var cyclerMethods = table("%()", map[string]fn{
	"next": {call: func(_ *state, v value, _ *args) value {
		c := v.(*cycler)
		x := c.items[c.pos]
		c.pos = (c.pos + 1) % len(c.items)
		return x
	}},
	"reset": {call: func(_ *state, v value, _ *args) value {
		v.(*cycler).pos = 0
		return nil
	}},
})
