package tensor

import "math"

// The roundings the block formats are defined with.

func abs32(x float32) float32 { return math.Float32frombits(math.Float32bits(x) &^ (1 << 31)) }

func sqrt32(x float32) float32 { return float32(math.Sqrt(float64(x))) }

// nearest rounds to the nearest integer, ties to even, for |x| <= 2^22: adding
// 1.5·2^23 leaves no room for a fraction. Anything else gives some integer, the
// same one everywhere. (The conversion keeps the addition apart from a product
// in the argument.)
func nearest(x float32) int {
	return int(math.Float32bits(float32(x)+0x1.8p23)&0x7fffff) - 0x400000
}

// truncate drops the fraction. NaN, and what does not fit an int32, gives 0:
// they appear when the inverse of a subnormal scale overflows.
func truncate(x float32) int {
	if !(abs32(x) < 1<<31) {
		return 0
	}
	return int(x)
}

// roundAway rounds to the nearest integer, ties away from zero; NaN and what
// does not fit an int32 gives 0. The sum is exact in float64.
func roundAway(x float32) int {
	if !(abs32(x) < 1<<30) {
		return 0
	}
	return int(float64(x) + math.Copysign(0.5, float64(x)))
}

func clamp(v, lo, hi int) int { return max(lo, min(v, hi)) }
