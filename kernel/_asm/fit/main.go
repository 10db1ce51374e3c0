// Command fit generates the searches of package tensor's encoders: sixteen sub-blocks
// at a time, one a lane, so that each keeps the order of its own additions.
package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"ridge/kernel/_asm/parts"
	"ridge/kernel/_asm/vec"
)

func main() {
	list := []parts.Part{
		{Name: "fit_avx512", Emit: func() { operations(vec.AVX512) }},
		{Name: "fit_avx2", Emit: func() { operations(vec.AVX2) }},
	}
	vec.WriteTiers("fit", list, "!amd64")
}

func operations(a vec.ISA) {
	affine(a, "fitAffine", false)
	affine(a, "fitAffineAbsolute", true)
	signed(a)
	recode(a)
}

// Kinds of comparisons, false for NaN.
const (
	equal    = 0
	less     = 1
	notEqual = 4 // true for NaN
	greater  = 14
)

// lanes is a kernel over the rows of transposed sub-blocks: value i of all sixteen.
type lanes struct {
	*vec.Func
	half int           // which part of the lanes
	n    reg.GPVirtual // bytes of all rows
	at   reg.GPVirtual // of the row in the loop
}

// halves calls body for each vector of the sixteen lanes.
func halves(f *vec.Func, n reg.GPVirtual, body func(l *lanes)) {
	SHLQ(operand.Imm(6), n)
	at := GP64()
	for half := range 16 / f.Lanes() {
		body(&lanes{f, half, n, at})
	}
}

// each calls body for all rows.
func (l *lanes) each(name string, body func()) {
	XORQ(l.at, l.at)
	l.label(name)
	body()
	ADDQ(operand.Imm(64), l.at)
	CMPQ(l.at, l.n)
	JLT(l.ref(name))
}

func (l *lanes) label(name string) { l.Label(fmt.Sprintf("%s%d", name, l.half)) }

func (l *lanes) ref(name string) operand.LabelRef { return l.Ref(fmt.Sprintf("%s%d", name, l.half)) }

// row is the part of the row of p that the loop is at.
func (l *lanes) row(p reg.GPVirtual) operand.Mem {
	return operand.Mem{Base: p, Index: l.at, Scale: 1, Disp: 4 * l.Lanes() * l.half}
}

// fixed is the part of row i of p.
func (l *lanes) fixed(p reg.GPVirtual, i int) operand.Mem {
	return operand.Mem{Base: p, Disp: 64*i + 4*l.Lanes()*l.half}
}

// compare returns the mask of the lanes in which x compares so with y.
func compare(f *vec.Func, how int, x, y operand.Op) operand.Op {
	if f.ISA == vec.AVX512 {
		k := K()
		VCMPPS(operand.Imm(uint64(how)), y, x, k)
		return k
	}
	m := f.Vec()
	VCMPPS(operand.Imm(uint64(how)), y, x, m)
	return m
}

// both returns the lanes of two masks.
func both(f *vec.Func, a, b operand.Op) operand.Op {
	if f.ISA == vec.AVX512 {
		KANDW(b, a, a)
		return a
	}
	VANDPS(b, a, a)
	return a
}

// move sets dst to src in the lanes of mask.
func move(f *vec.Func, mask operand.Op, src, dst reg.VecVirtual) {
	if f.ISA == vec.AVX512 {
		VMOVAPS(src, mask, dst)
		return
	}
	VBLENDVPS(mask, src, dst, dst)
}

func copyOf(f *vec.Func, v operand.Op) reg.VecVirtual {
	c := f.Vec()
	VMOVUPS(v, c)
	return c
}

func zero(f *vec.Func) reg.VecVirtual {
	v := f.Vec()
	vec.Zero(v)
	return v
}

// Bits of rounding to the nearest integer as package tensor's nearest does.
const (
	magic    = 0x4b400000 // 1.5·2²³ as a float32
	fraction = 0x7fffff
	middle   = 0x400000
)

func holdNearest(f *vec.Func) {
	if f.ISA == vec.AVX512 {
		f.HoldBits(magic, fraction, middle)
	}
}

// nearest replaces v by nearest(v) within low and high, as integers.
func nearest(f *vec.Func, v, low, high reg.VecVirtual) {
	VADDPS(f.Bits(magic), v, v)
	if f.ISA == vec.AVX512 {
		VPANDD(f.Bits(fraction), v, v)
	} else {
		VPAND(f.Bits(fraction), v, v)
	}
	VPSUBD(f.Bits(middle), v, v)
	VPMAXSD(low, v, v)
	VPMINSD(high, v, v)
}

const signBit = 0x7fffffff

func holdAbsolute(f *vec.Func) {
	if f.ISA == vec.AVX512 {
		f.HoldBits(signBit)
	}
}

func absolute(f *vec.Func, v, dst reg.VecVirtual) { VANDPS(f.Bits(signBit), v, dst) }

// integer broadcasts a float32 parameter as an integer.
func integer(f *vec.Func, name string) reg.VecVirtual {
	v := f.Scalar(name)
	VCVTPS2DQ(v, v)
	return v
}
