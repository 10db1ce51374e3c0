package main

import (
	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"ridge/kernel/_asm/approx"
	"ridge/kernel/_asm/vec"
)

// rotate sets a, b = a·c - b·s, b·c + a·s, the first product of each rounded
// together with the sum.
func rotate(f *vec.Func, a, b, c, s one) {
	u, w := f.Vec(), f.Vec()
	VMULPS(s, b, u)
	VMULPS(s, a, w)
	VFMSUB213PS(u, c, a)
	VFMADD213PS(w, c, b)
}

// rope generates the rotation of pairs (x[i], x[i+n]).
func rope(a vec.ISA) {
	f := vec.Begin(a, "ropeNeox", "rotates the pairs (x[i], x[i+n]).", "(x, cos, sin *float32, n int)")
	x, cos, sin, n := f.Ptr("x"), f.Ptr("cos"), f.Ptr("sin"), f.Ptr("n")
	y := GP64()
	LEAQ(operand.Mem{Base: x, Index: n, Scale: 4}, y)
	loop(f, n, a.Lanes(), []reg.GPVirtual{x, y, cos, sin}, []int{4, 4, 4, 4}, func() {
		u, v := f.Load(operand.Mem{Base: x}), f.Load(operand.Mem{Base: y})
		rotate(f, u, v, f.Load(operand.Mem{Base: cos}), f.Load(operand.Mem{Base: sin}))
		f.Store(u, operand.Mem{Base: x})
		f.Store(v, operand.Mem{Base: y})
	})
}

// loop emits body for w elements at a time and for the tail of n, moving the
// pointers by the given bytes for each element, and the return.
func loop(f *vec.Func, n reg.GPVirtual, w int, ptr []reg.GPVirtual, size []int, body func()) {
	SUBQ(operand.Imm(uint64(w)), n)
	JLT(f.Ref("tail"))
	f.Label("loop")
	body()
	for i, p := range ptr {
		ADDQ(operand.Imm(uint64(w*size[i])), p)
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

// ropePairs generates the rotation of pairs (x[2i], x[2i+1]): with c and s
// doubled, x·c ∓ swap(x)·s. The roundings are those of rotate.
func ropePairs(a vec.ISA) {
	f := vec.Begin(a, "ropeNorm", "rotates the pairs (x[2i], x[2i+1]).", "(x, cos, sin *float32, n int)")
	x, cos, sin, n := f.Ptr("x"), f.Ptr("cos"), f.Ptr("sin"), f.Ptr("n")
	half := a.Lanes() / 2
	body := func(double func(p reg.GPVirtual) one) {
		u, v := f.Load(operand.Mem{Base: x}), f.Vec()
		c, s := double(cos), double(sin)
		VPERMILPS(operand.Imm(0xb1), u, v)
		VMULPS(s, v, v)
		VFMADDSUB213PS(v, c, u)
		f.Store(u, operand.Mem{Base: x})
	}
	SUBQ(operand.Imm(uint64(half)), n)
	JLT(f.Ref("tail"))
	f.Label("loop")
	body(func(p reg.GPVirtual) one {
		v := f.Vec()
		VPMOVZXDQ(operand.Mem{Base: p}, v)
		VMOVSLDUP(v, v)
		return v
	})
	ADDQ(operand.Imm(uint64(8*half)), x)
	ADDQ(operand.Imm(uint64(4*half)), cos)
	ADDQ(operand.Imm(uint64(4*half)), sin)
	SUBQ(operand.Imm(uint64(half)), n)
	JGE(f.Ref("loop"))
	f.Label("tail")
	ADDQ(operand.Imm(uint64(half)), n)
	JLE(f.Ref("done"))
	narrow := loadHalf(f, n)
	ADDQ(n, n)
	f.Tail(n, 0)
	body(func(p reg.GPVirtual) one {
		v := f.Vec()
		VPMOVZXDQ(narrow(p), v)
		VMOVSLDUP(v, v)
		return v
	})
	f.EndTail()
	f.Label("done")
	f.End()
}

// loadHalf returns a function that loads n values into the lower half of a
// vector.
func loadHalf(f *vec.Func, n reg.GPVirtual) func(p reg.GPVirtual) operand.Op {
	if f.ISA == vec.AVX512 {
		t, k := GP64(), K()
		MOVQ(operand.I32(-1), t)
		BZHIQ(n, t, t)
		KMOVW(t.As32(), k)
		return func(p reg.GPVirtual) operand.Op {
			y := YMM()
			VMOVUPS_Z(operand.Mem{Base: p}, k, y)
			return y
		}
	}
	m := f.TailMask(n)
	return func(p reg.GPVirtual) operand.Op {
		y := XMM()
		VMASKMOVPS(operand.Mem{Base: p}, m.AsX(), y)
		return y
	}
}

// conversions generates those between float32 and what tiles of keys and values
// hold. With AVX2, n is a multiple of 8.
func conversions(a vec.ISA) {
	convert(a, "decodeI8", "converts signed bytes.", 4, 1, func(f *vec.Func, src, dst operand.Mem) {
		v := f.Vec()
		if k := f.Mask(); k != nil {
			VPMOVSXBD_Z(src, k, v)
		} else {
			VPMOVSXBD(src, v)
		}
		VCVTDQ2PS(v, v)
		f.Store(v, dst)
	})
	convert(a, "decodeF16", "converts binary16 values.", 4, 2, func(f *vec.Func, src, dst operand.Mem) {
		v := f.Vec()
		if k := f.Mask(); k != nil {
			VCVTPH2PS_Z(src, k, v)
		} else {
			VCVTPH2PS(src, v)
		}
		f.Store(v, dst)
	})
	encode := func(f *vec.Func, v one, dst operand.Mem) {
		if k := f.Mask(); k != nil {
			VCVTPS2PH(operand.Imm(0), v, k, dst)
		} else {
			VCVTPS2PH(operand.Imm(0), v, dst)
		}
	}
	convert(a, "encodeKV", "converts to binary16 after limiting magnitudes to 65504.", 2, 4, func(f *vec.Func, src, dst operand.Mem) {
		v := f.Load(src)
		VMINPS(v, f.C(approx.MaxF16).(one), v) // the second operand, v, wins if it is NaN
		VMAXPS(v, f.C(-approx.MaxF16).(one), v)
		encode(f, v, dst)
	})
}

// convert generates a conversion between float32 and another type; to and from
// are the sizes of the elements.
func convert(a vec.ISA, name, doc string, to, from int, body func(f *vec.Func, src, dst operand.Mem)) {
	sig, sizes := "(dst *byte, src *float32, n int)", []int{to, from}
	if from < to {
		sig = "(dst *float32, src *byte, n int)"
	}
	f := vec.Begin(a, name, doc, sig)
	dst, src, n := f.Ptr("dst"), f.Ptr("src"), f.Ptr("n")
	if name == "encodeKV" {
		f.Hold(approx.MaxF16, -approx.MaxF16)
	}
	emit := func() { body(f, operand.Mem{Base: src}, operand.Mem{Base: dst}) }
	if a == vec.AVX512 {
		loop(f, n, 16, []reg.GPVirtual{dst, src}, sizes, emit)
		return
	}
	SUBQ(operand.Imm(8), n)
	JLT(f.Ref("done"))
	f.Label("loop")
	emit()
	ADDQ(operand.Imm(uint64(8*sizes[0])), dst)
	ADDQ(operand.Imm(uint64(8*sizes[1])), src)
	SUBQ(operand.Imm(8), n)
	JGE(f.Ref("loop"))
	f.Label("done")
	f.End()
}
