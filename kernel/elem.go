package kernel

import "math"

// The operations of this file work on rows of float32 values. Where two slices
// of different lengths are given the shorter one decides, except that weights
// must be as long as x. A destination may be the source itself (the same first
// element); other overlaps are not allowed.
//
// Elementwise results depend on the element alone, not on its place or on the
// length of the row. Sums are formed in an order that depends on the length
// alone. Infinities and NaN follow IEEE 754 through the formula given with each
// operation, unless it says otherwise. The error budgets of the approximations
// are in elem_test.go.

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
func sum(x []float32) float32 { return sumGeneric(x) }

// sumSquares returns Σ(x-mean)².
func sumSquares(x []float32, mean float32) float32 { return sumSquaresGeneric(x, mean) }

// normalize sets dst = (x - mean)·inv·w + b; w and b may be nil.
func normalize(dst, x, w, b []float32, mean, inv float32) {
	if w != nil {
		w = w[:len(x)]
	}
	if b != nil {
		b = b[:len(x)]
	}
	normalizeGeneric(dst, x, w, b, mean, inv)
}

// Add sets dst += x.
func Add(dst, x []float32) {
	n := min(len(dst), len(x))
	addGeneric(dst[:n], x[:n])
}

// AddScaled sets dst += a·x, with one rounding on the tiers that have a fused
// multiply-add.
func AddScaled(dst, x []float32, a float32) {
	n := min(len(dst), len(x))
	addScaledGeneric(dst[:n], x[:n], a)
}

// Mul sets dst *= x.
func Mul(dst, x []float32) {
	n := min(len(dst), len(x))
	mulGeneric(dst[:n], x[:n])
}

// Scale sets x *= a.
func Scale(x []float32, a float32) { scaleGeneric(x, a) }

// ReLU sets dst = max(x, 0); a NaN stays a NaN.
func ReLU(dst, x []float32) {
	n := min(len(dst), len(x))
	reluGeneric(dst[:n], x[:n])
}

// The factors c of swish: x·sigmoid(c·x) is SiLU for 1 and QuickGELU for
// 1.702.
const (
	swishSiLU  = 1
	swishQuick = 1.702
)

// SiLU sets dst = x / (1 + exp(-x)).
func SiLU(dst, x []float32) {
	n := min(len(dst), len(x))
	swishGeneric(dst[:n], x[:n], swishSiLU)
}

// SiLUMul sets dst = SiLU(gate) · up, the gate of SwiGLU.
func SiLUMul(dst, gate, up []float32) {
	n := min(len(dst), len(gate), len(up))
	siluMulGeneric(dst[:n], gate[:n], up[:n])
}

// GELUQuick sets dst = x / (1 + exp(-1.702 x)).
func GELUQuick(dst, x []float32) {
	n := min(len(dst), len(x))
	swishGeneric(dst[:n], x[:n], swishQuick)
}

// GELU sets dst = x/2 · (1 + tanh(√(2/π) (x + 0.044715 x³))), the tanh form of
// GELU, evaluated as x·sigmoid(2√(2/π) (x + 0.044715 x³)), which is the same
// without cancellation.
func GELU(dst, x []float32) {
	n := min(len(dst), len(x))
	geluGeneric(dst[:n], x[:n])
}

// GELUMul sets dst = GELU(gate) · up, the gate of GeGLU.
func GELUMul(dst, gate, up []float32) {
	n := min(len(dst), len(gate), len(up))
	geluMulGeneric(dst[:n], gate[:n], up[:n])
}

// GELUErf sets dst = x/2 · (1 + erf(x/√2)), GELU as defined.
func GELUErf(dst, x []float32) {
	n := min(len(dst), len(x))
	geluErfGeneric(dst[:n], x[:n])
}

// Softcap sets x = limit · tanh(x / limit); limit must be positive.
func Softcap(x []float32, limit float32) { softcap(x, 1/limit, limit) }

// softcap sets x = out · tanh(in · x).
func softcap(x []float32, in, out float32) { softcapGeneric(x, in, out) }

// SoftmaxInPlace sets x = exp(x - max(x)) / Σ exp(x - max(x)). If x has a NaN
// or +Inf, or nothing but -Inf, all results are NaN.
func SoftmaxInPlace(x []float32) {
	if len(x) == 0 {
		return
	}
	total := expSum(x, MaxF32(x))
	Scale(x, 1/total)
}

// expSum sets x = exp(x - top) and returns the sum of the results.
func expSum(x []float32, top float32) float32 { return expSumGeneric(x, top) }

// MaxF32 returns the largest value of x, leaving NaN aside; -Inf if there is
// none.
func MaxF32(x []float32) float32 { return maxGeneric(x) }

// Argmax returns the index of the largest value of x, the first one of several.
// A NaN is never the largest; if x has no number at all the result is -1.
func Argmax(x []float32) int {
	return indexGeneric(x, MaxF32(x))
}

// Dot returns Σ a·b.
func Dot(a, b []float32) float32 {
	n := min(len(a), len(b))
	return dotGeneric(a[:n], b[:n])
}

// DecodeF16 converts len(dst) little-endian binary16 values of src, exactly;
// a NaN keeps its payload and becomes quiet.
func DecodeF16(dst []float32, src []byte) {
	decodeF16Generic(dst, src[:2*len(dst)])
}

// EncodeF16 converts src to little-endian binary16 values, rounding to nearest
// even; values that round beyond 65504 become infinities.
func EncodeF16(dst []byte, src []float32) {
	encodeF16Generic(dst[:2*len(src)], src)
}

// DecodeBF16 converts len(dst) little-endian bfloat16 values of src, exactly.
func DecodeBF16(dst []float32, src []byte) {
	decodeBF16Generic(dst, src[:2*len(dst)])
}

// EncodeBF16 converts src to little-endian bfloat16 values, rounding to nearest
// even; a NaN becomes quiet.
func EncodeBF16(dst []byte, src []float32) {
	encodeBF16Generic(dst[:2*len(src)], src)
}
