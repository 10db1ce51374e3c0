package compress

import (
	"cmp"
	"fmt"
	"slices"

	"ridge/weights/tensor"
)

// settings are those of a method on a reference grid.
func settings(a affine, format string, args ...any) string {
	return fmt.Sprintf("bits=%d group=%d "+format, append([]any{a.Bits, a.Group}, args...)...)
}

// reference says that m stays in float32.
func (m *Matrix) reference() error {
	if m.Type != tensor.F32 {
		return fmt.Errorf("a reference method: expected a matrix that stays F32, found %s", m.Type)
	}
	return nil
}

// owq keeps the columns whose rounding would change the outputs most in float16, rounds
// the others on a reference grid as GPTQ does, and lets the kept ones pay last (Lee et
// al., OWQ, 2024). Columns are ranked by the square of their inputs times that of
// their rounding errors. Counted: the grid, two bytes a kept weight, four a kept column.
type owq struct {
	Grid  affine
	Share float64 // of the columns that are kept
	Damp  float64
}

func (owq) Name() string { return "owq" }

func (p owq) Settings() string { return settings(p.Grid, "share=%g damp=%g", p.Share, p.Damp) }

func (owq) Transform(*Layer) error { return nil }

// weak returns the columns that are kept, ascending.
func (p owq) weak(m *Matrix, in *Inputs) []int {
	loss := make([]float64, m.Cols)
	for r := range m.Rows {
		p.Grid.errors(m.row(r), func(c int, e float64) { loss[c] += e * e })
	}
	for c := range loss {
		loss[c] *= in.products.row(c)[0]
	}
	order := inOrderOf(m.Cols)
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(loss[b], loss[a]) })
	kept := order[:int(p.Share*float64(m.Cols)+0.5)]
	slices.Sort(kept)
	return kept
}

// errors calls do with the error of each weight of a row that is rounded plainly.
func (a affine) errors(row []float32, do func(c int, e float64)) {
	x := make([]float64, len(row))
	for c, v := range row {
		x[c] = float64(v)
	}
	for at := 0; at < len(x); at += a.Group {
		part := x[at:min(at+a.Group, len(x))]
		low, step := a.fit(part, nil)
		for i, v := range part {
			do(at+i, v-a.nearest(v, low, step))
		}
	}
}

// Round implements Pass.
func (p owq) Round(m *Matrix, in *Inputs, threads int) (string, error) {
	if err := m.reference(); err != nil {
		return "", err
	}
	weak := p.weak(m, in)
	apart := make([]bool, m.Cols)
	for _, c := range weak {
		apart[c] = true
	}
	order := slices.DeleteFunc(inOrderOf(m.Cols), func(c int) bool { return apart[c] })
	m.bytes = p.Grid.bytes(m.Rows, len(order)) + len(weak)*(2*m.Rows+4)
	return "", p.Grid.solve(m, in, append(order, weak...), p.Damp, func(_, c int) bool { return apart[c] }, threads)
}
