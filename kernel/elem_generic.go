package kernel

import (
	"math"
)

// The definitions of the elementwise operations. Sums and transcendental
// functions are computed in float64 and rounded once.

func sumGeneric(x []float32) float32 {
	var s float64
	for _, v := range x {
		s += float64(v)
	}
	return float32(s)
}

func sumSquaresGeneric(x []float32, mean float32) float32 {
	var s float64
	for _, v := range x {
		d := float64(v) - float64(mean)
		s += d * d
	}
	return float32(s)
}

func normalizeGeneric(dst, x, w, b []float32, mean, inv float32) {
	for i, v := range x {
		y := (v - mean) * inv
		if w != nil {
			y *= w[i]
		}
		if b != nil {
			y += b[i]
		}
		dst[i] = y
	}
}

func addGeneric(dst, x []float32) {
	for i, v := range x {
		dst[i] += v
	}
}

func addScaledGeneric(dst, x []float32, a float32) {
	for i, v := range x {
		dst[i] += a * v
	}
}

func mulGeneric(dst, x []float32) {
	for i, v := range x {
		dst[i] *= v
	}
}

func scaleGeneric(x []float32, a float32) {
	for i := range x {
		x[i] *= a
	}
}

func reluGeneric(dst, x []float32) {
	for i, v := range x {
		dst[i] = max(v, 0)
	}
}

// swish returns x·sigmoid(c·x).
func swish(x, c float64) float64 { return x / (1 + math.Exp(-c*x)) }

func swishGeneric(dst, x []float32, c float32) {
	for i, v := range x {
		dst[i] = float32(swish(float64(v), float64(c)))
	}
}

func siluMulGeneric(dst, gate, up []float32) {
	for i, v := range gate {
		dst[i] = float32(swish(float64(v), 1)) * up[i]
	}
}

// gelu returns the tanh form of GELU.
func gelu(x float64) float64 {
	u := math.Sqrt(2/math.Pi) * (x + 0.044715*x*x*x)
	return x / (1 + math.Exp(-2*u))
}

func geluGeneric(dst, x []float32) {
	for i, v := range x {
		dst[i] = float32(gelu(float64(v)))
	}
}

func geluMulGeneric(dst, gate, up []float32) {
	for i, v := range gate {
		dst[i] = float32(gelu(float64(v))) * up[i]
	}
}

func geluErfGeneric(dst, x []float32) {
	for i, v := range x {
		dst[i] = float32(float64(v) / 2 * math.Erfc(-float64(v)/math.Sqrt2))
	}
}

func softcapGeneric(x []float32, in, out float32) {
	for i, v := range x {
		x[i] = out * float32(math.Tanh(float64(in*v)))
	}
}

func expSumGeneric(x []float32, top float32) float32 {
	var s float64
	for i, v := range x {
		e := float32(math.Exp(float64(v) - float64(top)))
		x[i] = e
		s += float64(e)
	}
	return float32(s)
}

func weighGeneric(x []float32, top, inv float32) float32 {
	var s float64
	for _, v := range x {
		s += math.Exp(float64((v - top) * inv))
	}
	return float32(s)
}

func maxGeneric(x []float32) float32 {
	top := float32(math.Inf(-1))
	for _, v := range x {
		if v > top {
			top = v
		}
	}
	return top
}

// indexGeneric returns the index of the first value of x equal to v, or -1.
func indexGeneric(x []float32, v float32) int {
	for i, u := range x {
		if u == v {
			return i
		}
	}
	return -1
}

// atLeastGeneric writes the indices of the values that are at least v to dst and
// returns how many they are.
func atLeastGeneric(dst []int32, x []float32, v float32) int {
	n := 0
	for i, u := range x {
		if u >= v {
			dst[n] = int32(i)
			n++
		}
	}
	return n
}
