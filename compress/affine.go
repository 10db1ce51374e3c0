package compress

import (
	"encoding/binary"
	"math"

	"ridge/weights/tensor"
)

// Affine is a reference grid that no file has: codes of Bits, and a step and a lowest
// value as float16 for each Group columns of a row. Its methods write the values
// that codes stand for into matrices of float32 and count the bytes that codes would
// take, so that what other methods leave out of a grid can be compared at equal bytes.
type Affine struct{ Bits, Group int }

// bytes returns the bytes of codes, steps and lowest values.
func (a Affine) bytes(rows, cols int) int {
	return (rows*cols*a.Bits+7)/8 + rows*((cols+a.Group-1)/a.Group)*4
}

// fit returns the grid of the values of x that are not kept apart.
func (a Affine) fit(x []float64, kept []bool) (low, step float64) {
	least, most := math.Inf(1), math.Inf(-1)
	for i, v := range x {
		if kept == nil || !kept[i] {
			least, most = min(least, v), max(most, v)
		}
	}
	if least > most {
		return 0, 0
	}
	return half(least), half((most - least) / float64(int(1)<<a.Bits-1))
}

// nearest returns the value of the grid that is nearest to w.
func (a Affine) nearest(w, low, step float64) float64 {
	if step == 0 {
		return low
	}
	return low + step*min(max(math.Floor((w-low)/step+0.5), 0), float64(int(1)<<a.Bits-1))
}

// half rounds to a float16.
func half(v float64) float64 { return float64(tensor.F16ToF32(tensor.F32ToF16(float32(v)))) }

// solve rounds the rows of m, column after column in the given order, each error paid for
// by those that come later, as GPTQ does. Groups are runs of the order. Entries that kept
// says (nil for none) are rounded to float16 only.
func (a Affine) solve(m *Matrix, in *Inputs, order []int, damp float64, kept func(r, c int) bool, threads int) error {
	factor, _, err := in.inverseFactor(order, damp, threads)
	if err != nil {
		return err
	}
	n := m.Cols
	parallel(m.Rows, threads, func(r int) {
		w, apart, row := make([]float64, n), make([]bool, n), m.row(r)
		for t, c := range order {
			w[t], apart[t] = float64(row[c]), kept != nil && kept(r, c)
		}
		var low, step float64
		for t, c := range order {
			if t%a.Group == 0 {
				end := min(t+a.Group, n)
				low, step = a.fit(w[t:end], apart[t:end])
			}
			q := half(w[t])
			if !apart[t] {
				q = a.nearest(w[t], low, step)
			}
			m.setFloat(r, c, q)
			f, rest := factor.row(t), w[t:]
			e := (rest[0] - q) / f[0]
			for j := 1; j < len(rest); j++ {
				rest[j] -= e * f[j]
			}
		}
	})
	return nil
}

// setFloat writes a value of a matrix that stays in float32.
func (m *Matrix) setFloat(r, c int, v float64) {
	binary.LittleEndian.PutUint32(m.Out[4*(r*m.Cols+c):], math.Float32bits(float32(v)))
}

// inOrderOf returns the columns in their own order.
func inOrderOf(cols int) []int {
	order := make([]int, cols)
	for i := range order {
		order[i] = i
	}
	return order
}

// ReferenceGPTQ is GPTQ on a reference grid.
type ReferenceGPTQ struct {
	Grid Affine
	Damp float64
}

func (ReferenceGPTQ) Name() string { return "gptq-reference" }

func (p ReferenceGPTQ) Settings() string { return settings(p.Grid, "damp=%g", p.Damp) }

func (ReferenceGPTQ) Transform(*Layer) error { return nil }

// Round implements Pass.
func (p ReferenceGPTQ) Round(m *Matrix, in *Inputs, threads int) (string, error) {
	if err := m.reference(); err != nil {
		return "", err
	}
	m.bytes = p.Grid.bytes(m.Rows, m.Cols)
	return "", p.Grid.solve(m, in, inOrderOf(m.Cols), p.Damp, nil, threads)
}
