package kernel

import (
	"unsafe"

	"ridge/internal/cpu"
	"ridge/kernel/internal/layout"
)

// brainFunc multiplies groups of bfloat16 weights with a number of rows fixed in
// the function, whose values are in the order of brainOrder. With add it adds to
// dst.
type brainFunc func(dst *float32, ldd int, w *byte, x *byte, ldx int, blocks int, groups int, groupBytes int, ahead int, add bool)

// brainTileFunc multiplies one or two groups with tiles of up to 16 or 32 rows.
// With add it adds to dst.
type brainTileFunc func(dst *float32, ldd int, w *byte, groupBytes int, x *byte, ldx int, blocks int, tiles int, add bool, ahead int, cfg *byte)

const (
	// tileRows is the number of rows of a tile register.
	tileRows = 16
	// tileBlocks bounds the columns, in blocks, whose weights of two groups stay
	// in the first-level cache while rows are multiplied with them.
	tileBlocks = 32
)

// pairProducts says that products of pairs in vectors are used where there are
// no tiles. On Intel's processors, which start one in two cycles and two fused
// ones in each, they gain nothing.
var pairProducts = !isIntel

// usesPairs reports whether the tier in use multiplies with products of pairs in
// vectors.
func usesPairs() bool {
	return pairProducts && cpu.Current() == cpu.AVX512 && cpu.BrainProducts()
}

// orderTier returns the order of activations that the tier in use reads.
func orderTier() *[32]uint16 {
	if usesPairs() {
		return &brainOrder
	}
	return &inOrder
}

// roundTier rounds the 32s at the start of x and returns how many values that were.
// What is left of them goes plane bytes behind, if that is not 0.
func roundTier(dst []byte, x []float32, order *[32]uint16, plane int) int {
	n := len(x) &^ 31
	if n == 0 || !cpu.BrainProducts() {
		return 0
	}
	roundRowAVX512(&dst[0], &x[0], n, (*byte)(unsafe.Pointer(order)), plane)
	return n
}

// brainTier multiplies with the products of bfloat16 of the tier in use and
// reports whether it has any.
func brainTier(p *Packed, dst []float32, ldd int, x *Acts, r0, r1, g0, g1 int) bool {
	switch {
	case cpu.Current() >= cpu.AMX:
		mulTiles(p, dst, ldd, x, r0, r1, g0, g1)
	case usesPairs():
		mulPairs(p, dst, ldd, x, r0, r1, g0, g1)
	default:
		return false
	}
	return true
}

// mulPairs multiplies with products of pairs in vectors.
func mulPairs(p *Packed, dst []float32, ldd int, x *Acts, r0, r1, g0, g1 int) {
	blocks, most := p.brainBlocks(), len(brain512)-1
	step := max(1, callBytes/p.GroupBytes)
	stretch := max(most, actBytes/x.LDQ)
	for ; r0 < r1; r0 += stretch {
		end := min(r0+stretch, r1)
		for g := g0; g < g1; g += step {
			n := min(step, g1-g)
			w := &p.Data[g*p.GroupBytes]
			for r := r0; r < end; {
				tiles := (end - r + most - 1) / most
				mr := (end - r + tiles - 1) / tiles
				brain512[mr](&dst[r*ldd+g*Lanes], ldd, w, &x.Q[r*x.LDQ], x.LDQ, blocks, n, p.GroupBytes, aheadBytes(mr), p.adds)
				r += mr
			}
		}
	}
}

// brainShapes has the shapes of tile registers for a number of rows.
var brainShapes = func() (all [2*tileRows + 1][64]byte) {
	for n := range all {
		c := &all[n]
		c[0] = 1 // the palette
		shape := func(t, rows int) { c[16+2*t], c[48+t] = 64, byte(rows) }
		for half := range 2 {
			rows := min(max(n-half*tileRows, 0), tileRows)
			if rows == 0 {
				continue
			}
			shape(2*half, rows)
			shape(2*half+1, rows)
			shape(4+half, rows)
		}
		shape(6, 16)
		shape(7, 16)
	}
	return all
}()

// mulTiles multiplies with tile registers: two groups and a stretch of columns at
// a time with all rows.
func mulTiles(p *Packed, dst []float32, ldd int, x *Acts, r0, r1, g0, g1 int) {
	blocks, step := p.brainBlocks(), tileBlocks
	if r1-r0 <= 2*tileRows {
		step = blocks // one tile of rows reads weights once
	}
	rest := (r1 - r0) % (2 * tileRows)
	for b := 0; b < blocks; b += step {
		for g := g0; g < g1; g += 2 {
			t := tileTask{p: p, ldd: ldd, x: x, b: b, n: min(step, blocks-b), g: g, groups: min(2, g1-g)}
			if full := (r1 - r0) / (2 * tileRows); full > 0 {
				t.mul(dst, r0, 2*tileRows, full)
			}
			if rest > 0 {
				t.mul(dst, r1-rest, rest, 1)
			}
		}
	}
}

// tileTask is the product of some groups from g on with n blocks from b on.
type tileTask struct {
	p         *Packed
	x         *Acts
	ldd       int
	b, n      int
	g, groups int
}

// mul multiplies tiles of as many rows from r on.
func (t *tileTask) mul(dst []float32, r, rows, tiles int) {
	p, x := t.p, t.x
	w := &p.Data[t.g*p.GroupBytes+t.b*brainBlock]
	kernel := brainTiles[(rows+tileRows-1)/tileRows][t.groups]
	kernel(&dst[r*t.ldd+t.g*Lanes], t.ldd, w, p.GroupBytes, &x.Q[r*x.LDQ+t.b*layout.ActBlock], x.LDQ, t.n, tiles, t.b > 0 || p.adds, tileAhead, &brainShapes[rows][0])
}

// tileAhead is how far ahead weights are prefetched.
const tileAhead = 2048

// brainProbe does nothing but products of bfloat16 values and returns how many
// additions and multiplications it did, 0 if the tier in use has none.
func brainProbe(n int) int {
	switch {
	case cpu.Current() >= cpu.AMX:
		brainProbeAMX(n, &brainShapes[2*tileRows][0])
		return n * 4 * 2 * tileRows * Lanes * 32
	case usesPairs():
		brainProbeAVX512(n)
		return n * 16 * 2 * 32
	}
	return 0
}
