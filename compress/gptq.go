package compress

import (
	"errors"
	"fmt"
	"slices"
)

// GPTQ rounds the columns of a matrix one after the other and gives the error of each
// to those that are not yet rounded, so that the outputs on the calibration text change
// least (Frantar et al., GPTQ, 2023). The format's encoder fits the scales of each
// block when its turn comes; with ActOrder columns come in the order of their
// squares, largest first, and all scales are fitted before, so that the file is laid
// out as ever.
type GPTQ struct {
	ActOrder bool
	// Damp times the mean of the diagonal is added to the diagonal of XᵀX.
	Damp float64
}

func (GPTQ) Name() string { return "gptq" }

func (p GPTQ) Settings() string { return fmt.Sprintf("act-order=%v damp=%g", p.ActOrder, p.Damp) }

func (GPTQ) Transform(*Layer) error { return nil }

// gptqTile is how many rows are rounded together: those of the factor are read once
// for all of them.
const gptqTile = 8

// Round implements Pass.
func (p GPTQ) Round(m *Matrix, in *Inputs, threads int) (note string, err error) {
	g := gridOf(m.Type)
	if g == nil {
		return fmt.Sprintf("plain: %s has no evenly spaced steps", m.Type), m.plain(threads)
	}
	s := &gptq{g: g, m: m, order: make([]int, m.Cols), early: p.ActOrder}
	for i := range s.order {
		s.order[i] = i
	}
	if p.ActOrder {
		slices.SortStableFunc(s.order, func(a, b int) int {
			if x, y := in.products.row(a)[0], in.products.row(b)[0]; x != y {
				if x > y {
					return -1
				}
				return 1
			}
			return 0
		})
	}
	var damp float64
	if s.factor, damp, err = in.inverseFactor(s.order, p.Damp, threads); err != nil {
		return "", err
	}
	if damp != p.Damp {
		note = fmt.Sprintf("singular: damped by %g of the mean square", damp)
	} else if in.Rows < in.Cols {
		note = fmt.Sprintf("%d rows for %d columns: singular but for the damping of %g", in.Rows, in.Cols, damp)
	}
	tiles := (m.Rows + gptqTile - 1) / gptqTile
	errs := make([]error, tiles)
	parallel(tiles, threads, func(i int) { errs[i] = s.tile(i*gptqTile, min((i+1)*gptqTile, m.Rows)) })
	return note, errors.Join(errs...)
}

// gptq is what the rows of a matrix share.
type gptq struct {
	g      *grid
	m      *Matrix
	order  []int // column of each turn
	factor triangle
	early  bool // scales are fitted before the first turn
}

// tile rounds rows lo to hi.
func (s *gptq) tile(lo, hi int) error {
	m, g, cols := s.m, s.g, s.m.Cols
	n := hi - lo
	w, errs := make([]float64, n*cols), make([]float64, n*g.n)
	low, step := make([]float32, n*cols), make([]float32, n*cols)
	for r := range n {
		for t, c := range s.order {
			w[r*cols+t] = float64(m.W[(lo+r)*cols+c])
		}
		for at := 0; s.early && at < cols; at += g.n {
			if err := s.fit(lo+r, at, m.row(lo + r)[at:at+g.n], low[r*cols:], step[r*cols:]); err != nil {
				return err
			}
		}
	}
	fresh := make([]float32, g.n)
	for at := 0; at < cols; at += g.n {
		for r := range n {
			row := w[r*cols : (r+1)*cols]
			if !s.early {
				for i := range fresh {
					fresh[i] = float32(row[at+i])
				}
				if err := s.fit(lo+r, at, fresh, low[r*cols:], step[r*cols:]); err != nil {
					return err
				}
			}
			s.turns(lo+r, at, row, errs[r*g.n:(r+1)*g.n], low[r*cols:(r+1)*cols], step[r*cols:(r+1)*cols])
		}
		// The columns after these pay at once for all of them.
		for k := range g.n {
			f := s.factor.row(at + k)[g.n-k:]
			for r := range n {
				e, row := errs[r*g.n+k], w[r*cols+at+g.n:(r+1)*cols]
				for j, v := range f {
					row[j] -= e * v
				}
			}
		}
	}
	return nil
}

// turns rounds the columns of turns at to at+g.n of a row and leaves what those after
// them have to pay for in errs.
func (s *gptq) turns(r, at int, row, errs []float64, low, step []float32) {
	g := s.g
	for k := range g.n {
		t := at + k
		c := s.order[t]
		i := c % g.n
		code := g.nearest(i, row[t], low[c], step[c])
		g.put(s.m.block(r, c-i, g), i, code)
		f := s.factor.row(t)
		e := (row[t] - (float64(low[c]) + float64(code)*float64(step[c]))) / f[0]
		errs[k] = e
		for j := t + 1; j < at+g.n; j++ {
			row[j] -= e * f[j-t]
		}
	}
}

// fit lets the encoder fit the block of row r that begins in column at to x, and
// reads its lows and steps.
func (s *gptq) fit(r, at int, x []float32, low, step []float32) error {
	block := s.m.block(r, at, s.g)
	if err := s.m.encode(block, x, at); err != nil {
		return fmt.Errorf("row %d: %w", r, err)
	}
	s.g.params(block, low[at:at+s.g.n], step[at:at+s.g.n])
	return nil
}
