package model

import "math"

// Unit scales a sum of hidden rows to length 1, which makes it an embedding. Zeros
// stay zeros.
func Unit(sum []float64) []float32 {
	square := 0.0
	for _, v := range sum {
		square += v * v
	}
	out := make([]float32, len(sum))
	for i, v := range sum {
		if square > 0 {
			out[i] = float32(v / math.Sqrt(square))
		}
	}
	return out
}
