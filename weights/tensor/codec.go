package tensor

import (
	"encoding/binary"
	"fmt"
)

// A codec converts whole rows of one element type.
type codec struct {
	// decode writes len(dst) values, a multiple of the block size; src holds
	// at least their blocks.
	decode func(dst []float32, src []byte)
	// encode writes the blocks of src, which holds whole blocks of finite
	// values; nil if there is no encoder.
	encode func(dst []byte, src []float32)
	// weigh is encode of a row, with the importance of each value; nil if the format
	// has no use for it. A nil importance is encode.
	weigh func(dst []byte, src, importance []float32)
	// quantizes tells formats whose values share scales from plain numbers:
	// NaN and infinities have no code in them.
	quantizes bool
	// scales has the offset in a block of each float16 scale that encode
	// computes: a block is rejected if one of them overflows.
	scales []int
}

// codecs is the one list of formats that can be read or written. The layout of
// each is in docs/formats/blocks.md.
//
// All arithmetic is float32 in the order the formats are defined with. A
// product that is added to something is written float32(a*b) + c: without the
// conversion the compiler may fuse the two, and results would differ between
// processors.
var codecs = [len(dtypes)]codec{
	F64:  {decode: decodeF64, encode: encodeF64},
	F32:  {decode: decodeF32, encode: encodeF32},
	F16:  {decode: decodeF16, encode: encodeF16},
	BF16: {decode: decodeBF16, encode: encodeBF16},

	Q4_0: {decodeQ4_0, encodeQ4_0, weighQ4_0, true, []int{0}},
	Q4_1: {decodeQ4_1, encodeQ4_1, weighQ4_1, true, []int{0, 2}},
	Q5_0: {decodeQ5_0, encodeQ5_0, weighQ5_0, true, []int{0}},
	Q5_1: {decodeQ5_1, encodeQ5_1, weighQ5_1, true, []int{0, 2}},
	Q8_0: {decodeQ8_0, encodeQ8_0, nil, true, []int{0}},

	Q2_K: {decodeQ2_K, encodeQ2_K, weighQ2_K, true, []int{80, 82}},
	Q3_K: {decodeQ3_K, encodeQ3_K, weighQ3_K, true, []int{108}},
	Q4_K: {decodeQ4_K, encodeQ4_K, weighQ4_K, true, []int{0, 2}},
	Q5_K: {decodeQ5_K, encodeQ5_K, weighQ5_K, true, []int{0, 2}},
	Q6_K: {decodeQ6_K, encodeQ6_K, weighQ6_K, true, []int{208}},
	Q8_K: {decodeQ8_K, encodeQ8_K, nil, true, nil},

	IQ4_NL: {decodeIQ4_NL, encodeIQ4_NL, weighIQ4_NL, true, []int{0}},
	IQ4_XS: {decodeIQ4_XS, encodeIQ4_XS, weighIQ4_XS, true, []int{0}},
	TQ1_0:  {decodeTQ1_0, encodeTQ1_0, nil, true, []int{52}},
	TQ2_0:  {decodeTQ2_0, encodeTQ2_0, nil, true, []int{64}},
	MXFP4:  {decodeMXFP4, encodeMXFP4, nil, true, nil},

	NVFP4: {decodeNVFP4, encodeNVFP4, nil, true, nil},
	Q1_0:  {decodeQ1_0, encodeQ1_0, nil, true, []int{0}},
	Q2_0:  {decodeQ2_0, encodeQ2_0, nil, true, []int{0}},

	IQ1_S:   {decodeIQ1_S, nil, weighIQ1_S, true, []int{0}},
	IQ1_M:   {decodeIQ1_M, nil, weighIQ1_M, true, nil},
	IQ2_XXS: {decodeIQ2_XXS, nil, weighIQ2_XXS, true, []int{0}},
	IQ2_XS:  {decodeIQ2_XS, nil, weighIQ2_XS, true, []int{0}},
	IQ2_S:   {decodeIQ2_S, encodeIQ2_S, weighIQ2_S, true, []int{0}},
	IQ3_XXS: {decodeIQ3_XXS, encodeIQ3_XXS, weighIQ3_XXS, true, []int{0}},
	IQ3_S:   {decodeIQ3_S, encodeIQ3_S, weighIQ3_S, true, []int{0}},
}

func (d DType) codec() *codec {
	if uint64(d) >= uint64(len(codecs)) {
		return &codec{}
	}
	return &codecs[d]
}

// CanDecode reports whether Decode knows d.
func (d DType) CanDecode() bool { return d.codec().decode != nil }

// CanEncode reports whether Encode knows d. The integer types and Q8_1 have no
// encoder, and those whose encoder needs an importance matrix (IQ1_S, IQ1_M, IQ2_XXS,
// IQ2_XS) have EncodeWeighted only.
func (d DType) CanEncode() bool { return d.codec().encode != nil }

// Decode writes the first len(dst) values of the blocks in src to dst. Any
// bytes decode to something: NaN and infinite scales give NaN and infinite
// values. It panics if d cannot be decoded, len(dst) is not a multiple of d's
// block size, or src is shorter than d.RowBytes(len(dst)).
func (d DType) Decode(dst []float32, src []byte) {
	c := d.codec()
	if c.decode == nil {
		panic("tensor: decode " + d.String() + ": no decoder")
	}
	if n := d.RowBytes(len(dst)); n < 0 || n > len(src) {
		panic(fmt.Sprintf("tensor: decode %s: %d values want %d bytes, %d given", d, len(dst), n, len(src)))
	}
	c.decode(dst, src)
}

// The largest magnitudes that are encoded. The first, for formats with float16
// scales, is above what any of them can represent (at most Q6_K's 65504·128·32);
// below it no sum of an encoder overflows. The second, for those with wider
// scales, leaves room for rounding.
const (
	largestF16Scaled = 0x1p29
	largestScaled    = 0x1p127
)

// Encode writes src as blocks of d to dst[:d.RowBytes(len(src))]. Equal input
// gives equal bytes on every processor; they are those that ggml's quantizer
// writes without an importance matrix, but for MXFP4 blocks of tiny values and
// IQ3_S blocks with zeros (see encodeMXFP4 and encodeIQ3_S).
//
// It fails if d has no encoder, len(src) is not a multiple of d's block size,
// dst is too short, or, for formats whose values share a scale, src has a NaN,
// an infinity or a value too large for the scale; the content of dst is
// then unspecified. Plain numbers (F16, BF16, ...) round instead: too large
// values become infinities, NaN stays NaN.
func (d DType) Encode(dst []byte, src []float32) error {
	c := d.codec()
	if c.encode == nil {
		why := "no encoder"
		switch d {
		case IQ1_S, IQ1_M, IQ2_XXS, IQ2_XS:
			why = "no encoder: the format needs an importance matrix"
		}
		return fmt.Errorf("tensor: encode %s: %s", d, why)
	}
	return d.encodeBy(dst, src, c.encode)
}

// encodeBy checks src, encodes it by do and checks the scales.
func (d DType) encodeBy(dst []byte, src []float32, do func(dst []byte, src []float32)) error {
	c := d.codec()
	n := d.RowBytes(len(src))
	if n < 0 {
		return fmt.Errorf("tensor: encode %s: %d values, want a multiple of %d", d, len(src), d.BlockSize())
	}
	if n > len(dst) {
		return fmt.Errorf("tensor: encode %s: %d values want %d bytes, %d given", d, len(src), n, len(dst))
	}
	if !c.quantizes {
		do(dst, src)
		return nil
	}
	limit := float32(largestScaled)
	if len(c.scales) > 0 {
		limit = largestF16Scaled
	}
	for i, v := range src {
		if !(abs32(v) <= limit) { // also NaN
			return fmt.Errorf("tensor: encode %s: value %d is %v, want a magnitude of at most %g", d, i, v, limit)
		}
	}
	do(dst, src)
	for block := 0; block*d.BlockBytes() < n; block++ {
		for _, at := range c.scales {
			if h := binary.LittleEndian.Uint16(dst[block*d.BlockBytes()+at:]); h&0x7c00 == 0x7c00 {
				first := block * d.BlockSize()
				return fmt.Errorf("tensor: encode %s: values %d to %d: too large, their scale does not fit a float16",
					d, first, first+d.BlockSize()-1)
			}
		}
	}
	return nil
}
