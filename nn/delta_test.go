package nn

import (
	"math"
	"math/rand/v2"
	"testing"

	"ridge/weights/tensor"
)

// A layer of the gated delta rule is that of its definition, over several
// sequences, in one piece and in pieces with the same bits, on any number of
// workers.
func TestDelta(t *testing.T) {
	const hidden, heads, dim, keyHeads, keyDim, taps = 32, 4, 16, 2, 12, 4
	const keys, columns = keyHeads * keyDim, 2*keyHeads*keyDim + heads*dim
	r := rand.New(rand.NewPCG(15, 1))
	qkv, z := newMatrix(t, r, tensor.F32, columns, hidden, false), newMatrix(t, r, tensor.F32, heads*dim, hidden, false)
	b, a := newMatrix(t, r, tensor.F32, heads, hidden, false), newMatrix(t, r, tensor.F32, heads, hidden, false)
	m := &Delta{
		QKV: qkv.Linear, Z: z.Linear, B: b.Linear, A: a.Linear, Conv: randomConv(r, columns, taps), Heads: heads, Dim: dim,
		KeyHeads: keyHeads, KeyDim: keyDim, DtBias: randomRow(r, heads), Rate: []float32{-0.05, -0.3, -1, -2},
		Norm: Norm{W: randomRow(r, dim), Eps: 1e-6}, Out: newMatrix(t, r, tensor.F32, hidden, heads*dim, false).Linear,
	}
	rows := randomActs(r, 80, hidden)
	definition := func(first, n int) (out [][]float64) {
		var x [][]float64
		for i := range n {
			x = append(x, qkv.times(values(rows, first+i)))
		}
		x = m.Conv.naive(x)
		state := make([]float64, heads*dim*keyDim)
		for i := range n {
			in := values(rows, first+i)
			gate, strength, decay, y := z.times(in), b.times(in), a.times(in), make([]float64, heads*dim)
			for h := range heads {
				at := h / (heads / keyHeads) * keyDim
				if m.Tiled {
					at = h % keyHeads * keyDim
				}
				q, k := unit(x[i][at:at+keyDim]), unit(x[i][keys+at:keys+at+keyDim])
				g := math.Exp(float64(m.Rate[h]) * math.Log1p(math.Exp(decay[h]+float64(m.DtBias[h]))))
				for j := range dim {
					s := state[(h*dim+j)*keyDim:][:keyDim]
					known := 0.0
					for c := range s {
						s[c] *= g
						known += k[c] * s[c]
					}
					write := (x[i][2*keys+h*dim+j] - known) / (1 + math.Exp(-strength[h]))
					for c := range s {
						s[c] += k[c] * write
						y[h*dim+j] += q[c] * s[c] / math.Sqrt(keyDim)
					}
				}
				copy(y[h*dim:], normalized(y[h*dim:(h+1)*dim], &m.Norm))
			}
			for j, v := range gate {
				y[j] *= v / (1 + math.Exp(-v))
			}
			out = append(out, y)
		}
		return out
	}
	for range 2 {
		mixes(t, m, rows, []int{9, 1, 70}, definition)
		m.Tiled = true
	}
}

// unit returns x with the length 1.
func unit(x []float64) []float64 {
	sum, out := 1e-6, make([]float64, len(x))
	for _, v := range x {
		sum += v * v
	}
	for i, v := range x {
		out[i] = v / math.Sqrt(sum)
	}
	return out
}

// A layer of Qwen 3 Next's delta rule: a prompt at once and step by step, and steps
// far into a sequence.
func BenchmarkDelta(b *testing.B) {
	const hidden, heads, dim, keyHeads, keyDim = 2048, 32, 128, 16, 128
	const columns = 2*keyHeads*keyDim + heads*dim
	r := rand.New(rand.NewPCG(16, 1))
	matrix := func(rows, cols int) Linear { return newMatrix(b, r, tensor.Q8_0, rows, cols, false).Linear }
	m := &Delta{
		QKV: matrix(columns, hidden), Z: matrix(heads*dim, hidden), B: matrix(heads, hidden), A: matrix(heads, hidden),
		Conv: randomConv(r, columns, 4), Heads: heads, Dim: dim, KeyHeads: keyHeads, KeyDim: keyDim, DtBias: randomRow(r, heads),
		Rate: make([]float32, heads), Norm: Norm{W: randomRow(r, dim), Eps: 1e-6}, Out: matrix(hidden, heads*dim),
	}
	fill(m.Rate, -1)
	for _, c := range []struct {
		name                string
		before, rows, piece int
	}{{"prompt", 0, 256, 256}, {"steps", 0, 16, 1}, {"steps after 1k", 1 << 10, 16, 1}, {"steps after 8k", 1 << 13, 16, 1}} {
		b.Run(c.name, func(b *testing.B) { mixerSpeed(b, m, hidden, c.before, c.rows, c.piece) })
	}
}
