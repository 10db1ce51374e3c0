package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"ridge/kernel/internal/layout"
)

// The accumulator of a block starts from the bits of the float 1.5·2²³ plus
// what makes up for the offset of u, so that it can be read as a float without
// a conversion. With m the minus 1.5·2²³·s of a block,
//
//	t = sum·s + m      exact up to one rounding: (sum - 1.5·2²³)·s
//	acc = t·d + acc
//
// is all that a block costs beside its integer products.
type accumulator struct {
	form     form
	sum, acc []reg.VecPhysical
	x        *rows
	magic    reg.VecPhysical // layout.ActMagic, for forms with minima
	negMagic reg.VecPhysical // -1.5·2²³
	s, ms, m reg.VecPhysical
}

func newAccumulator(f form, n int, v *vectors) *accumulator {
	a := &accumulator{form: f, acc: v.zmmN(n), sum: v.zmmN(n)}
	a.negMagic, a.s, a.ms = v.zmm(), v.zmm(), v.zmm()
	broadcast32(layout.ActMagic|0x80000000, a.negMagic)
	if f.Mins() {
		a.magic, a.m = v.zmm(), v.zmm()
		broadcast32(layout.ActMagic, a.magic)
	}
	return a
}

// start sets the sums for half h of the block at offset off of the rows.
func (a *accumulator) start(off, h int) {
	at := layout.ActN
	if a.form == layout.Form16 {
		at = []int{layout.ActN0, layout.ActN1}[h]
	}
	for r, z := range a.sum {
		if a.form.Mins() {
			VMOVDQA64(a.magic, z)
		} else {
			VPBROADCASTD(a.x.at(r, off+at), z)
		}
	}
}

// finish adds the sums of half h of a block, given the scale in a.s and the
// minimum in a.m.
func (a *accumulator) finish(off, h int, sum, acc []reg.VecPhysical) {
	VMULPS(a.negMagic, a.s, a.ms)
	for _, z := range sum {
		VFMADD213PS(a.ms, a.s, z)
	}
	for r, z := range sum {
		VFMADD231PS_BCST(a.x.at(r, off+layout.ActD), z, acc[r])
	}
	if !a.form.Mins() {
		return
	}
	for r, z := range acc {
		VFMADD231PS_BCST(a.x.at(r, off+minAt(a.form, h)), a.m, z)
	}
}

func mulName(f format, mr int) string {
	return fmt.Sprintf("mul%sx%dAVX512", symbol(f), mr)
}

const mulSignature = "func(dst *float32, ldd int, w *byte, x *byte, ldx int, supers int, groups int, ahead int)"

// mul512 generates the product of groups of packed weights with mr rows.
func mul512(f format, mr int) {
	name := mulName(f, mr)
	function(name, mulSignature, fmt.Sprintf("%s multiplies %s groups with %d rows.", name, f.Name, mr))
	dst := Load(Param("dst"), GP64())
	ldd := Load(Param("ldd"), GP64())
	w := Load(Param("w"), GP64())
	ldx := Load(Param("ldx"), GP64()).(reg.GPVirtual)
	groups := Load(Param("groups"), GP64())
	ahead := Load(Param("ahead"), GP64())
	SHLQ(Imm(2), ldd)
	var v vectors
	a := newAccumulator(f.Form, mr, &v)
	a.x = newRows(mr, ldx)
	u := newUnpacker(f, &v, true)
	supers, pairs, out := GP64(), GP64(), GP64()

	Label("group")
	Load(Param("x"), a.x.base[0])
	a.x.set(a.x.base[0])
	Load(Param("supers"), supers)
	clearZ(a.acc...)
	Label("super")
	if f.Pairs > 1 {
		u.superHead(Mem{Base: w})
		ADDQ(U32(uint32(f.Head())), w)
		MOVQ(U32(uint32(f.Pairs)), pairs)
		Label("pair")
	}
	for b := range 2 {
		prefetch(w, ahead, f.PairBytes(), b, mr)
		mulBlock512(u, a, Mem{Base: w}, b)
	}
	ADDQ(U32(uint32(f.PairBytes())), w)
	a.x.advance(2 * layout.ActBlock)
	if f.Pairs > 1 {
		DECQ(pairs)
		JNE(LabelRef("pair"))
	}
	DECQ(supers)
	JNE(LabelRef("super"))
	MOVQ(dst, out)
	for r, z := range a.acc {
		VMOVUPS(z, Mem{Base: out})
		if r < mr-1 {
			ADDQ(ldd, out)
		}
	}
	ADDQ(U32(64), dst)
	DECQ(groups)
	JNE(LabelRef("group"))
	VZEROUPPER()
	RET()
}

// mulBlock512 multiplies block b of the pair at w.
func mulBlock512(u *unpacker, a *accumulator, w Mem, b int) {
	off := b * layout.ActBlock
	half := 0
	u.scales(w, b, 0, a.s, a.m)
	a.start(off, 0)
	u.quads(w.Offset(u.BlockAt(b)), func(j int, z reg.VecPhysical) {
		if a.form.Halves() && j == 4 {
			a.finish(off, 0, a.sum, a.acc)
			half = 1
			u.scales(w, b, 1, a.s, a.m)
			a.start(off, 1)
		}
		for r, s := range a.sum {
			VPDPBUSD_BCST(a.x.at(r, off+4*j), z, s)
		}
	})
	a.finish(off, half, a.sum, a.acc)
}

// prefetch fetches the lines of block b of a pair that lies ahead bytes behind
// the one at w, for a kernel of mr rows.
func prefetch(w reg.Register, ahead reg.Register, pairBytes, b, mr int) {
	lines := pairBytes / 64
	for line := b * lines / 2; line < (b+1)*lines/2; line++ {
		fetch(Mem{Base: w, Index: ahead, Scale: 1, Disp: 64 * line}, mr)
	}
}

// nearRows is the number of rows from which on what is prefetched goes into the
// first-level cache. Kernels of fewer rows wait for memory only: more can be on
// its way to the second level.
const nearRows = 4

// fetch prefetches the line at m for a kernel of mr rows.
func fetch(m Mem, mr int) {
	if mr < nearRows {
		PREFETCHT1(m)
	} else {
		PREFETCHT0(m)
	}
}
