package compress

import (
	"encoding/binary"
	"math"

	"ridge/weights/tensor"
)

// affine is a reference grid that no file has: codes of Bits, and a step and a lowest
// value as float16 for each Group columns of a row. Its methods write the values
// that codes stand for into matrices of float32 and count the bytes that codes would
// take, so that what other methods leave out of a grid can be compared at equal bytes.
type affine struct{ Bits, Group int }

// bytes returns the bytes of codes, steps and lowest values.
func (a affine) bytes(rows, cols int) int {
	return (rows*cols*a.Bits+7)/8 + rows*((cols+a.Group-1)/a.Group)*4
}

// fit returns the grid of the values of x that are not kept apart.
func (a affine) fit(x []float64, kept []bool) (low, step float64) {
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
func (a affine) nearest(w, low, step float64) float64 {
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
func (a affine) solve(m *Matrix, in *Inputs, order []int, damp float64, kept func(r, c int) bool, threads int) error {
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
		feed(w, factor, func(t int, v float64) float64 {
			if t%a.Group == 0 {
				end := min(t+a.Group, n)
				low, step = a.fit(w[t:end], apart[t:end])
			}
			if apart[t] {
				return half(v)
			}
			return a.nearest(v, low, step)
		})
		for t, c := range order {
			m.setFloat(r, c, w[t])
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

// referenceGPTQ is GPTQ on a reference grid.
type referenceGPTQ struct {
	Grid affine
	Damp float64
}

func (referenceGPTQ) Name() string { return "gptq-reference" }

func (p referenceGPTQ) Settings() string { return settings(p.Grid, "damp=%g", p.Damp) }

func (referenceGPTQ) Transform(*Layer) error { return nil }

// Round implements Pass.
func (p referenceGPTQ) Round(m *Matrix, in *Inputs, threads int) (string, error) {
	if err := m.reference(); err != nil {
		return "", err
	}
	m.bytes = p.Grid.bytes(m.Rows, m.Cols)
	return "", p.Grid.solve(m, in, inOrderOf(m.Cols), p.Damp, nil, threads)
}

// referenceRTN is plain rounding on a reference grid.
type referenceRTN struct{ Grid affine }

func (referenceRTN) Name() string { return "rtn-reference" }

func (p referenceRTN) Settings() string { return settings(p.Grid, "") }

func (referenceRTN) Transform(*Layer) error { return nil }

// Round implements Pass.
func (p referenceRTN) Round(m *Matrix, _ *Inputs, threads int) (string, error) {
	if err := m.reference(); err != nil {
		return "", err
	}
	m.bytes = p.Grid.bytes(m.Rows, m.Cols)
	parallel(m.Rows, threads, func(r int) {
		p.Grid.errors(m.row(r), func(c int, e float64) { m.setFloat(r, c, float64(m.row(r)[c])-e) })
	})
	return "", nil
}
