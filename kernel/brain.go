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
//
// Numbers with more bits are sums of two such, of which the second has what the
// first leaves: activations in two planes, and weights of float32 in two pieces.
// Their products are those of the first ones, and then with what the activations
// and what the weights left; that of what both left is beyond 16 bits and is not
// made.

// brainBlock is the size of a group's weights in a block of 32 columns: 16 pairs
// of columns, of each the values of 16 rows in turns.
const brainBlock = 32 * Lanes * 2

// SetBrain has Mul read activations rounded to bfloat16 (Acts.Brain) in the given
// number of planes, 1 or 2, if the weights are that, or with 2 planes float32 in
// whole blocks of 32 columns, and are packed. It reports whether it does. It writes
// to p.Data where weights are float32, and is called once.
func (p *Packed) SetBrain(planes int) bool {
	switch {
	case p.native || p.brain > 0 || p.adds:
		return false
	case p.Type == tensor.BF16:
	case p.Type == tensor.F32 && planes == 2 && p.Cols%32 == 0:
		p.split()
	default:
		return false
	}
	p.brain = planes
	return true
}

// split writes float32 weights as two pieces of bfloat16, all blocks of the first
// and then all of the second.
func (p *Packed) split() {
	group := make([]byte, p.GroupBytes)
	for g := range p.Groups {
		w := p.Data[g*p.GroupBytes:][:p.GroupBytes]
		copy(group, w)
		for k := range p.Cols {
			for l := range Lanes {
				v := math.Float32frombits(binary.LittleEndian.Uint32(group[4*(Lanes*k+l):]))
				for at := brainAt(k, l); at < len(w); at += len(w) / 2 {
					b := brain(flush(v))
					binary.LittleEndian.PutUint16(w[at:], b)
					v -= tensor.BF16ToF32(b)
				}
			}
		}
	}
}

// brainBlocks returns how many blocks of columns a group has, of one piece.
func (p *Packed) brainBlocks() int { return (p.Cols + 31) / 32 }

// Brain returns how many planes of activations rounded to bfloat16 Mul reads, 0 if
// it reads others.
func (p *Packed) Brain() int { return p.brain }

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

// roundRow writes the values x, rounded to bfloat16, to dst, and then zeros. What
// that leaves of them goes plane bytes behind, if plane is not 0.
func roundRow(dst []byte, x []float32, plane int) {
	order := orderTier()
	n := roundTier(dst, x, order, plane)
	dst, x = dst[2*n:], x[n:]
	for i := range (len(dst) - plane) / 2 {
		from, v := i&^31+int(order[i&31]), float32(0)
		if from < len(x) {
			v = x[from]
		}
		b := brain(flush(v))
		binary.LittleEndian.PutUint16(dst[2*i:], b)
		if plane > 0 {
			binary.LittleEndian.PutUint16(dst[plane+2*i:], brain(flush(v-tensor.BF16ToF32(b))))
		}
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

// brainPasses has the pieces of weights and the planes of activations that are
// multiplied, in order.
var brainPasses = [...]struct{ piece, plane int }{{0, 0}, {0, 1}, {1, 0}}

// mulBrain multiplies groups of bfloat16 weights with bfloat16 activations.
func (p *Packed) mulBrain(dst []float32, ldd int, x *Acts, r0, r1, g0, g1 int) {
	passes := brainPasses[:p.brain]
	if p.Type != tensor.BF16 {
		passes = brainPasses[:]
	}
	for i, pass := range passes {
		w, acts := *p, *x
		w.Data = p.Data[pass.piece*p.brainBlocks()*brainBlock:]
		w.adds = p.adds || i > 0
		acts.Q = x.Q[pass.plane*x.LDQ/2:]
		w.mulBrainPass(dst, ldd, &acts, r0, r1, g0, g1)
	}
}

// mulBrainPass multiplies the first piece of the weights with the first plane of
// the activations.
func (p *Packed) mulBrainPass(dst []float32, ldd int, x *Acts, r0, r1, g0, g1 int) {
	switch {
	case cpu.Current() == cpu.Generic:
		p.mulBrainGeneric(dst, ldd, x, r0, r1, g0, g1)
	case !brainTier(p, dst, ldd, x, r0, r1, g0, g1):
		p.mulBrainBlocks(dst, ldd, x, r0, r1, g0, g1)
	}
}

// mulBrainGeneric is the definition of mulBrainPass.
func (p *Packed) mulBrainGeneric(dst []float32, ldd int, x *Acts, r0, r1, g0, g1 int) {
	for g := g0; g < g1; g++ {
		w := p.Data[g*p.GroupBytes:][:p.brainBlocks()*brainBlock]
		for r := r0; r < r1; r++ {
			acc := (*[Lanes]float32)(dst[r*ldd+g*Lanes:])
			if !p.adds {
				*acc = [Lanes]float32{}
			}
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
	cols := p.brainBlocks() * 32
	if cap(work.x) < brainRows*cols {
		work.x = make([]float32, brainRows*cols)
	}
	w := &work.w
	*w = *p
	w.Type, w.brain, w.adds, w.Groups, w.Cols = tensor.BF16, 0, false, 1, 32
	for ; r0 < r1; r0 += brainRows {
		rows := min(brainRows, r1-r0)
		for r := range rows {
			row := work.x[r*cols:][:cols]
			for i := range row {
				row[i] = brainValue(x.Q[(r0+r)*x.LDQ+2*i:])
			}
		}
		for g := g0; g < g1; g++ {
			for at := 0; at < p.brainBlocks()*brainBlock; at += brainBlock {
				w.Data = p.Data[g*p.GroupBytes+at:]
				flat := Acts{N: rows, K: 32, F32: work.x[at/(2*Lanes):], LDF: cols}
				w.mul(work.sums[:], Lanes, &flat, 0, rows, 0, 1)
				for r := range rows {
					sum := dst[(r0+r)*ldd+g*Lanes:][:Lanes]
					if at == 0 && !p.adds {
						clear(sum)
					}
					Add(sum, work.sums[r*Lanes:][:Lanes])
				}
			}
		}
	}
}
