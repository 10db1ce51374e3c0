package kernel

import (
	"ridge/internal/cpu"
	"ridge/tensor"
)

// mulFunc multiplies groups of packed weights, one after the other in memory,
// with a number of rows fixed in the function. It prefetches what lies ahead
// bytes behind the weights it reads; 0 is for none.
type mulFunc func(dst *float32, ldd int, w *byte, x *byte, ldx int, supers int, groups int, ahead int)

// plainFunc is mulFunc for weights in plain numbers.
type plainFunc func(dst *float32, ldd int, w *byte, x *float32, ldx int, cols int, groups int, groupBytes int, ahead int)

// numTypes is the size of tables that are indexed by element type.
const numTypes = tensor.MXFP4 + 1

const (
	// callBytes bounds the weights that one call of assembly reads, which the
	// Go scheduler cannot interrupt: some 25 µs.
	callBytes = 256 << 10
	// actCall bounds the blocks that one call quantizes.
	actCall = 4096
	// actBytes bounds the activations that are multiplied with one stretch of
	// weights after the other: they stay in the second-level cache.
	actBytes = 768 << 10
)

// mulTier multiplies with the assembly of the tier in use and reports whether
// it has any.
func mulTier(p *Packed, dst []float32, ldd int, x *Acts, r0, r1, g0, g1 int) bool {
	switch tier := cpu.Current(); {
	case tier < cpu.AVX2:
		return false
	case p.layout == nil && tier == cpu.AVX2:
		mulPlain(p, plain2[p.Type], tiles2[:4], dst, ldd, x, r0, r1, g0, g1)
	case p.layout == nil:
		mulPlain(p, plain512[p.Type], tilesPlain, dst, ldd, x, r0, r1, g0, g1)
	case tier == cpu.AVX2:
		mulDirect(p, mul2[p.Type], tiles2, dst, ldd, x, r0, r1, g0, g1)
	case r1-r0 > directRows:
		mulPanels(p, dst, ldd, x, r0, r1, g0, g1)
	default:
		mulDirect(p, mul512[p.Type], tiles512, dst, ldd, x, r0, r1, g0, g1)
	}
	return true
}

// directRows is the largest number of rows for which unpacking weights again
// for every tile of rows costs less than storing them unpacked.
const directRows = 8

// tiles512 and tiles2 have, for a number of rows that is left, the rows that
// the next kernel takes.
var (
	tiles512   = []int{0, 1, 2, 3, 4, 5, 6, 7, 8}
	tiles2     = []int{0, 1, 2, 3, 4, 3, 6}
	tilesPlain = []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 5, 10, 6, 12}
)

// isIntel tells the processors whose hardware prefetcher falls behind kernels
// that compute while they read; prefetching far enough ahead makes up for it.
// Those of AMD keep up with kernels of one row, and prefetching slows these.
var isIntel = cpuVendor() == 'G'|'e'<<8|'n'<<16|'u'<<24

func aheadBytes(rows int) int {
	if isIntel || rows >= 4 {
		return 2048
	}
	return 0
}

// mulDirect reads the packed weights once for every tile of rows.
func mulDirect(p *Packed, kernels []mulFunc, tiles []int, dst []float32, ldd int, x *Acts, r0, r1, g0, g1 int) {
	supers := p.layout.supers(p.Cols)
	step := max(1, callBytes/p.GroupBytes)
	block := max(len(tiles)-1, actBytes/x.LDQ)
	for ; r0 < r1; r0 += block {
		end := min(r0+block, r1)
		for g := g0; g < g1; g += step {
			n := min(step, g1-g)
			w := &p.Data[g*p.GroupBytes]
			for r := r0; r < end; {
				mr := tiles[min(end-r, len(tiles)-1)]
				kernels[mr](&dst[r*ldd+g*Lanes], ldd, w, &x.Q[r*x.LDQ], x.LDQ, supers, n, aheadBytes(mr))
				r += mr
			}
		}
	}
}

// mulPlain is mulDirect for weights in plain numbers.
func mulPlain(p *Packed, kernels []plainFunc, tiles []int, dst []float32, ldd int, x *Acts, r0, r1, g0, g1 int) {
	step := max(1, callBytes/p.GroupBytes)
	block := max(len(tiles)-1, actBytes/(4*p.Cols))
	for ; r0 < r1; r0 += block {
		end := min(r0+block, r1)
		for g := g0; g < g1; g += step {
			n := min(step, g1-g)
			w := &p.Data[g*p.GroupBytes]
			for r := r0; r < end; {
				mr := tiles[min(end-r, len(tiles)-1)]
				kernels[mr](&dst[r*ldd+g*Lanes], ldd, w, &x.F32[r*x.LDF], x.LDF, p.Cols, n, p.GroupBytes, aheadBytes(mr))
				r += mr
			}
		}
	}
}

// alignBytes returns the part of b from the first multiple of 64 on.
func alignBytes(b []byte) []byte { return b[-addressOf(b)&63:] }

// quantizeTier quantizes the whole blocks at the start of x with the assembly
// of the tier in use and returns how many values that were.
func quantizeTier(dst []byte, x []float32) int {
	n := len(x) / 32
	if n == 0 || cpu.Current() < cpu.AVX2 {
		return 0
	}
	for i := 0; i < n; {
		left := min(actCall, n-i)
		if left >= 4 && cpu.Current() == cpu.AVX512 {
			done := 4 * quantizeAVX512(&dst[i*actBlock], &x[32*i], left/4)
			if i += done; done == left {
				continue
			}
			left = min(4, n-i) // one of these has a NaN, or they are the last
		}
		quantizeAVX2(&dst[i*actBlock], &x[32*i], left)
		i += left
	}
	return n * 32
}

// readProbe reads b from end to end.
func readProbe(b []byte) {
	if n := len(b) &^ 255; n > 0 && cpu.Current() >= cpu.AVX2 {
		readProbeAVX2(&b[0], n, aheadBytes(1))
		return
	}
	readProbeGeneric(b)
}

// dotProbe does nothing but products, integer or float ones, and returns how
// many additions and multiplications it did.
func dotProbe(integer bool, n int) int {
	switch tier := cpu.Current(); {
	case tier >= cpu.AVX512 && integer:
		dotProbeAVX512(n)
		return n * 16 * 64 * 2
	case tier >= cpu.AVX512:
		fmaProbeAVX512(n)
		return n * 16 * 16 * 2
	case tier >= cpu.AVX2 && integer:
		dotProbeAVX2(n)
		return n * 12 * 32 * 2
	case tier >= cpu.AVX2:
		fmaProbeAVX2(n)
		return n * 12 * 8 * 2
	}
	return dotProbeGeneric(integer, n)
}
