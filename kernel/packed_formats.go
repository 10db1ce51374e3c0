package kernel

import (
	"encoding/binary"

	"ridge/kernel/internal/layout"
	"ridge/weights/tensor"
)

// packing is how package kernel handles a packed weight format.
type packing struct {
	*layout.Format
	pack packFunc // writes a superblock of one row
	at   [8]place // of the blocks of a superblock
}

// place says where a superblock has the parts of a block: what package layout
// says of it, ready for the functions that pack.
type place struct {
	codes      int
	scale, min [2]int // of the lanes, by half
}

// packFunc writes one row, the given lane of its group, of the superblock at
// dst. src has the row's native blocks of that superblock, perhaps fewer at
// the end of a row; what they do not fill stays zero.
type packFunc func(p *packing, dst []byte, lane int, src []byte)

// scalesFunc fills the scales of block b (0 or 1) of the pair at pair in the
// superblock at sb.
type scalesFunc func(f *layout.Format, u *panelBlock, sb, pair []byte, b int)

// panelBlock is a block of 32 columns of a group of rows with its codes
// unpacked to bytes and its scales to floats, the common form that GEMM tiles
// read. Byte c of q[j][lane] is column 4j+c. The vectors a form does not use
// are not set. The assembly knows this layout.
type panelBlock struct {
	m1, s1, m0, s0 [Lanes]float32
	q              [8][Lanes]uint32
}

// packings has the formats that are packed as quantized blocks.
var packings = map[tensor.DType]*packing{
	tensor.Q8_0: packed(tensor.Q8_0, packQ8_0),
	tensor.Q4_0: packed(tensor.Q4_0, packNibbles),
	tensor.Q4_1: packed(tensor.Q4_1, packNibblesMin),
	tensor.Q5_0: packed(tensor.Q5_0, packQ5_0),
	tensor.Q5_1: packed(tensor.Q5_1, packQ5_1),

	tensor.Q4_K: packed(tensor.Q4_K, packQ4_K),
	tensor.Q5_K: packed(tensor.Q5_K, packQ5_K),
	tensor.Q6_K: packed(tensor.Q6_K, packQ6_K),
	tensor.Q3_K: packed(tensor.Q3_K, packQ3_K),
	tensor.Q2_K: packed(tensor.Q2_K, packQ2_K),

	tensor.IQ4_NL: packed(tensor.IQ4_NL, packNibbles),
	tensor.MXFP4:  packed(tensor.MXFP4, packMXFP4),
	tensor.TQ1_0:  packed(tensor.TQ1_0, packTQ1_0),
	tensor.TQ2_0:  packed(tensor.TQ2_0, packTQ2_0),

	tensor.IQ4_XS:  packed(tensor.IQ4_XS, packIQ4_XS),
	tensor.IQ3_XXS: packed(tensor.IQ3_XXS, packLevels(tensor.IQ3_XXS, levelsIQ3_XXS, scalesIQ3_XXS)),
	tensor.IQ3_S:   packed(tensor.IQ3_S, packLevels(tensor.IQ3_S, levelsIQ3_S, scalesIQ3_S)),
	tensor.IQ2_XXS: packed(tensor.IQ2_XXS, packLevels(tensor.IQ2_XXS, levelsIQ2, scalesIQ2_XXS)),
	tensor.IQ2_XS:  packed(tensor.IQ2_XS, packLevels(tensor.IQ2_XS, levelsIQ2, scalesIQ2_XS)),
	tensor.IQ2_S:   packed(tensor.IQ2_S, packLevels(tensor.IQ2_S, levelsIQ2, scalesIQ2_S)),
	tensor.IQ1_S:   packed(tensor.IQ1_S, packLevels(tensor.IQ1_S, levelsIQ1, scalesIQ1_S)),
	tensor.IQ1_M:   packed(tensor.IQ1_M, packLevels(tensor.IQ1_M, levelsIQ1, scalesIQ1_M)),
}

// packed returns the packing of weights of type t, in the layout that goes by
// its name.
func packed(t tensor.DType, pack packFunc) *packing {
	p := &packing{Format: layout.Of(t.String()), pack: pack}
	for n := range 2 * p.Pairs {
		pair, b, at := p.PairAt(n/2), n&1, &p.at[n]
		at.codes = pair + p.BlockAt(b)
		for h := range 2 {
			at.scale[h], at.min[h] = pair+p.ScaleAt(b, h), pair+p.MinAt(b, h)
		}
	}
	return p
}

// codesIQ4 and codesMXFP4 are the values of the 4-bit codebooks plus 128.
var (
	codesIQ4   = [16]byte{1, 24, 45, 63, 79, 93, 106, 118, 129, 141, 153, 166, 181, 197, 217, 241}
	codesMXFP4 = [16]byte{128, 129, 130, 131, 132, 134, 136, 140, 128, 127, 126, 125, 124, 122, 120, 116}
)

// codebookOf returns u of the 4-bit codes of the superblock at sb, nil if u is the
// code itself.
func codebookOf(f *layout.Format, sb []byte) *[16]byte {
	switch f.Codebook {
	case layout.IQ4:
		return &codesIQ4
	case layout.MXFP4:
		return &codesMXFP4
	case layout.InHead:
		return (*[16]byte)(sb[layout.Levels:])
	}
	return nil
}

// lane16 reads the two bytes that a header has for a lane.
func lane16(b []byte, lane int) uint16 { return binary.LittleEndian.Uint16(b[2*lane:]) }

// scalesAt has what reads the scales in each place.
var scalesAt = [...]scalesFunc{
	layout.PerBlock: scalesHalf, layout.Brain: scalesBrain, layout.Super: scalesSuper, layout.Unsigned: scalesUnsigned,
	layout.Signed: scalesSigned, layout.Signed16: scalesSigned, layout.Nibbles: scalesNibbles,
}

// unitOf returns what makes a stored scale that of u.
func unitOf(f *layout.Format) float32 { return 1 / float32(int(1)<<f.Unit) }

// factorOf returns the factor of the lane's scales in the superblock at sb.
func factorOf(f *layout.Format, sb []byte, lane int) float32 {
	d := tensor.F16ToF32(lane16(sb[layout.Factor:], lane)) * unitOf(f)
	if f.Codebook == layout.InHead {
		d *= actFloat(sb, layout.Unit)
	}
	return d
}

// scalesHalf reads one float16 per block and row, and one for the minimum.
func scalesHalf(f *layout.Format, u *panelBlock, _, pair []byte, b int) {
	scale, minimum, unit := pair[f.ScaleAt(b, 0):], pair[f.MinAt(b, 0):], unitOf(f)
	for l := range u.s0 {
		u.s0[l] = tensor.F16ToF32(lane16(scale, l)) * unit
		if f.Form.Mins() {
			u.m0[l] = tensor.F16ToF32(lane16(minimum, l))
		}
	}
}

// scalesBrain reads a power of two, stored as bfloat16.
func scalesBrain(f *layout.Format, u *panelBlock, _, pair []byte, b int) {
	for l := range u.s0 {
		u.s0[l] = tensor.BF16ToF32(lane16(pair[f.ScaleAt(b, 0):], l))
	}
}

// scalesSuper reads one float16 per superblock and row.
func scalesSuper(f *layout.Format, u *panelBlock, sb, _ []byte, _ int) {
	for l := range u.s0 {
		u.s0[l] = factorOf(f, sb, l)
	}
}

// scalesUnsigned reads the byte-sized scales and minima of blocks and their two
// factors.
func scalesUnsigned(f *layout.Format, u *panelBlock, sb, pair []byte, b int) {
	scale, minimum := pair[f.ScaleAt(b, 0):], pair[f.MinAt(b, 0):]
	for l := range u.s0 {
		dmin := tensor.F16ToF32(lane16(sb[layout.MinFactor:], l))
		u.s0[l] = factorOf(f, sb, l) * float32(scale[l])
		u.m0[l] = -dmin * float32(minimum[l])
	}
}

// scalesSigned reads an int8 scale for each block, or each half of one, and
// their factor.
func scalesSigned(f *layout.Format, u *panelBlock, sb, pair []byte, b int) {
	s0, s1 := pair[f.ScaleAt(b, 0):], pair[f.ScaleAt(b, 1):]
	for l := range u.s0 {
		d := factorOf(f, sb, l)
		u.s0[l] = d * float32(int8(s0[l]))
		u.s1[l] = d * float32(int8(s1[l])) // of no use to forms without halves
	}
}

// scalesNibbles reads a nibble of scale and one of minimum for each half of a
// block, and their two factors.
func scalesNibbles(f *layout.Format, u *panelBlock, sb, pair []byte, b int) {
	s0, s1 := pair[f.ScaleAt(b, 0):], pair[f.ScaleAt(b, 1):]
	for l := range u.s0 {
		d, dmin := factorOf(f, sb, l), tensor.F16ToF32(lane16(sb[layout.MinFactor:], l))
		u.s0[l], u.m0[l] = d*float32(s0[l]&15), -dmin*float32(s0[l]>>4)
		u.s1[l], u.m1[l] = d*float32(s1[l]&15), -dmin*float32(s1[l]>>4)
	}
}
