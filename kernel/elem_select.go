package kernel

import (
	"unsafe"
)

// AtLeast writes the indices of the values of x that are at least v to dst, in
// rising order, and returns how many they are. NaN is not at least anything.
// Only as much of x is looked at as dst has room for; what dst holds after the
// indices is undefined.
func AtLeast(dst []int32, x []float32, v float32) int {
	n := min(len(dst), len(x))
	if r, ok := atLeastTier(unsafe.SliceData(dst), unsafe.SliceData(x), n, v); ok {
		return r
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
	if r, ok := weighTier(unsafe.SliceData(x), len(x), top, inv); ok {
		return r
	}
	return weighGeneric(x, top, inv)
}
