// Package layout says how packed weights, quantized activations and the states
// of attention lie in memory. Package kernel and the generators of its assembly
// (kernel/_asm) both read it, so that each format is described in one place;
// docs/kernels.md explains it.
package layout

import "fmt"

// Lanes is the number of output rows in a group of packed weights: one lane of
// a 512-bit vector each.
const Lanes = 16

// Form says how the values of a block of 32 come from its unsigned bytes u and
// its scales. Sums over a block are exact integers; every form then adds them to
// the float32 result in one fixed order.
type Form int

// The forms.
const (
	Form32  Form = iota // w = s·(u-128)
	Form32m             // w = s·u + m
	Form16              // w = s·(u-128), one s for each half of the block
	Form16m             // w = s·u + m, one s and m for each half
)

func (f Form) String() string { return [...]string{"Form32", "Form32m", "Form16", "Form16m"}[f] }

// Forms has all forms.
var Forms = []Form{Form32, Form32m, Form16, Form16m}

// Halves reports whether each half of a block has a scale of its own.
func (f Form) Halves() bool { return f >= Form16 }

// Mins reports whether blocks have minima.
func (f Form) Mins() bool { return f == Form32m || f == Form16m }

// Scales says where the scales of a block are, and its minima. Those in one byte
// are multiplied with the factors in the header of the superblock.
type Scales int

// The places of scales. A row of a header has a value for each lane.
const (
	PerBlock Scales = iota // float16 for each block in the pair's header, the minima 64 bytes behind
	Brain                  // bfloat16 for each block in the pair's header
	Super                  // the factor itself; pairs have no header
	Unsigned               // a byte for each block in the pair's header, the minima 32 bytes behind
	Signed                 // an int8 for each block in the pair's header
	Signed16               // an int8 for each half block in the pair's header
	Nibbles                // a byte for each half block in the pair's header: scale, and minimum above it
)

// The header of a superblock has these.
const (
	HeadBytes = 64
	Factor    = 0  // float16 × 16: the factor of the scales
	MinFactor = 32 // float16 × 16: the factor of the minima, which are subtracted
	Levels    = 32 // 16 bytes: u of a 4-bit code, in formats with InHead
	Unit      = 48 // float32: what the factor is to be multiplied with, in formats with InHead
)

// Codebook says what the codes of a format stand for.
type Codebook int

// The codebooks.
const (
	None   Codebook = iota // u is the code, top-aligned
	IQ4                    // 4-bit codes are replaced by those of IQ4_NL
	MXFP4                  // 4-bit codes are replaced by those of MXFP4
	InHead                 // 4-bit codes are replaced by the Levels of the superblock
)

// Format is how a weight format is packed. A group of Lanes rows is a run of
// superblocks: a header, if there are several pairs, then pairs of blocks of 32
// columns. A pair is a header and, for each block, as many vectors of 64 bytes as
// a code has bits. A vector has 4 bytes for each lane; unfold and fold in package
// kernel have the place of the bits.
type Format struct {
	Name     string // as ggml spells it
	Form     Form
	Bits     int // of a code, and vectors of a block
	Unit     int // the stored scale is that of u·2^Unit
	Pairs    int // of a superblock
	Scales   Scales
	Codebook Codebook
	Same     []string // formats that are packed in the same way
}

// Formats has all formats that are packed as quantized blocks.
var Formats = []Format{
	{Name: "Q8_0", Form: Form32, Bits: 8, Pairs: 1, Scales: PerBlock},
	{Name: "Q4_0", Form: Form32, Bits: 4, Unit: 4, Pairs: 1, Scales: PerBlock},
	{Name: "Q4_1", Form: Form32m, Bits: 4, Unit: 4, Pairs: 1, Scales: PerBlock},
	{Name: "Q5_0", Form: Form32, Bits: 5, Unit: 3, Pairs: 1, Scales: PerBlock},
	{Name: "Q5_1", Form: Form32m, Bits: 5, Unit: 3, Pairs: 1, Scales: PerBlock},
	{Name: "Q4_K", Form: Form32m, Bits: 4, Unit: 4, Pairs: 4, Scales: Unsigned},
	{Name: "Q5_K", Form: Form32m, Bits: 5, Unit: 3, Pairs: 4, Scales: Unsigned},
	{Name: "Q6_K", Form: Form16, Bits: 6, Unit: 2, Pairs: 4, Scales: Signed16},
	{Name: "Q3_K", Form: Form16, Bits: 3, Unit: 5, Pairs: 4, Scales: Signed16},
	{Name: "Q2_K", Form: Form16m, Bits: 2, Unit: 6, Pairs: 4, Scales: Nibbles},
	{Name: "IQ4_NL", Form: Form32, Bits: 4, Pairs: 1, Scales: PerBlock, Codebook: IQ4},
	{Name: "IQ4_XS", Form: Form32, Bits: 4, Pairs: 4, Scales: Signed, Codebook: InHead,
		Same: []string{"IQ3_XXS", "IQ3_S", "IQ2_XXS", "IQ1_S"}},
	{Name: "IQ2_XS", Form: Form16, Bits: 4, Pairs: 4, Scales: Signed16, Codebook: InHead,
		Same: []string{"IQ2_S", "IQ1_M"}},
	{Name: "MXFP4", Form: Form32, Bits: 4, Pairs: 1, Scales: Brain, Codebook: MXFP4},
	{Name: "TQ2_0", Form: Form32, Bits: 2, Unit: 6, Pairs: 4, Scales: Super, Same: []string{"TQ1_0"}},
}

// Names returns the names of all formats that are packed as f.
func (f *Format) Names() []string { return append([]string{f.Name}, f.Same...) }

// Of returns the format that weights of the given name are packed as. It panics
// if there is none.
func Of(name string) *Format {
	for i := range Formats {
		for _, n := range Formats[i].Names() {
			if n == name {
				return &Formats[i]
			}
		}
	}
	panic(fmt.Sprintf("layout: format: found none that is named %q", name))
}

// Head returns the bytes of the header of a superblock.
func (f *Format) Head() int {
	if f.Pairs > 1 {
		return HeadBytes
	}
	return 0
}

// PairHead returns the bytes of the header of a pair.
func (f *Format) PairHead() int {
	switch {
	case f.Scales == Super:
		return 0
	case f.Scales == PerBlock && f.Form.Mins():
		return 128
	}
	return 64
}

// BlockBytes returns the bytes of the codes of a block.
func (f *Format) BlockBytes() int { return 64 * f.Bits }

// PairBytes returns the bytes of a pair with its header.
func (f *Format) PairBytes() int { return f.PairHead() + 2*f.BlockBytes() }

// SuperBytes returns the bytes of a superblock with its header.
func (f *Format) SuperBytes() int { return f.Head() + f.Pairs*f.PairBytes() }

// Supers returns the superblocks of a row of cols columns.
func (f *Format) Supers(cols int) int { return (cols + 64*f.Pairs - 1) / (64 * f.Pairs) }

// PairAt returns the place of a pair in its superblock.
func (f *Format) PairAt(pair int) int { return f.Head() + pair*f.PairBytes() }

// BlockAt returns the place of the codes of block b, 0 or 1, in its pair.
func (f *Format) BlockAt(b int) int { return f.PairHead() + b*f.BlockBytes() }

// ScaleAt returns the place in a pair of the scales of half h of block b, one
// for each lane. It is the same for both halves where they share a scale.
func (f *Format) ScaleAt(b, h int) int {
	switch f.Scales {
	case Unsigned, Signed:
		return Lanes * b
	case Signed16, Nibbles:
		return 2*Lanes*b + Lanes*h
	}
	return 2 * Lanes * b // of two bytes each
}

// MinAt returns the place in a pair of the minima of half h of block b. Those of
// Nibbles are in the scales' bytes.
func (f *Format) MinAt(b, h int) int {
	switch f.Scales {
	case PerBlock:
		return 64 + f.ScaleAt(b, h)
	case Unsigned:
		return 32 + f.ScaleAt(b, h)
	}
	return f.ScaleAt(b, h)
}
