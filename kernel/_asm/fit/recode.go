package main

import (
	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"ridge/kernel/_asm/vec"
)

// recode generates recode of package tensor, for sub-blocks one behind the other.
func recode(a vec.ISA) {
	f := vec.Begin(a, "recode", "chooses codes from low to high, stored from 0, for scales and minima of sub-blocks of n values; those whose scale is 0 stay.",
		"(codes *byte, x, scales, mins *float32, blocks, n int, low, high float32)")
	codes, x, scales, mins := f.Ptr("codes"), f.Ptr("x"), f.Ptr("scales"), f.Ptr("mins")
	blocks, n, left, bits := f.Ptr("blocks"), f.Ptr("n"), GP64(), GP32()
	holdNearest(f)
	low, high := integer(f, "low"), integer(f, "high")
	scale, least := f.Vec(), f.Vec()
	f.Label("block")
	MOVL(operand.Mem{Base: scales}, bits)
	ADDL(bits, bits) // without the sign
	JEQ(f.Ref("zero"))
	VBROADCASTSS(operand.Mem{Base: scales}, scale)
	VBROADCASTSS(operand.Mem{Base: mins}, least)
	MOVQ(n, left)
	f.Label("values")
	v := f.Vec()
	VADDPS(operand.Mem{Base: x}, least, v)
	VDIVPS(scale, v, v)
	nearest(f, v, low, high)
	VPSUBD(low, v, v)
	storeBytes(f, v, operand.Mem{Base: codes})
	ADDQ(operand.Imm(uint64(4*f.Lanes())), x)
	ADDQ(operand.Imm(uint64(f.Lanes())), codes)
	SUBQ(operand.Imm(uint64(f.Lanes())), left)
	JG(f.Ref("values"))
	JMP(f.Ref("next"))
	f.Label("zero")
	LEAQ(operand.Mem{Base: x, Index: n, Scale: 4}, x)
	ADDQ(n, codes)
	f.Label("next")
	ADDQ(operand.Imm(4), scales)
	ADDQ(operand.Imm(4), mins)
	DECQ(blocks)
	JG(f.Ref("block"))
	f.End()
}

// storeBytes stores integers from 0 to 255 as bytes.
func storeBytes(f *vec.Func, v reg.VecVirtual, m operand.Mem) {
	if f.ISA == vec.AVX512 {
		VPMOVDB(v, m)
		return
	}
	upper, lower := XMM(), v.AsX()
	VEXTRACTI128(operand.Imm(1), v, upper)
	VPACKSSDW(upper, lower, lower)
	VPACKUSWB(lower, lower, lower)
	VMOVQ(lower, m)
}
