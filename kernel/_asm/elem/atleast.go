package main

import (
	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"ridge/kernel/_asm/vec"
)

const (
	atLeastDoc = "writes the indices of the values of x that are at least v to dst, which has room for n, and returns how many they are."
	atLeastSig = "(dst *int32, x *float32, n int, v float32) int"
	notBelow   = 0x1d // predicate of VCMPPS: at least, and neither is NaN
)

// atLeast512 generates the search with AVX-512: indices that count are moved
// together in a register and stored with what follows them. There is room for
// that: no more indices are in dst than vectors before this one have values.
func atLeast512() {
	f := vec.Begin(vec.AVX512, "atLeast", atLeastDoc, atLeastSig)
	dst, x, n, v := f.Ptr("dst"), f.Ptr("x"), f.Ptr("n"), f.Scalar("v")
	begin, bits, k := GP64(), GP64(), K()
	MOVQ(dst, begin)
	// The indices of the vector at hand.
	ids, step := ZMM(), ZMM()
	count := GLOBL("indices", RODATA|NOPTR)
	for i := range 16 {
		DATA(4*i, operand.U32(uint32(i)))
	}
	VMOVDQU32(count, ids)
	sixteen := GP64()
	MOVQ(operand.I32(16), sixteen)
	VPBROADCASTD(sixteen.As32(), step)
	found := func() {
		u := f.Load(operand.Mem{Base: x})
		if f.Mask() == nil {
			VCMPPS(operand.Imm(notBelow), v, u, k)
		} else {
			VCMPPS(operand.Imm(notBelow), v, u, f.Mask(), k)
		}
		KMOVW(k, bits.As32())
		VPCOMPRESSD_Z(ids, k, u)
		POPCNTL(bits.As32(), bits.As32())
		if f.Mask() == nil {
			VMOVDQU32(u, operand.Mem{Base: dst})
		} else {
			t := GP64()
			MOVQ(operand.I32(-1), t)
			BZHIQ(bits, t, t)
			KMOVW(t.As32(), k)
			VMOVDQU32(u, k, operand.Mem{Base: dst})
		}
		LEAQ(operand.Mem{Base: dst, Index: bits, Scale: 4}, dst)
	}
	SUBQ(operand.Imm(16), n)
	JLT(f.Ref("tail"))
	f.Label("loop")
	found()
	VPADDD(step, ids, ids)
	ADDQ(operand.Imm(64), x)
	SUBQ(operand.Imm(16), n)
	JGE(f.Ref("loop"))
	f.Label("tail")
	ADDQ(operand.Imm(16), n)
	JLE(f.Ref("end"))
	f.Tail(n, 0)
	found()
	f.EndTail()
	f.Label("end")
	atLeastCount(f, dst, begin)
}

// atLeast2 generates the search with AVX2: one index after the other.
func atLeast2() {
	f := vec.Begin(vec.AVX2, "atLeast", atLeastDoc, atLeastSig)
	dst, x, n, v := f.Ptr("dst"), f.Ptr("x"), f.Ptr("n"), f.Scalar("v")
	begin, bits, i, id := GP64(), GP64(), GP64(), GP64()
	MOVQ(dst, begin)
	XORQ(i, i)
	compare := func() {
		u := f.Load(operand.Mem{Base: x, Index: i, Scale: 4})
		VCMPPS(operand.Imm(notBelow), v, u, u)
		f.Clear(u)
		VMOVMSKPS(u, bits.As32())
		TESTL(bits.As32(), bits.As32())
	}
	each := func(name string) {
		f.Label(name)
		TZCNTL(bits.As32(), id.As32())
		ADDL(i.As32(), id.As32())
		MOVL(id.As32(), operand.Mem{Base: dst})
		ADDQ(operand.Imm(4), dst)
		BLSRL(bits.As32(), bits.As32())
		JNE(f.Ref(name))
	}
	SUBQ(operand.Imm(8), n)
	JLT(f.Ref("tail"))
	f.Label("loop")
	compare()
	JEQ(f.Ref("next"))
	each("each")
	f.Label("next")
	ADDQ(operand.Imm(8), i)
	SUBQ(operand.Imm(8), n)
	JGE(f.Ref("loop"))
	f.Label("tail")
	ADDQ(operand.Imm(8), n)
	JLE(f.Ref("end"))
	f.Tail(n, 0)
	compare()
	f.EndTail()
	JEQ(f.Ref("end"))
	each("last")
	f.Label("end")
	atLeastCount(f, dst, begin)
}

// atLeastCount returns how many indices there are from begin to dst.
func atLeastCount(f *vec.Func, dst, begin reg.GPVirtual) {
	SUBQ(begin, dst)
	SHRQ(operand.Imm(2), dst)
	Store(dst, ReturnIndex(0))
	f.End()
}
