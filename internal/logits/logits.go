// Package logits does the arithmetic over rows of logits, a number per entry of
// a vocabulary, that sampling needs. It runs on the kernels.
package logits

import (
	"math"

	"ridge/kernel"
)

// Max returns the largest logit, leaving NaN aside; -Inf if there is none.
func Max(x []float32) float32 { return kernel.MaxF32(x) }

// Argmax returns the first index of the largest logit, leaving NaN aside, or -1
// if none is above -Inf.
func Argmax(x []float32) int {
	i := kernel.Argmax(x)
	if i >= 0 && math.IsInf(float64(x[i]), -1) {
		return -1
	}
	return i
}

// Weights sets w = exp((x - top)/t), to a relative error of some 1e-7 for weights
// that count. The weight of a NaN is 0. w has the length of x; top is finite and
// at least as large as all of x, t is positive.
func Weights(w, x []float32, top, t float32) {
	kernel.Center(w, x, top, inverse(t))
	if total := kernel.ExpSum(w, 0); total == total {
		return
	}
	for i, v := range w {
		if v != v {
			w[i] = 0
		}
	}
}

// Weight returns the sum of the weights of x. Its relative error grows with the
// root of the length: it is some 2e-7 for 512.
func Weight(x []float32, top, t float32) float64 {
	inv := inverse(t)
	if total := kernel.Weigh(x, top, inv); total == total {
		return float64(total)
	}
	total := 0.0
	for _, v := range x {
		if v == v {
			total += math.Exp(float64((v - top) * inv))
		}
	}
	return total
}

// inverse is 1/t, or what is next to it and finite.
func inverse(t float32) float32 { return min(1/t, math.MaxFloat32) }

// AtLeast writes the indices of the logits that are at least v to dst, in rising
// order, and returns how many they are. dst has the length of x.
func AtLeast(dst []int32, x []float32, v float32) int { return kernel.AtLeast(dst, x, v) }
