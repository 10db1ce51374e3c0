package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"ridge/kernel/_asm/vec"
	"ridge/kernel/internal/layout"
)

const (
	negInf = 0xff800000
	oneF32 = 0x3f800000

	touchLines = 4
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
	// Two passes over the queries: the chains of operations of several queries
	// overlap better in each of them than in one long pass.
	each := func(name string, body func(state, s reg.GPVirtual)) {
		st, row, left := GP64(), GP64(), GP64()
		MOVQ(state, st)
		MOVQ(s, row)
		MOVQ(n, left)
		f.Label(name)
		body(st, row)
		ADDQ(stride, st)
		ADDQ(operand.U32(rowBytes), row)
		DECQ(left)
		JNE(f.Ref(name))
	}
	each("max", func(state, s reg.GPVirtual) {
		max := f.Horizontal(maxima(f, s, loadMasks(f, state)), true)
		VMULSS(scale.AsX(), max, max)
		VMAXSS(operand.Mem{Base: state, Disp: layout.HeadMax}, max, max)
		alpha := rescale(f, state, max)
		VMOVSS(alpha, operand.Mem{Base: state, Disp: layout.HeadAlpha})
		VMOVSS(max, operand.Mem{Base: state, Disp: layout.HeadMax})
	})
	each("weights", func(state, s reg.GPVirtual) {
		top, alpha := f.Vec(), XMM()
		VBROADCASTSS(operand.Mem{Base: state, Disp: layout.HeadMax}, top)
		sum := f.Horizontal(weights(f, s, scale, top, loadMasks(f, state)), false)
		VMOVSS(operand.Mem{Base: state, Disp: layout.HeadAlpha}, alpha)
		VFMADD231SS(operand.Mem{Base: state, Disp: layout.HeadSum}, alpha, sum)
		VMOVSS(sum, operand.Mem{Base: state, Disp: layout.HeadSum})
	})
	f.End()
}

// loadMasks returns a function that gives the mask of the keys of vector j that
// the query sees. AVX2 makes it anew each time, being short of registers.
func loadMasks(f *vec.Func, state reg.GPVirtual) func(j int) operand.Op {
	if f.ISA == vec.AVX2 {
		return func(j int) operand.Op {
			m := f.Vec()
			VPBROADCASTD(operand.Mem{Base: state, Disp: layout.HeadMask + j/4*4}, m)
			VPAND(bitTable().Offset(32*(j%4)), m, m)
			VPCMPEQD(bitTable().Offset(32*(j%4)), m, m)
			return m
		}
	}
	var masks []reg.OpmaskVirtual
	for j := range 4 {
		k := K()
		KMOVW(operand.Mem{Base: state, Disp: layout.HeadMask + 2*j}, k)
		masks = append(masks, k)
	}
	return func(j int) operand.Op { return masks[j] }
}

// maxima returns the maxima by lane of the scores that the query sees.
func maxima(f *vec.Func, s reg.GPVirtual, masks func(j int) operand.Op) []reg.VecVirtual {
	w := f.Lanes()
	part := 16 / w
	inf := f.Bits(negInf).(reg.VecVirtual)
	var top []reg.VecVirtual
	for range part {
		t := f.Vec()
		VMOVAPS(inf, t)
		top = append(top, t)
	}
	for j := range 64 / w {
		at, t := operand.Mem{Base: s, Disp: 4 * w * j}, top[j%part]
		if f.ISA == vec.AVX512 {
			VMAXPS(at, t, masks(j), t)
			continue
		}
		x := f.Vec()
		VBLENDVPS(masks(j), at, inf, x)
		VMAXPS(x, t, t)
	}
	return top
}

// weights replaces the scores of a row by 2^(scale·score - top), or zero where
// the query does not see the key, and returns the sums by lane, the four
// vectors of 16 added as (0+1)+(2+3).
func weights(f *vec.Func, s reg.GPVirtual, scale, top reg.VecVirtual, masks func(j int) operand.Op) []reg.VecVirtual {
	w := f.Lanes()
	part := 16 / w
	var sums []reg.VecVirtual
	for j := range 64 / w {
		x := f.Vec()
		at := operand.Mem{Base: s, Disp: 4 * w * j}
		VMOVUPS(at, x)
		VFMSUB213PS(top, scale, x)
		p := f.Exp2(x, masks(j))
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
	VMOVSS(operand.Mem{Base: state, Disp: layout.HeadMax}, old)
	VBROADCASTSS(vec.Constant(oneF32), alpha)
	VUCOMISS(max, old)
	JEQ(f.Ref("kept"))
	d := f.Vec()
	VSUBSS(max, old, old)
	VBROADCASTSS(old, d)
	e := f.Exp2(d, nil)
	VMOVAPS(e, alpha)
	f.Label("kept")
	return alpha.AsX().(reg.VecVirtual)
}

// alibi generates the addition of ALiBi's ramp to scaled scores.
func alibi(a vec.ISA) {
	f := vec.Begin(a, "attnAlibi", "sets the scores s of n queries to scale·s + slope·distance, from their states, stride bytes apart.",
		"(state *float32, stride int, s *float32, n int, scale float32)")
	state, stride, s, n := f.Ptr("state"), f.Ptr("stride"), f.Ptr("s"), f.Ptr("n")
	scale := f.Scalar("scale")
	w := f.Lanes()
	f.Label("query")
	slope, dist := f.Vec(), f.Vec()
	VBROADCASTSS(operand.Mem{Base: state, Disp: layout.HeadSlope}, slope)
	VBROADCASTSS(operand.Mem{Base: state, Disp: layout.HeadRamp}, dist)
	for j := range 64 / w {
		t, r := f.Vec(), f.Vec()
		at := operand.Mem{Base: s, Disp: 4 * w * j}
		VMULPS(at, scale, t)
		VADDPS(ramp().Offset(4*w*j), dist, r)
		VFMADD231PS(slope, r, t)
		VMOVUPS(t, at)
	}
	ADDQ(stride, state)
	ADDQ(operand.U32(rowBytes), s)
	DECQ(n)
	JNE(f.Ref("query"))
	f.End()
}

// scaleTiles generates the multiplication of scores or weights with the scales
// of the tokens.
func scaleTiles(a vec.ISA) {
	f := vec.Begin(a, "attnScale", "multiplies the part of s that belongs to some tiles, for n queries, with the 16 float32 that each tile begins with.",
		"(s *float32, n int, tile **byte, tiles int)")
	s, n, tile, tiles := f.Ptr("s"), f.Ptr("n"), f.Ptr("tile"), f.Ptr("tiles")
	w := a.Lanes()
	at, row, left := GP64(), GP64(), GP64()
	f.Label("tile")
	MOVQ(operand.Mem{Base: tile}, at)
	var scales []reg.VecVirtual
	for i := range layout.TileTokens / w {
		z := f.Vec()
		VMOVUPS(operand.Mem{Base: at, Disp: 4 * w * i}, z)
		scales = append(scales, z)
	}
	MOVQ(s, row)
	MOVQ(n, left)
	f.Label("query")
	for i, z := range scales {
		t := f.Vec()
		m := operand.Mem{Base: row, Disp: 4 * w * i}
		VMULPS(m, z, t)
		VMOVUPS(t, m)
	}
	ADDQ(operand.U32(rowBytes), row)
	DECQ(left)
	JNE(f.Ref("query"))
	ADDQ(operand.Imm(4*layout.TileTokens), s)
	ADDQ(operand.Imm(8), tile)
	DECQ(tiles)
	JNE(f.Ref("tile"))
	f.End()
}

// touch generates the prefetch of what some tiles begin with: it finds their
// pages, and the processor's own prefetching goes on from there.
func touch(a vec.ISA) {
	f := vec.Begin(a, "attnTouch", fmt.Sprintf("prefetches the first %d cache lines of each of some tiles.", touchLines),
		"(tile **byte, tiles int)")
	tile, tiles := f.Ptr("tile"), f.Ptr("tiles")
	at := GP64()
	f.Label("tile")
	MOVQ(operand.Mem{Base: tile}, at)
	for i := range touchLines {
		PREFETCHT1(operand.Mem{Base: at, Disp: 64 * i})
	}
	ADDQ(operand.Imm(8), tile)
	DECQ(tiles)
	JNE(f.Ref("tile"))
	f.End()
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
