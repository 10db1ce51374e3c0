package kernel

import (
	"encoding/binary"
	"math"
	"sync"

	"ridge/kernel/internal/layout"
	"ridge/weights/tensor"
)

// The definition of Mul on packed weights. The assembly gives the same bits:
// the sums of a block are exact integers, and the float32 steps after them are
// the same fused operations in the same order.

// unpack fills u with block b of the pair at pair in the superblock at sb.
func (l *packing) unpack(u *panelBlock, sb, pair []byte, b int) {
	scalesAt[l.Scales](l.Format, u, sb, pair, b)
	block, codebook := pair[l.BlockAt(b):], codebookOf(l.Format, sb)
	var q [8]uint32
	for lane := range Lanes {
		unfold(&q, block, lane, l.Bits)
		if codebook != nil {
			lookup(&q, codebook)
		}
		for j, v := range q {
			u.q[j][lane] = v
		}
	}
}

// blockPool lends blocks that weights are unpacked to.
var blockPool = sync.Pool{New: func() any { return new(panelBlock) }}

// mulGeneric multiplies groups of quantized weights.
func (p *Packed) mulGeneric(dst []float32, ldd int, x *Acts, r0, r1, g0, g1 int) {
	l, u := p.layout, blockPool.Get().(*panelBlock)
	defer blockPool.Put(u)
	for g := g0; g < g1; g++ {
		for r := r0; r < r1; r++ {
			clear(dst[r*ldd+g*Lanes:][:Lanes])
		}
		data := p.Data[g*p.GroupBytes:][:p.GroupBytes]
		blocks := (p.Cols + 31) / 32
		for at := 0; at < blocks; at++ {
			sb := data[at/(2*l.Pairs)*l.SuperBytes():]
			pair := sb[l.PairAt(at/2%l.Pairs):]
			l.unpack(u, sb, pair, at&1)
			for r := r0; r < r1; r++ {
				acc := (*[Lanes]float32)(dst[r*ldd+g*Lanes:])
				mulBlock(acc, l.Form, u, x.Q[r*x.LDQ+at*layout.ActBlock:][:layout.ActBlock])
			}
		}
	}
}

// mulBlock adds the product of the weights u with the activation block x.
func mulBlock(acc *[Lanes]float32, f layout.Form, u *panelBlock, x []byte) {
	d := actFloat(x, layout.ActD)
	var sum [Lanes]int32
	switch f {
	case layout.Form32:
		start(&sum, x, layout.ActN)
		dotQuads(&sum, u, x, 0, 8)
		scaleAdd(acc, &sum, &u.s0, d)
	case layout.Form32m:
		dotQuads(&sum, u, x, 0, 8)
		scaleAdd(acc, &sum, &u.s0, d)
		axpy(acc, &u.m0, actFloat(x, layout.ActDS))
	case layout.Form16:
		start(&sum, x, layout.ActN0)
		dotQuads(&sum, u, x, 0, 4)
		scaleAdd(acc, &sum, &u.s0, d)
		start(&sum, x, layout.ActN1)
		dotQuads(&sum, u, x, 4, 8)
		scaleAdd(acc, &sum, &u.s1, d)
	case layout.Form16m:
		dotQuads(&sum, u, x, 0, 4)
		scaleAdd(acc, &sum, &u.s0, d)
		axpy(acc, &u.m0, actFloat(x, layout.ActDS0))
		sum = [Lanes]int32{}
		dotQuads(&sum, u, x, 4, 8)
		scaleAdd(acc, &sum, &u.s1, d)
		axpy(acc, &u.m1, actFloat(x, layout.ActDS1))
	}
}

func actFloat(x []byte, at int) float32 { return math.Float32frombits(le32(x[at:])) }

// start sets all sums to the -128·Σq at offset at of the block.
func start(sum *[Lanes]int32, x []byte, at int) {
	n := int32(le32(x[at:])) - layout.ActMagic
	for l := range sum {
		sum[l] = n
	}
}

// dotQuads adds the products of the quads [j0, j1).
func dotQuads(sum *[Lanes]int32, u *panelBlock, x []byte, j0, j1 int) {
	for j := j0; j < j1; j++ {
		x0, x1 := int32(int8(x[4*j])), int32(int8(x[4*j+1]))
		x2, x3 := int32(int8(x[4*j+2])), int32(int8(x[4*j+3]))
		for l, w := range &u.q[j] {
			sum[l] += int32(w&255)*x0 + int32(w>>8&255)*x1 + int32(w>>16&255)*x2 + int32(w>>24)*x3
		}
	}
}

// scaleAdd adds sum·s·d, rounded after the first product and after the sum.
func scaleAdd(acc *[Lanes]float32, sum *[Lanes]int32, s *[Lanes]float32, d float32) {
	for l := range acc {
		acc[l] = fma32(float32(sum[l])*s[l], d, acc[l])
	}
}

func axpy(acc, m *[Lanes]float32, ds float32) {
	for l := range acc {
		acc[l] = fma32(m[l], ds, acc[l])
	}
}

// fma32 returns a·b + c rounded once. The product is exact in float64; the sum
// is not, and rounding it twice is wrong only if the first rounding ends half
// way between two float32 values. Then the sum is moved by one bit towards the
// exact result.
func fma32(a, b, c float32) float32 {
	p := float64(a) * float64(b)
	s := p + float64(c)
	bits := math.Float64bits(s)
	if bits&0x1fffffff != 0x10000000 || bits>>52&0x7ff == 0x7ff {
		return float32(s)
	}
	// The part of the sum that was rounded off, exact (Knuth's two-sum).
	t := s - p
	rest := (p - (s - t)) + (float64(c) - t)
	switch {
	case rest == 0:
	case (rest > 0) == (s > 0):
		s = math.Float64frombits(bits + 1)
	default:
		s = math.Float64frombits(bits - 1)
	}
	return float32(s)
}

// Weights in plain numbers are stored by column: the 16 rows' values of column
// 0, then of column 1, and so on; those of bfloat16 by two columns: the first row's
// values of both, the second row's, and so on. Even and odd columns are summed apart; what is
// added to is where the even ones start from.

// plainSize returns the bytes of a value of a format that is packed as plain
// numbers, 0 for other formats.
func plainSize(t tensor.DType) int {
	switch t {
	case tensor.F32:
		return 4
	case tensor.F16, tensor.BF16:
		return 2
	}
	return 0
}

// packPlain transposes one row into its lane of the group at dst.
func packPlain(dst []byte, lane, size int, src []byte) {
	dst = dst[size*lane:]
	if size == 4 {
		for k := 0; len(src) >= 4; k++ {
			binary.LittleEndian.PutUint32(dst[64*k:], le32(src))
			src = src[4:]
		}
		return
	}
	for k := 0; len(src) >= 2; k++ {
		binary.LittleEndian.PutUint16(dst[32*k:], binary.LittleEndian.Uint16(src))
		src = src[2:]
	}
}

// mulPlainGeneric multiplies groups of float weights with float32 activations.
func (p *Packed) mulPlainGeneric(dst []float32, ldd int, x *Acts, r0, r1, g0, g1 int) {
	size := plainSize(p.Type)
	for g := g0; g < g1; g++ {
		data := p.Data[g*p.GroupBytes:][:p.GroupBytes]
		for r := r0; r < r1; r++ {
			var acc [2][Lanes]float32
			if p.adds {
				copy(acc[0][:], dst[r*ldd+g*Lanes:])
			}
			for k, v := range x.F32[r*x.LDF:][:p.Cols] {
				if p.Type == tensor.BF16 {
					axpyBrain(&acc[k&1], data, k, v)
				} else {
					axpyPlain(&acc[k&1], p.Type, data[k*size*Lanes:], v)
				}
			}
			out := dst[r*ldd+g*Lanes:][:Lanes]
			for l := range out {
				out[l] = acc[0][l] + acc[1][l]
			}
		}
	}
}

func axpyPlain(acc *[Lanes]float32, t tensor.DType, w []byte, v float32) {
	for l := range acc {
		var f float32
		if t == tensor.F16 {
			f = tensor.F16ToF32(lane16(w, l))
		} else {
			f = actFloat(w, 4*l)
		}
		acc[l] = fma32(f, v, acc[l])
	}
}
