package nn

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"ridge/kernel"
	"ridge/weights/tensor"
)

// A selective layer is that of its definition, over several sequences, in one piece
// and in pieces with the same bits, on any number of workers.
func TestSelectiveLayer(t *testing.T) {
	const hidden, inner, states, rank, taps = 32, 64, 6, 8, 3
	r := rand.New(rand.NewPCG(12, 1))
	in, x := newMatrix(t, r, tensor.F32, 2*inner, hidden, true), newMatrix(t, r, tensor.F32, rank+2*states, inner, false)
	dt, out := newMatrix(t, r, tensor.F32, inner, rank, true), newMatrix(t, r, tensor.F32, hidden, inner, false)
	m := &Selective{In: in.Linear, X: x.Linear, Dt: dt.Linear, Out: out.Linear, D: randomRow(r, inner), A: make([]float32, inner*states)}
	m.Conv = randomConv(r, inner, taps)
	m.BNorm = Norm{W: randomRow(r, states), Eps: 1e-5}
	for i := range m.A {
		m.A[i] = -float32(math.Exp(r.NormFloat64()))
	}
	rows := randomActs(r, 80, hidden)
	mixes(t, m, rows, []int{9, 1, 70}, func(first, n int) [][]float64 {
		var u, gates, result [][]float64
		for i := range n {
			p := in.times(values(rows, first+i))
			u, gates = append(u, p[:inner]), append(gates, p[inner:])
		}
		u = m.Conv.naive(u)
		h := make([]float64, inner*states)
		for i := range n {
			p := x.times(u[i])
			step, b, c := dt.times(p[:rank]), normalized(p[rank:rank+states], &m.BNorm), p[rank+states:]
			y := make([]float64, inner)
			for j := range y {
				s := math.Log1p(math.Exp(step[j]))
				y[j] = float64(m.D[j]) * u[i][j]
				for k := range states {
					rate := float64(m.A[(j/16*states+k)*16+j%16])
					h[j*states+k] = math.Exp(s*rate)*h[j*states+k] + s*b[k]*u[i][j]
					y[j] += c[k] * h[j*states+k]
				}
				y[j] *= gates[i][j] / (1 + math.Exp(-gates[i][j]))
			}
			result = append(result, y)
		}
		return result
	})
}

func randomConv(r *rand.Rand, columns, taps int) Conv {
	c := Conv{Bias: randomRow(r, columns)}
	for range taps {
		c.Taps = append(c.Taps, randomRow(r, columns))
	}
	return c
}

// naive computes the convolution of a sequence in float64.
func (c *Conv) naive(x [][]float64) (out [][]float64) {
	for i := range x {
		y := make([]float64, len(x[i]))
		for j := range y {
			if c.Bias != nil {
				y[j] = float64(c.Bias[j])
			}
			for k, tap := range c.Taps {
				if row := i - c.older() + k; row >= 0 {
					y[j] += float64(tap[j]) * x[row][j]
				}
			}
			if !c.Plain {
				y[j] /= 1 + math.Exp(-y[j])
			}
		}
		out = append(out, y)
	}
	return out
}

// mixes checks a mixer against its definition, which gives the rows for the output
// matrix of n rows from first on, a sequence.
func mixes(t *testing.T, m Mixer, x *kernel.Acts, lens []int, want func(first, n int) [][]float64) {
	t.Helper()
	withWorkers(t, func(e *Exec) []*kernel.Acts {
		whole := mixAll(t, e, m, x, lens, 1000)
		at := 0
		for _, n := range lens {
			for i, w := range want(at, n) {
				for j, v := range w {
					if d := math.Abs(float64(Row(whole, at+i)[j]) - v); !(d <= 1e-4*(1+math.Abs(v))) {
						t.Fatalf("row %d of %d, value %d: got %v, want %v", i, n, j, Row(whole, at+i)[j], v)
					}
				}
			}
			at += n
		}
		for _, piece := range []int{1, 7, 33} {
			parts := mixAll(t, e, m, x, lens, piece)
			for i := range x.N {
				if !slices.Equal(Row(parts, i), Row(whole, i)) {
					t.Fatalf("row %d in pieces of %d: other bits than in one", i, piece)
				}
			}
		}
		return []*kernel.Acts{whole}
	})
}
