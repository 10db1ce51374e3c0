package main

import (
	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"ridge/kernel/_asm/vec"
)

// Values that are part of keys: tiles are turned around, elements of the same
// token from 64 or 32 bytes apart to side by side.

func turn() {
	turnKeys()
	turnPairs()
}

// turnKeys generates the transposition of float32 keys, eight elements of eight
// tokens at a time.
func turnKeys() {
	f := vec.Begin(vec.AVX2, "turnKeys", "sets the 16 rows of value, stride bytes apart, to the n elements, a multiple of 8 above 0, of 16 tokens at key, each element 64 bytes behind the last.",
		"(value *float32, stride int, key *float32, n int)")
	value, stride, key, n := f.Ptr("value"), f.Ptr("stride"), f.Ptr("key"), f.Ptr("n")
	row, bases := vec.Sixteen(value, stride)
	x := [4]reg.VecVirtual{YMM(), YMM(), YMM(), YMM()} // avo takes what is loaded in halves for alive before
	f.Label("loop")
	for half := range 2 {
		at := func(d, quad int) operand.Mem { return operand.Mem{Base: key, Disp: 64*d + 32*half + 16*quad} }
		for quad := range 2 { // four tokens: elements 0 to 3 in the lower, 4 to 7 in the upper half of a register
			for d := range x {
				VMOVUPS(at(d, quad), x[d].AsX())
				VINSERTF128(operand.Imm(1), at(d+4, quad), x[d], x[d])
			}
			a, b, c, e := YMM(), YMM(), YMM(), YMM()
			VUNPCKLPS(x[1], x[0], a)
			VUNPCKHPS(x[1], x[0], b)
			VUNPCKLPS(x[3], x[2], c)
			VUNPCKHPS(x[3], x[2], e)
			token := 8*half + 4*quad
			for i, pair := range [2][2]reg.VecVirtual{{a, c}, {b, e}} {
				lo, hi := YMM(), YMM()
				VUNPCKLPD(pair[1], pair[0], lo)
				VUNPCKHPD(pair[1], pair[0], hi)
				VMOVUPS(lo, row(token+2*i))
				VMOVUPS(hi, row(token+2*i+1))
			}
		}
	}
	ADDQ(operand.U32(8*64), key)
	for _, b := range bases {
		ADDQ(operand.Imm(32), b)
	}
	SUBQ(operand.Imm(8), n)
	JNE(f.Ref("loop"))
	f.End()
}

// turnPairs generates the same for pairs of bfloat16: of elements in keys, of
// tokens in values. Four pairs of elements of two pairs of tokens fill two
// registers.
func turnPairs() {
	order := GLOBL("turnPairOrder", RODATA|NOPTR)
	for i := range 4 {
		DATA(8*i, operand.U64([2]uint64{0x0706030205040100, 0x0f0e0b0a0d0c0908}[i%2]))
	}
	f := vec.Begin(vec.AVX2, "turnPairs", "sets the 8 rows of value, stride bytes apart, to n pairs of elements, a multiple of 4 above 0, of 8 pairs of tokens at key, each pair of elements 64 bytes behind the last.",
		"(value *byte, stride int, key *byte, n int)")
	value, stride, key, n := f.Ptr("value"), f.Ptr("stride"), f.Ptr("key"), f.Ptr("n")
	row, bases := vec.Sixteen(value, stride)
	shuffle, x := YMM(), [2]reg.VecVirtual{YMM(), YMM()}
	VMOVDQU(order, shuffle)
	f.Label("loop")
	for two := range 4 {
		at := func(d int) operand.Mem { return operand.Mem{Base: key, Disp: 64*d + 16*two} }
		for d := range x {
			VMOVDQU(at(d), x[d].AsX())
			VINSERTI128(operand.Imm(1), at(d+2), x[d], x[d])
			VPSHUFB(shuffle, x[d], x[d])
		}
		lo, hi := YMM(), YMM()
		VPUNPCKLQDQ(x[1], x[0], lo)
		VPUNPCKHQDQ(x[1], x[0], hi)
		VMOVDQU(lo, row(2*two))
		VMOVDQU(hi, row(2*two+1))
	}
	ADDQ(operand.U32(4*64), key)
	for _, b := range bases[:2] {
		ADDQ(operand.Imm(32), b)
	}
	SUBQ(operand.Imm(4), n)
	JNE(f.Ref("loop"))
	f.End()
}
