package kernel

import (
	"unsafe"

	"ridge/internal/cpu"
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
	switch cpu.Current() {
	case cpu.AVX512:
		return expSumAVX512(unsafe.SliceData(x), len(x), top)
	case cpu.AVX2:
		return expSumAVX2(unsafe.SliceData(x), len(x), top)
	case cpu.NEON:
		return expSumNEON(unsafe.SliceData(x), len(x), top)
	}
	return expSumGeneric(x, top)
}

// MaxF32 returns the largest value of x, leaving NaN aside; -Inf if there is
// none.
func MaxF32(x []float32) float32 {
	switch cpu.Current() {
	case cpu.AVX512:
		return maxAVX512(unsafe.SliceData(x), len(x))
	case cpu.AVX2:
		return maxAVX2(unsafe.SliceData(x), len(x))
	case cpu.NEON:
		return maxNEON(unsafe.SliceData(x), len(x))
	}
	return maxGeneric(x)
}

// Argmax returns the index of the largest value of x, the first one of several.
// A NaN is never the largest; if x has no number at all the result is -1.
func Argmax(x []float32) int {
	top := MaxF32(x)
	switch cpu.Current() {
	case cpu.AVX512:
		return indexAVX512(unsafe.SliceData(x), len(x), top)
	case cpu.AVX2:
		return indexAVX2(unsafe.SliceData(x), len(x), top)
	case cpu.NEON:
		return indexNEON(unsafe.SliceData(x), len(x), top)
	}
	return indexGeneric(x, top)
}

// Dot returns Σ a·b.
func Dot(a, b []float32) float32 {
	n := min(len(a), len(b))
	switch cpu.Current() {
	case cpu.AVX512:
		return dotAVX512(unsafe.SliceData(a), unsafe.SliceData(b), n)
	case cpu.AVX2:
		return dotAVX2(unsafe.SliceData(a), unsafe.SliceData(b), n)
	case cpu.NEON:
		return dotNEON(unsafe.SliceData(a), unsafe.SliceData(b), n)
	}
	return dotGeneric(a[:n], b[:n])
}
