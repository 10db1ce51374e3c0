package model

import (
	"fmt"
	"math"

	"ridge/kernel"
	"ridge/nn"
	"ridge/weights/tensor"
)

// rowNorms say how long the rows of a matrix W are when an adapter has changed it to
// W + s·D, for any scale s: |w + s·d|² = w·w + 2s·w·d + s²·d·d. DoRA gives each row a
// length of its own in place of that (Liu et al. 2024, arXiv 2402.09353).
type rowNorms struct {
	size       []float32
	ww, wd, dd []float64
}

// gain returns what the products with each row of W + s·D are multiplied with.
func (n *rowNorms) gain(s float32) []float32 {
	out := make([]float32, len(n.size))
	for r, size := range n.size {
		s := float64(s)
		out[r] = float32(float64(size) / math.Sqrt(n.ww[r]+2*s*n.wd[r]+s*s*n.dd[r]))
	}
	return out
}

// measureRows is how many rows of a weight are decoded at a time.
const measureRows = 64

// measure gives the deltas of a target that were added last the lengths of their rows.
func (m *Model) measure(a *Adapter, f *adapterFile, t *adapterTarget, p *lowRank, up tensor.Mat, parts []*kernel.Packed, linears map[*kernel.Packed]*nn.Linear) error {
	all, err := t.sizes(f, p)
	if err != nil {
		return err
	}
	w, _, err := m.src.mat(t.weight)
	if err != nil {
		return err
	}
	defer m.src.release(w.Data)
	if w.Rows != up.Rows {
		return f.fault("tensor %q: expected a weight of %d rows, found %d", p.sizeName, up.Rows, w.Rows)
	}
	first := 0
	for _, part := range parts {
		l := linears[part]
		last := len(a.deltas.Deltas[l]) - 1
		d := &a.deltas.Deltas[l][last]
		n := newRowNorms(d.Down, decodeAll(p.down), w, up, first, part.Rows)
		n.size = all[first : first+part.Rows]
		d.Gain = n.gain(d.Scale)
		for r, g := range d.Gain {
			if g-g != 0 {
				return f.fault("tensor %q: row %d: expected a changed weight that is not zero, found a gain of %v", p.sizeName, first+r, g)
			}
		}
		a.norms[l][last] = n
		a.Bytes += int64(len(n.size)) * 32
		first += part.Rows
	}
	return nil
}

// sizes returns the lengths of a target's rows in the order of the model's.
func (t *adapterTarget) sizes(f *adapterFile, p *lowRank) ([]float32, error) {
	size := tensor.Mat{Type: p.size.Type, Rows: p.size.Cols, Cols: 1, Data: p.size.Data}
	if size.Rows != p.up.Rows {
		return nil, f.fault("tensor %q: expected %d numbers, one for each row of %q, found %d", p.sizeName, p.up.Rows, p.upName, size.Rows)
	}
	if t.fix != nil && !t.turns(size.Rows) {
		var err error
		if size, err = t.fix(size); err != nil {
			return nil, f.fault("tensor %q: %w", p.sizeName, err)
		}
	}
	return decodeAll(size), nil
}

// newRowNorms measures n rows of w from row first on, and those of up·down.
func newRowNorms(packed *kernel.Packed, down []float32, w, up tensor.Mat, first, n int) *rowNorms {
	rank, cols := packed.Rows, packed.Cols
	gram := make([]float64, rank*rank) // of the rows of down
	for i := range rank {
		for k := range i + 1 {
			sum := 0.0
			for c := range cols {
				sum += float64(down[i*cols+c]) * float64(down[k*cols+c])
			}
			gram[i*rank+k], gram[k*rank+i] = sum, sum
		}
	}
	out := &rowNorms{ww: make([]float64, n), wd: make([]float64, n), dd: make([]float64, n)}
	var rows, products kernel.Acts
	b := make([]float32, rank)
	for lo := 0; lo < n; lo += measureRows {
		count := min(measureRows, n-lo)
		nn.Rows(&rows, count, cols, false)
		nn.Rows(&products, count, rank, false)
		for i := range count {
			w.DecodeRow(nn.Row(&rows, i), first+lo+i)
		}
		packed.Mul(products.F32, products.LDF, &rows, 0, count, 0, packed.Groups)
		for i := range count {
			up.DecodeRow(b, first+lo+i)
			r, wa := lo+i, nn.Row(&products, i)
			for _, v := range nn.Row(&rows, i) {
				out.ww[r] += float64(v) * float64(v)
			}
			for k, x := range b {
				out.wd[r] += float64(x) * float64(wa[k])
				for j, y := range b {
					out.dd[r] += float64(x) * float64(y) * gram[k*rank+j]
				}
			}
		}
	}
	return out
}

// decodeAll returns the numbers of a matrix, row by row.
func decodeAll(m tensor.Mat) []float32 {
	out := make([]float32, m.Rows*m.Cols)
	for r := range m.Rows {
		m.DecodeRow(out[r*m.Cols:(r+1)*m.Cols], r)
	}
	return out
}

// checkSizes refuses an adapter of which some targets have lengths and others have
// not, or that has some and does not say so.
func (c *peftConfig) checkSizes(p *lowRank, target string) error {
	switch {
	case c.dora && p.sizeName == "":
		return fmt.Errorf("%s: expected the lengths of its rows (lora_magnitude_vector) since use_dora is set, found none", target)
	case !c.dora && p.sizeName != "":
		return fmt.Errorf("tensor %q: expected no lengths of rows since use_dora is not set, found some", p.sizeName)
	}
	return nil
}
