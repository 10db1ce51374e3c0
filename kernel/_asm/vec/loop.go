package vec

import (
	"strings"

	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// A Map is an operation on rows, element by element.
type Map struct {
	Name, Doc string
	Dst       string   // the pointer that is written
	In        []string // the pointers that are read, Dst among them or not
	Scalars   []string // float32 parameters
	Hold      func(f *Func)
	Body      func(f *Func, in, scalars []reg.VecVirtual) reg.VecVirtual
}

// pointers returns all pointers, the written one first.
func (m *Map) pointers() []string {
	p := []string{m.Dst}
	for _, in := range m.In {
		if in != m.Dst {
			p = append(p, in)
		}
	}
	return p
}

// Emit generates m for an instruction set.
func (m Map) Emit(a ISA) {
	sig := "(" + strings.Join(m.pointers(), ", ") + " *float32, n int"
	if len(m.Scalars) > 0 {
		sig += ", " + strings.Join(m.Scalars, ", ") + " float32"
	}
	f := Begin(a, m.Name, m.Doc, sig+")")
	ptr := map[string]reg.GPVirtual{}
	for _, p := range m.pointers() {
		ptr[p] = f.Ptr(p)
	}
	n := f.Ptr("n")
	var scalars []reg.VecVirtual
	for _, s := range m.Scalars {
		scalars = append(scalars, f.Scalar(s))
	}
	if m.Hold != nil {
		m.Hold(f)
	}
	body := func() {
		var in []reg.VecVirtual
		for _, p := range m.In {
			in = append(in, f.Load(operand.Mem{Base: ptr[p]}))
		}
		f.Store(m.Body(f, in, scalars), operand.Mem{Base: ptr[m.Dst]})
	}
	w := a.Lanes()
	SUBQ(operand.Imm(uint64(w)), n)
	JLT(f.Ref("tail"))
	f.Label("loop")
	body()
	for _, p := range m.pointers() {
		ADDQ(operand.Imm(uint64(4*w)), ptr[p])
	}
	SUBQ(operand.Imm(uint64(w)), n)
	JGE(f.Ref("loop"))
	f.Label("tail")
	ADDQ(operand.Imm(uint64(w)), n)
	JLE(f.Ref("done"))
	f.Tail(n, 0)
	body()
	f.EndTail()
	f.Label("done")
	f.End()
}

// A Reduction combines the elements of rows to one value. Element i goes to
// lane i%16 of accumulator i/16%4; the accumulators are then combined as
// (0+1)+(2+3), and the lanes by halving.
type Reduction struct {
	Name, Doc string
	In        []string
	Scalars   []string
	Max       bool // the maximum, starting from -Inf, rather than the sum
	Hold      func(f *Func)
	// Body adds a vector of elements, one of each row of In, to acc. Lanes
	// outside a tail are zero when loaded; what Body adds to them must be
	// zero, or less than any element. Elements may be stored back to addr.
	Body func(f *Func, acc reg.VecVirtual, in, scalars []reg.VecVirtual, addr []operand.Mem)
}

const negInf = 0xff800000

// Emit generates r for an instruction set.
func (r Reduction) Emit(a ISA) {
	sig := "(" + strings.Join(r.In, ", ") + " *float32, n int"
	if len(r.Scalars) > 0 {
		sig += ", " + strings.Join(r.Scalars, ", ") + " float32"
	}
	f := Begin(a, r.Name, r.Doc, sig+") float32")
	var ptr []reg.GPVirtual
	for _, p := range r.In {
		ptr = append(ptr, f.Ptr(p))
	}
	n := f.Ptr("n")
	var scalars []reg.VecVirtual
	for _, s := range r.Scalars {
		scalars = append(scalars, f.Scalar(s))
	}
	if r.Hold != nil {
		r.Hold(f)
	}
	w := a.Lanes()
	acc := make([]reg.VecVirtual, 64/w)
	for i := range acc {
		acc[i] = f.Vec()
		if r.Max {
			VBROADCASTSS(Constant(negInf), acc[i])
		} else {
			Zero(acc[i])
		}
	}
	body := func(i int) {
		var in []reg.VecVirtual
		var addr []operand.Mem
		for _, p := range ptr {
			addr = append(addr, operand.Mem{Base: p, Disp: 4 * w * i})
			in = append(in, f.Load(addr[len(addr)-1]))
		}
		r.Body(f, acc[i], in, scalars, addr)
	}
	SUBQ(operand.Imm(64), n)
	JLT(f.Ref("tail"))
	f.Label("loop")
	for i := range acc {
		body(i)
	}
	for _, p := range ptr {
		ADDQ(operand.U32(256), p)
	}
	SUBQ(operand.Imm(64), n)
	JGE(f.Ref("loop"))
	f.Label("tail")
	ADDQ(operand.Imm(64), n)
	JLE(f.Ref("done"))
	for i := range acc {
		f.Tail(n, w*i)
		body(i)
		f.EndTail()
		if i < len(acc)-1 {
			CMPQ(n, operand.Imm(uint64(w*(i+1))))
			JLE(f.Ref("done"))
		}
	}
	f.Label("done")
	x := f.Combine(acc, r.Max)
	Store(x, ReturnIndex(0))
	f.End()
}

// Combine combines four accumulators of 16 lanes to one value in the order
// that Reduction documents.
func (f *Func) Combine(acc []reg.VecVirtual, maximum bool) reg.VecVirtual {
	op := func(b, a, dst operand.Op) {
		if maximum {
			VMAXPS(b, a, dst)
		} else {
			VADDPS(b, a, dst)
		}
	}
	if f.ISA == AVX2 { // pairs of lower and upper halves
		for i := range 2 {
			op(acc[2+i], acc[i], acc[i])
			op(acc[6+i], acc[4+i], acc[4+i])
			op(acc[4+i], acc[i], acc[i])
		}
	} else {
		op(acc[1], acc[0], acc[0])
		op(acc[3], acc[2], acc[2])
		op(acc[2], acc[0], acc[0])
	}
	return f.Horizontal(acc[:16/f.Lanes()], maximum)
}

// Horizontal combines the lanes of one vector of 16 by halving; the result is
// in lane 0 of an X register.
func (f *Func) Horizontal(v []reg.VecVirtual, maximum bool) reg.VecVirtual {
	op := func(b, a, dst operand.Op) {
		if maximum {
			VMAXPS(b, a, dst)
		} else {
			VADDPS(b, a, dst)
		}
	}
	y, h := v[0], YMM()
	if f.ISA == AVX512 {
		VEXTRACTF32X8(operand.Imm(1), v[0], h)
		y = v[0].AsY().(reg.VecVirtual)
	} else {
		h = v[1]
	}
	op(h, y, y)
	x, t := y.AsX().(reg.VecVirtual), XMM()
	VEXTRACTF128(operand.Imm(1), y, t)
	op(t, x, x)
	VPERMILPD(operand.Imm(1), x, t)
	op(t, x, x)
	VMOVSHDUP(x, t)
	op(t, x, x)
	return x
}
