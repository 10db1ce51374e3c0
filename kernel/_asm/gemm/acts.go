package main

import (
	"github.com/mmcloughlin/avo/attr"
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// data returns read-only memory with the given 32-bit words.
func data(name string, words ...uint32) Mem {
	sym := NewStaticSymbol(name)
	GLOBL(sym.Name, attr.RODATA|attr.NOPTR)
	for i, v := range words {
		DATA(4*i, U32(v))
	}
	return NewDataAddr(sym, 0)
}

// quantizeAVX2 generates the quantizer of activation blocks; quantizeBlock in
// kernel/acts.go is its definition.
func quantizeAVX2() {
	function("quantizeAVX2", "func(dst *byte, x *float32, blocks int)", "quantizeAVX2 quantizes blocks of 32 activations.")
	dst := Load(Param("dst"), GP64())
	x := Load(Param("x"), GP64())
	blocks := Load(Param("blocks"), GP64())
	magnitude := constant(0x7fffffff)
	order := data("quantizeOrder", 0, 4, 1, 5, 2, 6, 3, 7)
	y := ymms
	v, t := y[:4], y[4:8]
	top, d, inv := reg.X8, reg.X9, reg.X10
	bits := GP32()

	Label("loop")
	for i := range 4 {
		VMOVUPS(Mem{Base: x, Disp: 32 * i}, v[i])
		VPAND(magnitude, v[i], t[i])
	}
	VPMAXUD(t[1], t[0], t[0])
	VPMAXUD(t[3], t[2], t[2])
	VPMAXUD(t[2], t[0], t[0])
	VEXTRACTI128(Imm(1), t[0], top)
	VPMAXUD(top, t[0].AsX(), top)
	VPSHUFD(Imm(0x4e), top, d)
	VPMAXUD(d, top, top)
	VPSHUFD(Imm(0xb1), top, d)
	VPMAXUD(d, top, top)
	VMOVD(top, bits)
	CMPL(bits, U32(0x7f800000))
	JCC(LabelRef("infinite"))
	VMOVSS(constant(0x42fe0000), inv) // 127
	VDIVSS(inv, top, d)
	VDIVSS(top, inv, inv)
	VCMPSS(Imm(0x0d), constant(0x0d800000), top, top) // at least 2^-100
	VANDPS(top, d, d)
	VANDPS(top, inv, inv)
	VBROADCASTSS(inv, t[0])
	for i := range 4 {
		VMULPS(t[0], v[i], v[i])
		VCVTPS2DQ(v[i], v[i])
	}
	VPACKSSDW(v[1], v[0], v[0])
	VPACKSSDW(v[3], v[2], v[2])
	VPACKSSWB(v[2], v[0], v[0])
	VMOVDQU(order, v[1])
	VPERMD(v[0], v[1], v[0])
	Label("sums")
	VMOVDQU(v[0], Mem{Base: dst})
	quantizeSums(dst, v[0], t, d)
	ADDQ(U32(128), x)
	ADDQ(U32(actBlock), dst)
	DECQ(blocks)
	JNE(LabelRef("loop"))
	VZEROUPPER()
	RET()

	Label("infinite")
	VPXOR(v[0], v[0], v[0])
	VMOVSS(constant(0x7fc00000), d)
	JMP(LabelRef("sums"))
}

// quantizeSums writes what a block has behind its values q, given their scale.
func quantizeSums(dst reg.Register, q reg.VecPhysical, t []reg.VecPhysical, d reg.VecPhysical) {
	// The sums of both halves, one in each 128-bit lane, then all in one
	// register: Σq, Σq[:16], Σq[16:], 0.
	VMOVDQU(constantBytes(1), t[0])
	VPMADDUBSW(q, t[0], t[0])
	VPMADDWD(ones16(), t[0], t[0])
	VPHADDD(t[0], t[0], t[0])
	VPHADDD(t[0], t[0], t[0])
	s0, s1, s := t[0].AsX(), t[1].AsX(), t[2].AsX()
	VEXTRACTI128(Imm(1), t[0], s1)
	VPADDD(s1, s0, s)
	VPUNPCKLDQ(s0, s, s)
	VPXOR(t[0], t[0], t[0])
	VPUNPCKLDQ(s0, s1, s1)
	VPUNPCKLQDQ(s1, s, s)
	VPSLLD(Imm(7), s, s0)
	VMOVDQU(constant(actMagic), s1)
	VPSUBD(s0, s1, s1)
	VMOVDQU(s1, Mem{Base: dst, Disp: actN})
	VCVTDQ2PS(s, s)
	VPOR(data("quantizeOne", 0, 0, 0, 0x3f800000), s, s)
	VBROADCASTSS(d, s1)
	VMULPS(s1, s, s)
	VMOVUPS(s, Mem{Base: dst, Disp: actDS})
}
