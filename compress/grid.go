package compress

import (
	"fmt"
	"math"
	"slices"

	"ridge/weights/tensor"
)

// A grid is a block format whose values are low + step·code: a low and a step for each
// value of a block, which values of a group share, and codes of some bits. Methods
// that choose codes themselves let the format's encoder fit lows and steps, and put
// their codes beside them.
type grid struct {
	typ   tensor.DType
	n     int         // values of a block
	bytes int         // of a block
	codes [][]codeBit // of each value, lowest first
}

// codeBit is where a bit of a code stands in a block.
type codeBit struct {
	at       int  // byte·8 + bit
	inverted bool // stored as its opposite
}

// grids are the formats that are one.
var grids = []tensor.DType{
	tensor.Q4_0, tensor.Q4_1, tensor.Q5_0, tensor.Q5_1, tensor.Q8_0,
	tensor.Q2_K, tensor.Q3_K, tensor.Q4_K, tensor.Q5_K, tensor.Q6_K,
}

// gridOf returns the grid of a format, nil if it is none. It finds the bits of each
// code by turning each bit of a block and looking which value the decoder changes, so
// that the decoder stays the only definition of a format.
func gridOf(typ tensor.DType) *grid {
	if !slices.Contains(grids, typ) {
		return nil
	}
	g := &grid{typ: typ, n: typ.BlockSize(), bytes: typ.BlockBytes(), codes: make([][]codeBit, typ.BlockSize())}
	x, y, z := make([]float32, g.n), make([]float32, g.n), make([]float32, g.n)
	for i := range x {
		x[i] = float32(math.Sin(float64(i)*1.7)) + float32(i%5)/9 - 0.2 // no group is all alike
	}
	block := make([]byte, g.bytes)
	if err := typ.Encode(block, x); err != nil {
		panic(fmt.Sprintf("compress: %s: %v", typ, err))
	}
	typ.Decode(y, block)
	type move struct {
		codeBit
		by float64 // from 0 to 1
	}
	moves := make([][]move, g.n)
	for at := range 8 * g.bytes {
		block[at/8] ^= 1 << (at % 8)
		typ.Decode(z, block)
		block[at/8] ^= 1 << (at % 8)
		changed := -1
		for i := range z {
			if z[i] != y[i] && changed == -1 {
				changed = i
			} else if z[i] != y[i] {
				changed = -2
			}
		}
		if changed < 0 {
			continue // of a low or a step
		}
		by := float64(z[changed]) - float64(y[changed])
		if block[at/8]>>(at%8)&1 == 1 {
			by = -by
		}
		moves[changed] = append(moves[changed], move{codeBit{at: at}, by})
	}
	for i, m := range moves {
		slices.SortFunc(m, func(a, b move) int {
			if math.Abs(a.by) < math.Abs(b.by) {
				return -1
			}
			return 1
		})
		for k, b := range m {
			ratio := b.by / m[0].by
			if math.Abs(math.Abs(ratio)/float64(int(1)<<k)-1) > 0.01 {
				panic(fmt.Sprintf("compress: %s: bit %d of value %d counts %v steps", typ, k, i, ratio))
			}
			g.codes[i] = append(g.codes[i], codeBit{b.at, ratio < 0})
		}
	}
	return g
}

// highest returns the highest code of value i.
func (g *grid) highest(i int) int { return 1<<len(g.codes[i]) - 1 }

// put writes the code of value i.
func (g *grid) put(block []byte, i, code int) {
	for k, b := range g.codes[i] {
		mask := byte(1) << (b.at % 8)
		if code>>k&1 == 1 != b.inverted {
			block[b.at/8] |= mask
		} else {
			block[b.at/8] &^= mask
		}
	}
}

// params reads the low and the step of each value of a block, whose codes it clears.
func (g *grid) params(block []byte, low, step []float32) {
	for i := range g.n {
		g.put(block, i, 1)
	}
	g.typ.Decode(step, block)
	for i := range g.n {
		g.put(block, i, 0)
	}
	g.typ.Decode(low, block)
	for i := range low {
		step[i] -= low[i]
	}
}

// nearest returns the code whose value is nearest to w.
func (g *grid) nearest(i int, w float64, low, step float32) int {
	if step == 0 {
		return 0
	}
	q := math.Floor((w-float64(low))/float64(step) + 0.5)
	return int(min(max(q, 0), float64(g.highest(i))))
}
