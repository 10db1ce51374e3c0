package compress

import (
	"fmt"
	"math"
)

// perRow rounds each row of a matrix to integers of so many bits with one step: the
// coarse grid of weights that SmoothQuant and LLM.int8() were compared with. It is a
// reference: values are written as float32, and a step for each row is counted as float16.
type perRow struct{ Bits int }

func (perRow) Name() string { return "per-row" }

func (p perRow) Settings() string { return fmt.Sprintf("bits=%d", p.Bits) }

func (perRow) Transform(*Layer) error { return nil }

// Round implements Pass.
func (p perRow) Round(m *Matrix, _ *Inputs, threads int) (string, error) {
	if err := m.reference(); err != nil {
		return "", err
	}
	m.bytes = (len(m.W)*p.Bits+7)/8 + 2*m.Rows
	parallel(m.Rows, threads, func(r int) {
		largest := 0.0
		for _, v := range m.row(r) {
			largest = max(largest, math.Abs(float64(v)))
		}
		step := largest / float64(int(1)<<(p.Bits-1)-1)
		for c, v := range m.row(r) {
			if step > 0 {
				m.setFloat(r, c, math.RoundToEven(float64(v)/step)*step)
			} else {
				m.setFloat(r, c, 0)
			}
		}
	})
	return "", nil
}
