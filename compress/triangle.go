package compress

import (
	"fmt"
	"math"
	"slices"
)

// triangle is the upper half of a square matrix, its diagonal included: all that there is
// of a symmetric one, or of a factor.
type triangle struct {
	n int
	v []float64 // rows one behind the other, each from its diagonal on
}

func newTriangle(n int) triangle { return triangle{n, make([]float64, n*(n+1)/2)} }

// row returns row i from column i on.
func (t triangle) row(i int) []float64 {
	at := i * (2*t.n - i + 1) / 2
	return t.v[at : at+t.n-i]
}

// at returns what is in row i and column j of a symmetric matrix.
func (t triangle) at(i, j int) float64 {
	if i > j {
		i, j = j, i
	}
	return t.row(i)[j-i]
}

// inverse is the factor of the inverse of an Inputs' products, and what it was made with.
type inverse struct {
	order  []int
	damp   float64
	factor triangle
	used   float64
}

// inverseFactor returns the upper Cholesky factor U of the inverse of XᵀX with damping,
// which is UᵀU, for columns in the given order. used is the damping: it is raised until
// the factor exists. Columns that the text never met get the mean for their square. The
// last factor is kept, for the matrices that read the same rows, until forget.
func (in *Inputs) inverseFactor(order []int, damp float64, threads int) (u triangle, used float64, err error) {
	if l := in.last; l != nil && l.damp == damp && slices.Equal(l.order, order) {
		return l.factor, l.used, nil
	}
	in.forget()
	n, mean := in.Cols, 0.0
	for i := range n {
		mean += in.products.row(i)[0] / float64(n)
	}
	if mean == 0 {
		mean = 1
	}
	m := newTriangle(n)
	for used = damp; used < 1e3; used = max(10*used, 1e-4) {
		for i, a := range order {
			row := m.row(i)
			for j := range row {
				row[j] = in.products.at(a, order[i+j])
			}
			if row[0] == 0 {
				row[0] = mean
			}
			row[0] += used * mean
		}
		if m.factor(threads) {
			m.invert()
			in.last = &inverse{slices.Clone(order), damp, m, used}
			return m, used, nil
		}
	}
	return triangle{}, 0, fmt.Errorf("inputs of %d columns: no damping up to %g makes their products invertible", n, used)
}

// forget gives the memory of the last factor back.
func (in *Inputs) forget() { in.last = nil }

// factor replaces a symmetric matrix by M, upper triangular, with M Mᵀ equal to it; false
// if it is not positive definite. The number of threads changes no bit.
func (t triangle) factor(threads int) bool {
	const rows = 64 // least that a thread takes
	for j := t.n - 1; j >= 0; j-- {
		rj := t.row(j)
		d := rj[0]
		least := 1e-12 * d
		for _, v := range rj[1:] {
			d -= v * v
		}
		if !(d > least) || math.IsInf(d, 0) {
			return false
		}
		rj[0] = math.Sqrt(d)
		work := min(threads, j/rows)
		if work < 2 {
			t.column(j, 0, j)
			continue
		}
		parallel(work, work, func(i int) { t.column(j, i*j/work, (i+1)*j/work) })
	}
	return true
}

// column computes column j of the factor for rows lo to hi, four of them together: each
// adds up in its own order.
func (t triangle) column(j, lo, hi int) {
	rj := t.row(j)
	d, x := rj[0], rj[1:]
	i := lo
	for ; i+4 <= hi; i += 4 {
		a, b, c, e := t.row(i)[j-i:], t.row(i + 1)[j-i-1:], t.row(i + 2)[j-i-2:], t.row(i + 3)[j-i-3:]
		va, vb, vc, ve := a[0], b[0], c[0], e[0]
		pa, pb, pc, pe := a[1:][:len(x)], b[1:][:len(x)], c[1:][:len(x)], e[1:][:len(x)]
		for k, v := range x {
			va -= pa[k] * v
			vb -= pb[k] * v
			vc -= pc[k] * v
			ve -= pe[k] * v
		}
		a[0], b[0], c[0], e[0] = va/d, vb/d, vc/d, ve/d
	}
	for ; i < hi; i++ {
		a := t.row(i)[j-i:]
		v := a[0]
		for k, w := range a[1:] {
			v -= w * x[k]
		}
		a[0] = v / d
	}
}

// invert replaces an upper triangular matrix by its inverse.
func (t triangle) invert() {
	was := make([]float64, t.n)
	for i := t.n - 1; i >= 0; i-- {
		row := t.row(i)
		was := was[:copy(was, row)]
		clear(row)
		row[0] = 1
		for k := 1; k < len(row); k++ {
			f, to := was[k], row[k:]
			for j, v := range t.row(i + k) {
				to[j] -= f * v
			}
		}
		for j := range row {
			row[j] /= was[0]
		}
	}
}
