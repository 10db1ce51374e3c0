package main

import (
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

type form int

const (
	form32 form = iota
	form32m
	form16
	form16m
)

var forms = []string{"form32", "form32m", "form16", "form16m"}

func (f form) halves() bool { return f >= form16 }
func (f form) mins() bool   { return f == form32m || f == form16m }

// minAt is where an activation block has what the minimum of half h is
// multiplied with.
func (f form) minAt(h int) int {
	if f.halves() {
		return []int{actDS0, actDS1}[h]
	}
	return actDS
}

// scaleKind says where the scales of a block are.
type scaleKind int

const (
	perBlock scaleKind = iota // float16 per block in the pair's header; minimum 64 bytes behind
	brain                     // bfloat16 per block in the pair's header
	super                     // float16 in the superblock's header, nothing in the pair's
	unsigned                  // byte per block times the superblock's; minimum 32 bytes behind
	signed                    // int8 per block times the superblock's
	signed16                  // int8 per half block times the superblock's
	nibbles                   // scale and minimum in a byte per half block
)

// format is a packed weight format; see layouts in kernel/packed_formats.go.
type format struct {
	name     string
	form     form
	bits     int
	unit     int // the scale is that of u times 2^-unit
	pairs    int
	pairHead int
	kind     scaleKind
	codebook string   // symbol of the codebook's bytes
	same     []string // formats that are packed into the same layout
}

// inHead is the codebook of formats that have it in the superblock's header, at
// byte 32, with the factor of the scale behind it.
const inHead = "head"

var formats = []format{
	{name: "Q8_0", form: form32, bits: 8, pairs: 1, pairHead: 64, kind: perBlock},
	{name: "Q4_0", form: form32, bits: 4, unit: 4, pairs: 1, pairHead: 64, kind: perBlock},
	{name: "Q4_1", form: form32m, bits: 4, unit: 4, pairs: 1, pairHead: 128, kind: perBlock},
	{name: "Q5_0", form: form32, bits: 5, unit: 3, pairs: 1, pairHead: 64, kind: perBlock},
	{name: "Q5_1", form: form32m, bits: 5, unit: 3, pairs: 1, pairHead: 128, kind: perBlock},
	{name: "Q4_K", form: form32m, bits: 4, unit: 4, pairs: 4, pairHead: 64, kind: unsigned},
	{name: "Q5_K", form: form32m, bits: 5, unit: 3, pairs: 4, pairHead: 64, kind: unsigned},
	{name: "Q6_K", form: form16, bits: 6, unit: 2, pairs: 4, pairHead: 64, kind: signed16},
	{name: "Q3_K", form: form16, bits: 3, unit: 5, pairs: 4, pairHead: 64, kind: signed16},
	{name: "Q2_K", form: form16m, bits: 2, unit: 6, pairs: 4, pairHead: 64, kind: nibbles},
	{name: "IQ4_NL", form: form32, bits: 4, pairs: 1, pairHead: 64, kind: perBlock, codebook: "codesIQ4"},
	{name: "IQ4_XS", form: form32, bits: 4, pairs: 4, pairHead: 64, kind: signed, codebook: inHead,
		same: []string{"IQ3_XXS", "IQ3_S", "IQ2_XXS", "IQ1_S"}},
	{name: "IQ2_XS", form: form16, bits: 4, pairs: 4, pairHead: 64, kind: signed16, codebook: inHead,
		same: []string{"IQ2_S", "IQ1_M"}},
	{name: "MXFP4", form: form32, bits: 4, pairs: 1, pairHead: 64, kind: brain, codebook: "codesMXFP4"},
	{name: "TQ2_0", form: form32, bits: 2, unit: 6, pairs: 4, kind: super, same: []string{"TQ1_0"}},
}

func (f format) head() int {
	if f.pairs > 1 {
		return 64
	}
	return 0
}

func (f format) pairBytes() int { return f.pairHead + 2*64*f.bits }

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
	if f.bits == 4 {
		temps = 2
	}
	u := &unpacker{format: f, masks: map[uint32]reg.VecPhysical{}, t: v.zmmN(temps)}
	masks := map[int][]uint32{8: nil, 6: {0xfc, 0xf0, 0xc0}, 5: {0xf8, 0xe0}, 4: {0xf0}, 3: {0xe0, 0xc0}, 2: {0xc0}}[f.bits]
	if f.codebook != "" {
		masks = []uint32{0x0f}
		u.table = v.zmm()
	}
	if f.codebook != "" && f.codebook != inHead {
		VBROADCASTI32X4(NewDataAddr(Symbol{Name: "·" + f.codebook}, 0), u.table)
	}
	for _, m := range masks {
		u.masks[m] = v.zmm()
		broadcast32(m*0x01010101, u.masks[m])
	}
	if f.unit > 0 {
		u.unitReg = v.zmm()
		broadcast32(math.Float32bits(float32(math.Ldexp(1, -f.unit))), u.unitReg)
	}
	if held && f.pairs > 1 {
		u.d = v.zmm()
		if f.form.mins() {
			u.dmin = v.zmm()
		}
	}
	return u
}

// superHead reads the header of the superblock at w.
func (u *unpacker) superHead(w Mem) {
	d, t := u.t[0], u.t[1]
	VCVTPH2PS(w, d)
	if u.codebook == inHead {
		VBROADCASTI32X4(w.Offset(32), u.table)
		VMULPS_BCST(w.Offset(48), d, d)
	}
	if u.unit > 0 {
		VMULPS(u.unitReg, d, d)
	}
	VMOVUPS(d, u.d)
	if u.form.mins() {
		VCVTPH2PS(w.Offset(32), d)
		VPXORD(t, t, t)
		VSUBPS(d, t, d)
		VMOVUPS(d, u.dmin)
	}
}

// scales puts the scale of half h of block b of the pair at w in s and the
// minimum, if there is one, in m.
func (u *unpacker) scales(w Mem, b, h int, s, m reg.VecPhysical) {
	switch u.kind {
	case perBlock:
		VCVTPH2PS(w.Offset(32*b), s)
		if u.unit > 0 {
			VMULPS(u.unitReg, s, s)
		}
		if u.form.mins() {
			VCVTPH2PS(w.Offset(64+32*b), m)
		}
	case brain:
		VPMOVZXWD(w.Offset(32*b), s)
		VPSLLD(Imm(16), s, s)
	case super:
		VMOVUPS(u.d, s)
	case unsigned:
		VPMOVZXBD(w.Offset(16*b), s)
		VCVTDQ2PS(s, s)
		VMULPS(u.d, s, s)
		VPMOVZXBD(w.Offset(32+16*b), m)
		VCVTDQ2PS(m, m)
		VMULPS(u.dmin, m, m)
	case signed:
		VPMOVSXBD(w.Offset(16*b), s)
		VCVTDQ2PS(s, s)
		VMULPS(u.d, s, s)
	case signed16:
		VPMOVSXBD(w.Offset(32*b+16*h), s)
		VCVTDQ2PS(s, s)
		VMULPS(u.d, s, s)
	case nibbles:
		VPMOVZXBD(w.Offset(32*b+16*h), m)
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
	case u.bits == 8:
		for j := range 8 {
			t := u.t[j%3]
			VMOVDQU64(w.Offset(64*j), t)
			emit(j, t)
		}
	case u.codebook != "":
		u.levels(w, emit)
	case u.bits == 6:
		u.quads6(w, emit)
	case u.bits == 5:
		u.quads5(w, emit)
	case u.bits == 4:
		for j := range 4 {
			VMOVDQU64(w.Offset(64*j), t0)
			emit(j, u.field(4, 0xf0, t0, t1))
			emit(4+j, u.field(0, 0xf0, t0, t0))
		}
	case u.bits == 3:
		u.quads3(w, emit)
	case u.bits == 2:
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
	if u.form.halves() {
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
