package kernel

import (
	"unsafe"

	"ridge/internal/cpu"
)

// AtLeast writes the indices of the values of x that are at least v to dst, in
// rising order, and returns how many they are. NaN is not at least anything.
// Only as much of x is looked at as dst has room for; what dst holds after the
// indices is undefined.
func AtLeast(dst []int32, x []float32, v float32) int {
	n := min(len(dst), len(x))
	switch cpu.Current() {
	case cpu.AVX512:
		return atLeastAVX512(unsafe.SliceData(dst), unsafe.SliceData(x), n, v)
	case cpu.AVX2:
		return atLeastAVX2(unsafe.SliceData(dst), unsafe.SliceData(x), n, v)
	case cpu.NEON:
		return atLeastNEON(unsafe.SliceData(dst), unsafe.SliceData(x), n, v)
	}
	return atLeastGeneric(dst, x[:n], v)
}

// Center sets dst = (x - mean)·inv.
func Center(dst, x []float32, mean, inv float32) {
	n := min(len(dst), len(x))
	normalize(dst[:n], x[:n], nil, nil, mean, inv)
}

// Weigh returns Σexp((x - top)·inv). The order of the sum depends on the
// instruction set and on the length of x.
func Weigh(x []float32, top, inv float32) float32 {
	switch cpu.Current() {
	case cpu.AVX512:
		return weighAVX512(unsafe.SliceData(x), len(x), top, inv)
	case cpu.AVX2:
		return weighAVX2(unsafe.SliceData(x), len(x), top, inv)
	case cpu.NEON:
		return weighNEON(unsafe.SliceData(x), len(x), top, inv)
	}
	return weighGeneric(x, top, inv)
}
