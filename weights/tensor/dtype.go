// Package tensor names the element types of weights, converts their blocks to
// and from float32, and describes matrices stored in them.
package tensor

import (
	"fmt"
	"math"
	"strings"
)

// DType is an element type of a tensor; its values are the type ids of the
// GGUF file format.
type DType uint32

// The element types. Names are spelled as ggml spells them.
const (
	F32     DType = 0
	F16     DType = 1
	Q4_0    DType = 2
	Q4_1    DType = 3
	Q5_0    DType = 6
	Q5_1    DType = 7
	Q8_0    DType = 8
	Q8_1    DType = 9
	Q2_K    DType = 10
	Q3_K    DType = 11
	Q4_K    DType = 12
	Q5_K    DType = 13
	Q6_K    DType = 14
	Q8_K    DType = 15
	IQ2_XXS DType = 16
	IQ2_XS  DType = 17
	IQ3_XXS DType = 18
	IQ1_S   DType = 19
	IQ4_NL  DType = 20
	IQ3_S   DType = 21
	IQ2_S   DType = 22
	IQ4_XS  DType = 23
	I8      DType = 24
	I16     DType = 25
	I32     DType = 26
	I64     DType = 27
	F64     DType = 28
	IQ1_M   DType = 29
	BF16    DType = 30
	TQ1_0   DType = 34
	TQ2_0   DType = 35
	MXFP4   DType = 39
	NVFP4   DType = 40
	Q1_0    DType = 41
	Q2_0    DType = 42
)

type dtypeInfo struct {
	name       string
	blockSize  int // values per block
	blockBytes int // bytes per block
}

// dtypes is indexed by type id; ids without an entry have block size 0.
var dtypes = [...]dtypeInfo{
	F32: {"F32", 1, 4}, F16: {"F16", 1, 2}, BF16: {"BF16", 1, 2}, F64: {"F64", 1, 8},
	I8: {"I8", 1, 1}, I16: {"I16", 1, 2}, I32: {"I32", 1, 4}, I64: {"I64", 1, 8},
	Q4_0: {"Q4_0", 32, 18}, Q4_1: {"Q4_1", 32, 20}, Q5_0: {"Q5_0", 32, 22}, Q5_1: {"Q5_1", 32, 24},
	Q8_0: {"Q8_0", 32, 34}, Q8_1: {"Q8_1", 32, 36},
	Q2_K: {"Q2_K", 256, 84}, Q3_K: {"Q3_K", 256, 110}, Q4_K: {"Q4_K", 256, 144}, Q5_K: {"Q5_K", 256, 176},
	Q6_K: {"Q6_K", 256, 210}, Q8_K: {"Q8_K", 256, 292},
	IQ2_XXS: {"IQ2_XXS", 256, 66}, IQ2_XS: {"IQ2_XS", 256, 74}, IQ3_XXS: {"IQ3_XXS", 256, 98},
	IQ1_S: {"IQ1_S", 256, 50}, IQ4_NL: {"IQ4_NL", 32, 18}, IQ3_S: {"IQ3_S", 256, 110},
	IQ2_S: {"IQ2_S", 256, 82}, IQ4_XS: {"IQ4_XS", 256, 136}, IQ1_M: {"IQ1_M", 256, 56},
	TQ1_0: {"TQ1_0", 256, 54}, TQ2_0: {"TQ2_0", 256, 66}, MXFP4: {"MXFP4", 32, 17},
	NVFP4: {"NVFP4", 64, 36}, Q1_0: {"Q1_0", 128, 18}, Q2_0: {"Q2_0", 64, 18},
}

// info returns the table entry of d, the zero entry for an unknown id.
func (d DType) info() dtypeInfo {
	if uint64(d) >= uint64(len(dtypes)) {
		return dtypeInfo{}
	}
	return dtypes[d]
}

// String returns the name of d, or "type N" for an unknown id.
func (d DType) String() string {
	if i := d.info(); i.blockSize > 0 {
		return i.name
	}
	return fmt.Sprintf("type %d", uint32(d))
}

// ParseDType returns the element type called name, in any letter case.
func ParseDType(name string) (DType, error) {
	var known []string
	for id, i := range dtypes {
		if i.blockSize == 0 {
			continue
		}
		if strings.EqualFold(name, i.name) {
			return DType(id), nil
		}
		known = append(known, i.name)
	}
	return 0, fmt.Errorf("tensor: element type %q: unknown, want one of %s", name, strings.Join(known, " "))
}

// Valid reports whether d is a known element type.
func (d DType) Valid() bool { return d.info().blockSize > 0 }

// BlockSize returns the number of values in one block of d, 0 if d is unknown.
func (d DType) BlockSize() int { return d.info().blockSize }

// BlockBytes returns the number of bytes of one block of d, 0 if d is unknown.
func (d DType) BlockBytes() int { return d.info().blockBytes }

// RowBytes returns the bytes of a row of cols values, or -1 if d is unknown,
// cols is negative or not a multiple of d's block size, or the size does not
// fit an int.
func (d DType) RowBytes(cols int) int {
	i := d.info()
	if i.blockSize == 0 || cols < 0 || cols%i.blockSize != 0 {
		return -1
	}
	blocks := cols / i.blockSize
	if blocks > math.MaxInt/i.blockBytes {
		return -1
	}
	return blocks * i.blockBytes
}

// Mat is a view of a matrix: Rows rows of Cols values, each row
// Type.RowBytes(Cols) bytes, one after the other in Data. It owns nothing.
type Mat struct {
	Type       DType
	Rows, Cols int
	Data       []byte
}

// Row returns the bytes of row i.
func (m Mat) Row(i int) []byte {
	n := m.Type.RowBytes(m.Cols)
	return m.Data[i*n : (i+1)*n : (i+1)*n]
}

// DecodeRow writes row i as float32 values to dst[:Cols], as Type.Decode does.
func (m Mat) DecodeRow(dst []float32, i int) {
	m.Type.Decode(dst[:m.Cols], m.Row(i))
}
