package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"ridge/kernel/_asm/bf16"
)

// Weights in bfloat16, the 16 rows' values of two columns in turns, times
// activations in bfloat16. A block is 32 columns: sums of the even and of the
// odd ones, from zero, are added up and then added to what is there. So do tile
// registers; vectors have pairs of columns of the same sum.

// maxBrain is the largest number of rows of a tile of vectors.
const maxBrain = 8

const blockBytes = 1024 // of a group's weights in a block

func brainName(mr int) string { return fmt.Sprintf("mulBrainx%dAVX512", mr) }

// mulBrain generates the product of groups with mr rows by VDPBF16PS.
func mulBrain(mr int) {
	name := brainName(mr)
	function(name, "func(dst *float32, ldd int, w *byte, x *byte, ldx int, blocks int, groups int, groupBytes int, ahead int, add bool)",
		fmt.Sprintf("%s multiplies groups of bfloat16 weights with %d rows of activations whose values are in the order of brainOrder. With add the products are added to what dst holds.", name, mr))
	dst := Load(Param("dst"), GP64())
	ldd := Load(Param("ldd"), GP64())
	group := Load(Param("w"), GP64())
	ldx := Load(Param("ldx"), GP64()).(reg.GPVirtual)
	ahead := Load(Param("ahead"), GP64())
	SHLQ(Imm(2), ldd)
	v := &vectors{}
	acc, sums := v.zmmN(mr), [2][]reg.VecPhysical{v.zmmN(mr), v.zmmN(mr)}
	lower, first, second, t := v.zmm(), v.zmm(), v.zmm(), v.zmm()
	broadcast32(0xffff, lower)
	x := newRows(mr, ldx)
	w, left := GP64(), GP64()

	outs := func(f func(r int, m Mem)) {
		MOVQ(dst, w)
		for r := range mr {
			f(r, Mem{Base: w})
			if r < mr-1 {
				ADDQ(ldd, w)
			}
		}
	}

	Label("group")
	Load(Param("x"), x.base[0])
	x.set(x.base[0])
	clearZ(acc...)
	add := GP8()
	Load(Param("add"), add)
	TESTB(add, add)
	JEQ(LabelRef("blocks"))
	outs(func(r int, m Mem) { VMOVUPS(m, acc[r]) })
	Label("blocks")
	MOVQ(group, w)
	Load(Param("blocks"), left)
	Label("loop")
	clearZ(sums[0]...)
	clearZ(sums[1]...)
	for i := 0; i < blockBytes; i += 128 {
		fetch(Mem{Base: w, Index: ahead, Scale: 1, Disp: i}, mr)
		fetch(Mem{Base: w, Index: ahead, Scale: 1, Disp: i + 64}, mr)
		for odd, sum := range sums {
			a, b := Mem{Base: w, Disp: i}, Mem{Base: w, Disp: i + 64}
			if odd == 0 {
				VPSLLD(Imm(16), a, first)
				VMOVDQU64(b, second)
			} else {
				VMOVDQU64(a, first)
				VPSRLD(Imm(16), b, second)
			}
			VPTERNLOGD(Imm(0xd8), lower, second, first) // the lower halves of second
			for r := range mr {
				VPBROADCASTD(x.at(r, i/16+4*odd), t)
				bf16.DotPairs(first, t, sum[r])
			}
		}
	}
	for r := range mr {
		VADDPS(sums[1][r], sums[0][r], sums[0][r])
		VADDPS(sums[0][r], acc[r], acc[r])
	}
	ADDQ(U32(blockBytes), w)
	x.advance(64)
	DECQ(left)
	JNE(LabelRef("loop"))
	outs(func(r int, m Mem) { VMOVUPS(acc[r], m) })
	nextGroup(dst, group)
}

// roundRow generates the conversion of activations to bfloat16.
func roundRow() {
	function("roundRowAVX512", "func(dst *byte, src *float32, n int, order *byte, plane int)",
		"roundRowAVX512 rounds n values, a multiple of 32, to bfloat16, to nearest even, and puts each 32 of them in the given order; those too small for a normal number become zero. What that leaves of the values is rounded too and goes plane bytes behind, if plane is not 0.")
	dst, src, n, order := Load(Param("dst"), GP64()), Load(Param("src"), GP64()), Load(Param("n"), GP64()), Load(Param("order"), GP64())
	plane := Load(Param("plane"), GP64())
	VMOVDQU64(Mem{Base: order}, reg.Z3)
	Label("loop")
	VMOVUPS(Mem{Base: src}, reg.Z0)
	VMOVUPS(Mem{Base: src, Disp: 64}, reg.Z1)
	bf16.Round(reg.Z0, reg.Z1, reg.Z2)
	TESTQ(plane, plane)
	JEQ(LabelRef("store"))
	VPMOVZXWD(reg.Y2, reg.Z4)
	VEXTRACTI64X4(Imm(1), reg.Z2, reg.Y5)
	VPMOVZXWD(reg.Y5, reg.Z5)
	for i, whole := range []reg.VecPhysical{reg.Z0, reg.Z1} {
		rounded := []reg.VecPhysical{reg.Z4, reg.Z5}[i]
		VPSLLD(Imm(16), rounded, rounded)
		VSUBPS(rounded, whole, whole)
	}
	bf16.Round(reg.Z0, reg.Z1, reg.Z4)
	VPERMW(reg.Z4, reg.Z3, reg.Z4)
	VMOVDQU64(reg.Z4, Mem{Base: dst, Index: plane, Scale: 1})
	Label("store")
	VPERMW(reg.Z2, reg.Z3, reg.Z2)
	VMOVDQU64(reg.Z2, Mem{Base: dst})
	ADDQ(U8(64), dst)
	ADDQ(U32(128), src)
	SUBQ(U8(32), n)
	JNE(LabelRef("loop"))
	VZEROUPPER()
	RET()
}

// Tile registers: sums of 16 rows and a group, rows of activations, weights.
const (
	tileSums    = 0 // and the three after it: by 16 rows, by group
	tileActs    = 4
	tileWeights = 6
)

func brainTileName(rows, groups int) string { return fmt.Sprintf("mulBrain%dx%dAMX", rows, groups) }

// mulBrainTiles generates the product of one or two groups with as many times 16
// rows by TDPBF16PS.
func mulBrainTiles(rows, groups int) {
	name := brainTileName(rows, groups)
	function(name, "func(dst *float32, ldd int, w *byte, groupBytes int, x *byte, ldx int, blocks int, tiles int, add bool, ahead int, cfg *byte)",
		fmt.Sprintf("%s multiplies %d groups of bfloat16 weights with tiles of %d times 16 rows of activations, or fewer, as cfg has it. With add the products are added to what dst holds. One of 16 rows prefetches what lies ahead bytes behind the weights.", name, groups, rows))
	dst, ldd, w, x, ldx := reg.RDI, reg.RSI, reg.RDX, reg.R8, reg.R9
	left, line, ahead := reg.RCX, reg.R10, reg.RAX
	acts, weights := []reg.Physical{reg.R11, reg.R13}[:rows], []reg.Physical{reg.R14, reg.R15}[:groups]
	out := reg.RBX
	Load(Param("cfg"), reg.RAX)
	bf16.Config(reg.RAX)
	Load(Param("dst"), dst)
	Load(Param("ldd"), ldd)
	Load(Param("w"), w)
	Load(Param("x"), x)
	Load(Param("ldx"), ldx)
	Load(Param("ahead"), ahead)
	SHLQ(Imm(2), ldd)
	MOVQ(U32(64), line)
	sum := func(r, g int) int { return tileSums + 2*r + g }
	sums := func(f func(tile int, base, stride reg.Physical, disp int)) {
		MOVQ(dst, out)
		for r := range rows {
			for g := range groups {
				f(sum(r, g), out, ldd, 64*g)
			}
			if r < rows-1 {
				down(out, ldd)
			}
		}
	}

	Label("tile")
	MOVQ(x, acts[0])
	if rows > 1 {
		MOVQ(x, acts[1])
		down(acts[1], ldx)
	}
	MOVQ(w, weights[0])
	if groups > 1 {
		MOVQ(w, weights[1])
		step := reg.R12
		Load(Param("groupBytes"), step)
		ADDQ(step, weights[1])
	}
	for r := range rows {
		for g := range groups {
			bf16.Zero(sum(r, g))
		}
	}
	Load(Param("add"), reg.CL)
	TESTB(reg.CL, reg.CL)
	JEQ(LabelRef("sums"))
	sums(bf16.Load)
	Label("sums")
	Load(Param("blocks"), left)
	Label("loop")
	for r, p := range acts {
		bf16.Load(tileActs+r, p, ldx, 0)
		ADDQ(U8(64), p)
	}
	for g, p := range weights {
		bf16.Load(tileWeights+g, p, line, 0)
		if rows == 1 { // with more, weights come fast enough
			for i := 0; i < blockBytes; i += 64 {
				PREFETCHT0(Mem{Base: p, Index: ahead, Scale: 1, Disp: i})
			}
		}
		for r := range rows {
			bf16.Product(sum(r, g), tileActs+r, tileWeights+g)
		}
		ADDQ(U32(blockBytes), p)
	}
	DECQ(left)
	JNE(LabelRef("loop"))
	sums(bf16.Store)
	for range rows {
		down(dst, ldd)
		down(x, ldx)
	}
	count := NewParamAddr("tiles", 56)
	DECQ(count)
	JNE(LabelRef("tile"))
	bf16.Release()
	VZEROUPPER()
	RET()
}

// down moves p by 16 rows that lie stride bytes apart.
func down(p, stride reg.Register) {
	LEAQ(Mem{Base: p, Index: stride, Scale: 8}, p)
	LEAQ(Mem{Base: p, Index: stride, Scale: 8}, p)
}
