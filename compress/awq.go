package compress

import (
	"fmt"
	"math"
	"slices"
)

// AWQ multiplies columns whose inputs are large before rounding, so that their errors
// are smaller, and divides what comes before them: the float model computes the same
// (Lin et al., AWQ, 2024). Factors are powers of the mean magnitude of a column; of
// twenty exponents the one with the least error of the outputs is taken, and none at
// all if that is best. Columns are divided in the normalization in front, in ffn_up for
// ffn_down, and in attn_v for attn_output, where heads that share values share factors.
type AWQ struct {
	always bool    // take exponent, not the best one
	power  float64 // for always
}

func (AWQ) Name() string { return "awq" }

func (AWQ) Settings() string { return fmt.Sprintf("exponents=%d", awqExponents) }

// Round implements Pass: what was multiplied is encoded as it is.
func (AWQ) Round(m *Matrix, _ *Inputs, threads int) (string, error) { return "", m.plain(threads) }

const (
	awqExponents = 20
	// awqRows bounds how many rows of a matrix the search looks at.
	awqRows = 256
)

// Transform implements Pass.
func (p AWQ) Transform(l *Layer) error {
	for _, s := range l.Sites {
		if s.before == nil {
			continue
		}
		if err := p.site(l, s); err != nil {
			return err
		}
	}
	return nil
}

// site finds the factors of a site and multiplies and divides by them.
func (p AWQ) site(l *Layer, s *Site) error {
	magnitudes, met := make([]float64, s.before.n), make([]float64, s.before.n)
	for c, sum := range s.Inputs.Magnitudes {
		magnitudes[s.before.index(c)] += sum
		met[s.before.index(c)]++
	}
	for i := range magnitudes {
		magnitudes[i] /= met[i] * float64(max(s.Inputs.Rows, 1))
	}
	var best []float32
	least := math.Inf(1)
	for k := range awqExponents {
		power := float64(k) / awqExponents
		if p.always {
			power = p.power
		}
		factors := awqFactors(magnitudes, power)
		wide := make([]float32, s.Inputs.Cols)
		for c := range wide {
			wide[c] = factors[s.before.index(c)]
		}
		loss := 0.0
		for _, m := range s.Mats {
			e, err := m.outputError(s.Inputs, wide, awqRows, l.threads)
			if err != nil {
				return err
			}
			loss += e
		}
		if loss < least {
			least, best = loss, factors
			s.note = fmt.Sprintf("exponent %.2f", power)
		}
		if p.always {
			break
		}
	}
	if best == nil {
		return fmt.Errorf("layer %d, %s: expected a finite error of the outputs, found none", l.Index, s.Mats[0].Name)
	}
	s.fold(best)
	return nil
}

// awqFactors returns the factors of an exponent, around one.
func awqFactors(magnitudes []float64, power float64) []float32 {
	f := make([]float64, len(magnitudes))
	for i, v := range magnitudes {
		f[i] = max(math.Pow(v, power), 1e-4)
	}
	middle := math.Sqrt(slices.Max(f) * slices.Min(f))
	out := make([]float32, len(f))
	for i, v := range f {
		out[i] = float32(v / middle)
	}
	return out
}

// before is what computes the columns that a site reads, and can be divided.
type before struct {
	n     int           // how many values it computes
	index func(int) int // the one that a column is
	// rows are matrices whose rows give them, numbers are vectors that scale or shift
	// them; of a normalization, its weights.
	rows, numbers []*Matrix
}

// fold multiplies the columns of the site's matrices by factors and divides what comes
// before them.
func (s *Site) fold(factors []float32) {
	wide := make([]float32, s.Inputs.Cols)
	for c := range wide {
		wide[c] = factors[s.before.index(c)]
	}
	for _, m := range s.Mats {
		for r := range m.Rows {
			row := m.row(r)
			for c := range row {
				row[c] *= wide[c]
			}
		}
		m.changed = true
	}
	for _, v := range s.before.numbers {
		for i := range v.W {
			v.W[i] /= factors[i]
		}
		v.changed = true
	}
	for _, m := range s.before.rows {
		for r := range m.Rows {
			row := m.row(r)
			for c := range row {
				row[c] /= factors[r]
			}
		}
		m.changed = true
	}
	s.Inputs.divide(wide)
}
