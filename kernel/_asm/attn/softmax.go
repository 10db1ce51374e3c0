package main

import (
	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"ridge/kernel/_asm/vec"
)

const (
	negInf = 0xff800000
	oneF32 = 0x3f800000
)

// softmax generates the softmax of a block of scores of some queries; see
// softmaxGeneric.
func softmax(a vec.ISA) {
	f := vec.Begin(a, "attnSoftmax", "turns the scores s of n queries into weights and updates their states, stride bytes apart.",
		"(state *float32, stride int, s *float32, n int, scale float32)")
	state, stride, s, n := f.Ptr("state"), f.Ptr("stride"), f.Ptr("s"), f.Ptr("n")
	scale := f.Scalar("scale")
	f.HoldExp2()
	f.HoldBits(negInf)
	iota := ramp()
	f.Label("query")
	top := logits(f, state, s, scale, iota)
	// the new maximum, in lane 0 and then in all lanes
	max := f.Horizontal(top, true)
	VMAXSS(operand.Mem{Base: state, Disp: headMax}, max, max)
	all := f.Vec()
	VBROADCASTSS(max, all)
	sums := weights(f, s, all)
	sum := f.Horizontal(sums, false)
	alpha := rescale(f, state, max)
	VMOVSS(alpha, operand.Mem{Base: state, Disp: headAlpha})
	VFMADD231SS(operand.Mem{Base: state, Disp: headSum}, alpha, sum)
	VMOVSS(sum, operand.Mem{Base: state, Disp: headSum})
	VMOVSS(max, operand.Mem{Base: state, Disp: headMax})
	ADDQ(stride, state)
	ADDQ(operand.U32(rowBytes), s)
	DECQ(n)
	JNE(f.Ref("query"))
	f.End()
}

// logits scales the scores of a row, adds the ALiBi ramp, masks them, stores
// them, and returns the maxima of the lanes.
func logits(f *vec.Func, state, s reg.GPVirtual, scale reg.VecVirtual, iota operand.Mem) []reg.VecVirtual {
	slope, dist := f.Vec(), f.Vec()
	VBROADCASTSS(operand.Mem{Base: state, Disp: headSlope}, slope)
	VBROADCASTSS(operand.Mem{Base: state, Disp: headRamp}, dist)
	inf := f.Bits(negInf).(reg.VecVirtual)
	w := f.Lanes()
	var bits reg.GPVirtual
	if f.ISA == vec.AVX512 {
		bits = GP64()
		MOVQ(operand.Mem{Base: state, Disp: headMask}, bits)
	}
	var top []reg.VecVirtual
	for j := range 64 / w {
		t, r := f.Vec(), f.Vec()
		at := operand.Mem{Base: s, Disp: 4 * w * j}
		VMULPS(at, scale, t)
		VADDPS(iota.Offset(4*w*j), dist, r)
		VFMADD231PS(slope, r, t)
		if f.ISA == vec.AVX512 {
			k := K()
			KMOVW(bits.As32(), k)
			if j < 3 {
				SHRQ(operand.Imm(16), bits)
			}
			VBLENDMPS(t, inf, k, t)
		} else {
			m := f.Vec()
			VPBROADCASTD(operand.Mem{Base: state, Disp: headMask + j/4*4}, m)
			VPAND(bitTable().Offset(32*(j%4)), m, m)
			VPCMPEQD(bitTable().Offset(32*(j%4)), m, m)
			VBLENDVPS(m, t, inf, t)
		}
		VMOVUPS(t, at)
		if j < 16/w {
			top = append(top, t)
		} else {
			VMAXPS(t, top[j%len(top)], top[j%len(top)])
		}
	}
	return top
}

// weights replaces the scores of a row by 2^(score - top) and returns the sums
// of the lanes, the four vectors of 16 added as (0+1)+(2+3).
func weights(f *vec.Func, s reg.GPVirtual, top reg.VecVirtual) []reg.VecVirtual {
	w := f.Lanes()
	part := 16 / w
	var sums []reg.VecVirtual
	for j := range 64 / w {
		x := f.Vec()
		at := operand.Mem{Base: s, Disp: 4 * w * j}
		VMOVUPS(at, x)
		VSUBPS(top, x, x)
		p := f.Exp2(x)
		VMOVUPS(p, at)
		switch i, h := j/part, j%part; i {
		case 0, 2:
			sums = append(sums, p)
		case 1:
			VADDPS(p, sums[h], sums[h])
		case 3:
			VADDPS(p, sums[part+h], sums[part+h])
		}
	}
	for h := range part {
		VADDPS(sums[part+h], sums[h], sums[h])
	}
	return sums[:part]
}

// rescale returns 2^(old maximum - max), which is exactly 1, without computing
// it, where the maximum has not changed.
func rescale(f *vec.Func, state reg.GPVirtual, max reg.VecVirtual) reg.VecVirtual {
	old, alpha := XMM(), f.Vec()
	VMOVSS(operand.Mem{Base: state, Disp: headMax}, old)
	VBROADCASTSS(vec.Constant(oneF32), alpha)
	VUCOMISS(max, old)
	JEQ(f.Ref("kept"))
	d := f.Vec()
	VSUBSS(max, old, old)
	VBROADCASTSS(old, d)
	e := f.Exp2(d)
	VMOVAPS(e, alpha)
	f.Label("kept")
	return alpha.AsX().(reg.VecVirtual)
}

// ramp returns the float32 values 0 to 63.
func ramp() operand.Mem {
	if ramps == nil {
		m := GLOBL("ramp", RODATA|NOPTR)
		for i := range 64 {
			DATA(4*i, operand.F32(i))
		}
		ramps = &m
	}
	return *ramps
}

// bitTable returns four vectors of eight words with one bit each, 1<<0 to 1<<31.
func bitTable() operand.Mem {
	if bitWords == nil {
		m := GLOBL("bits", RODATA|NOPTR)
		for i := range 32 {
			DATA(4*i, operand.U32(1<<i))
		}
		bitWords = &m
	}
	return *bitWords
}

var ramps, bitWords *operand.Mem
