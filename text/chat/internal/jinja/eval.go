package jinja

// node is an expression of the tree.
type node interface {
	eval(st *state) value
}

type (
	constant struct{ val value }
	// variable is read from the frame up functions further out.
	variable struct {
		name     string
		up, slot int
	}
	tupleNode struct{ items []node }
	listNode  struct{ items []node }
	dictNode  struct{ keys, vals []node }
	attribute struct {
		obj  node
		name string
	}
	item        struct{ obj, key node }
	slice       struct{ obj, lo, hi, step node }
	conditional struct{ cond, then, otherwise node }
	logical     struct {
		left, right node
		or          bool
	}
	not   struct{ operand node }
	unary struct {
		op      func(st *state, v value) value
		operand node
	}
	binary struct {
		op          operator
		left, right node
	}
	concat struct{ parts []node }
	// comparison is a < b < c: n operators between n+1 operands.
	comparison struct {
		operands []node
		ops      []func(st *state, a, b value) bool
	}
	call struct {
		fn   node
		args arguments
	}
	// application is a filter or a test.
	application struct {
		fn      *fn
		operand node
		args    arguments
	}
	failure string
)

// arguments are those of a call: f(pos, *dynPos, kw=..., **dynKw).
type arguments struct {
	pos           []node
	kw            []keyword
	dynPos, dynKw node // nil where absent
}

type keyword struct {
	name string
	val  node
}

// spelling is how the source spells a plain path, for messages.
func spelling(n node) string {
	switch n := n.(type) {
	case *variable:
		return n.name
	case *attribute:
		if s := spelling(n.obj); s != "" {
			return s + "." + n.name
		}
	case *item:
		key, _ := n.key.(constant)
		if s, ok := key.val.(string); ok && spelling(n.obj) != "" {
			return spelling(n.obj) + "['" + s + "']"
		}
	}
	return ""
}

// object evaluates what an attribute or item is taken of.
func object(st *state, n node) value {
	v := n.eval(st)
	if isUndefined(v) {
		panic(st.undefinedError(spelling(n)))
	}
	return v
}

func (n constant) eval(*state) value { return n.val }

func (n *variable) eval(st *state) value {
	f := st.frame
	for range n.up {
		f = f.up
	}
	return f.slots[n.slot]
}

func evalAll(st *state, nodes []node) []value {
	if len(nodes) == 0 {
		return nil
	}
	st.alloc(len(nodes) * itemBytes)
	out := make([]value, len(nodes))
	for i, n := range nodes {
		out[i] = n.eval(st)
	}
	return out
}

func (n *tupleNode) eval(st *state) value { return newTuple(evalAll(st, n.items)...) }
func (n *listNode) eval(st *state) value  { return &list{evalAll(st, n.items)} }

func (n *dictNode) eval(st *state) value {
	st.alloc(2 * len(n.keys) * itemBytes)
	d := &dict{}
	for i, k := range n.keys {
		key := k.eval(st)
		d.set(st.hash(key), key, n.vals[i].eval(st))
	}
	return d
}

func (n *attribute) eval(st *state) value { return st.getAttr(object(st, n.obj), n.name) }

func (n *item) eval(st *state) value {
	obj := object(st, n.obj)
	return st.getItem(obj, n.key.eval(st))
}

func (n *slice) eval(st *state) value {
	obj := object(st, n.obj)
	lo, hi, step := n.lo.eval(st), n.hi.eval(st), n.step.eval(st)
	return st.slice(obj, lo, hi, step)
}

func (n *conditional) eval(st *state) value {
	st.step(1)
	if truthy(n.cond.eval(st)) {
		return n.then.eval(st)
	}
	return n.otherwise.eval(st)
}

func (n *logical) eval(st *state) value {
	st.step(1)
	if v := n.left.eval(st); truthy(v) == n.or {
		return v
	}
	return n.right.eval(st)
}

func (n *not) eval(st *state) value {
	st.step(1)
	return !truthy(n.operand.eval(st))
}

func (n *unary) eval(st *state) value {
	st.step(1)
	return n.op(st, n.operand.eval(st))
}

func (n *binary) eval(st *state) value {
	st.step(1)
	l := n.left.eval(st)
	return n.op(st, l, n.right.eval(st))
}

func (n *concat) eval(st *state) value {
	st.alloc(len(n.parts) * 16)
	parts := make([]value, len(n.parts))
	for i, p := range n.parts {
		parts[i] = st.textOf(p.eval(st))
	}
	return st.joined(parts, "", false)
}

func (n *comparison) eval(st *state) value {
	l := n.operands[0].eval(st)
	for i, op := range n.ops {
		r := n.operands[i+1].eval(st)
		if !op(st, l, r) {
			return false
		}
		l = r
	}
	return true
}

func (n *call) eval(st *state) value { return n.invoke(st, nil) }

// invoke calls with one more keyword argument, caller, if it is not nil.
func (n *call) invoke(st *state, caller *macro) value {
	// A method is called without making a value of it first.
	if a, ok := n.fn.(*attribute); ok {
		obj := object(st, a.obj)
		if f := methodsOf(obj)[a.name]; f != nil && caller == nil {
			pos, kw := n.args.eval(st)
			return st.apply(f, obj, pos, kw)
		}
		return n.invokeValue(st, st.getAttr(obj, a.name), caller)
	}
	return n.invokeValue(st, n.fn.eval(st), caller)
}

func (n *call) invokeValue(st *state, fn value, caller *macro) value {
	pos, kw := n.args.eval(st)
	if caller != nil {
		kw = append(kw, kwarg{"caller", caller})
	}
	return st.call(fn, spelling(n.fn), pos, kw)
}

func (a *arguments) eval(st *state) (pos []value, kw []kwarg) {
	pos = evalAll(st, a.pos)
	if a.dynPos != nil {
		more := st.items(a.dynPos.eval(st))
		st.alloc(len(more) * itemBytes)
		pos = append(pos, more...)
	}
	for _, k := range a.kw {
		kw = append(kw, kwarg{k.name, k.val.eval(st)})
	}
	if a.dynKw == nil {
		return pos, kw
	}
	v := a.dynKw.eval(st)
	d, ok := v.(*dict)
	if !ok {
		panic(st.errorf("argument after ** must be a mapping, not %s", typeName(v)))
	}
	st.alloc(len(d.entries) * itemBytes)
	for _, e := range d.entries {
		name, ok := text(e.key)
		if !ok {
			panic(st.errorf("keywords must be strings, not %s", typeName(e.key)))
		}
		kw = append(kw, kwarg{name, e.val})
	}
	return pos, kw
}

func (n *application) eval(st *state) value {
	v := n.operand.eval(st)
	pos, kw := n.args.eval(st)
	return st.apply(n.fn, v, pos, kw)
}

func (n failure) eval(st *state) value { panic(st.errorf("%s", string(n))) }
