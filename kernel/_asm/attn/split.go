package main

import (
	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"

	"ridge/kernel/_asm/vec"
)

// splitBrain generates the conversion of pairs of bfloat16 values.
func splitBrain() {
	f := vec.Begin(vec.AVX2, "splitBrain", "converts n pairs of bfloat16 values, a multiple of 8: their first values go to even, their second ones to odd.",
		"(even, odd *float32, src *byte, n int)")
	even, odd, src, n := f.Ptr("even"), f.Ptr("odd"), f.Ptr("src"), f.Ptr("n")
	mask := f.Vec()
	bits := GP32()
	MOVL(operand.U32(0xffff0000), bits)
	VMOVD(bits, mask.AsX())
	VPBROADCASTD(mask.AsX(), mask)
	f.Label("loop")
	x, y := f.Vec(), f.Vec()
	VMOVDQU(operand.Mem{Base: src}, x)
	VPSLLD(operand.Imm(16), x, y)
	VMOVDQU(y, operand.Mem{Base: even})
	VPAND(mask, x, x)
	VMOVDQU(x, operand.Mem{Base: odd})
	ADDQ(operand.Imm(32), src)
	ADDQ(operand.Imm(32), even)
	ADDQ(operand.Imm(32), odd)
	SUBQ(operand.Imm(8), n)
	JNE(f.Ref("loop"))
	f.End()
}
