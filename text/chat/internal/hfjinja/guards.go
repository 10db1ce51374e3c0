package hfjinja

import (
	"math/big"
	"strconv"
	"strings"

	"github.com/ardanlabs/jinja"
)

// guards are the functions a translated template calls for whatever takes
// time or memory, or where the library's idea of Jinja differs from
// jinja2's. The library is left with control flow, scopes, "and", "or",
// "not", conditional expressions and literals.
var guards map[string]func(st *state, a []value) (value, error)

func init() { // not in the declaration: the functions refer to the map
	guards = map[string]func(st *state, a []value) (value, error){
		"At": gAt, "Out": gOut, "Fail": gFail,
		"Loop": gLoop, "Next": gNext, "EndLoop": gEndLoop, "Current": gCurrent, "Push": gPush,
		"Macro": gMacro, "Missing": gMissing, "Call": gCall, "Filter": gFilter, "Test": gTest,
		"Attr": gAttr, "Item": gItem, "Slice": gSlice, "SetAttr": gSetAttr, "Unpack": gUnpack,
		"Compare": gCompare, "Concat": gConcat, "Neg": gNeg, "Pos": gPos,
		"Add": gAdd, "Sub": gSub, "Mul": gMul, "Div": gDiv, "FloorDiv": gFloorDiv, "Mod": gMod, "Pow": gPow,
		"Tuple": gTuple, "Dict": gDict, "BigInt": gBigInt, "Float": gFloat,
	}
}

// gAt notes the line and counts the step; it is false.
func gAt(st *state, a []value) (value, error) {
	st.line = int(a[0].AsInt())
	return jinja.NewBool(false), st.step(1)
}

// gOut is Out(At(line), v): the text that {{ v }} prints.
func gOut(st *state, a []value) (value, error) {
	s, err := st.print(a[1])
	if err != nil {
		return value{}, err
	}
	return st.str(s)
}

func gFail(st *state, a []value) (value, error) { return value{}, st.errorf("%s", a[0].AsString()) }

// gLoop is Loop(seq) or Loop(seq, macro of a recursive loop).
func gLoop(st *state, a []value) (value, error) {
	items, err := st.items(a[0])
	if err != nil {
		return value{}, err
	}
	if len(st.loops) > maxStmtDepth+st.limits.Calls {
		return value{}, st.errorf("more than %d loops inside each other", maxStmtDepth+st.limits.Calls)
	}
	l := &loop{items: items, idx: -1}
	if len(a) > 1 {
		l.recurse, l.body, l.depth = true, a[1], st.depth
	}
	st.depth = 0
	st.loops = append(st.loops, l)
	return jinja.NewList(items), nil
}

// gNext is Next(bytes in the body): the loop moves to its next item.
func gNext(st *state, a []value) (value, error) {
	st.loops[len(st.loops)-1].idx++
	return jinja.NewString(""), st.alloc(64 + int(a[0].AsInt()))
}

func gEndLoop(st *state, _ []value) (value, error) {
	st.loops = st.loops[:len(st.loops)-1]
	return jinja.NewString(""), nil
}

func gCurrent(st *state, _ []value) (value, error) {
	return st.carry(st.loops[len(st.loops)-1]), nil
}

func gPush(st *state, a []value) (value, error) {
	a[0].AsList().Append(a[1])
	return jinja.NewString(""), st.alloc(itemBytes)
}

// gMacro is Macro(body, "name", bytes, "hidden parameters", required, "param", ...).
func gMacro(st *state, a []value) (value, error) {
	m := &macro{body: a[0], name: a[1].AsString(), bytes: int(a[2].AsInt()), hidden: strings.Fields(a[3].AsString())}
	m.required = int(a[4].AsInt())
	for _, p := range a[5:] {
		m.params = append(m.params, p.AsString())
	}
	return st.carry(m), st.alloc(itemBytes * len(a))
}

func gMissing(st *state, a []value) (value, error) {
	_, ok := st.object(a[0]).(*missing)
	return jinja.NewBool(ok), nil
}

func gTuple(st *state, a []value) (value, error) {
	return st.tuple(a...), st.alloc(len(a) * itemBytes)
}

// gDict is Dict(key, value, key, value, ...).
func gDict(st *state, a []value) (value, error) {
	if err := st.alloc(len(a) * itemBytes); err != nil {
		return value{}, err
	}
	v := jinja.NewDict()
	for i := 0; i+1 < len(a); i += 2 {
		k, err := st.dictKey(a[i])
		if err != nil {
			return value{}, err
		}
		v.AsDict().Set(k, a[i+1])
	}
	return v, nil
}

func gBigInt(st *state, a []value) (value, error) {
	n, ok := new(big.Int).SetString(a[0].AsString(), 10)
	if !ok {
		return value{}, st.errorf("not an integer")
	}
	return st.carry(&bigInt{n}), nil
}

// gFloat is Float("literal out of range").
func gFloat(_ *state, a []value) (value, error) {
	f, _ := strconv.ParseFloat(a[0].AsString(), 64)
	return jinja.NewFloat(f), nil
}
