package compress

import "fmt"

// Outliers makes some columns that normalizations give larger and divides the matrices
// behind them: the float model computes the same, and has the outliers in fixed columns
// that large models have and small ones have not. It is for measuring what methods
// against outliers do; weights are rounded plainly.
type Outliers struct {
	Columns int     // of each normalization, evenly spread
	Factor  float32 // by which they become larger
}

func (Outliers) Name() string { return "outliers" }

func (p Outliers) Settings() string { return fmt.Sprintf("columns=%d factor=%g", p.Columns, p.Factor) }

// Transform implements Pass.
func (p Outliers) Transform(l *Layer) error {
	for _, s := range l.Sites {
		if s.before == nil || len(s.before.rows) > 0 {
			continue
		}
		factors := make([]float32, s.before.n)
		for i := range factors {
			factors[i] = 1
		}
		for i := range p.Columns {
			factors[(2*i+1)*len(factors)/(2*p.Columns)] = 1 / p.Factor
		}
		s.fold(factors)
	}
	return nil
}

// Round implements Pass.
func (p Outliers) Round(m *Matrix, _ *Inputs, threads int) (string, error) {
	return "", m.plain(threads)
}
