package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Weights in plain numbers, the 16 rows' values of a column beside each other
// (bfloat16: those of two columns in turns), times float32 activations. Even and odd columns have sums of their own, so
// that one row's chain of additions does not bound the speed; what is added to
// is where the even ones start from.

type plain struct {
	name string
	size int // bytes of a value
}

var plains = []plain{{"F32", 4}, {"F16", 2}, {"BF16", 2}}

// plainRows has the row counts that kernels are generated for, by width.
var plainRows = map[bool][]int{true: {1, 2, 3, 4, 5, 6, 7, 8, 10, 12}, false: {1, 2, 3}}

func plainName(p plain, mr int, wide bool) string {
	return fmt.Sprintf("mul%sx%d%s", p.name, mr, map[bool]string{true: "AVX512", false: "AVX2"}[wide])
}

// mulPlain generates the product of groups of float weights with mr rows, in
// vectors of 16 lanes (wide) or 8.
func mulPlain(p plain, mr int, wide bool) {
	name := plainName(p, mr, wide)
	function(name, "func(dst *float32, ldd int, w *byte, x *float32, ldx int, cols int, groups int, groupBytes int, ahead int, add bool)",
		fmt.Sprintf("%s multiplies %s groups with %d rows. With add the products are added to what dst holds.", name, p.name, mr))
	dst := Load(Param("dst"), GP64())
	ldd := Load(Param("ldd"), GP64())
	group := Load(Param("w"), GP64())
	ldx := Load(Param("ldx"), GP64()).(reg.GPVirtual)
	ahead := Load(Param("ahead"), GP64())
	SHLQ(Imm(2), ldd)
	SHLQ(Imm(2), ldx)
	sides, regs := 1, zmms
	if !wide {
		sides, regs = 2, ymms
	}
	acc := regs[:2*mr*sides] // by parity, side, row
	weights, t := regs[len(acc):len(acc)+sides], regs[len(regs)-1]
	x := newRows(mr, ldx)
	w, left := GP64(), GP64()
	columns := func(n int) {
		for c := range n {
			if c*16*p.size%64 == 0 { // the first column of a line
				fetch(Mem{Base: w, Index: ahead, Scale: 1, Disp: c * 16 * p.size}, mr)
			}
			plainColumn(p, w, x, weights, t, acc, c, mr)
		}
		ADDQ(U32(uint32(16*n*p.size)), w)
		x.advance(4 * n)
	}

	if wide && p.name == "BF16" {
		mask := GP32()
		MOVL(U32(0xaaaaaaaa), mask)
		KMOVD(mask, oddWords)
	}

	Label("group")
	Load(Param("x"), x.base[0])
	x.set(x.base[0])
	for _, z := range acc {
		if wide {
			VPXORD(z, z, z)
		} else {
			VXORPS(z, z, z)
		}
	}
	add := GP8()
	Load(Param("add"), add)
	TESTB(add, add)
	JEQ(LabelRef("columns"))
	outs := func(f func(r, side int, m Mem)) {
		MOVQ(dst, w)
		for r := range mr {
			for side := range sides {
				f(r, side, Mem{Base: w, Disp: 32 * side})
			}
			if r < mr-1 {
				ADDQ(ldd, w)
			}
		}
	}
	outs(func(r, side int, m Mem) { VMOVUPS(m, acc[side*mr+r]) })
	Label("columns")
	MOVQ(group, w)
	Load(Param("cols"), left)
	SUBQ(Imm(4), left)
	JLT(LabelRef("tail"))
	Label("loop")
	columns(4)
	SUBQ(Imm(4), left)
	JGE(LabelRef("loop"))
	Label("tail")
	ADDQ(Imm(4), left)
	for _, n := range []int{2, 1} {
		next := fmt.Sprintf("below%d", n)
		TESTQ(U32(uint32(n)), left)
		JEQ(LabelRef(next))
		columns(n)
		Label(next)
	}
	outs(func(r, side int, m Mem) {
		even, odd := acc[side*mr+r], acc[(sides+side)*mr+r]
		VADDPS(odd, even, even)
		VMOVUPS(even, m)
	})
	nextGroup(dst, group)
}

// nextGroup ends the work on a group of 16 rows of weights: it goes to the next one
// at the label "group", or returns after the last.
func nextGroup(dst, group reg.Register) {
	ADDQ(U32(64), dst)
	step := GP64()
	Load(Param("groupBytes"), step)
	ADDQ(step, group)
	count := NewParamAddr("groups", 48)
	DECQ(count)
	JNE(LabelRef("group"))
	VZEROUPPER()
	RET()
}

// plainColumn multiplies column c behind w with mr rows.
func plainColumn(p plain, w reg.Register, x *rows, weights []reg.VecPhysical, t reg.VecPhysical, acc []reg.VecPhysical, c, mr int) {
	sides := len(weights)
	for side, z := range weights {
		loadPlain(p, w, c, side, z, sides == 1)
	}
	for r := range mr {
		at := (c%2*sides)*mr + r
		if sides == 1 {
			VFMADD231PS_BCST(x.at(r, 4*c), weights[0], acc[at])
			continue
		}
		VBROADCASTSS(x.at(r, 4*c), t)
		for side, z := range weights {
			VFMADD231PS(t, z, acc[at+side*mr])
		}
	}
}

// loadPlain loads values of column c behind w as floats, as many as z has lanes.
// Side is 1 for the upper 8 rows.
func loadPlain(p plain, w reg.Register, c, side int, z reg.VecPhysical, wide bool) {
	m := Mem{Base: w, Disp: (16*c + 8*side) * p.size}
	pair := Mem{Base: w, Disp: 64*(c/2) + 32*side}
	switch {
	case p.name == "F32":
		VMOVUPS(m, z)
	case p.name == "F16":
		VCVTPH2PS(m, z)
	case wide && c%2 == 0:
		VPSLLD(Imm(16), pair, z)
	case wide:
		VMOVDQU16_Z(pair, oddWords, z)
	default:
		VMOVDQU(pair, z)
		if c%2 == 1 {
			VPSRLD(Imm(16), z, z)
		}
		VPSLLD(Imm(16), z, z)
	}
}

// oddWords masks the values of odd columns in pairs of bfloat16.
var oddWords = reg.K1
