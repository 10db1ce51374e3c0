package kernel

import (
	"ridge/internal/cpu"
	"ridge/kernel/internal/layout"
)

// actCall bounds the blocks that one call quantizes.
const actCall = 4096

// gemmTier multiplies with the assembly of the tier in use and reports whether
// it has any.
func gemmTier(p *Packed, dst []float32, ldd int, x *Acts, r0, r1, g0, g1 int) bool {
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

// aheadBytes is how far ahead a kernel of that many rows prefetches: with fewer
// than 4 rows into the second-level cache, with more into the first.
func aheadBytes(rows int) int {
	switch {
	case rows >= 4:
		return 2048
	case isIntel:
		return 3072
	}
	return 0
}

// alignBytes returns the part of b from the first multiple of 64 on.
func alignBytes(b []byte) []byte { return b[-addressOf(b)&63:] }

// attnTier returns the attention kernels of the tier in use, nil for plain Go.
func attnTier() *attnKernels {
	switch cpu.Vectors() {
	case cpu.AVX512:
		return &attnAVX512
	case cpu.AVX2:
		return &attnAVX2
	}
	return nil
}

// splitBrainTier is splitBrain for as many pairs as it returns.
func splitBrainTier(even, odd []float32, src *byte) int {
	n := len(even) &^ 7
	if n == 0 || cpu.Current() < cpu.AVX2 {
		return 0
	}
	splitBrainAVX2(&even[0], &odd[0], src, n)
	return n
}

// turnTier turns the first elements of a tile, of rows of the given length, and
// returns how many: see turnGeneric.
func turnTier(value []float32, row int, key []float32, vd int) int {
	n := vd &^ 7
	if n == 0 || cpu.Current() < cpu.AVX2 {
		return 0
	}
	turnKeysAVX2(&value[0], 4*row, &key[0], n)
	return n
}

// turnPairsTier is turnPairsGeneric for the first elements; it returns how many.
func turnPairsTier(value, key []byte, vd int) int {
	n := vd / 8 * 8
	if n == 0 || cpu.Current() < cpu.AVX2 {
		return 0
	}
	turnPairsAVX2(&value[0], 4*vd, &key[0], n/2)
	return n
}

// quantizeTier quantizes the whole blocks at the start of x with the assembly
// of the tier in use and returns how many values that were.
func quantizeTier(dst []byte, x []float32) int {
	n := len(x) / 32
	if n == 0 || cpu.Current() < cpu.AVX2 {
		return 0
	}
	for i := 0; i < n; {
		left := min(actCall, n-i)
		if left >= 4 && cpu.Vectors() == cpu.AVX512 {
			done := 4 * quantizeAVX512(&dst[i*layout.ActBlock], &x[32*i], left/4)
			if i += done; done == left {
				continue
			}
			left = min(4, n-i) // one of these has a NaN, or they are the last
		}
		quantizeAVX2(&dst[i*layout.ActBlock], &x[32*i], left)
		i += left
	}
	return n * 32
}

// subtractTier is subtractQuantized for the whole blocks at the start of x. It
// returns how many values that were.
func subtractTier(x []float32, q []byte) int {
	n := len(x) / 32
	if n == 0 || cpu.Current() < cpu.AVX2 {
		return 0
	}
	subtractQuantizedAVX2(&x[0], &q[0], n)
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
