package main

import (
	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"ridge/kernel/_asm/approx"
	"ridge/kernel/_asm/vec"
)

// What stores keys and values in tiles: its instructions are those of AVX2,
// for both tiers, since it moves little.

// limit loads eight values with magnitudes of at most 65504.
func limit(f *vec.Func, m operand.Mem) one {
	v := f.Load(m)
	VMINPS(v, f.C(approx.MaxF16).(one), v) // the second operand, v, wins if it is NaN
	VMAXPS(v, f.C(-approx.MaxF16).(one), v)
	return v
}

// topKV generates the search for the largest magnitude; topKV in
// kernel/kvstore.go is its definition.
func topKV() {
	f := vec.Begin(vec.AVX2, "topKV", "returns the bits of the largest magnitude of n values, a multiple of 8 above 0, limited to 65504.", "(src *float32, n int) uint32")
	src, n := f.Ptr("src"), f.Ptr("n")
	f.Hold(approx.MaxF16, -approx.MaxF16)
	top := f.Vec()
	vec.Zero(top)
	f.Label("loop")
	v := limit(f, operand.Mem{Base: src})
	VPAND(f.Bits(0x7fffffff), v, v)
	VPMAXUD(v, top, top)
	ADDQ(operand.Imm(32), src)
	SUBQ(operand.Imm(8), n)
	JNE(f.Ref("loop"))
	x, y := top.AsX(), XMM()
	VEXTRACTI128(operand.Imm(1), top, y)
	VPMAXUD(y, x, x)
	for _, order := range []uint64{0x4e, 0xb1} {
		VPSHUFD(operand.Imm(order), x, y)
		VPMAXUD(y, x, x)
	}
	bits := GP32()
	VMOVD(x, bits)
	Store(bits, ReturnIndex(0))
	f.End()
}

// encodeI8 generates the conversion to signed bytes; encodeI8 in
// kernel/kvstore.go is its definition.
func encodeI8() {
	f := vec.Begin(vec.AVX2, "encodeI8", "sets dst to n values, a multiple of 8 above 0, limited to 65504, times inv.", "(dst *byte, src *float32, n int, inv float32)")
	dst, src, n, inv := f.Ptr("dst"), f.Ptr("src"), f.Ptr("n"), f.Scalar("inv")
	f.Hold(approx.MaxF16, -approx.MaxF16)
	f.Label("loop")
	v, high := limit(f, operand.Mem{Base: src}), XMM()
	VMULPS(inv, v, v)
	VCVTPS2DQ(v, v)
	VEXTRACTI128(operand.Imm(1), v, high)
	VPACKSSDW(high, v.AsX(), high)
	VPACKSSWB(high, high, high)
	VMOVQ(high, operand.Mem{Base: dst})
	ADDQ(operand.Imm(32), src)
	ADDQ(operand.Imm(8), dst)
	SUBQ(operand.Imm(8), n)
	JNE(f.Ref("loop"))
	f.End()
}

// transpose generates the transposition of 16 rows of n elements of the given
// size, 1 or 2 bytes, to n rows of 16.
func transpose(size int) {
	name := map[int]string{1: "transposeBytes", 2: "transposeHalves"}[size]
	f := vec.Begin(vec.AVX2, name, "sets dst to the n columns, a multiple of 8 above 0, of 16 rows that lie stride bytes apart.", "(dst, src *byte, stride, n int)")
	dst, src, stride, n := f.Ptr("dst"), f.Ptr("src"), f.Ptr("stride"), f.Ptr("n")
	row, bases := vec.Sixteen(src, stride)
	f.Label("loop")
	if size == 1 {
		eightBytes(row, dst)
	} else {
		eightHalves(row, dst)
	}
	ADDQ(operand.U32(uint32(8*16*size)), dst)
	for _, b := range bases {
		ADDQ(operand.Imm(uint64(8*size)), b)
	}
	SUBQ(operand.Imm(8), n)
	JNE(f.Ref("loop"))
	f.End()
}

// zip interleaves the elements of neighbours a and b: the lower halves, the
// upper halves. These overwrite a.
func zip(low, high func(b, a, dst operand.Op), a, b one) (lo, hi one) {
	lo = YMM()
	if operand.IsXMM(a) {
		lo = XMM()
	}
	low(b, a, lo)
	high(b, a, a)
	return lo, a
}

var (
	zipWords = func(a, b one) (one, one) {
		return zip(func(b, a, d operand.Op) { VPUNPCKLWD(b, a, d) }, func(b, a, d operand.Op) { VPUNPCKHWD(b, a, d) }, a, b)
	}
	zipDwords = func(a, b one) (one, one) {
		return zip(func(b, a, d operand.Op) { VPUNPCKLDQ(b, a, d) }, func(b, a, d operand.Op) { VPUNPCKHDQ(b, a, d) }, a, b)
	}
	zipQwords = func(a, b one) (one, one) {
		return zip(func(b, a, d operand.Op) { VPUNPCKLQDQ(b, a, d) }, func(b, a, d operand.Op) { VPUNPCKHQDQ(b, a, d) }, a, b)
	}
)

// eightBytes transposes 16 rows of 8 bytes.
func eightBytes(row func(i int) operand.Mem, dst reg.GPVirtual) {
	var words [8]one // of tokens 2i, 2i+1: columns 0 to 7
	for i := range words {
		a, b := XMM(), XMM()
		VMOVQ(row(2*i), a)
		VMOVQ(row(2*i+1), b)
		VPUNPCKLBW(b, a, a)
		words[i] = a
	}
	var quads [2][4]one // by columns' half, of tokens 4i to 4i+3
	for i := range 4 {
		quads[0][i], quads[1][i] = zipWords(words[2*i], words[2*i+1])
	}
	for half := range 2 {
		var eights [2][2]one // by columns' pair, of tokens 8i to 8i+7
		for i := range 2 {
			eights[0][i], eights[1][i] = zipDwords(quads[half][2*i], quads[half][2*i+1])
		}
		for pair := range 2 {
			a, b := zipQwords(eights[pair][0], eights[pair][1])
			column := 4*half + 2*pair
			VMOVDQU(a, operand.Mem{Base: dst, Disp: 16 * column})
			VMOVDQU(b, operand.Mem{Base: dst, Disp: 16*column + 16})
		}
	}
}

// eightHalves transposes 16 rows of 8 two-byte elements, row i in the lower and
// row i+8 in the upper half of a register.
func eightHalves(row func(i int) operand.Mem, dst reg.GPVirtual) {
	var quads [4][2]one // by columns' pair, of tokens 4i to 4i+3 and 4i+8 to 4i+11
	for i := range 2 {
		var lo, hi [2]one
		for j := range 2 {
			t := 4*i + 2*j
			a, b := YMM(), YMM()
			VMOVDQU(row(t), a.AsX())
			VINSERTI128(operand.Imm(1), row(t+8), a, a)
			VMOVDQU(row(t+1), b.AsX())
			VINSERTI128(operand.Imm(1), row(t+9), b, b)
			lo[j], hi[j] = zipWords(a, b)
		}
		quads[0][i], quads[1][i] = zipDwords(lo[0], lo[1])
		quads[2][i], quads[3][i] = zipDwords(hi[0], hi[1])
	}
	for pair, q := range quads {
		a, b := zipQwords(q[0], q[1])
		VMOVDQU(a, operand.Mem{Base: dst, Disp: 64 * pair})
		VMOVDQU(b, operand.Mem{Base: dst, Disp: 64*pair + 32})
	}
}
