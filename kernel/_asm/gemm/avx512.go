package main

import (
	"fmt"
	"strings"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
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
	magic    reg.VecPhysical // actMagic, for forms with minima
	negMagic reg.VecPhysical // -1.5·2²³
	s, ms, m reg.VecPhysical
}

func newAccumulator(f form, n int, v *vectors) *accumulator {
	a := &accumulator{form: f, acc: v.zmmN(n), sum: v.zmmN(n)}
	a.negMagic, a.s, a.ms = v.zmm(), v.zmm(), v.zmm()
	broadcast32(actMagic|0x80000000, a.negMagic)
	if f.mins() {
		a.magic, a.m = v.zmm(), v.zmm()
		broadcast32(actMagic, a.magic)
	}
	return a
}

// start sets the sums for half h of the block at offset off of the rows.
func (a *accumulator) start(off, h int) {
	at := actN
	if a.form == form16 {
		at = []int{actN0, actN1}[h]
	}
	for r, z := range a.sum {
		if a.form.mins() {
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
		VFMADD231PS_BCST(a.x.at(r, off+actD), z, acc[r])
	}
	if !a.form.mins() {
		return
	}
	for r, z := range acc {
		VFMADD231PS_BCST(a.x.at(r, off+a.form.minAt(h)), a.m, z)
	}
}

func mulName(f format, mr int) string {
	return fmt.Sprintf("mul%sx%dAVX512", strings.ReplaceAll(f.name, "_", ""), mr)
}

const mulSignature = "func(dst *float32, ldd int, w *byte, x *byte, ldx int, supers int, groups int, ahead int)"

// mul512 generates the product of groups of packed weights with mr rows.
func mul512(f format, mr int) {
	name := mulName(f, mr)
	function(name, mulSignature, fmt.Sprintf("%s multiplies %s groups with %d rows.", name, f.name, mr))
	dst := Load(Param("dst"), GP64())
	ldd := Load(Param("ldd"), GP64())
	w := Load(Param("w"), GP64())
	ldx := Load(Param("ldx"), GP64()).(reg.GPVirtual)
	groups := Load(Param("groups"), GP64())
	ahead := Load(Param("ahead"), GP64())
	SHLQ(Imm(2), ldd)
	var v vectors
	a := newAccumulator(f.form, mr, &v)
	a.x = newRows(mr, ldx)
	u := newUnpacker(f, &v)
	supers, pairs, out := GP64(), GP64(), GP64()

	Label("group")
	Load(Param("x"), a.x.base[0])
	a.x.set(a.x.base[0])
	Load(Param("supers"), supers)
	clearZ(a.acc...)
	Label("super")
	if f.pairs > 1 {
		u.superHead(Mem{Base: w})
		ADDQ(U32(uint32(f.head())), w)
		MOVQ(U32(uint32(f.pairs)), pairs)
		Label("pair")
	}
	for b := range 2 {
		prefetch(w, ahead, f.pairBytes(), b)
		mulBlock512(u, a, Mem{Base: w}, b)
	}
	ADDQ(U32(uint32(f.pairBytes())), w)
	a.x.advance(2 * actBlock)
	if f.pairs > 1 {
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
	off := b * actBlock
	half := 0
	u.scales(w, b, 0, a.s, a.m)
	a.start(off, 0)
	u.quads(w.Offset(u.pairHead+b*64*u.bits), func(j int, z reg.VecPhysical) {
		if a.form.halves() && j == 4 {
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

func unpackName(f format) string {
	return fmt.Sprintf("unpack%sAVX512", strings.ReplaceAll(f.name, "_", ""))
}

// unpack512 generates the unpacking of superblocks of one group to a panel.
func unpack512(f format) {
	name := unpackName(f)
	function(name, "func(u *byte, w *byte, supers int)", fmt.Sprintf("%s unpacks superblocks of a %s group.", name, f.name))
	dst := Load(Param("u"), GP64())
	w := Load(Param("w"), GP64())
	supers := Load(Param("supers"), GP64())
	pairs := GP64()
	var v vectors
	u := newUnpacker(f, &v)
	s, m := v.zmm(), v.zmm()
	Label("super")
	if f.pairs > 1 {
		u.superHead(Mem{Base: w})
		ADDQ(U32(uint32(f.head())), w)
		MOVQ(U32(uint32(f.pairs)), pairs)
		Label("pair")
	}
	for b := range 2 {
		to := Mem{Base: dst, Disp: b * panelBytes}
		u.scales(Mem{Base: w}, b, 0, s, m)
		VMOVUPS(s, to.Offset(panelS0))
		if f.form.mins() {
			VMOVUPS(m, to.Offset(panelM0))
		}
		if f.form.halves() {
			u.scales(Mem{Base: w}, b, 1, s, m)
			VMOVUPS(s, to.Offset(panelS1))
			if f.form.mins() {
				VMOVUPS(m, to.Offset(panelM1))
			}
		}
		u.quads(Mem{Base: w, Disp: f.pairHead + b*64*f.bits}, func(j int, z reg.VecPhysical) {
			VMOVDQU64(z, to.Offset(panelQ+64*j))
		})
	}
	ADDQ(U32(uint32(f.pairBytes())), w)
	ADDQ(U32(2*panelBytes), dst)
	if f.pairs > 1 {
		DECQ(pairs)
		JNE(LabelRef("pair"))
	}
	DECQ(supers)
	JNE(LabelRef("super"))
	VZEROUPPER()
	RET()
}

func panelName(f form, mr, nv int) string {
	return fmt.Sprintf("panel%sx%dx%dAVX512", strings.TrimPrefix(forms[f], "form"), mr, nv)
}

// panel512 generates the product of unpacked panels of nv groups with mr rows.
// Tiles of two groups read each activation once for both.
func panel512(f form, mr, nv int) {
	name := panelName(f, mr, nv)
	function(name, "func(dst *float32, ldd int, u *byte, next int, x *byte, ldx int, pairs int, add bool)",
		fmt.Sprintf("%s multiplies %d panels, next bytes apart, with %d rows.", name, nv, mr))
	dst := Load(Param("dst"), GP64())
	ldd := Load(Param("ldd"), GP64())
	w := Load(Param("u"), GP64())
	ldx := Load(Param("ldx"), GP64()).(reg.GPVirtual)
	pairs := Load(Param("pairs"), GP64())
	next := GP64()
	if nv == 2 {
		Load(Param("next"), next)
	}
	SHLQ(Imm(2), ldd)
	var v vectors
	a := newAccumulator(f, mr*nv, &v)
	a.x = newRows(mr, ldx)
	Load(Param("x"), a.x.base[0])
	a.x.set(a.x.base[0])
	weights := v.zmmN(nv)
	var xq reg.VecPhysical
	if nv > 1 {
		xq = v.zmm()
	}
	clearZ(a.acc...)
	out, add := GP64(), GP8()
	Load(Param("add"), add)
	TESTB(add, add)
	JEQ(LabelRef("pair"))
	eachOut(dst, ldd, out, mr, nv, func(i int, m Mem) { VMOVUPS(m, a.acc[i]) })
	Label("pair")
	for b := range 2 {
		panelBlock512(a, w, next, weights, xq, b, mr, nv)
	}
	ADDQ(U32(2*panelBytes), w)
	a.x.advance(2 * actBlock)
	DECQ(pairs)
	JNE(LabelRef("pair"))
	eachOut(dst, ldd, out, mr, nv, func(i int, m Mem) { VMOVUPS(a.acc[i], m) })
	VZEROUPPER()
	RET()
}

// eachOut calls f for every accumulator with its place in dst.
func eachOut(dst, ldd reg.Register, out reg.GPVirtual, mr, nv int, f func(i int, m Mem)) {
	MOVQ(dst, out)
	for r := range mr {
		for v := range nv {
			f(v*mr+r, Mem{Base: out, Disp: 64 * v})
		}
		if r < mr-1 {
			ADDQ(ldd, out)
		}
	}
}

func panelBlock512(a *accumulator, w reg.Register, next reg.GPVirtual, weights []reg.VecPhysical, xq reg.VecPhysical, b, mr, nv int) {
	off := b * actBlock
	at := func(v, disp int) Mem {
		m := Mem{Base: w, Disp: b*panelBytes + disp}
		if v == 1 {
			m.Index, m.Scale = next, 1
		}
		return m
	}
	halves, quads := 1, 8
	if a.form.halves() {
		halves, quads = 2, 4
	}
	for h := range halves {
		for v := range nv {
			sub := *a
			sub.sum = a.sum[v*mr : (v+1)*mr]
			if v == 0 || a.form.mins() {
				sub.start(off, h)
				continue
			}
			for r, z := range sub.sum {
				VMOVDQA64(a.sum[r], z)
			}
		}
		for j := h * quads; j < (h+1)*quads; j++ {
			for v := range nv {
				VMOVDQU64(at(v, panelQ+64*j), weights[v])
			}
			for r := range mr {
				if nv == 1 {
					VPDPBUSD_BCST(a.x.at(r, off+4*j), weights[0], a.sum[r])
					continue
				}
				VPBROADCASTD(a.x.at(r, off+4*j), xq)
				for v := range nv {
					VPDPBUSD(xq, weights[v], a.sum[v*mr+r])
				}
			}
		}
		a.finishPanels(at, weights, xq, off, h, mr)
	}
}

// finishPanels is finish for the scales of panels: what it reads of the
// activations it reads once for all groups. It overwrites weights and xq.
func (a *accumulator) finishPanels(at func(v, disp int) Mem, weights []reg.VecPhysical, xq reg.VecPhysical, off, h, mr int) {
	nv := len(weights)
	if nv == 1 {
		VMOVUPS(at(0, []int{panelS0, panelS1}[h]), a.s)
		if a.form.mins() {
			VMOVUPS(at(0, []int{panelM0, panelM1}[h]), a.m)
		}
		a.finish(off, h, a.sum, a.acc)
		return
	}
	for v, s := range weights {
		VMOVUPS(at(v, []int{panelS0, panelS1}[h]), s)
		VMULPS(a.negMagic, s, a.ms)
		for _, z := range a.sum[v*mr : (v+1)*mr] {
			VFMADD213PS(a.ms, s, z)
		}
	}
	for r := range mr {
		VBROADCASTSS(a.x.at(r, off+actD), xq)
		for v := range nv {
			VFMADD231PS(xq, a.sum[v*mr+r], a.acc[v*mr+r])
		}
	}
	if !a.form.mins() {
		return
	}
	for v, m := range weights {
		VMOVUPS(at(v, []int{panelM0, panelM1}[h]), m)
	}
	for r := range mr {
		VBROADCASTSS(a.x.at(r, off+a.form.minAt(h)), xq)
		for v, m := range weights {
			VFMADD231PS(xq, m, a.acc[v*mr+r])
		}
	}
}

// prefetch fetches the lines of block b of a pair that lies ahead bytes behind
// the one at w.
func prefetch(w reg.Register, ahead reg.Register, pairBytes, b int) {
	lines := pairBytes / 64
	for line := b * lines / 2; line < (b+1)*lines/2; line++ {
		PREFETCHT0(Mem{Base: w, Index: ahead, Scale: 1, Disp: 64 * line})
	}
}
