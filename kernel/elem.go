package kernel

//go:generate go -C _asm run ./elem -out ../elem_amd64.s -stubs ../elem_stubs_amd64.go -other ../elem_stubs_other.go -pkg kernel

import (
	"math"
	"unsafe"

	"ridge/internal/cpu"
)

// The operations of this file work on rows of float32 values. Where two slices
// of different lengths are given the shorter one decides, except that weights
// must be as long as x. A destination may be the source itself (the same first
// element); other overlaps are not allowed.
//
// Elementwise results depend on the element alone, not on its place or on the
// length of the row. Sums are formed in an order that depends on the length
// alone. Infinities and NaN follow IEEE 754 through the formula given with each
// operation, unless it says otherwise; an activation of the form x·f(x) may give
// NaN for an infinite x. The error budgets of the approximations are in
// elem_test.go.
//
// Results of the AVX2, AVX-512 and NEON tiers are the same bits; those of plain
// Go differ from them within the budgets.

// RMSNorm sets dst = x · w / sqrt(mean(x²) + eps). A nil w stands for ones.
func RMSNorm(dst, x, w []float32, eps float32) {
	n := min(len(dst), len(x))
	if n == 0 {
		return
	}
	inv := 1 / math.Sqrt(float64(sumSquares(x[:n], 0))/float64(n)+float64(eps))
	normalize(dst[:n], x[:n], w, nil, 0, float32(inv))
}

// LayerNorm sets dst = (x - mean(x)) · w / sqrt(var(x) + eps) + b, with the
// biased variance. A nil w stands for ones, a nil b for zeros.
func LayerNorm(dst, x, w, b []float32, eps float32) {
	n := min(len(dst), len(x))
	if n == 0 {
		return
	}
	mean := sum(x[:n]) / float32(n)
	inv := 1 / math.Sqrt(float64(sumSquares(x[:n], mean))/float64(n)+float64(eps))
	normalize(dst[:n], x[:n], w, b, mean, float32(inv))
}

// sum returns Σx.
func sum(x []float32) float32 {
	switch cpu.Current() {
	case cpu.AVX512:
		return sumAVX512(unsafe.SliceData(x), len(x))
	case cpu.AVX2:
		return sumAVX2(unsafe.SliceData(x), len(x))
	case cpu.NEON:
		return sumNEON(unsafe.SliceData(x), len(x))
	}
	return sumGeneric(x)
}

// sumSquares returns Σ(x-mean)².
func sumSquares(x []float32, mean float32) float32 {
	switch cpu.Current() {
	case cpu.AVX512:
		return sumSquaresAVX512(unsafe.SliceData(x), len(x), mean)
	case cpu.AVX2:
		return sumSquaresAVX2(unsafe.SliceData(x), len(x), mean)
	case cpu.NEON:
		return sumSquaresNEON(unsafe.SliceData(x), len(x), mean)
	}
	return sumSquaresGeneric(x, mean)
}

// normalize sets dst = (x - mean)·inv·w + b; w and b may be nil.
func normalize(dst, x, w, b []float32, mean, inv float32) {
	if w != nil {
		w = w[:len(x)]
	}
	if b != nil {
		b = b[:len(x)]
	}
	d, p, n := unsafe.SliceData(dst), unsafe.SliceData(x), len(x)
	switch tier := cpu.Current(); {
	case tier < cpu.NEON:
		normalizeGeneric(dst, x, w, b, mean, inv)
	case tier == cpu.NEON && w != nil && b != nil:
		normalizeWBNEON(d, p, &w[0], &b[0], n, mean, inv)
	case tier == cpu.NEON && w != nil:
		normalizeWNEON(d, p, &w[0], n, mean, inv)
	case tier == cpu.NEON && b != nil:
		normalizeBNEON(d, p, &b[0], n, mean, inv)
	case tier == cpu.NEON:
		normalizeNEON(d, p, n, mean, inv)
	case w != nil && b != nil && tier == cpu.AVX512:
		normalizeWBAVX512(d, p, &w[0], &b[0], n, mean, inv)
	case w != nil && b != nil:
		normalizeWBAVX2(d, p, &w[0], &b[0], n, mean, inv)
	case w != nil && tier == cpu.AVX512:
		normalizeWAVX512(d, p, &w[0], n, mean, inv)
	case w != nil:
		normalizeWAVX2(d, p, &w[0], n, mean, inv)
	case b != nil && tier == cpu.AVX512:
		normalizeBAVX512(d, p, &b[0], n, mean, inv)
	case b != nil:
		normalizeBAVX2(d, p, &b[0], n, mean, inv)
	case tier == cpu.AVX512:
		normalizeAVX512(d, p, n, mean, inv)
	default:
		normalizeAVX2(d, p, n, mean, inv)
	}
}

// Add sets dst += x.
func Add(dst, x []float32) {
	n := min(len(dst), len(x))
	switch cpu.Current() {
	case cpu.AVX512:
		addAVX512(unsafe.SliceData(dst), unsafe.SliceData(x), n)
	case cpu.AVX2:
		addAVX2(unsafe.SliceData(dst), unsafe.SliceData(x), n)
	case cpu.NEON:
		addNEON(unsafe.SliceData(dst), unsafe.SliceData(x), n)
	default:
		addGeneric(dst[:n], x[:n])
	}
}

// AddScaled sets dst += a·x, with one rounding on the tiers that have a fused
// multiply-add.
func AddScaled(dst, x []float32, a float32) {
	n := min(len(dst), len(x))
	switch cpu.Current() {
	case cpu.AVX512:
		addScaledAVX512(unsafe.SliceData(dst), unsafe.SliceData(x), n, a)
	case cpu.AVX2:
		addScaledAVX2(unsafe.SliceData(dst), unsafe.SliceData(x), n, a)
	case cpu.NEON:
		addScaledNEON(unsafe.SliceData(dst), unsafe.SliceData(x), n, a)
	default:
		addScaledGeneric(dst[:n], x[:n], a)
	}
}

// Mul sets dst *= x.
func Mul(dst, x []float32) {
	n := min(len(dst), len(x))
	switch cpu.Current() {
	case cpu.AVX512:
		mulAVX512(unsafe.SliceData(dst), unsafe.SliceData(x), n)
	case cpu.AVX2:
		mulAVX2(unsafe.SliceData(dst), unsafe.SliceData(x), n)
	case cpu.NEON:
		mulNEON(unsafe.SliceData(dst), unsafe.SliceData(x), n)
	default:
		mulGeneric(dst[:n], x[:n])
	}
}

// Scale sets x *= a.
func Scale(x []float32, a float32) {
	switch cpu.Current() {
	case cpu.AVX512:
		scaleAVX512(unsafe.SliceData(x), len(x), a)
	case cpu.AVX2:
		scaleAVX2(unsafe.SliceData(x), len(x), a)
	case cpu.NEON:
		scaleNEON(unsafe.SliceData(x), len(x), a)
	default:
		scaleGeneric(x, a)
	}
}

// ReLU sets dst = max(x, 0); a NaN stays a NaN.
func ReLU(dst, x []float32) {
	n := min(len(dst), len(x))
	switch cpu.Current() {
	case cpu.AVX512:
		reluAVX512(unsafe.SliceData(dst), unsafe.SliceData(x), n)
	case cpu.AVX2:
		reluAVX2(unsafe.SliceData(dst), unsafe.SliceData(x), n)
	case cpu.NEON:
		reluNEON(unsafe.SliceData(dst), unsafe.SliceData(x), n)
	default:
		reluGeneric(dst[:n], x[:n])
	}
}
