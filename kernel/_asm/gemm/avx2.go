package main

import (
	"fmt"
	"math"

	"github.com/mmcloughlin/avo/attr"
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"ridge/kernel/internal/layout"
)

// The AVX2 kernels read the same layout, eight lanes at a time: of each block
// first the lower half of all vectors, then the upper. Codes of up to 6 bits
// are multiplied as they are by VPMADDUBSW, whose int16 sums of two products
// do not saturate and can be added up for a while before they are widened.
// Eight-bit values take their sign from the activation instead: |w|·(±x).
// Either way the sum is then put in the terms of the AVX-512 kernels, Σ(u-128)q
// or Σuq on top of layout.ActMagic, so that the float steps, and the bits, are the
// same. Results add up in dst, there are not enough registers for them.
type narrow struct {
	format
	x, dst  *rows
	sum     []reg.VecPhysical // per row: int16 sums of codes, int32 sums of 8-bit values
	wide    []reg.VecPhysical // per row: widened sums, for codes that need it within a block
	t       []reg.VecPhysical // the other registers
	d, dmin Mem               // factors of the superblock, in the frame
	table   Mem               // codebook
}

// rows2 has the row counts that kernels are generated for.
var rows2 = []int{1, 2, 3, 4, 6}

func mulName2(f format, mr int) string {
	return fmt.Sprintf("mul%sx%dAVX2", symbol(f), mr)
}

var ymms = func() (y []reg.VecPhysical) {
	for _, z := range zmms[:16] {
		y = append(y, z.AsY().(reg.VecPhysical))
	}
	return y
}()

var constants = map[uint32]bool{}

// constant returns 32 bytes of read-only memory with bits in all 32-bit lanes.
func constant(bits uint32) Mem {
	sym := NewStaticSymbol(fmt.Sprintf("gemm%08x", bits))
	if !constants[bits] {
		constants[bits] = true
		GLOBL(sym.Name, attr.RODATA|attr.NOPTR)
		for i := range 8 {
			DATA(4*i, U32(bits))
		}
	}
	return NewDataAddr(sym, 0)
}

func constantBytes(b uint32) Mem { return constant(b * 0x01010101) }

func ones16() Mem { return constant(0x00010001) }

// mulAVX2 generates the product of groups of packed weights with mr rows.
func mulAVX2(f format, mr int) {
	name := mulName2(f, mr)
	TEXT(name, 0, mulSignature)
	Pragma("noescape")
	Doc(fmt.Sprintf("%s multiplies %s groups with %d rows.", name, f.Name, mr))
	frame := AllocLocal(256)
	ldx := Load(Param("ldx"), GP64()).(reg.GPVirtual)
	ldd := Load(Param("ldd"), GP64()).(reg.GPVirtual)
	w := Load(Param("w"), GP64())
	groups := Load(Param("groups"), GP64())
	ahead := Load(Param("ahead"), GP64())
	SHLQ(Imm(2), ldd)
	n := &narrow{format: f, x: newRows(mr, ldx), dst: newRows(mr, ldd), d: frame, dmin: frame.Offset(64)}
	n.table = frame.Offset(128)
	if name := codebooks[f.Codebook]; name != "" {
		n.table = NewDataAddr(Symbol{Name: name}, 0)
	}
	n.sum, n.t = ymms[:mr], ymms[mr:]
	if f.Bits == 5 || f.Bits == 6 {
		n.wide, n.t = n.t[:mr], n.t[mr:]
	}
	supers, pairs := GP64(), GP64()
	Load(Param("dst"), n.dst.base[0])
	n.dst.set(n.dst.base[0])

	Label("group")
	Load(Param("x"), n.x.base[0])
	n.x.set(n.x.base[0])
	Load(Param("supers"), supers)
	VXORPS(n.t[0], n.t[0], n.t[0])
	for r := range mr {
		VMOVUPS(n.t[0], n.dst.at(r, 0))
		VMOVUPS(n.t[0], n.dst.at(r, 32))
	}
	Label("super")
	if f.Pairs > 1 {
		n.superHead(Mem{Base: w})
		ADDQ(U32(uint32(f.Head())), w)
		MOVQ(U32(uint32(f.Pairs)), pairs)
		Label("pair")
	}
	for b := range 2 {
		prefetch(w, ahead, f.PairBytes(), b, mr)
		n.block(Mem{Base: w}, b, 0)
		n.block(Mem{Base: w}, b, 1)
	}
	ADDQ(U32(uint32(f.PairBytes())), w)
	n.x.advance(2 * layout.ActBlock)
	if f.Pairs > 1 {
		DECQ(pairs)
		JNE(LabelRef("pair"))
	}
	DECQ(supers)
	JNE(LabelRef("super"))
	n.dst.advance(64)
	DECQ(groups)
	JNE(LabelRef("group"))
	VZEROUPPER()
	RET()
}

func (n *narrow) unitMem() Mem {
	return constant(math.Float32bits(float32(math.Ldexp(1, -n.Unit))))
}

// superHead puts the factors of the superblock at w into the frame.
func (n *narrow) superHead(w Mem) {
	t := n.t[0]
	for side := range 2 {
		VCVTPH2PS(w.Offset(layout.Factor+16*side), t)
		if n.Codebook == layout.InHead {
			VBROADCASTSS(w.Offset(layout.Unit), n.t[1])
			VMULPS(n.t[1], t, t)
			VMOVDQU(w.Offset(layout.Levels), n.t[1].AsX())
			VMOVDQU(n.t[1].AsX(), n.table)
		}
		if n.Unit > 0 {
			VMULPS(n.unitMem(), t, t)
		}
		VMOVUPS(t, n.d.Offset(32*side))
		if n.Form.Mins() {
			VCVTPH2PS(w.Offset(layout.MinFactor+16*side), t)
			VXORPS(constant(0x80000000), t, t)
			VMOVUPS(t, n.dmin.Offset(32*side))
		}
	}
}

// scales puts the scale of half h of block b in s and the minimum in m, for
// the eight lanes of a side.
func (n *narrow) scales(w Mem, b, h, side int, s, m reg.VecPhysical) {
	d, dmin := n.d.Offset(32*side), n.dmin.Offset(32*side)
	float := func(by Mem, z reg.VecPhysical) {
		VCVTDQ2PS(z, z)
		VMULPS(by, z, z)
	}
	at, minAt := n.ScaleAt(b, h), n.MinAt(b, h)
	switch n.Scales {
	case layout.PerBlock:
		VCVTPH2PS(w.Offset(at+16*side), s)
		if n.Unit > 0 {
			VMULPS(n.unitMem(), s, s)
		}
		if n.Form.Mins() {
			VCVTPH2PS(w.Offset(minAt+16*side), m)
		}
	case layout.Brain:
		VPMOVZXWD(w.Offset(at+16*side), s)
		VPSLLD(Imm(16), s, s)
	case layout.Super:
		VMOVUPS(d, s)
	case layout.Unsigned:
		VPMOVZXBD(w.Offset(at+8*side), s)
		float(d, s)
		VPMOVZXBD(w.Offset(minAt+8*side), m)
		float(dmin, m)
	case layout.Signed:
		VPMOVSXBD(w.Offset(at+8*side), s)
		float(d, s)
	case layout.Signed16:
		VPMOVSXBD(w.Offset(at+8*side), s)
		float(d, s)
	case layout.Nibbles:
		VPMOVZXBD(w.Offset(at+8*side), m)
		VPAND(constant(0x0f), m, s)
		VPSRLD(Imm(4), m, m)
		float(d, s)
		float(dmin, m)
	}
}

// bytewise reports whether products are those of 8-bit values.
func (n *narrow) bytewise() bool { return n.Bits == 8 || n.Codebook != layout.None }

// block multiplies eight lanes of block b of the pair at w.
func (n *narrow) block(w Mem, b, side int) {
	// How many quads of codes fit an int16 sum: 2·127·code each.
	room := map[int]int{5: 4, 6: 2}[n.Bits]
	quads := 8
	if n.Form.Halves() {
		quads = 4
	}
	done, widened := 0, false
	n.codes(w.Offset(n.BlockAt(b)+32*side), func(j int, c, abs reg.VecPhysical) {
		start := done%quads == 0 || n.wide != nil && done%room == 0
		n.products(c, abs, b*layout.ActBlock+4*j, start)
		done++
		if n.wide != nil && done%room == 0 {
			for r, s := range n.sum {
				if !widened {
					VPMADDWD(ones16(), s, n.wide[r])
					continue
				}
				VPMADDWD(ones16(), s, s)
				VPADDD(s, n.wide[r], n.wide[r])
			}
			widened = true
		}
		if done%quads == 0 {
			n.finish(w, b, (done-1)/4%2, side)
			widened = false
		}
	})
}

// products adds the products of a quad to the sums of all rows. abs is the
// magnitude of c where c is signed.
func (n *narrow) products(c, abs reg.VecPhysical, off int, start bool) {
	t := n.t[len(n.t)-1]
	for r, s := range n.sum {
		VPBROADCASTD(n.x.at(r, off), t)
		switch {
		case n.bytewise():
			VPSIGNB(c, t, t)
			VPMADDUBSW(t, abs, t)
			if start {
				VPMADDWD(ones16(), t, s)
			} else {
				VPMADDWD(ones16(), t, t)
				VPADDD(t, s, s)
			}
		case start:
			VPMADDUBSW(t, c, s)
		default:
			VPMADDUBSW(t, c, t)
			VPADDW(t, s, s)
		}
	}
}

// finish adds the sums of half h of a block to dst.
func (n *narrow) finish(w Mem, b, h, side int) {
	sum, free := n.sum, n.t
	if n.wide != nil {
		sum, free = n.wide, append(append([]reg.VecPhysical{}, n.t...), n.sum...)
	}
	s, ms, m, t, acc := free[0], free[1], free[2], free[3], free[4]
	n.scales(w, b, h, side, s, m)
	VMULPS(constant(layout.ActMagic|0x80000000), s, ms)
	off := b * layout.ActBlock
	at := layout.ActN
	if n.Form.Halves() {
		at = []int{layout.ActN0, layout.ActN1}[h]
	}
	for r, z := range sum {
		if !n.bytewise() && n.wide == nil {
			VPMADDWD(ones16(), z, z)
		}
		switch {
		case n.bytewise() || n.Form.Mins():
			if n.Unit > 0 {
				VPSLLD(Imm(uint64(n.Unit)), z, z)
			}
			VPADDD(constant(layout.ActMagic), z, z)
		default:
			VPSLLD(Imm(uint64(n.Unit)), z, z)
			VPBROADCASTD(n.x.at(r, off+at), t)
			VPADDD(t, z, z)
		}
		VFMADD213PS(ms, s, z)
		VBROADCASTSS(n.x.at(r, off+layout.ActD), t)
		VMOVUPS(n.dst.at(r, 32*side), acc)
		VFMADD231PS(t, z, acc)
		if n.Form.Mins() {
			VBROADCASTSS(n.x.at(r, off+minAt(n.Form, h)), t)
			VFMADD231PS(t, m, acc)
		}
		VMOVUPS(acc, n.dst.at(r, 32*side))
	}
}

// codes loads the side of the block at w and calls emit for every quad with
// the register that has its codes, or its signed values and their magnitudes.
// The quads of the first half block come first.
func (n *narrow) codes(w Mem, emit func(j int, c, abs reg.VecPhysical)) {
	t0, t1 := n.t[0], n.t[1]
	switch {
	case n.bytewise():
		n.values(w, emit)
	case n.Bits == 6:
		n.codes6(w, emit)
	case n.Bits == 5:
		for j := range 4 {
			VMOVDQU(w.Offset(64+64*j), t0)
			emit(j, field2(3, 0x1f, t0, t1), nil)
			field2(-2, 0x1c, t0, t0)
			VMOVDQU(w, t1)
			VPOR(field2(2*j, 0x03, t1, t1), t0, t0)
			emit(4+j, t0, nil)
		}
	case n.Bits == 4:
		for j := range 4 {
			VMOVDQU(w.Offset(64*j), t0)
			emit(j, field2(0, 0x0f, t0, t1), nil)
			emit(4+j, field2(4, 0x0f, t0, t0), nil)
		}
	case n.Bits == 3:
		for j := range 6 {
			VMOVDQU(w.Offset(64*(j%3)), t0)
			emit(j, field2([]int{5, 2}[j/3], 0x07, t0, t0), nil)
		}
		for j := range 2 {
			VMOVDQU(w.Offset(64*j), t0)
			field2(-1, 0x06, t0, t0)
			VMOVDQU(w.Offset(128), t1)
			VPOR(field2(1-j, 0x01, t1, t1), t0, t0)
			emit(6+j, t0, nil)
		}
	case n.Bits == 2:
		for j := range 8 {
			VMOVDQU(w.Offset(64*(j/4)), t0)
			emit(j, field2(6-j%4*2, 0x03, t0, t0), nil)
		}
	}
}

// field2 puts the masked bits of src, shifted right, or left if right is
// negative, in dst and returns it.
func field2(right int, mask uint32, src, dst reg.VecPhysical) reg.VecPhysical {
	switch {
	case right > 0:
		VPSRLW(Imm(uint64(right)), src, dst)
		src = dst
	case right < 0:
		VPSLLW(Imm(uint64(-right)), src, dst)
		src = dst
	}
	VPAND(constantBytes(mask), src, dst)
	return dst
}

// values is codes for 8-bit values and for codes that stand for them.
func (n *narrow) values(w Mem, emit func(j int, c, abs reg.VecPhysical)) {
	t0, t1 := n.t[0], n.t[1]
	for j := range 8 {
		if n.Codebook == layout.None {
			VMOVDQU(w.Offset(64*j), t0)
		} else {
			VMOVDQU(w.Offset(64*(j%4)), t0)
			field2(j/4*4, 0x0f, t0, t0)
			VBROADCASTI128(n.table, t1)
			VPSHUFB(t0, t1, t0)
		}
		VPXOR(constantBytes(0x80), t0, t0)
		VPABSB(t0, t1)
		emit(j, t0, t1)
	}
}

func (n *narrow) codes6(w Mem, emit func(j int, c, abs reg.VecPhysical)) {
	t0, t1 := n.t[0], n.t[1]
	for j := range 6 {
		VMOVDQU(w.Offset(64*j), t0)
		emit(j, field2(2, 0x3f, t0, t0), nil)
	}
	for j := range 2 {
		VMOVDQU(w.Offset(192*j), t0)
		field2(-4, 0x30, t0, t0)
		VMOVDQU(w.Offset(192*j+64), t1)
		VPOR(field2(-2, 0x0c, t1, t1), t0, t0)
		VMOVDQU(w.Offset(192*j+128), t1)
		VPOR(field2(0, 0x03, t1, t1), t0, t0)
		emit(6+j, t0, nil)
	}
}
