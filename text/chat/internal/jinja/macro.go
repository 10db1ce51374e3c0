package jinja

import "slices"

// macroDef is a {% macro %} or the body of a {% call %}. The slots of its
// parameters are the first of its frame.
type macroDef struct {
	name   string
	params []string
	// The last parameters have these defaults.
	defaults []node
	// Slots of the variables beside the parameters; -1 if they are not read.
	caller, varargs, kwargs int
	fun                     *function
	body                    block
}

// macro is a macro that can be called, and the frame it was defined in.
type macro struct {
	def   *macroDef
	frame *frame
}

func (m *macro) call(st *state, pos []value, kw []kwarg) value {
	var out value
	st.enter("macro '"+m.def.name+"'", m.def.fun.slots, m.frame, func() {
		m.bind(st, pos, kw)
		out = st.capture(func() { m.def.body.exec(st) })
	})
	return out
}

// bind sets the parameters in the current frame.
func (m *macro) bind(st *state, pos []value, kw []kwarg) {
	d, slots := m.def, st.frame.slots
	n := copy(slots[:len(d.params)], pos)
	passed := make([]bool, len(d.params))
	for i := range n {
		passed[i] = true
	}
	var extra []kwarg
	for _, k := range kw {
		st.step(len(d.params))
		switch i := slices.Index(d.params, k.name); {
		case i >= 0 && passed[i]:
			panic(st.errorf("macro '%s' got the argument '%s' twice", d.name, k.name))
		case i >= 0:
			slots[i], passed[i] = k.val, true
		case k.name == "caller" && d.caller >= 0:
			slots[d.caller] = k.val
		case k.name == "caller" && d.kwargs < 0:
			panic(st.errorf("macro '%s' was invoked with a call block but has no 'caller'", d.name))
		default:
			extra = append(extra, k)
		}
	}
	if d.varargs >= 0 {
		slots[d.varargs] = newTuple(pos[n:]...)
	} else if n < len(pos) {
		panic(st.errorf("macro '%s' takes at most %d arguments, got %d", d.name, len(d.params), len(pos)))
	}
	if d.kwargs >= 0 {
		slots[d.kwargs] = keywordDict(extra)
	} else if len(extra) > 0 {
		panic(st.errorf("macro '%s' has no parameter '%s'", d.name, extra[0].name))
	}
	first := len(d.params) - len(d.defaults)
	for i, def := range d.defaults {
		if !passed[first+i] {
			slots[first+i] = def.eval(st)
		}
	}
}
