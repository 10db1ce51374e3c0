package nn

import "math"

// xielu is xIELU (Huang and Schlag, "Deriving activation functions using
// integration", 2024) with the numbers p, n, beta and eps: x > 0 becomes p·x² + beta·x,
// and other x n·(expm1(min(x, eps)) − x) + beta·x.
func xielu(x []float32, numbers *[4]float32) {
	p, n, beta, eps := numbers[0], numbers[1], numbers[2], numbers[3]
	for i, v := range x {
		if v > 0 {
			x[i] = float32(p*v*v) + float32(beta*v)
			continue
		}
		e := float32(math.Expm1(float64(min(v, eps))))
		x[i] = float32((e-v)*n) + float32(beta*v)
	}
}
