package nn

import "math"

// XIELUCurve has the numbers of an xIELU (Huang and Schlag, "Deriving activation
// functions using integration", 2024): x > 0 becomes Pos·x² + Beta·x, and other x
// Neg·(expm1(min(x, Eps)) − x) + Beta·x.
type XIELUCurve struct{ Pos, Neg, Beta, Eps float32 }

// NewXIELU returns the curve of what a layer has learned: posRaw and negRaw are
// what softplus is taken of.
func NewXIELU(posRaw, negRaw, beta, eps float32) *XIELUCurve {
	softplus := func(x float32) float32 { return float32(math.Log1p(math.Exp(float64(x)))) }
	return &XIELUCurve{Pos: softplus(posRaw), Neg: beta + softplus(negRaw), Beta: beta, Eps: eps}
}

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
