package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"ridge/kernel/_asm/bf16"
	"ridge/kernel/internal/layout"
)

// Attention over bfloat16 keys and values with tile registers: the products of
// up to 16 queries with a block of keys, and of their weights with its values.

// Tile registers.
const (
	tileSum    = 0 // and the three after it: [queries][16] float32
	tileQuery  = 4 // [queries][32]
	tileWeight = 5 // [queries][16]
	tileKeys   = 6 // [16 pairs of dimensions][16 keys]
	tileValues = 7 // [8 pairs of keys][16 dimensions]
)

func amx() {
	roundBrain()
	scoresAMX()
	valuesAMX()
}

// function begins a function that the scheduler can stop at its entry.
func function(name, signature, doc string) {
	TEXT(name, 0, signature)
	Pragma("noescape")
	Doc(name + " " + doc)
	AllocLocal(256) // asks for a check of the stack
}

// roundBrain generates the conversion of whole vectors to bfloat16.
func roundBrain() {
	function("roundBrainAMX", "func(dst *byte, src *float32, n int)", "rounds n values, a multiple of 32, to bfloat16, to nearest even; those too small for a normal number become zero.")
	dst, src, n := reg.RDI, reg.RSI, reg.RCX
	Load(Param("dst"), dst)
	Load(Param("src"), src)
	Load(Param("n"), n)
	Label("loop")
	VMOVUPS(Mem{Base: src}, reg.Z0)
	VMOVUPS(Mem{Base: src, Disp: 64}, reg.Z1)
	bf16.Round(reg.Z0, reg.Z1, reg.Z2)
	VMOVDQU64(reg.Z2, Mem{Base: dst})
	ADDQ(U8(64), dst)
	ADDQ(U32(128), src)
	SUBQ(U8(32), n)
	JNE(LabelRef("loop"))
	VZEROUPPER()
	RET()
}

// scoresAMX generates the dot products of queries with the keys of a block.
func scoresAMX() {
	function("attnScoresAMX", "func(s *float32, q *byte, hd int, k **byte, next uintptr, cfg *byte)",
		"sets the rows of s, 64 floats each, to the dot products of the queries at q, hd bfloat16 values each, with the keys of 4 tiles; hd is a multiple of 32. It prefetches as many bytes at next, unless that is 0. cfg has the shapes of the tiles.")
	s, q, ldq, steps := reg.RDI, reg.RSI, reg.RDX, reg.RCX
	row, line := reg.RBX, reg.R8 // distances of rows of scores, and of pairs of dimensions
	keys := []reg.Physical{reg.R9, reg.R10, reg.R11, reg.R12}
	bf16.Config(Load(Param("cfg"), reg.RAX))
	Load(Param("s"), s)
	Load(Param("q"), q)
	Load(Param("hd"), ldq)
	Load(Param("k"), row)
	for t, k := range keys {
		MOVQ(Mem{Base: row, Disp: 8 * t}, k)
	}
	MOVQ(ldq, steps)
	SHRQ(Imm(5), steps)
	SHLQ(Imm(1), ldq)
	MOVQ(U32(rowBytes), row)
	MOVQ(U32(64), line)
	next := reg.R13
	Load(Param("next"), next)
	for t := range keys {
		bf16.Zero(tileSum + t)
	}
	Label("loop")
	bf16.Load(tileQuery, q, ldq, 0)
	for t, k := range keys {
		bf16.Load(tileKeys, k, line, 0)
		fetch(next, 16, fmt.Sprintf("keys%d", t))
		bf16.Product(tileSum+t, tileQuery, tileKeys)
	}
	ADDQ(U8(64), q)
	for _, k := range keys {
		ADDQ(U32(1024), k)
	}
	DECQ(steps)
	JNE(LabelRef("loop"))
	for t := range keys {
		bf16.Store(tileSum+t, s, row, 64*t)
	}
	bf16.Release()
	VZEROUPPER()
	RET()
}

// fetch prefetches lines at next, which it moves, unless that is 0. In between
// the tile's loads they do not wait for each other.
func fetch(next reg.Register, lines int, label string) {
	TESTQ(next, next)
	JEQ(LabelRef(label))
	for i := range lines {
		PREFETCHT1(Mem{Base: next, Disp: 64 * i})
	}
	ADDQ(U32(uint32(64*lines)), next)
	Label(label)
}

// valuesAMX generates the weighted sum of the values of a block.
func valuesAMX() {
	function("attnValuesAMX", "func(acc *float32, alpha *float32, stride int, p *byte, v **byte, vd int, n int, next uintptr, cfg *byte)",
		"adds to the vd values of the accumulators of n queries, stride bytes apart, after scaling them by their alpha, the values of 4 tiles times the weights p, 64 bfloat16 values a query; vd is a multiple of 16. It prefetches as many bytes at next, unless that is 0. cfg has the shapes of the tiles.")
	acc, stride, p, row := reg.RDI, reg.RSI, reg.RDX, reg.RCX // row: distance of pairs of keys
	n, weights := reg.RBX, reg.R8                             // weights: distance of their rows
	values := []reg.Physical{reg.R9, reg.R10, reg.R11, reg.R12}
	left := reg.R13
	bf16.Config(Load(Param("cfg"), reg.RAX))
	Load(Param("n"), n)
	Load(Param("acc"), acc)
	Load(Param("stride"), stride)
	Load(Param("vd"), row)
	SHLQ(Imm(2), row)
	scaleRows(acc, stride, n, row)
	Load(Param("p"), p)
	Load(Param("v"), left)
	for t, v := range values {
		MOVQ(Mem{Base: left, Disp: 8 * t}, v)
	}
	Load(Param("vd"), left)
	MOVQ(U32(2*layout.AttnBlock), weights)
	next := reg.R14
	Load(Param("next"), next)
	chunk := func(width int) {
		for c := range width {
			bf16.Load(tileSum+c, acc, stride, 64*c)
		}
		for t, v := range values {
			bf16.Load(tileWeight, p, weights, 2*layout.TileTokens*t)
			fetch(next, 8*width, fmt.Sprintf("values%dx%d", width, t))
			for c := range width {
				bf16.Load(tileValues, v, row, 64*c)
				bf16.Product(tileSum+c, tileWeight, tileValues)
			}
			ADDQ(U32(uint32(64*width)), v)
		}
		for c := range width {
			bf16.Store(tileSum+c, acc, stride, 64*c)
		}
		ADDQ(U32(uint32(64*width)), acc)
	}
	SUBQ(U8(64), left)
	JLT(LabelRef("last"))
	Label("wide")
	chunk(4)
	SUBQ(U8(64), left)
	JGE(LabelRef("wide"))
	Label("last")
	ADDQ(U8(64), left)
	JEQ(LabelRef("done"))
	Label("narrow")
	chunk(1)
	SUBQ(U8(16), left)
	JNE(LabelRef("narrow"))
	Label("done")
	bf16.Release()
	VZEROUPPER()
	RET()
}

// scaleRows multiplies the accumulators with their alpha, where that is not 1.
func scaleRows(acc, stride, n, bytes reg.Register) {
	alpha, at, end, left := reg.R8, reg.R9, reg.R10, reg.R11
	Load(Param("alpha"), alpha)
	MOVQ(acc, at)
	MOVQ(n, left)
	Label("row")
	CMPL(Mem{Base: alpha}, U32(oneF32))
	JEQ(LabelRef("same"))
	VBROADCASTSS(Mem{Base: alpha}, reg.Z0)
	XORQ(end, end)
	Label("vector")
	VMULPS(Mem{Base: at, Index: end, Scale: 1}, reg.Z0, reg.Z1)
	VMOVUPS(reg.Z1, Mem{Base: at, Index: end, Scale: 1})
	ADDQ(U8(64), end)
	CMPQ(end, bytes)
	JLT(LabelRef("vector"))
	Label("same")
	ADDQ(stride, alpha)
	ADDQ(stride, at)
	DECQ(left)
	JNE(LabelRef("row"))
}
