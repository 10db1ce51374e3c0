package kernel

import (
	"math"
	"unsafe"
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
	if r, ok := sumTier(unsafe.SliceData(x), len(x)); ok {
		return r
	}
	return sumGeneric(x)
}

// sumSquares returns Σ(x-mean)².
func sumSquares(x []float32, mean float32) float32 {
	if r, ok := sumSquaresTier(unsafe.SliceData(x), len(x), mean); ok {
		return r
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
	done := false
	switch wp, bp := unsafe.SliceData(w), unsafe.SliceData(b); {
	case w != nil && b != nil:
		done = normalizeWBTier(d, p, wp, bp, n, mean, inv)
	case w != nil:
		done = normalizeWTier(d, p, wp, n, mean, inv)
	case b != nil:
		done = normalizeBTier(d, p, bp, n, mean, inv)
	default:
		done = normalizeTier(d, p, n, mean, inv)
	}
	if !done {
		normalizeGeneric(dst, x, w, b, mean, inv)
	}
}

// Add sets dst += x.
func Add(dst, x []float32) {
	n := min(len(dst), len(x))
	if !addTier(unsafe.SliceData(dst), unsafe.SliceData(x), n) {
		addGeneric(dst[:n], x[:n])
	}
}

// AddScaled sets dst += a·x, with one rounding on the tiers that have a fused
// multiply-add.
func AddScaled(dst, x []float32, a float32) {
	n := min(len(dst), len(x))
	if !addScaledTier(unsafe.SliceData(dst), unsafe.SliceData(x), n, a) {
		addScaledGeneric(dst[:n], x[:n], a)
	}
}

// Mul sets dst *= x.
func Mul(dst, x []float32) {
	n := min(len(dst), len(x))
	if !mulTier(unsafe.SliceData(dst), unsafe.SliceData(x), n) {
		mulGeneric(dst[:n], x[:n])
	}
}

// Scale sets x *= a.
func Scale(x []float32, a float32) {
	if !scaleTier(unsafe.SliceData(x), len(x), a) {
		scaleGeneric(x, a)
	}
}

// ReLU sets dst = max(x, 0); a NaN stays a NaN.
func ReLU(dst, x []float32) {
	n := min(len(dst), len(x))
	if !reluTier(unsafe.SliceData(dst), unsafe.SliceData(x), n) {
		reluGeneric(dst[:n], x[:n])
	}
}
