package kernel

import (
	"sync"

	"ridge/internal/cpu"
	"ridge/kernel/internal/layout"
)

// unpackFunc unpacks superblocks of one group to panel blocks, with signed
// bytes for the weights and scales that suit them.
type unpackFunc func(u, w *byte, supers int)

// panelFunc multiplies a panel with a number of rows fixed in the function.
// With add, dst holds what the panels of lower columns gave.
type panelFunc func(dst *float32, ldd int, u, x *byte, ldx, pairs int, add bool)

const (
	// directRows is the largest number of rows that packed weights are
	// multiplied with as they are; more share what is unpacked.
	directRows = 3
	// panelRows bounds the rows that one panel is multiplied with: their
	// activations stay in the second-level cache.
	panelRows = 128
)

var (
	tilesDirect = []int{0, 1, 2, 3}
	tilesPanel  = []int{0, 1, 2, 3, 4, 3, 3, 4, 4}
)

// aheadBytes is for kernels that prefetch, which those for arm64 do not.
func aheadBytes(int) int { return 0 }

// gemmTier multiplies with the assembly of the tier in use and reports whether
// it has any.
func gemmTier(p *Packed, dst []float32, ldd int, x *Acts, r0, r1, g0, g1 int) bool {
	switch {
	case cpu.Current() < cpu.NEON:
		return false
	case p.layout == nil:
		mulPlain(p, plainNEON[p.Type], tilesDirect, dst, ldd, x, r0, r1, g0, g1)
	case r1-r0 <= directRows:
		mulDirect(p, packedNEON[p.Type], tilesDirect, dst, ldd, x, r0, r1, g0, g1)
	default:
		for blocks := (r1 - r0 + panelRows - 1) / panelRows; blocks > 0; blocks-- {
			n := (r1 - r0 + blocks - 1) / blocks
			mulPanels(p, dst, ldd, x, r0, r0+n, g0, g1)
			r0 += n
		}
	}
	return true
}

// panelPool lends the memory that panels are unpacked to.
var panelPool = sync.Pool{New: func() any { return new([2 * layout.PanelPairs * layout.PanelBytes]byte) }}

// mulPanels unpacks a stretch of columns of one group after the other and
// multiplies it with all rows.
func mulPanels(p *Packed, dst []float32, ldd int, x *Acts, r0, r1, g0, g1 int) {
	l := p.layout
	buf := panelPool.Get().(*[2 * layout.PanelPairs * layout.PanelBytes]byte)
	defer panelPool.Put(buf)
	supers, most := l.Supers(p.Cols), layout.PanelPairs/l.Pairs
	for s := 0; s < supers; s += most {
		n := min(most, supers-s)
		for g := g0; g < g1; g++ {
			unpackNEON[p.Type](&buf[0], &p.Data[g*p.GroupBytes+s*l.SuperBytes()], n)
			for r := r0; r < r1; {
				mr := tilesPanel[min(r1-r, len(tilesPanel)-1)]
				at := r*x.LDQ + s*l.Pairs*2*layout.ActBlock
				panelNEON[l.Form][mr](&dst[r*ldd+g*Lanes], ldd, &buf[0], &x.Q[at], x.LDQ, n*l.Pairs, s > 0)
				r += mr
			}
		}
	}
}

// attnTier returns the attention kernels of the tier in use, nil for plain Go.
func attnTier() *attnKernels {
	if cpu.Current() < cpu.NEON {
		return nil
	}
	return &attnNEON
}

// actCall bounds the blocks that one call quantizes.
const actCall = 4096

// quantizeTier quantizes the whole blocks at the start of x with the assembly
// of the tier in use and returns how many values that were.
func quantizeTier(dst []byte, x []float32) int {
	n := len(x) / 32
	if cpu.Current() < cpu.NEON {
		return 0
	}
	for i := 0; i < n; i += actCall {
		quantizeNEON(&dst[i*layout.ActBlock], &x[32*i], min(actCall, n-i))
	}
	return n * 32
}

// subtractTier is subtractQuantized for what there is assembly for: nothing.
func subtractTier([]float32, []byte) int { return 0 }

// readProbe reads b from end to end.
func readProbe(b []byte) {
	if n := len(b) &^ 255; n > 0 && cpu.Current() >= cpu.NEON {
		readProbeNEON(&b[0], n)
		return
	}
	readProbeGeneric(b)
}

// dotProbe does nothing but products, integer or float ones, and returns how
// many additions and multiplications it did.
func dotProbe(integer bool, n int) int {
	switch {
	case cpu.Current() < cpu.NEON:
		return dotProbeGeneric(integer, n)
	case integer:
		dotProbeNEON(n)
		return n * 16 * 16 * 2
	}
	fmaProbeNEON(n)
	return n * 16 * 4 * 2
}

// brainProbe returns 0: products of bfloat16 values are float32 ones.
func brainProbe(int) int { return 0 }

// splitBrainTier is splitBrain for as many pairs as it returns.
func splitBrainTier(even, odd []float32, src *byte) int { return 0 }

func turnTier(value []float32, row int, key []float32, vd int) int { return 0 }
func turnPairsTier(value, key []byte, vd int) int                  { return 0 }
