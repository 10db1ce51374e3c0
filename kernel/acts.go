package kernel

import (
	"encoding/binary"
	"math"

	"ridge/kernel/internal/layout"
)

// The three sums with layout.ActMagic of an activation block are what an integer
// accumulator starts from: weights are multiplied as unsigned bytes u = w+128, so
// Σ(u-128)q needs the -128·Σq, and an int32 that starts from ActMagic (the bits
// of 1.5·2²³) reads as the float32 1.5·2²³ + sum, which saves the conversion.

// actTiny is layout.ActTiny: a block with no value of at least this size is
// stored as zeros.
const actTiny = 0x1p-100

// Acts is a batch of N rows of K activations, as float32, quantized, or both.
// Row r starts at F32[r*LDF] and at Q[r*LDQ]. It is a view and owns nothing.
//
// A quantized row has one plane or more, LDQ/Planes bytes apart, each of which
// is the quantized form of what those before it leave of the row. One has 8
// bits of an activation, two have 15.
type Acts struct {
	N, K   int
	F32    []float32
	LDF    int // distance of rows in F32, in floats
	Q      []byte
	LDQ    int // distance of rows in Q, in bytes, a multiple of 64 * Planes
	Planes int // 0 means 1
	// Brain says that rows in Q are rounded to bfloat16 instead, which takes as many
	// bytes, in the order that the tier in use reads. A second plane has what that
	// leaves of them.
	Brain bool

	// Apart has the columns that quantized rows leave out, ascending. Quantize
	// writes their values to A, where row r starts at A[r*LDA].
	Apart []int32
	A     []float32
	LDA   int // distance of rows in A, in floats
}

func (a *Acts) planes() int { return max(1, a.Planes) }

// brain returns the planes of rows that are rounded to bfloat16, 0 for others.
func (a *Acts) brain() int {
	if a.Brain {
		return a.planes()
	}
	return 0
}

// RowBytes returns the bytes of a quantized row of a, with all its planes.
func (a *Acts) RowBytes() int { return a.planes() * ActRowBytes(a.K) }

// restCols is how many columns of a row Quantize takes at a time.
const restCols = 256

// Quantize writes the quantized form of the columns [c0, c1) of row r; c0 is a
// multiple of 64, and so is c1 unless the row ends there.
func (a *Acts) Quantize(r, c0, c1 int) {
	if a.Brain {
		plane := 0
		if a.planes() > 1 {
			plane = a.LDQ / 2
		}
		roundRow(a.Q[r*a.LDQ:][ActRowBytes(c0):plane+ActRowBytes(c1)], a.F32[r*a.LDF:][c0:c1], plane)
		return
	}
	lo, hi := a.setApart(r, c0, c1)
	a.quantize(r, c0, c1)
	a.unsetApart(r, lo, hi)
}

func (a *Acts) quantize(r, c0, c1 int) {
	x, q, planes := a.F32[r*a.LDF:][c0:c1], a.Q[r*a.LDQ:][:a.LDQ], a.planes()
	if planes == 1 {
		QuantizeRow(q[ActRowBytes(c0):][:ActRowBytes(c1-c0)], x)
		return
	}
	var buf [restCols]float32
	for len(x) > 0 {
		rest := buf[:copy(buf[:], x)]
		for p := range planes {
			dst := q[p*(a.LDQ/planes)+ActRowBytes(c0):][:ActRowBytes(len(rest))]
			QuantizeRow(dst, rest)
			if p < planes-1 {
				subtractQuantized(rest, dst)
			}
		}
		x, c0 = x[len(rest):], c0+len(rest)
	}
}

// subtractQuantized takes the values that q stands for from those of x. The
// product is rounded on its own, on processors that could fuse it too.
func subtractQuantized(x []float32, q []byte) {
	n := subtractTier(x, q)
	x, q = x[n:], q[n/32*layout.ActBlock:]
	for ; len(x) > 0; q = q[layout.ActBlock:] {
		d, n := actFloat(q, layout.ActD), min(32, len(x))
		for i, v := range q[:n] {
			x[i] -= float32(d * float32(int8(v)))
		}
		x = x[n:]
	}
}

// ActRowBytes returns the bytes of a quantized row of k activations: whole
// blocks of 32, padded with zero blocks to a multiple of 64 values.
func ActRowBytes(k int) int { return (k + 63) / 64 * 2 * layout.ActBlock }

// QuantizeRow writes the quantized form of the row x to dst, which must have
// ActRowBytes(len(x)) bytes. Each block of 32 values gets the scale
// max|x|/127. A block with an infinity or a NaN gets a NaN scale, so that
// every product with it is NaN.
func QuantizeRow(dst []byte, x []float32) {
	n := ActRowBytes(len(x))
	dst = dst[:n:n]
	done := quantizeTier(dst, x)
	quantizeGeneric(dst[done/32*layout.ActBlock:], x[done:])
}

// quantizeGeneric is the definition of QuantizeRow.
func quantizeGeneric(dst []byte, x []float32) {
	for ; len(dst) > 0; dst = dst[layout.ActBlock:] {
		n := min(32, len(x))
		quantizeBlock(dst[:layout.ActBlock:layout.ActBlock], x[:n])
		x = x[n:]
	}
}

// quantizeBlock writes one block; x has at most 32 values, the rest are zero.
func quantizeBlock(dst []byte, x []float32) {
	clear(dst)
	var top uint32 // the largest magnitude, compared as bits so that Inf < NaN count too
	for _, v := range x {
		top = max(top, math.Float32bits(v)&0x7fffffff)
	}
	amax := math.Float32frombits(top)
	d := amax / 127
	var s0, s1 int32
	switch {
	case top >= 0x7f800000:
		d = float32(math.NaN())
	case amax < actTiny:
		d = 0
	default:
		inv := 127 / amax
		for i, v := range x {
			q := int32(math.RoundToEven(float64(v * inv)))
			dst[i] = byte(q)
			if i < 16 {
				s0 += q
			} else {
				s1 += q
			}
		}
	}
	le := binary.LittleEndian
	le.PutUint32(dst[layout.ActD:], math.Float32bits(d))
	le.PutUint32(dst[layout.ActDS:], math.Float32bits(d*float32(s0+s1)))
	le.PutUint32(dst[layout.ActN:], uint32(layout.ActMagic-128*(s0+s1)))
	le.PutUint32(dst[layout.ActN0:], uint32(layout.ActMagic-128*s0))
	le.PutUint32(dst[layout.ActN1:], uint32(layout.ActMagic-128*s1))
	le.PutUint32(dst[layout.ActDS0:], math.Float32bits(d*float32(s0)))
	le.PutUint32(dst[layout.ActDS1:], math.Float32bits(d*float32(s1)))
	le.PutUint32(dst[layout.ActM:], layout.ActMagic)
}
