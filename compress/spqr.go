package compress

import (
	"cmp"
	"slices"
)

// spqr keeps single weights whose rounding would change the outputs most in float16 and
// rounds the others on a reference grid as GPTQ does, with steps fitted without the kept
// ones (Dettmers et al., SpQR, 2023). Weights are ranked by the square of their
// rounding error over the diagonal of the inverse of XᵀX. Counted: the grid, two bytes
// for a kept weight and two for its column, two for a row. Steps are float16: the
// paper's second quantization, of steps, is left out.
type spqr struct {
	Grid  affine
	Share float64 // of the weights that are kept
	Damp  float64
}

func (spqr) Name() string { return "spqr" }

func (p spqr) Settings() string { return settings(p.Grid, "share=%g damp=%g", p.Share, p.Damp) }

func (spqr) Transform(*Layer) error { return nil }

// sparseBytes is what kept entries take: how many a row has, columns and float16 values.
func sparseBytes(rows, kept int) int {
	if kept == 0 {
		return 0
	}
	return 2*rows + 4*kept
}

// Round implements Pass.
func (p spqr) Round(m *Matrix, in *Inputs, threads int) (string, error) {
	if err := m.reference(); err != nil {
		return "", err
	}
	order := inOrderOf(m.Cols)
	u, _, err := in.inverseFactor(order, p.Damp, threads)
	if err != nil {
		return "", err
	}
	inverse := make([]float64, m.Cols) // the diagonal of UᵀU
	for i := range m.Cols {
		for j, v := range u.row(i) {
			inverse[i+j] += v * v
		}
	}
	loss := make([]float64, m.Rows*m.Cols)
	for r := range m.Rows {
		p.Grid.errors(m.row(r), func(c int, e float64) { loss[r*m.Cols+c] = e * e / inverse[c] })
	}
	kept := largestOf(loss, int(p.Share*float64(len(loss))+0.5))
	m.bytes = p.Grid.bytes(m.Rows, m.Cols) + sparseBytes(m.Rows, int(p.Share*float64(len(loss))+0.5))
	return "", p.Grid.solve(m, in, order, p.Damp, func(r, c int) bool { return kept[r*m.Cols+c] }, threads)
}

// largestOf marks the n largest values, the first of equals.
func largestOf(x []float64, n int) []bool {
	order := inOrderOf(len(x))
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(x[b], x[a]) })
	kept := make([]bool, len(x))
	for _, i := range order[:min(n, len(x))] {
		kept[i] = true
	}
	return kept
}
