package compress

import (
	"fmt"
	"math"
	"sync"
)

// Inputs are the sums over the rows that matrices read in a calibration text, which
// say what an error of a weight does to the outputs.
type Inputs struct {
	Cols, Rows int
	// Magnitudes are the sums of absolute values of each column, Largest the largest.
	Magnitudes, Largest []float64

	products triangle // XᵀX, [Cols][Cols]
	last     *inverse // nil for none
}

func newInputs(cols int) *Inputs {
	return &Inputs{Cols: cols, products: newTriangle(cols), Magnitudes: make([]float64, cols), Largest: make([]float64, cols)}
}

// add adds n rows. Each thread has rows of the products of its own, so that their
// number changes no bit.
func (in *Inputs) add(n int, row func(int) []float32, threads int) {
	x := make([]float64, (n+3)/4*4*in.Cols) // zeros after the last row
	for r := range n {
		for c, v := range row(r) {
			x[r*in.Cols+c] = float64(v)
			in.Magnitudes[c] += math.Abs(float64(v))
			in.Largest[c] = max(in.Largest[c], math.Abs(float64(v)))
		}
	}
	parallel(in.Cols, threads, func(i int) {
		sums := in.products.row(i)
		for at := 0; at < len(x); at += 4 * in.Cols {
			a, b := x[at+i:at+in.Cols], x[at+in.Cols+i:at+2*in.Cols]
			c, d := x[at+2*in.Cols+i:at+3*in.Cols], x[at+3*in.Cols+i:at+4*in.Cols]
			a, b, c, d = a[:len(sums)], b[:len(sums)], c[:len(sums)], d[:len(sums)]
			a0, b0, c0, d0 := a[0], b[0], c[0], d[0]
			for j := range sums {
				sums[j] += (a0*a[j] + b0*b[j]) + (c0*c[j] + d0*d[j])
			}
		}
	})
	in.Rows += n
}

// check reports a column whose squares are no number.
func (in *Inputs) check() error {
	for i := range in.Cols {
		if v := in.products.row(i)[0]; math.IsNaN(v) || math.IsInf(v, 0) {
			return fmt.Errorf("column %d of the inputs: expected finite numbers, found a sum of squares of %v", i, v)
		}
	}
	return nil
}

// divide makes in the sums of rows whose columns were divided by s.
func (in *Inputs) divide(s []float32) {
	in.forget()
	for i := range in.Cols {
		for j, row := 0, in.products.row(i); j < len(row); j++ {
			row[j] /= float64(s[i]) * float64(s[i+j])
		}
		in.Magnitudes[i] /= float64(s[i])
		in.Largest[i] /= float64(s[i])
	}
}

// energy returns the sum of the squares of a row's product with the inputs: d XᵀX dᵀ.
func (in *Inputs) energy(d []float64) float64 {
	sum := 0.0
	for i, v := range d {
		if v == 0 {
			continue
		}
		row := in.products.row(i)
		p, e := row[1:], d[i+1:]
		var s0, s1, s2, s3 float64
		for len(p) >= 4 && len(e) >= 4 {
			s0, s1 = s0+p[0]*e[0], s1+p[1]*e[1]
			s2, s3 = s2+p[2]*e[2], s3+p[3]*e[3]
			p, e = p[4:], e[4:]
		}
		for j, w := range p {
			s0 += w * e[j]
		}
		sum += v * (v*row[0] + 2*((s0+s1)+(s2+s3)))
	}
	return max(sum, 0)
}

// parallel calls do for 0 to n-1, in any order, in some threads.
func parallel(n, threads int, do func(i int)) {
	threads = min(max(threads, 1), n)
	var wg sync.WaitGroup
	for t := range threads {
		wg.Go(func() {
			for i := t; i < n; i += threads {
				do(i)
			}
		})
	}
	wg.Wait()
}
