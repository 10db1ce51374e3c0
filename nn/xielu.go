package nn

import "math"

// XIELUCurve has the numbers of an xIELU (Huang and Schlag, "Deriving activation
// functions using integration", 2024): x > 0 becomes Pos·x² + Beta·x, and other x
// Neg·(expm1(min(x, Eps)) − x) + Beta·x.
type XIELUCurve struct{ Pos, Neg, Beta, Eps float32 }

func (c *XIELUCurve) apply(x []float32) {
	for i, v := range x {
		if v > 0 {
			x[i] = float32(c.Pos*v*v) + float32(c.Beta*v)
			continue
		}
		e := float32(math.Expm1(float64(min(v, c.Eps))))
		x[i] = float32((e-v)*c.Neg) + float32(c.Beta*v)
	}
}
