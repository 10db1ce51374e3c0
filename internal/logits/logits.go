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
// that count, and returns the sum. The weight of a NaN is 0. w has the length of
// x; top is finite and at least as large as all of x, t is positive.
func Weights(w, x []float32, top, t float32) float64 {
	inv := min(1/t, math.MaxFloat32)
	for i, v := range x {
		w[i] = (v - top) * inv
	}
	kernel.ExpSum(w, 0)
	total := sum(w)
	if total != total {
		for i, v := range w {
			if v != v {
				w[i] = 0
			}
		}
		total = sum(w)
	}
	return total
}

// sum adds in an order that does not depend on the machine.
func sum(w []float32) float64 {
	var a, b, c, d float64
	n := len(w) &^ 3
	for i := 0; i < n; i += 4 {
		v := w[i : i+4 : i+4]
		a += float64(v[0])
		b += float64(v[1])
		c += float64(v[2])
		d += float64(v[3])
	}
	for _, v := range w[n:] {
		a += float64(v)
	}
	return (a + b) + (c + d)
}
