package compress

import (
	"fmt"
	"math"
)

// SmoothQuant divides the columns that a normalization gives by factors and multiplies
// the matrices that read them, so that large inputs become smaller where weights have
// room: the largest input of a column to the power of Strength, over the largest weight
// to that of the rest (Xiao et al., SmoothQuant, 2023). The float model computes the
// same. It is for activations of few bits; weights are rounded plainly.
type SmoothQuant struct {
	Strength float64 // 0 to 1; the paper has 0.5
}

func (SmoothQuant) Name() string { return "smoothquant" }

func (p SmoothQuant) Settings() string { return fmt.Sprintf("strength=%g", p.Strength) }

// Round implements Pass.
func (SmoothQuant) Round(m *Matrix, _ *Inputs, threads int) (string, error) {
	return "", m.plain(threads)
}

// Transform implements Pass.
func (p SmoothQuant) Transform(l *Layer) error {
	for _, s := range l.Sites {
		if s.before == nil || len(s.before.rows) > 0 {
			continue // only what a normalization gives
		}
		weights := make([]float64, s.Inputs.Cols)
		for _, m := range s.Mats {
			for r := range m.Rows {
				for c, v := range m.row(r) {
					weights[c] = max(weights[c], math.Abs(float64(v)))
				}
			}
		}
		factors := make([]float32, s.Inputs.Cols)
		for c, w := range weights {
			x := max(s.Inputs.Largest[c], 1e-5)
			factors[c] = float32(max(math.Pow(x, p.Strength)/math.Pow(max(w, 1e-5), 1-p.Strength), 1e-5))
		}
		s.fold(factors)
	}
	return nil
}
