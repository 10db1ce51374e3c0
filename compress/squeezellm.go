package compress

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// squeezeLLM gives each row a codebook of its own, whose values keep the error of the row
// small where inputs are large, and keeps the largest weights apart (Kim et al.,
// SqueezeLLM, 2024). The best codebook is found exactly: weights in order are cut
// into runs. Sensitivities are the squares of inputs, where the paper has gradients.
// Counted: codes, codebooks and kept weights as float16, columns and rows of the latter.
type squeezeLLM struct {
	Bits  int
	Share float64 // of the weights that are kept
}

func (squeezeLLM) Name() string { return "squeezellm" }

func (p squeezeLLM) Settings() string { return fmt.Sprintf("bits=%d share=%g", p.Bits, p.Share) }

func (squeezeLLM) Transform(*Layer) error { return nil }

// Round implements Pass.
func (p squeezeLLM) Round(m *Matrix, in *Inputs, threads int) (string, error) {
	if err := m.reference(); err != nil {
		return "", err
	}
	size := make([]float64, len(m.W))
	for i, v := range m.W {
		size[i] = math.Abs(float64(v))
	}
	n := int(p.Share*float64(len(size)) + 0.5)
	kept := largestOf(size, n)
	m.bytes = (len(m.W)*p.Bits+7)/8 + m.Rows*(2<<p.Bits) + sparseBytes(m.Rows, n)
	parallel(m.Rows, threads, func(r int) {
		var cols []int
		for c, v := range m.row(r) {
			if kept[r*m.Cols+c] {
				m.setFloat(r, c, half(float64(v)))
			} else {
				cols = append(cols, c)
			}
		}
		row := m.row(r)
		slices.SortStableFunc(cols, func(a, b int) int { return cmp.Compare(row[a], row[b]) })
		x, weight := make([]float64, len(cols)), make([]float64, len(cols))
		for i, c := range cols {
			x[i], weight[i] = float64(row[c]), in.products.row(c)[0]+1e-12
		}
		values, ends := codebook(x, weight, 1<<p.Bits)
		at := 0
		for k, end := range ends {
			for ; at < end; at++ {
				m.setFloat(r, cols[at], half(values[k]))
			}
		}
	})
	return "", nil
}

// codebook cuts ascending values into at most k runs such that the weighted squares of
// their distances from the means of runs are least, and returns the means and the ends.
// Ends of best cuts only move right as values are added, so halves are searched
// (Wu, Optimal quantization by matrix searching, 1991).
func codebook(x, weight []float64, k int) (values []float64, ends []int) {
	n := len(x)
	k = min(k, n)
	w, wx, wxx := make([]float64, n+1), make([]float64, n+1), make([]float64, n+1)
	for i, v := range x {
		w[i+1], wx[i+1], wxx[i+1] = w[i]+weight[i], wx[i]+weight[i]*v, wxx[i]+weight[i]*v*v
	}
	cost := func(i, j int) float64 { // of values i to j-1 as one run
		s := wx[j] - wx[i]
		return wxx[j] - wxx[i] - s*s/(w[j]-w[i])
	}
	best, cut := make([]float64, n+1), make([][]int, k)
	for j := 1; j <= n; j++ {
		best[j] = cost(0, j)
	}
	for runs := 1; runs < k; runs++ {
		next := slices.Repeat([]float64{math.Inf(1)}, n+1)
		cut[runs] = make([]int, n+1)
		var search func(lo, hi, from, to int)
		search = func(lo, hi, from, to int) {
			if lo > hi {
				return
			}
			mid := (lo + hi) / 2
			for i := max(from, runs); i <= min(to, mid-1); i++ {
				if c := best[i] + cost(i, mid); c < next[mid] {
					next[mid], cut[runs][mid] = c, i
				}
			}
			search(lo, mid-1, from, cut[runs][mid])
			search(mid+1, hi, cut[runs][mid], to)
		}
		search(runs+1, n, runs, n-1)
		best = next
	}
	for runs, end := k-1, n; runs >= 0 && end > 0; runs-- {
		start := 0
		if runs > 0 {
			start = cut[runs][end]
		}
		values, ends = append(values, (wx[end]-wx[start])/(w[end]-w[start])), append(ends, end)
		end = start
	}
	slices.Reverse(values)
	slices.Reverse(ends)
	return values, ends
}
