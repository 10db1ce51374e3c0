package main

import (
	"math"
	"strings"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"ridge/kernel/internal/layout"
)

type (
	form   = layout.Form
	format = layout.Format
)

// minAt is where an activation block has what the minimum of half h is
// multiplied with.
func minAt(f form, h int) int {
	if f.Halves() {
		return []int{layout.ActDS0, layout.ActDS1}[h]
	}
	return layout.ActDS
}

// symbol is the format's name as part of a function's.
func symbol(f format) string { return strings.ReplaceAll(f.Name, "_", "") }

// codebooks are the symbols of those that are the same for all superblocks.
var codebooks = map[layout.Codebook]string{layout.IQ4: "·codesIQ4", layout.MXFP4: "·codesMXFP4"}

// unpacker emits the code that turns the bits of packed weights into bytes u
// and scales, for 512-bit vectors.
type unpacker struct {
	format
	masks   map[uint32]reg.VecPhysical
	table   reg.VecPhysical // codebook
	unitReg reg.VecPhysical // 2^-unit in all lanes, where it is not folded into d
	d, dmin Op              // factors of the superblock, d already times 2^-unit, dmin negated
	t       []reg.VecPhysical
}

// newUnpacker allocates registers, those for the factors of a superblock if
// held says so, and loads the constants.
func newUnpacker(f format, v *vectors, held bool) *unpacker {
	temps := 3
	if f.Bits == 4 {
		temps = 2
	}
	u := &unpacker{format: f, masks: map[uint32]reg.VecPhysical{}, t: v.zmmN(temps)}
	masks := map[int][]uint32{8: nil, 6: {0xfc, 0xf0, 0xc0}, 5: {0xf8, 0xe0}, 4: {0xf0}, 3: {0xe0, 0xc0}, 2: {0xc0}}[f.Bits]
	if f.Codebook != layout.None {
		masks = []uint32{0x0f}
		u.table = v.zmm()
	}
	if name := codebooks[f.Codebook]; name != "" {
		VBROADCASTI32X4(NewDataAddr(Symbol{Name: name}, 0), u.table)
	}
	for _, m := range masks {
		u.masks[m] = v.zmm()
		broadcast32(m*0x01010101, u.masks[m])
	}
	if f.Unit > 0 {
		u.unitReg = v.zmm()
		broadcast32(math.Float32bits(float32(math.Ldexp(1, -f.Unit))), u.unitReg)
	}
	if held && f.Pairs > 1 {
		u.d = v.zmm()
		if f.Form.Mins() {
			u.dmin = v.zmm()
		}
	}
	return u
}

// superHead reads the header of the superblock at w.
func (u *unpacker) superHead(w Mem) {
	d, t := u.t[0], u.t[1]
	VCVTPH2PS(w.Offset(layout.Factor), d)
	if u.Codebook == layout.InHead {
		VBROADCASTI32X4(w.Offset(layout.Levels), u.table)
		VMULPS_BCST(w.Offset(layout.Unit), d, d)
	}
	if u.Unit > 0 {
		VMULPS(u.unitReg, d, d)
	}
	VMOVUPS(d, u.d)
	if u.Form.Mins() {
		VCVTPH2PS(w.Offset(layout.MinFactor), d)
		VPXORD(t, t, t)
		VSUBPS(d, t, d)
		VMOVUPS(d, u.dmin)
	}
}

// scales puts the scale of half h of block b of the pair at w in s and the
// minimum, if there is one, in m.
func (u *unpacker) scales(w Mem, b, h int, s, m reg.VecPhysical) {
	at, minAt := w.Offset(u.ScaleAt(b, h)), w.Offset(u.MinAt(b, h))
	switch u.Scales {
	case layout.PerBlock:
		VCVTPH2PS(at, s)
		if u.Unit > 0 {
			VMULPS(u.unitReg, s, s)
		}
		if u.Form.Mins() {
			VCVTPH2PS(minAt, m)
		}
	case layout.Brain:
		VPMOVZXWD(at, s)
		VPSLLD(Imm(16), s, s)
	case layout.Super:
		VMOVUPS(u.d, s)
	case layout.Unsigned:
		VPMOVZXBD(at, s)
		VCVTDQ2PS(s, s)
		VMULPS(u.d, s, s)
		VPMOVZXBD(minAt, m)
		VCVTDQ2PS(m, m)
		VMULPS(u.dmin, m, m)
	case layout.Signed:
		VPMOVSXBD(at, s)
		VCVTDQ2PS(s, s)
		VMULPS(u.d, s, s)
	case layout.Signed16:
		VPMOVSXBD(at, s)
		VCVTDQ2PS(s, s)
		VMULPS(u.d, s, s)
	case layout.Nibbles:
		VPMOVZXBD(at, m)
		VPSLLD(Imm(28), m, s)
		VPSRLD(Imm(28), s, s)
		VPSRLD(Imm(4), m, m)
		VCVTDQ2PS(s, s)
		VCVTDQ2PS(m, m)
		VMULPS(u.d, s, s)
		VMULPS(u.dmin, m, m)
	}
}

// merge sets x to x where the mask has ones and to y elsewhere.
func (u *unpacker) merge(mask uint32, y, x reg.VecPhysical) {
	VPTERNLOGD(Imm(0xe4), u.masks[mask], y, x)
}

// quads loads the vectors of the block at w, front to back, and calls emit for
// every quad with the register that has it. The quads of the first half come
// first.
func (u *unpacker) quads(w Mem, emit func(j int, z reg.VecPhysical)) {
	t0, t1 := u.t[0], u.t[1]
	switch {
	case u.Bits == 8:
		for j := range 8 {
			t := u.t[j%3]
			VMOVDQU64(w.Offset(64*j), t)
			emit(j, t)
		}
	case u.Codebook != layout.None:
		u.levels(w, emit)
	case u.Bits == 6:
		u.quads6(w, emit)
	case u.Bits == 5:
		u.quads5(w, emit)
	case u.Bits == 4:
		for j := range 4 {
			VMOVDQU64(w.Offset(64*j), t0)
			emit(j, u.field(4, 0xf0, t0, t1))
			emit(4+j, u.field(0, 0xf0, t0, t0))
		}
	case u.Bits == 3:
		u.quads3(w, emit)
	case u.Bits == 2:
		for v := range 2 {
			VMOVDQU64(w.Offset(64*v), t0)
			for i := range 4 {
				emit(4*v+i, u.field(2*i, 0xc0, t0, u.t[1+i%2]))
			}
		}
	}
}

// field puts the masked bits of src, shifted left, in dst and returns it.
func (u *unpacker) field(left int, mask uint32, src Op, dst reg.VecPhysical) reg.VecPhysical {
	if left > 0 {
		VPSLLD(Imm(uint64(left)), src, dst)
		src = dst
	}
	VPANDD(src, u.masks[mask], dst)
	return dst
}

// levels is quads for codes that stand for entries of a table.
func (u *unpacker) levels(w Mem, emit func(j int, z reg.VecPhysical)) {
	t0, t1 := u.t[0], u.t[1]
	if u.Form.Halves() {
		for j := range 8 {
			VMOVDQU64(w.Offset(64*(j%4)), t0)
			if j >= 4 {
				VPSRLW(Imm(4), t0, t0)
			}
			VPANDD(t0, u.masks[0x0f], t0)
			VPSHUFB(t0, u.table, t0)
			emit(j, t0)
		}
		return
	}
	for j := range 4 {
		VMOVDQU64(w.Offset(64*j), t0)
		VPANDD(t0, u.masks[0x0f], t1)
		VPSHUFB(t1, u.table, t1)
		emit(j, t1)
		VPSRLW(Imm(4), t0, t0)
		VPANDD(t0, u.masks[0x0f], t0)
		VPSHUFB(t0, u.table, t0)
		emit(4+j, t0)
	}
}

func (u *unpacker) quads6(w Mem, emit func(j int, z reg.VecPhysical)) {
	t0, t1, t2 := u.t[0], u.t[1], u.t[2]
	for j := range 6 {
		emit(j, u.field(0, 0xfc, w.Offset(64*j), u.t[j%3]))
	}
	for j := range 2 {
		VPSLLD(Imm(6), w.Offset(192*j), t0)
		VPSLLD(Imm(4), w.Offset(192*j+64), t1)
		u.merge(0xc0, t1, t0)
		VPSLLD(Imm(2), w.Offset(192*j+128), t2)
		u.merge(0xf0, t2, t0)
		emit(6+j, u.field(0, 0xfc, t0, t0))
	}
}

func (u *unpacker) quads5(w Mem, emit func(j int, z reg.VecPhysical)) {
	t0, t1, low := u.t[0], u.t[1], u.t[2]
	VMOVDQU64(w, low)
	for j := range 4 {
		VMOVDQU64(w.Offset(64+64*j), t0)
		emit(j, u.field(0, 0xf8, t0, t1))
		VPSLLD(Imm(5), t0, t0)
		if n := 3 - 2*j; n > 0 {
			VPSLLD(Imm(uint64(n)), low, t1)
		} else {
			VPSRLD(Imm(uint64(-n)), low, t1)
		}
		u.merge(0xe0, t1, t0)
		emit(4+j, u.field(0, 0xf8, t0, t0))
	}
}

func (u *unpacker) quads3(w Mem, emit func(j int, z reg.VecPhysical)) {
	t0, t1 := u.t[0], u.t[1]
	for j := range 6 {
		emit(j, u.field(j/3*3, 0xe0, w.Offset(64*(j%3)), u.t[j%3]))
	}
	for j := range 2 {
		VPSLLD(Imm(6), w.Offset(64*j), t0)
		VPSLLD(Imm(uint64(4+j)), w.Offset(128), t1)
		u.merge(0xc0, t1, t0)
		emit(6+j, u.field(0, 0xe0, t0, t0))
	}
}
