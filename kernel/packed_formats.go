package kernel

import (
	"encoding/binary"

	"ridge/weights/tensor"
)

// How the values of a block of 32 come from its unsigned bytes u and its
// scales. Sums over a block are exact integers; every form then adds them to
// the float32 result in one fixed order.
type form int

const (
	form32  form = iota // w = s·(u-128)
	form32m             // w = s·u + m
	form16              // w = s·(u-128), one s for each half of the block
	form16m             // w = s·u + m, one s and m for each half
)

// layout is the packed form of a weight format. A group is a run of
// superblocks: a header, then pairs of blocks of 32 columns. A pair is a
// header and, per block, as many vectors of 64 bytes as a value has bits (8
// for 4-bit codebooks' unpacked form does not exist: codes are stored). A
// vector has 4 bytes for each of the 16 rows. unfold has the place of the bits.
type layout struct {
	form     form
	bits     int        // bits of a code = vectors of a block
	pairs    int        // pairs of a superblock
	head     int        // bytes of the superblock's header
	pairHead int        // bytes of a pair's header
	codebook *[16]byte  // u of a 4-bit code, nil if u is the code itself, top-aligned
	pack     packFunc   // writes a superblock of one row
	scales   scalesFunc // reads the scales of a block
}

// packFunc writes one row, the given lane of its group, of the superblock at
// dst. src has the row's native blocks of that superblock, perhaps fewer at
// the end of a row; what they do not fill stays zero.
type packFunc func(dst []byte, lane int, src []byte)

// scalesFunc fills the scales of block b (0 or 1) of the pair at pair in the
// superblock at sb.
type scalesFunc func(u *panelBlock, sb, pair []byte, b int)

// panelBlock is a block of 32 columns of a group of rows with its codes
// unpacked to bytes and its scales to floats, the common form that GEMM tiles
// read. Byte c of q[j][lane] is column 4j+c. The vectors a form does not use
// are not set. The assembly knows this layout.
type panelBlock struct {
	m1, s1, m0, s0 [Lanes]float32
	q              [8][Lanes]uint32
}

const panelBytes = 4*64 + 8*64

func (l *layout) pairBytes() int  { return l.pairHead + 2*64*l.bits }
func (l *layout) superBytes() int { return l.head + l.pairs*l.pairBytes() }

// supers returns the superblocks of a row of cols columns.
func (l *layout) supers(cols int) int { return (cols + 64*l.pairs - 1) / (64 * l.pairs) }

// layouts has the formats that are packed as quantized blocks.
var layouts = map[tensor.DType]*layout{
	tensor.Q8_0: {form: form32, bits: 8, pairs: 1, pairHead: 64, pack: packQ8_0, scales: scalesHalf(1)},
	tensor.Q4_0: {form: form32, bits: 4, pairs: 1, pairHead: 64, pack: packNibbles(18), scales: scalesHalf(1. / 16)},
	tensor.Q4_1: {form: form32m, bits: 4, pairs: 1, pairHead: 128, pack: packNibblesMin, scales: scalesHalfMin(1. / 16)},
	tensor.Q5_0: {form: form32, bits: 5, pairs: 1, pairHead: 64, pack: packQ5_0, scales: scalesHalf(1. / 8)},
	tensor.Q5_1: {form: form32m, bits: 5, pairs: 1, pairHead: 128, pack: packQ5_1, scales: scalesHalfMin(1. / 8)},

	tensor.Q4_K: {form: form32m, bits: 4, pairs: 4, head: 64, pairHead: 64, pack: packQ4_K, scales: scalesK(1. / 16)},
	tensor.Q5_K: {form: form32m, bits: 5, pairs: 4, head: 64, pairHead: 64, pack: packQ5_K, scales: scalesK(1. / 8)},
	tensor.Q6_K: {form: form16, bits: 6, pairs: 4, head: 64, pairHead: 64, pack: packQ6_K, scales: scalesSigned16(1. / 4)},
	tensor.Q3_K: {form: form16, bits: 3, pairs: 4, head: 64, pairHead: 64, pack: packQ3_K, scales: scalesSigned16(1. / 32)},
	tensor.Q2_K: {form: form16m, bits: 2, pairs: 4, head: 64, pairHead: 64, pack: packQ2_K, scales: scalesQ2_K},

	tensor.IQ4_NL: {form: form32, bits: 4, pairs: 1, pairHead: 64, codebook: &codesIQ4, pack: packNibbles(18), scales: scalesHalf(1)},
	tensor.MXFP4:  {form: form32, bits: 4, pairs: 1, pairHead: 64, codebook: &codesMXFP4, pack: packMXFP4, scales: scalesMXFP4},
	tensor.TQ1_0:  {form: form32, bits: 2, pairs: 4, head: 64, pack: packTQ1_0, scales: scalesSuper(1. / 64)},
	tensor.TQ2_0:  {form: form32, bits: 2, pairs: 4, head: 64, pack: packTQ2_0, scales: scalesSuper(1. / 64)},

	tensor.IQ4_XS:  levels32(levelsIQ4_XS, packIQ4_XS),
	tensor.IQ3_XXS: levels32(levelsIQ3_XXS, packLevels(tensor.IQ3_XXS, levelsIQ3_XXS, 32, scalesIQ3_XXS)),
	tensor.IQ3_S:   levels32(levelsIQ3_S, packLevels(tensor.IQ3_S, levelsIQ3_S, 32, scalesIQ3_S)),
	tensor.IQ2_XXS: levels32(levelsIQ2, packLevels(tensor.IQ2_XXS, levelsIQ2, 32, scalesIQ2_XXS)),
	tensor.IQ2_XS:  levels16(levelsIQ2, packLevels(tensor.IQ2_XS, levelsIQ2, 16, scalesIQ2_XS)),
	tensor.IQ2_S:   levels16(levelsIQ2, packLevels(tensor.IQ2_S, levelsIQ2, 16, scalesIQ2_S)),
	tensor.IQ1_S:   levels32(levelsIQ1, packLevels(tensor.IQ1_S, levelsIQ1, 32, scalesIQ1_S)),
	tensor.IQ1_M:   levels16(levelsIQ1, packLevels(tensor.IQ1_M, levelsIQ1, 16, scalesIQ1_M)),
}

// levels32 and levels16 are the layouts of formats with a table of levels in
// the superblock's header and a scale for 32 or 16 values.
func levels32(l *levels, pack packFunc) *layout {
	return &layout{form: form32, bits: 4, pairs: 4, head: 64, pairHead: 64, codebook: &l.u, pack: pack, scales: scalesSigned32(l.unit)}
}

func levels16(l *levels, pack packFunc) *layout {
	return &layout{form: form16, bits: 4, pairs: 4, head: 64, pairHead: 64, codebook: &l.u, pack: pack, scales: scalesSigned16(l.unit)}
}

// codesIQ4 and codesMXFP4 are the values of the 4-bit codebooks plus 128.
var (
	codesIQ4   = [16]byte{1, 24, 45, 63, 79, 93, 106, 118, 129, 141, 153, 166, 181, 197, 217, 241}
	codesMXFP4 = [16]byte{128, 129, 130, 131, 132, 134, 136, 140, 128, 127, 126, 125, 124, 122, 120, 116}
)

// lane16 and lane8 read what a header has for a lane.
func lane16(b []byte, lane int) uint16 { return binary.LittleEndian.Uint16(b[2*lane:]) }

// scalesHalf reads one float16 per block and row; its product with unit is the
// scale of u.
func scalesHalf(unit float32) scalesFunc {
	return func(u *panelBlock, _, pair []byte, b int) {
		for l := range u.s0 {
			u.s0[l] = tensor.F16ToF32(lane16(pair[32*b:], l)) * unit
		}
	}
}

// scalesHalfMin reads a float16 scale and minimum per block and row.
func scalesHalfMin(unit float32) scalesFunc {
	return func(u *panelBlock, _, pair []byte, b int) {
		for l := range u.s0 {
			u.s0[l] = tensor.F16ToF32(lane16(pair[32*b:], l)) * unit
			u.m0[l] = tensor.F16ToF32(lane16(pair[64+32*b:], l))
		}
	}
}

// scalesSuper reads one float16 per superblock and row.
func scalesSuper(unit float32) scalesFunc {
	return func(u *panelBlock, sb, _ []byte, _ int) {
		for l := range u.s0 {
			u.s0[l] = tensor.F16ToF32(lane16(sb, l)) * unit
		}
	}
}

// scalesK reads the byte-sized scales and minima of Q4_K and Q5_K and their
// two float16 factors in the superblock's header.
func scalesK(unit float32) scalesFunc {
	return func(u *panelBlock, sb, pair []byte, b int) {
		for l := range u.s0 {
			d, dmin := tensor.F16ToF32(lane16(sb, l)), tensor.F16ToF32(lane16(sb[32:], l))
			u.s0[l] = d * unit * float32(pair[16*b+l])
			u.m0[l] = -dmin * float32(pair[32+16*b+l])
		}
	}
}

// scalesSigned16 reads an int8 scale for each half of a block and their
// float16 factor.
func scalesSigned16(unit float32) scalesFunc {
	return func(u *panelBlock, sb, pair []byte, b int) {
		for l := range u.s0 {
			d := tensor.F16ToF32(lane16(sb, l)) * unit
			u.s0[l] = d * float32(int8(pair[32*b+l]))
			u.s1[l] = d * float32(int8(pair[32*b+16+l]))
		}
	}
}

// scalesSigned32 reads an int8 scale for each block and its float16 factor.
func scalesSigned32(unit float32) scalesFunc {
	return func(u *panelBlock, sb, pair []byte, b int) {
		for l := range u.s0 {
			u.s0[l] = tensor.F16ToF32(lane16(sb, l)) * unit * float32(int8(pair[16*b+l]))
		}
	}
}

// scalesQ2_K reads a nibble of scale and one of minimum for each half of a
// block, and their two float16 factors.
func scalesQ2_K(u *panelBlock, sb, pair []byte, b int) {
	for l := range u.s0 {
		d, dmin := tensor.F16ToF32(lane16(sb, l))/64, tensor.F16ToF32(lane16(sb[32:], l))
		c0, c1 := pair[32*b+l], pair[32*b+16+l]
		u.s0[l], u.m0[l] = d*float32(c0&15), -dmin*float32(c0>>4)
		u.s1[l], u.m1[l] = d*float32(c1&15), -dmin*float32(c1>>4)
	}
}

// scalesMXFP4 reads a power of two, stored as bfloat16.
func scalesMXFP4(u *panelBlock, _, pair []byte, b int) {
	for l := range u.s0 {
		u.s0[l] = tensor.BF16ToF32(lane16(pair[32*b:], l))
	}
}
