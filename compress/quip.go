package compress

import (
	"fmt"
	"math"
	"math/rand/v2"
)

// quip turns rows and columns of a matrix by random Hadamard matrices, so that no weight
// and no direction of the inputs stands out, and rounds it there with errors paid for by
// the columns that come later, which is GPTQ's rounding with one grid for all columns
// (Chee et al., QuIP, 2023; the turns are QuIP#'s, Tseng et al., 2024). Levels are
// evenly spaced around zero; how far they reach is a multiple of the root of the
// mean square of a row, and of some multiples the one with the least error is taken for a
// matrix (the paper has 2.4). Rescaled columns are left out. Counted: codes, a float16
// for a row, and a byte for the multiple; the turns come from a seed.
type quip struct {
	Bits int
	Damp float64
	Seed uint64
	// Plain leaves rows and columns as they are: what turning them is worth.
	Plain bool
}

func (p quip) Name() string {
	if p.Plain {
		return "ldlq"
	}
	return "quip"
}

func (p quip) Settings() string {
	return fmt.Sprintf("bits=%d damp=%g seed=%d reaches=%v", p.Bits, p.Damp, p.Seed, quipReaches)
}

// Transform implements Pass: nothing changes.
func (quip) Transform(*Layer) error { return nil }

// quipReaches are the multiples that are tried.
var quipReaches = []float64{1.4, 1.6, 1.8, 2, 2.2, 2.4, 2.7, 3}

// Round implements Pass.
func (p quip) Round(m *Matrix, in *Inputs, threads int) (string, error) {
	if err := m.reference(); err != nil {
		return "", err
	}
	m.bytes = (len(m.W)*p.Bits+7)/8 + 2*m.Rows + 1
	if p.Plain {
		return p.solve(m, in, nil, nil, threads)
	}
	rng := rand.New(rand.NewPCG(p.Seed, uint64(m.Rows)<<32|uint64(m.Cols)))
	return p.solve(m, in, randomRotation(m.Rows, rng), randomRotation(m.Cols, rng), threads)
}

// solve rounds m, whose rows and columns are turned if left and right are not nil.
func (p quip) solve(m *Matrix, in *Inputs, left, right *rotation, threads int) (string, error) {
	w := make([]float64, len(m.W))
	for i, v := range m.W {
		w[i] = float64(v)
	}
	if right != nil {
		turnRows(w, m.Cols, right, threads)
		w = transposed(w, m.Rows, m.Cols)
		turnRows(w, m.Rows, left, threads)
		w = transposed(w, m.Cols, m.Rows)
		in = in.turned(right, threads)
	}
	factor, damp, err := in.inverseFactor(inOrderOf(m.Cols), p.Damp, threads)
	if err != nil {
		return "", err
	}
	var best []float64
	least := math.Inf(1)
	for _, reach := range quipReaches {
		out, losses := make([]float64, len(w)), make([]float64, m.Rows)
		parallel(m.Rows, threads, func(r int) {
			row := out[r*m.Cols : (r+1)*m.Cols]
			copy(row, w[r*m.Cols:])
			losses[r] = feed(row, factor, p.levels(row, reach))
		})
		sum := 0.0
		for _, l := range losses {
			sum += l
		}
		if sum < least {
			least, best = sum, out
		}
	}
	if best == nil {
		return "", fmt.Errorf("expected a finite error of the outputs, found none")
	}
	if right != nil {
		unturnRows(best, m.Cols, right, threads)
		best = transposed(best, m.Rows, m.Cols)
		unturnRows(best, m.Rows, left, threads)
		best = transposed(best, m.Cols, m.Rows)
	}
	for i, v := range best {
		m.setFloat(i/m.Cols, i%m.Cols, v)
	}
	if damp != p.Damp {
		return fmt.Sprintf("singular: damped by %g of the mean square", damp), nil
	}
	return "", nil
}

// levels returns what rounds to the levels of a row.
func (p quip) levels(row []float64, reach float64) func(int, float64) float64 {
	sum := 0.0
	for _, v := range row {
		sum += v * v
	}
	top := half(reach * math.Sqrt(sum/float64(len(row))))
	last := float64(int(1)<<p.Bits - 1)
	return func(_ int, v float64) float64 {
		if top == 0 {
			return 0
		}
		code := min(max(math.Floor((v/top+1)/2*last+0.5), 0), last)
		return top * (2*code/last - 1)
	}
}

// feed rounds the values of a row in turn, those that come later pay for each error, and
// returns by how much the outputs change. It leaves what round chose in w.
func feed(w []float64, factor triangle, round func(t int, v float64) float64) (loss float64) {
	for t := range w {
		q := round(t, w[t])
		f, rest := factor.row(t), w[t:]
		e := (rest[0] - q) / f[0]
		for j := 1; j < len(rest); j++ {
			rest[j] -= e * f[j]
		}
		w[t] = q
		loss += e * e
	}
	return loss
}

// turnRows turns each row of x, of n values.
func turnRows(x []float64, n int, by *rotation, threads int) {
	parallel(len(x)/n, threads, func(r int) { by.turn(x[r*n:(r+1)*n], make([]float64, n)) })
}

// unturnRows undoes it.
func unturnRows(x []float64, n int, by *rotation, threads int) {
	parallel(len(x)/n, threads, func(r int) { by.unturn(x[r*n:(r+1)*n], make([]float64, n)) })
}

// turned returns the sums for columns that are turned.
func (in *Inputs) turned(by *rotation, threads int) *Inputs {
	h := in.square(0)
	n := in.Cols
	for range 2 { // both sides of a symmetric matrix
		turnRows(h, n, by, threads)
		h = transposed(h, n, n)
	}
	out := &Inputs{Cols: n, Rows: in.Rows, products: newTriangle(n)}
	for i := range n {
		copy(out.products.row(i), h[i*n+i:(i+1)*n])
	}
	return out
}

func transposed(x []float64, rows, cols int) []float64 {
	out := make([]float64, len(x))
	for r := range rows {
		for c := range cols {
			out[c*rows+r] = x[r*cols+c]
		}
	}
	return out
}
