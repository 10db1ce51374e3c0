package compress

import (
	"errors"
	"fmt"
	"math"
)

// clip makes the range of each block narrower before it is encoded, if that changes the
// outputs less: of some widths the one with the least error is taken, counted with the
// products of the block's inputs (the search of AWQ's authors; OmniQuant, Shao et al.,
// 2024, learns the widths by gradient). It works on every format and after AWQ.
type clip struct{}

func (clip) Name() string { return "clip" }

func (clip) Settings() string { return fmt.Sprintf("widths=%d", clipWidths) }

// Transform implements Pass: nothing changes.
func (clip) Transform(*Layer) error { return nil }

// clipWidths are tried: the whole range, and less by a twentieth each.
const clipWidths = 10

// Round implements Pass.
func (clip) Round(m *Matrix, in *Inputs, threads int) (string, error) {
	n := m.Type.BlockSize()
	errs := make([]error, m.Rows)
	parallel(m.Rows, threads, func(r int) {
		s := newClipping(m.Type.BlockBytes(), n)
		size := m.Type.RowBytes(m.Cols)
		out := m.Out[r*size : (r+1)*size]
		for at := 0; at < m.Cols && errs[r] == nil; at += n {
			end := min(at+n, m.Cols)
			to := out[at/n*m.Type.BlockBytes():][:m.Type.RowBytes(end-at)]
			if err := s.encode(m, in, to, m.row(r)[at:end], at); err != nil {
				errs[r] = fmt.Errorf("row %d: %w", r, err)
			}
		}
	})
	return "", errors.Join(errs...)
}

// clipping is the memory of a search.
type clipping struct {
	try  []byte
	x, y []float32
	d    []float64
}

func newClipping(bytes, n int) *clipping {
	return &clipping{make([]byte, bytes), make([]float32, n), make([]float32, n), make([]float64, n)}
}

// encode encodes the values x of a row from column at on, whose first error decides.
func (s *clipping) encode(m *Matrix, in *Inputs, dst []byte, x []float32, at int) error {
	low, high := x[0], x[0]
	for _, v := range x {
		low, high = min(low, v), max(high, v)
	}
	least, try, clipped, y, d := math.Inf(1), s.try[:len(dst)], s.x[:len(x)], s.y[:len(x)], s.d[:len(x)]
	for k := range clipWidths {
		width := 1 - float32(k)/(2*clipWidths)
		for i, v := range x {
			clipped[i] = min(max(v, low*width), high*width)
		}
		if err := m.encode(try, clipped, at); err != nil {
			return err
		}
		m.Type.Decode(y, try)
		for i, v := range x {
			d[i] = float64(y[i]) - float64(v)
		}
		if loss := in.part(d, at); loss < least {
			least = loss
			copy(dst, try)
		}
	}
	return nil
}

// part returns the energy of errors d of the columns from at on alone.
func (in *Inputs) part(d []float64, at int) float64 {
	sum := 0.0
	for i, v := range d {
		if v == 0 {
			continue
		}
		row := in.products.row(at + i)
		inner := v * row[0]
		for j := i + 1; j < len(d); j++ {
			inner += 2 * row[j-i] * d[j]
		}
		sum += v * inner
	}
	return sum
}
