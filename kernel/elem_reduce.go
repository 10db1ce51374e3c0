package kernel

import (
	"unsafe"
)

// SoftmaxInPlace sets x = exp(x - max(x)) / Σ exp(x - max(x)). If x has a NaN
// or +Inf, or nothing but -Inf, all results are NaN.
func SoftmaxInPlace(x []float32) {
	if len(x) == 0 {
		return
	}
	total := ExpSum(x, MaxF32(x))
	Scale(x, 1/total)
}

// ExpSum sets x = exp(x - top) and returns the sum of the results. The order of
// the sum depends on the instruction set.
func ExpSum(x []float32, top float32) float32 {
	if r, ok := expSumTier(unsafe.SliceData(x), len(x), top); ok {
		return r
	}
	return expSumGeneric(x, top)
}

// MaxF32 returns the largest value of x, leaving NaN aside; -Inf if there is
// none.
func MaxF32(x []float32) float32 {
	if r, ok := maxTier(unsafe.SliceData(x), len(x)); ok {
		return r
	}
	return maxGeneric(x)
}

// Argmax returns the index of the largest value of x, the first one of several.
// A NaN is never the largest; if x has no number at all the result is -1.
func Argmax(x []float32) int {
	top := MaxF32(x)
	if r, ok := indexTier(unsafe.SliceData(x), len(x), top); ok {
		return r
	}
	return indexGeneric(x, top)
}
