package kernel

import (
	"encoding/binary"
	"math"
	"sync"

	"ridge/internal/cpu"
	"ridge/weights/tensor"
)

// Products of bfloat16 weights with activations that are rounded to bfloat16. A
// block is 32 columns: the products of its even columns, and those of its odd
// ones, are added up from zero, each in order and rounded once with its
// addition; both sums are added, and then added to those of the blocks before.
// That is what tile registers do (Intel's manual, volume 2, "TDPBF16PS"); vector
// instructions for pairs do the same if a pair has two columns of the same sum,
// and fused ones do it too. So a result has the same bits on all tiers and for
// all numbers of rows. Numbers too small for a normal float32 are zero, but where
// neither kind of instruction is there.

// brainBlock is the size of a group's weights in a block of 32 columns: 16 pairs
// of columns, of each the values of 16 rows in turns.
const brainBlock = 32 * Lanes * 2

// SetBrain has Mul read activations rounded to bfloat16 (Acts.Brain), if the
// weights are that and are packed. It reports whether it does.
func (p *Packed) SetBrain() bool {
	p.brain = p.Type == tensor.BF16 && !p.native
	return p.brain
}

// Brain reports whether Mul reads activations rounded to bfloat16.
func (p *Packed) Brain() bool { return p.brain }

// brainOrder has the order in which processors with products of pairs in vectors
// read each 32 activations: pairs of even and of odd columns in turns, the second
// one of a pair first.
var brainOrder = func() (order [32]uint16) {
	for i := range order {
		order[i] = uint16(i&^3 + [4]int{2, 0, 3, 1}[i&3])
	}
	return order
}()

// inOrder is the order of who reads tiles, or float32.
var inOrder = func() (order [32]uint16) {
	for i := range order {
		order[i] = uint16(i)
	}
	return order
}()

// roundRow writes the values x, rounded to bfloat16, to dst, and then zeros.
func roundRow(dst []byte, x []float32) {
	order := orderTier()
	n := roundTier(dst, x, order)
	dst, x = dst[2*n:], x[n:]
	for i := range len(dst) / 2 {
		from, v := i&^31+int(order[i&31]), uint16(0)
		if from < len(x) {
			v = brain(flush(x[from]))
		}
		binary.LittleEndian.PutUint16(dst[2*i:], v)
	}
}

// minNormal is the smallest normal number.
const minNormal = 0x1p-126

// flush returns x, or a zero of its sign if x is too small for a normal number.
func flush(x float32) float32 {
	if x < minNormal && x > -minNormal {
		return float32(math.Copysign(0, float64(x)))
	}
	return x
}

// packBrain puts one row into its lane of the group at dst.
func packBrain(dst []byte, lane int, src []byte) {
	for k := 0; len(src) >= 2; k++ {
		copy(dst[brainAt(k, lane):][:2], src)
		src = src[2:]
	}
}

// brainAt returns the place of column k of a lane in its group.
func brainAt(k, lane int) int { return k/2*4*Lanes + 4*lane + k%2*2 }

// axpyBrain adds v times column k of the group at w.
func axpyBrain(acc *[Lanes]float32, w []byte, k int, v float32) {
	for l := range acc {
		acc[l] = fma32(brainValue(w[brainAt(k, l):]), v, acc[l])
	}
}

func brainValue(b []byte) float32 { return tensor.BF16ToF32(binary.LittleEndian.Uint16(b)) }

// mulBrain multiplies groups of bfloat16 weights with bfloat16 activations.
func (p *Packed) mulBrain(dst []float32, ldd int, x *Acts, r0, r1, g0, g1 int) {
	switch {
	case cpu.Current() == cpu.Generic:
		p.mulBrainGeneric(dst, ldd, x, r0, r1, g0, g1)
	case !brainTier(p, dst, ldd, x, r0, r1, g0, g1):
		p.mulBrainBlocks(dst, ldd, x, r0, r1, g0, g1)
	}
}

// mulBrainGeneric is the definition of mulBrain.
func (p *Packed) mulBrainGeneric(dst []float32, ldd int, x *Acts, r0, r1, g0, g1 int) {
	for g := g0; g < g1; g++ {
		w := p.Data[g*p.GroupBytes:][:p.GroupBytes]
		for r := r0; r < r1; r++ {
			acc := (*[Lanes]float32)(dst[r*ldd+g*Lanes:])
			*acc = [Lanes]float32{}
			for at := 0; at < len(w); at += brainBlock {
				mulBrainBlock(acc, w[at:], x.Q[r*x.LDQ+at/Lanes:])
			}
		}
	}
}

func mulBrainBlock(acc *[Lanes]float32, w, x []byte) {
	for l := range acc {
		var sum [2]float32
		for k := range 32 {
			s := &sum[k&1]
			*s = flush(fma32(flush(brainValue(w[brainAt(k, l):])), brainValue(x[2*k:]), *s))
		}
		acc[l] = flush(acc[l] + flush(sum[0]+sum[1]))
	}
}

// brainRows is the number of rows of floats that mulBrainBlocks works on at a time.
const brainRows = 12

// brainWork is what mulBrainBlocks works with.
type brainWork struct {
	w    Packed // a block of a group
	x    []float32
	sums [brainRows * Lanes]float32
}

var brainPool = sync.Pool{New: func() any { return new(brainWork) }}

// mulBrainBlocks multiplies block by block as plain numbers, which have the same
// sums of even and odd columns.
func (p *Packed) mulBrainBlocks(dst []float32, ldd int, x *Acts, r0, r1, g0, g1 int) {
	work := brainPool.Get().(*brainWork)
	defer brainPool.Put(work)
	cols := p.GroupBytes / brainBlock * 32
	if cap(work.x) < brainRows*cols {
		work.x = make([]float32, brainRows*cols)
	}
	w := &work.w
	*w = *p
	w.brain, w.Groups, w.Cols = false, 1, 32
	for ; r0 < r1; r0 += brainRows {
		rows := min(brainRows, r1-r0)
		for r := range rows {
			row := work.x[r*cols:][:cols]
			for i := range row {
				row[i] = brainValue(x.Q[(r0+r)*x.LDQ+2*i:])
			}
		}
		for g := g0; g < g1; g++ {
			for at := 0; at < p.GroupBytes; at += brainBlock {
				w.Data = p.Data[g*p.GroupBytes+at:]
				flat := Acts{N: rows, K: 32, F32: work.x[at/(2*Lanes):], LDF: cols}
				w.mul(work.sums[:], Lanes, &flat, 0, rows, 0, 1)
				for r := range rows {
					sum := dst[(r0+r)*ldd+g*Lanes:][:Lanes]
					if at == 0 {
						clear(sum)
					}
					Add(sum, work.sums[r*Lanes:][:Lanes])
				}
			}
		}
	}
}
