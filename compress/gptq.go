package compress

import (
	"errors"
	"fmt"
	"math"
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
			if x, y := in.Products[a*in.Cols+a], in.Products[b*in.Cols+b]; x != y {
				if x > y {
					return -1
				}
				return 1
			}
			return 0
		})
	}
	var damp float64
	if s.factor, damp, err = inverseFactor(in, s.order, p.Damp); err != nil {
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
	factor []float64
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
			f := s.factor[(at+k)*cols : (at+k+1)*cols]
			for r := range n {
				e, row := errs[r*g.n+k], w[r*cols:(r+1)*cols]
				for j := at + g.n; j < cols; j++ {
					row[j] -= e * f[j]
				}
			}
		}
	}
	return nil
}

// turns rounds the columns of turns at to at+g.n of a row and leaves what those after
// them have to pay for in errs.
func (s *gptq) turns(r, at int, row, errs []float64, low, step []float32) {
	cols, g := s.m.Cols, s.g
	for k := range g.n {
		t := at + k
		c := s.order[t]
		i := c % g.n
		code := g.nearest(i, row[t], low[c], step[c])
		g.put(s.m.block(r, c-i, g), i, code)
		f := s.factor[t*cols : (t+1)*cols]
		e := (row[t] - (float64(low[c]) + float64(code)*float64(step[c]))) / f[t]
		errs[k] = e
		for j := t + 1; j < at+g.n; j++ {
			row[j] -= e * f[j]
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

// inverseFactor returns the upper Cholesky factor U of the inverse of XᵀX with damping,
// UᵀU, with rows and columns in the given order, and the damping that it took: more
// than asked if the matrix is singular. A column that met only zeros is rounded on its
// own.
func inverseFactor(in *Inputs, order []int, damp float64) (u []float64, used float64, err error) {
	n := in.Cols
	mean := 0.0
	for i := range n {
		mean += in.Products[i*n+i] / float64(n)
	}
	if mean == 0 {
		mean = 1
	}
	m := make([]float64, n*n)
	for used = damp; used < 1e3; used = max(10*used, 1e-4) {
		for i, a := range order {
			for j, b := range order {
				m[i*n+j] = in.Products[a*n+b]
			}
			if m[i*n+i] == 0 {
				m[i*n+i] = mean
			}
			m[i*n+i] += used * mean
		}
		if factorUpper(m, n) {
			return invertUpper(m, n), used, nil
		}
	}
	return nil, 0, fmt.Errorf("inputs of %d columns: no damping up to %g makes their products invertible", n, used)
}

// factorUpper replaces the upper half of a symmetric matrix by M, upper triangular,
// with M Mᵀ equal to it; false if it is not positive definite.
func factorUpper(m []float64, n int) bool {
	for j := n - 1; j >= 0; j-- {
		rj := m[j*n : (j+1)*n]
		d := rj[j]
		least := 1e-12 * d
		for _, v := range rj[j+1:] {
			d -= v * v
		}
		if !(d > least) || math.IsInf(d, 0) {
			return false
		}
		rj[j] = math.Sqrt(d)
		for i := range j {
			ri := m[i*n : (i+1)*n]
			v := ri[j]
			for k := j + 1; k < n; k++ {
				v -= ri[k] * rj[k]
			}
			ri[j] = v / rj[j]
		}
	}
	return true
}

// invertUpper returns the inverse of an upper triangular matrix.
func invertUpper(m []float64, n int) []float64 {
	u := make([]float64, n*n)
	for i := n - 1; i >= 0; i-- {
		ui, d := u[i*n:(i+1)*n], m[i*n+i]
		ui[i] = 1
		for k := i + 1; k < n; k++ {
			f := m[i*n+k]
			for j, v := range u[k*n+k : (k+1)*n] {
				ui[k+j] -= f * v
			}
		}
		for j := i; j < n; j++ {
			ui[j] /= d
		}
	}
	return u
}
