package main

import (
	"fmt"
	"strings"

	"ridge/kernel/internal/layout"
)

type (
	form   = layout.Form
	format = layout.Format
)

// codebooks are the symbols of those that are the same for all superblocks.
var codebooks = map[layout.Codebook]string{layout.IQ4: "·codesIQ4", layout.MXFP4: "·codesMXFP4"}

// symbol is the format's name as part of a function's.
func symbol(f format) string { return strings.ReplaceAll(f.Name, "_", "") }

func mulName(f format, mr int) string { return fmt.Sprintf("mul%sx%d", symbol(f), mr) }
func unpackName(f format) string      { return "unpack" + symbol(f) }
func panelName(f form, mr int) string {
	return fmt.Sprintf("panel%sx%d", strings.TrimPrefix(f.String(), "Form"), mr)
}
func plainName(p plain, mr int) string { return fmt.Sprintf("mul%sx%d", p.name, mr) }

// unpacker emits the code that turns the bits of packed weights into signed
// bytes and float32 scales, for four lanes, a part, of the 16. The bytes are
// the format's codes themselves, not top-aligned as in the definition, less
// half their range where there is no minimum: the scale has the power of two
// that makes up for it, and float32(sum)·s is the same number either way.
type unpacker struct {
	format
	*kernel
	w, head gp    // the pair, the superblock
	mask    reg   // one code
	bias    reg   // subtracted from the codes, or 0x80 to be flipped
	table   reg   // codebook, signed
	t       []reg // temporaries
}

// newUnpacker allocates registers and loads the constants.
func newUnpacker(k *kernel, f format, w gp) *unpacker {
	u := &unpacker{format: f, kernel: k, w: w, head: w, t: k.vecN(3)}
	if f.Pairs > 1 {
		u.head = k.gp()
	}
	if f.Bits < 8 {
		u.mask = k.holdBytes(1<<f.Bits - 1)
	}
	switch {
	case f.Codebook != layout.None:
		u.bias, u.table = k.holdBytes(0x80), k.vec()
		if name := codebooks[f.Codebook]; name != "" {
			r := k.gp()
			k.g("MOVD $%s(SB), %s", name, r)
			k.loadQ(u.table, r, 0)
			k.eor(u.table, u.table, u.bias)
		}
	case !f.Form.Mins():
		u.bias = k.holdBytes(1 << (f.Bits - 1))
	}
	return u
}

// startSuper begins a superblock at w: it takes the codebook from the header
// and moves w to the first pair.
func (u *unpacker) startSuper() {
	if u.Pairs == 1 {
		return
	}
	u.g("MOVD %s, %s", u.w, u.head)
	if u.Codebook == layout.InHead {
		u.loadQ(u.table, u.head, layout.Levels)
		u.eor(u.table, u.table, u.bias)
	}
	u.g("ADD $%d, %s", u.Head(), u.w)
}

// factor puts the superblock's factor, at byte off of its header, in d.
func (u *unpacker) factor(d reg, part, off int) {
	u.load(8, d, u.head, off+8*part)
	u.fcvtl(d, d)
}

// bytes loads the bytes at off as float32.
func (u *unpacker) bytes(d reg, off, part int, sign bool) {
	u.load(4, d, u.w, off+4*part)
	if sign {
		u.sxtl8(d, d)
		u.sxtl4(d, d)
		u.scvtf(d, d)
		return
	}
	u.uxtl8(d, d)
	u.uxtl4(d, d)
	u.ucvtf(d, d)
}

// scales puts the scale of half h of block b in s and the minimum, if there is
// one, in m.
func (u *unpacker) scales(b, h, part int, s, m reg) {
	t, at, minAt := u.t[0], u.ScaleAt(b, h), u.MinAt(b, h)
	switch u.Scales {
	case layout.PerBlock:
		u.load(8, s, u.w, at+8*part)
		u.fcvtl(s, s)
		if u.Form.Mins() {
			u.load(8, m, u.w, minAt+8*part)
			u.fcvtl(m, m)
		}
	case layout.Brain:
		u.load(8, s, u.w, at+8*part)
		u.shll(s, s)
	case layout.Super:
		u.factor(s, part, layout.Factor)
	case layout.Unsigned:
		u.bytes(s, at, part, false)
		u.bytes(m, minAt, part, false)
		u.factors(s, m, part)
	case layout.Signed, layout.Signed16:
		u.bytes(s, at, part, true)
		u.factor(t, part, layout.Factor)
		u.fmul(s, s, t)
		if u.Codebook == layout.InHead {
			u.load(4, t, u.head, layout.Unit)
			u.fmulLane(s, s, t, 0)
		}
	case layout.Nibbles:
		u.load(4, m, u.w, at+4*part)
		u.moviBytes(t, 0x0f)
		u.and(s, m, t)
		u.ushr16(m, m, 4)
		for _, v := range []reg{s, m} {
			u.uxtl8(v, v)
			u.uxtl4(v, v)
			u.ucvtf(v, v)
		}
		u.factors(s, m, part)
	}
}

// factors multiplies integer scales and minima with those of the superblock.
func (u *unpacker) factors(s, m reg, part int) {
	t := u.t[0]
	u.factor(t, part, layout.Factor)
	u.fmul(s, s, t)
	u.factor(t, part, layout.MinFactor)
	u.fneg(t, t)
	u.fmul(m, m, t)
}

// quads loads a part of block b and calls emit for every quad with the
// register that has it. The quads of the first half come first.
func (u *unpacker) quads(b, part int, emit func(j int, v reg)) {
	at := func(v int) int { return u.BlockAt(b) + 64*v + 16*part }
	t0, t1 := u.t[0], u.t[1]
	load := func(d reg, v int) { u.loadQ(d, u.w, at(v)) }
	switch u.Bits {
	case 8:
		for j := range 8 {
			load(u.t[j%3], j)
			u.eor(u.t[j%3], u.t[j%3], u.bias)
			emit(j, u.t[j%3])
		}
	case 6:
		for j := range 6 {
			load(u.t[j%3], j)
			u.ushr16(u.t[j%3], u.t[j%3], 2)
			u.signed(emit, j, u.t[j%3])
		}
		for j := range 2 {
			load(t0, 3*j+2)
			load(t1, 3*j+1)
			u.sli16(t0, t1, 2)
			load(t1, 3*j)
			u.sli16(t0, t1, 4)
			u.and(t0, t0, u.mask)
			u.signed(emit, 6+j, t0)
		}
	case 5:
		u.quads5(load, emit)
	case 4:
		u.quads4(load, emit)
	case 3:
		u.quads3(load, emit)
	case 2:
		for v := range 2 {
			load(t0, v)
			for i := range 4 {
				d := u.t[1+i%2]
				if n := 6 - 2*i; n > 0 {
					u.ushr16(d, t0, n)
				} else {
					d = t0
				}
				if i > 0 {
					u.and(d, d, u.mask)
				}
				u.signed(emit, 4*v+i, d)
			}
		}
	}
}

// signed takes the bias from a quad of codes and emits it.
func (u *unpacker) signed(emit func(j int, v reg), j int, v reg) {
	if !u.Form.Mins() {
		u.sub16(v, v, u.bias)
	}
	emit(j, v)
}

func (u *unpacker) quads5(load func(reg, int), emit func(int, reg)) {
	t0, t1, low := u.t[0], u.t[1], u.t[2]
	load(low, 0)
	for j := range 4 {
		load(t0, 1+j)
		u.ushr16(t1, t0, 3)
		u.signed(emit, j, t1)
		if j == 0 {
			u.mov(t1, low)
		} else {
			u.ushr16(t1, low, 2*j)
		}
		u.sli16(t1, t0, 2)
		u.and(t1, t1, u.mask)
		u.signed(emit, 4+j, t1)
	}
}

// quads4 has both quads of a vector from one load, unless those of the first
// half have to come first.
func (u *unpacker) quads4(load func(reg, int), emit func(int, reg)) {
	t0, t1 := u.t[0], u.t[1]
	value := func(j int, v reg) {
		if u.Codebook != layout.None {
			u.tbl(v, u.table, v)
			emit(j, v)
			return
		}
		u.signed(emit, j, v)
	}
	for j := range 4 {
		load(t0, j)
		u.and(t1, t0, u.mask)
		value(j, t1)
		if !u.Form.Halves() {
			u.ushr16(t0, t0, 4)
			value(4+j, t0)
		}
	}
	if u.Form.Halves() {
		for j := range 4 {
			load(t0, j)
			u.ushr16(t0, t0, 4)
			value(4+j, t0)
		}
	}
}

func (u *unpacker) quads3(load func(reg, int), emit func(int, reg)) {
	t0, t1 := u.t[0], u.t[1]
	for j := range 6 {
		load(t0, j%3)
		u.ushr16(t0, t0, []int{5, 2}[j/3])
		if j >= 3 {
			u.and(t0, t0, u.mask)
		}
		u.signed(emit, j, t0)
	}
	for j := range 2 {
		load(t0, 2)
		if j == 0 {
			u.ushr16(t0, t0, 1)
		}
		load(t1, j)
		u.sli16(t0, t1, 1)
		u.and(t0, t0, u.mask)
		u.signed(emit, 6+j, t0)
	}
}

// source gives the quads and scales of a part of a block to the product: an
// unpacker, or a panel.
type source interface {
	quads(b, part int, emit func(j int, v reg))
	scales(b, h, part int, s, m reg)
}

// panel reads panel blocks: the minima and scales m1, s1, m0, s0 of the 16
// lanes, then the quads as signed bytes.
type panel struct {
	*kernel
	u gp
	t []reg
}

// scaleAt and minimumAt are where a panel block has those of its halves.
var scaleAt, minimumAt = [2]int{layout.PanelS0, layout.PanelS1}, [2]int{layout.PanelM0, layout.PanelM1}

func (p *panel) quads(b, part int, emit func(j int, v reg)) {
	for j := range 8 {
		p.loadQ(p.t[j%2], p.u, layout.PanelBytes*b+layout.PanelQ+64*j+16*part)
		emit(j, p.t[j%2])
	}
}

func (p *panel) scales(b, h, part int, s, m reg) {
	p.loadQ(s, p.u, layout.PanelBytes*b+scaleAt[h]+16*part)
	if m >= 0 {
		p.loadQ(m, p.u, layout.PanelBytes*b+minimumAt[h]+16*part)
	}
}
