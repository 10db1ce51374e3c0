package compress

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"ridge/weights/tensor"
)

// absmean makes weights -1, 0 or 1 times the mean magnitude of their block, the nearest of
// them (Ma et al., BitNet b1.58, 2024, who have one for a matrix), in the ternary
// formats TQ1_0 and TQ2_0, whose own encoder takes the largest magnitude.
type absmean struct{}

func (absmean) Name() string { return "absmean" }

func (absmean) Settings() string { return "" }

// Transform implements Pass: nothing changes.
func (absmean) Transform(*Layer) error { return nil }

// Round implements Pass.
func (absmean) Round(m *Matrix, _ *Inputs, threads int) (string, error) {
	if !slices.Contains([]tensor.DType{tensor.TQ1_0, tensor.TQ2_0}, m.Type) {
		return fmt.Sprintf("plain: %s is not ternary", m.Type), m.plain(threads)
	}
	n, size := m.Type.BlockSize(), m.Type.RowBytes(m.Cols)
	errs := make([]error, m.Rows)
	parallel(m.Rows, threads, func(r int) {
		row := slices.Clone(m.row(r))
		for at := 0; at < len(row); at += n {
			part, mean := row[at:at+n], 0.0
			for _, v := range part {
				mean += math.Abs(float64(v)) / float64(n)
			}
			for i, v := range part {
				if mean > 0 {
					part[i] = float32(min(max(math.RoundToEven(float64(v)/mean), -1), 1) * mean)
				}
			}
		}
		errs[r] = m.Type.Encode(m.Out[r*size:(r+1)*size], row)
	})
	return "", errors.Join(errs...)
}
