package main

import (
	"github.com/mmcloughlin/avo/attr"
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"ridge/kernel/internal/layout"
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
	ADDQ(U32(layout.ActBlock), dst)
	DECQ(blocks)
	JNE(LabelRef("loop"))
	VZEROUPPER()
	RET()

	Label("infinite")
	VPXOR(v[0], v[0], v[0])
	VMOVSS(constant(0x7fc00000), d)
	JMP(LabelRef("sums"))
}

// subtractQuantizedAVX2 generates the values that quantized blocks leave;
// subtractQuantized in kernel/acts.go is its definition. The product is rounded
// on its own.
func subtractQuantizedAVX2() {
	function("subtractQuantizedAVX2", "func(x *float32, q *byte, blocks int)", "subtractQuantizedAVX2 takes the values of quantized blocks of 32 from those of x.")
	x := Load(Param("x"), GP64())
	q := Load(Param("q"), GP64())
	blocks := Load(Param("blocks"), GP64())
	d, v := ymms[0], ymms[1:5]
	Label("loop")
	VBROADCASTSS(Mem{Base: q, Disp: layout.ActD}, d)
	for i, z := range v {
		VPMOVSXBD(Mem{Base: q, Disp: 8 * i}, z)
		VCVTDQ2PS(z, z)
		VMULPS(d, z, z)
		t := ymms[5+i]
		VMOVUPS(Mem{Base: x, Disp: 32 * i}, t)
		VSUBPS(z, t, t)
		VMOVUPS(t, Mem{Base: x, Disp: 32 * i})
	}
	ADDQ(U32(128), x)
	ADDQ(U32(layout.ActBlock), q)
	DECQ(blocks)
	JNE(LabelRef("loop"))
	VZEROUPPER()
	RET()
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
	VMOVDQU(constant(layout.ActMagic), s1)
	VPSUBD(s0, s1, s1)
	VMOVDQU(s1, Mem{Base: dst, Disp: layout.ActN})
	VCVTDQ2PS(s, s)
	VPOR(data("quantizeOne", 0, 0, 0, 0x3f800000), s, s)
	VBROADCASTSS(d, s1)
	VMULPS(s1, s, s)
	VMOVUPS(s, Mem{Base: dst, Disp: layout.ActDS})
}

// quantize512 generates quantizeAVX2 for four blocks at a time, so that they
// share the searches for the largest value, the divisions and the sums.
func quantize512() {
	function("quantizeAVX512", "func(dst *byte, x *float32, quads int) int",
		"quantizeAVX512 quantizes four blocks at a time and returns how many times it did: it stops before an infinity or a NaN.")
	dst := Load(Param("dst"), GP64())
	x := Load(Param("x"), GP64())
	quads := Load(Param("quads"), GP64())
	q := quantizer{}
	var v vectors
	q.v = v.zmmN(8)
	q.t = v.zmmN(6)
	q.hold(&v)
	done := GP64()
	XORQ(done, done)

	Label("loop")
	for i, z := range q.v {
		VMOVUPS(Mem{Base: x, Disp: 64 * i}, z)
	}
	q.scales()
	KTESTW(reg.K1, reg.K1)
	JNE(LabelRef("done"))
	for pair := range 2 {
		q.pair(pair, Mem{Base: dst, Disp: 2 * layout.ActBlock * pair})
	}
	ADDQ(U32(4*128), x)
	ADDQ(U32(4*layout.ActBlock), dst)
	INCQ(done)
	CMPQ(done, quads)
	JNE(LabelRef("loop"))
	Label("done")
	Store(done, ReturnIndex(0))
	VZEROUPPER()
	RET()
}

// quantizer is the state of quantize512.
type quantizer struct {
	v []reg.VecPhysical // the values of four blocks, two vectors each
	t []reg.VecPhysical

	magnitude, infinite, n127, tiny, magic, ones, one reg.VecPhysical // constants
	order, header                                     reg.VecPhysical // of the codes, of what headers have
	d, inv                                            reg.VecPhysical // of the four blocks, in all 128-bit lanes
}

func (q *quantizer) hold(v *vectors) {
	for _, c := range []struct {
		z    *reg.VecPhysical
		bits uint32
	}{{&q.magnitude, 0x7fffffff}, {&q.infinite, 0x7f800000}, {&q.n127, 0x42fe0000}, {&q.tiny, 0x0d800000}, {&q.magic, layout.ActMagic}, {&q.ones, 0x01010101}, {&q.one, 0x3f800000}} {
		*c.z = v.zmm()
		broadcast32(c.bits, *c.z)
	}
	// Bytes come out of the packing as 4 of each vector in turn, by 128-bit
	// lane.
	var order []uint32
	for block := range uint32(2) {
		for i := range uint32(8) {
			order = append(order, i%4*4+i/4+2*block)
		}
	}
	q.order, q.header = v.zmm(), v.zmm()
	VMOVDQU32(data("quantizeOrder512", order...), q.order)
	// The sums of halves are in lanes 0, 4, 8, 12 of one register, those of
	// blocks in the same lanes of another, which is the second.
	VMOVDQU32(data("quantizeHeader", 16, 0, 4, 1, 16, 0, 4, 1, 24, 8, 12, 9, 24, 8, 12, 9), q.header)
	q.d, q.inv = v.zmm(), v.zmm()
	bits := GP32()
	for _, m := range []struct {
		k    reg.OpmaskPhysical
		bits uint32
	}{{scaleLanes, 0x8080}, {sumLanes, 0x0707}, {floatLanes, 0xf0f0}} {
		MOVL(U32(m.bits), bits)
		KMOVW(bits, m.k)
	}
}

// The lanes of the headers of two blocks that have the scale, integer sums, and
// floats.
var scaleLanes, sumLanes, floatLanes = reg.K4, reg.K5, reg.K6

// scales sets d and inv, and K1 if one of the values is not a number or is
// infinite.
func (q *quantizer) scales() {
	t := q.t
	for i := range 4 {
		VPANDD(q.v[2*i], q.magnitude, t[i])
		VPANDD(q.v[2*i+1], q.magnitude, t[4])
		VPMAXUD(t[4], t[i], t[i])
	}
	// The largest of four vectors, in lanes 0 to 3 of all 128-bit lanes.
	VPUNPCKLDQ(t[1], t[0], t[4])
	VPUNPCKHDQ(t[1], t[0], t[5])
	VPMAXUD(t[5], t[4], t[0])
	VPUNPCKLDQ(t[3], t[2], t[4])
	VPUNPCKHDQ(t[3], t[2], t[5])
	VPMAXUD(t[5], t[4], t[1])
	VPUNPCKLQDQ(t[1], t[0], t[4])
	VPUNPCKHQDQ(t[1], t[0], t[5])
	VPMAXUD(t[5], t[4], t[0])
	VSHUFI32X4(Imm(0x4e), t[0], t[0], t[1])
	VPMAXUD(t[1], t[0], t[0])
	VSHUFI32X4(Imm(0xb1), t[0], t[0], t[1])
	VPMAXUD(t[1], t[0], t[0])
	VPCMPUD(Imm(5), q.infinite, t[0], reg.K1) // at least
	VCMPPS(Imm(0x0d), q.tiny, t[0], reg.K2)
	VDIVPS_Z(q.n127, t[0], reg.K2, q.d)
	VDIVPS_Z(t[0], q.n127, reg.K2, q.inv)
}

// pair writes the blocks 2·pair and 2·pair+1.
func (q *quantizer) pair(pair int, dst Mem) {
	t, v := q.t, q.v[4*pair:4*pair+4]
	for i := range 2 {
		VPSHUFD(Imm(uint64(0x55*(2*pair+i))), q.inv, t[i])
		for _, z := range v[2*i : 2*i+2] {
			VMULPS(t[i], z, z)
			VCVTPS2DQ(z, z)
		}
		VPACKSSDW(v[2*i+1], v[2*i], v[2*i])
	}
	VPACKSSWB(v[2], v[0], v[0])
	codes := v[1]
	VPERMD(v[0], q.order, codes)
	// The sums of halves, then of blocks, and of both what a header has.
	sums, total, header := t[0], t[1], t[2]
	VPXORD(sums, sums, sums)
	VPDPBUSD(codes, q.ones, sums)
	for _, order := range []uint64{0xb1, 0x4e} {
		VPSHUFD(Imm(order), sums, total)
		VPADDD(total, sums, sums)
	}
	VSHUFI32X4(Imm(0xb1), sums, sums, total)
	VPADDD(total, sums, total)
	VMOVDQA64(q.header, header)
	VPERMI2D(total, sums, header)
	q.finish(pair, header, codes, dst)
}

// finish turns the sums in header to what blocks have behind their codes.
func (q *quantizer) finish(pair int, header, codes reg.VecPhysical, dst Mem) {
	t := q.t
	floats, d := t[0], t[3]
	VCVTDQ2PS(header, floats)
	VMOVAPS(q.one, scaleLanes, floats)
	VPSHUFD(Imm(uint64(0x55*2*pair)), q.d, d)
	VPSHUFD(Imm(uint64(0x55*(2*pair+1))), q.d, t[4])
	VSHUFI32X4(Imm(0x44), t[4], d, d)
	VMULPS(d, floats, floats)
	VPSLLD_Z(Imm(7), header, sumLanes, header)
	VPSUBD(header, q.magic, header)
	VMOVAPS(floats, floatLanes, header)
	VINSERTI64X4(Imm(1), header.AsY(), codes, t[4])
	VMOVDQU64(t[4], dst)
	VSHUFI64X2(Imm(0xee), header, codes, t[4])
	VMOVDQU64(t[4], dst.Offset(layout.ActBlock))
}
