package nn

import (
	"math"
	"math/rand/v2"
	"testing"

	"ridge/weights/tensor"
)

// A layer of the time mixing of RWKV 5 and 6, and that of hybrids with Qwen, is that of its
// parallel form, in one piece and in pieces with the same bits.
func TestRWKV6(t *testing.T) {
	const hidden, heads, dim, rank = 32, 2, 16, 4
	r := rand.New(rand.NewPCG(66, 1))
	square := func() *matrix { return newMatrix(t, r, tensor.F32, hidden, hidden, false) }
	receptance, key, value, gate := square(), square(), square(), square()
	decay := newLowRankTest(t, r, tensor.F32, 8, hidden)
	down := newMatrix(t, r, tensor.F32, rwkv6Inputs*rank, hidden, false)
	var ups [rwkv6Inputs]*matrix
	m := &RWKV6{
		LerpFirst: randomRow(r, hidden), LerpDown: down.Linear, R: receptance.Linear, K: key.Linear, V: value.Linear, Gate: gate.Linear, Out: square().Linear,
		Decay: decay.m, Bonus: randomRow(r, hidden), Heads: heads, KVHeads: heads, Dim: dim,
		Norm: Norm{Kind: NormLayer, W: randomRow(r, hidden), B: randomRow(r, hidden), Eps: 64e-5},
	}
	for i := range m.Lerp {
		ups[i] = newMatrix(t, r, tensor.F32, hidden, rank, false)
		m.Lerp[i], m.LerpUp[i] = randomRow(r, hidden), &ups[i].Linear
	}
	rows := randomActs(r, 80, hidden)
	sigmoid := func(x float64) float64 { return 1 / (1 + math.Exp(-x)) }
	// The parallel form: each row reads all rows before it, faded since then.
	definition := func(first, n int) (out [][]float64) {
		var ks, vs, faded [][]float64 // faded: logarithms of decay since the sequence began
		before, total := make([]float64, hidden), make([]float64, hidden)
		for i := range n {
			x := values(rows, first+i)
			var low []float64
			if m.LerpFirst != nil {
				low = down.times(shifted(x, before, m.LerpFirst))
			}
			in := func(k int) []float64 {
				lerp := append([]float32(nil), m.Lerp[k]...)
				if low != nil {
					part := make([]float64, rank)
					for j := range part {
						part[j] = math.Tanh(low[k*rank+j])
					}
					for j, v := range ups[k].times(part) {
						lerp[j] += float32(v)
					}
				}
				return shifted(x, before, lerp)
			}
			w := make([]float64, hidden)
			for j := range w {
				w[j] = float64(m.Decay.Base[j])
			}
			if m.Decay.Down.W != nil {
				w = decay.times(in(rwkv6W), math.Tanh)
			}
			q, k, v, g, y := receptance.times(in(rwkv6R)), key.times(in(rwkv6K)), value.times(in(rwkv6V)), gate.times(in(rwkv6G)), make([]float64, hidden)
			since := total // when the row is read
			total = append([]float64(nil), total...)
			for j := range w {
				total[j] -= math.Exp(w[j])
			}
			if m.Bonus == nil {
				since = total
			}
			ks, vs, faded = append(ks, k), append(vs, v), append(faded, total)
			for h := range heads {
				c, kv := h*dim, h/(heads/m.KVHeads)*dim
				for at := range i + 1 {
					weight := 0.0
					for j := range dim {
						part := q[c+j] * ks[at][kv+j]
						switch {
						case m.Bonus == nil:
							fade := faded[at][c+j]
							if at > 0 {
								fade -= faded[at-1][c+j]
							}
							part *= (1 - math.Exp(fade)) * math.Exp(since[c+j]-faded[at][c+j]) / math.Sqrt(dim)
						case at == i:
							part *= float64(m.Bonus[c+j])
						default:
							part *= math.Exp(since[c+j] - faded[at][c+j])
						}
						weight += part
					}
					for o := range dim {
						y[c+o] += weight * vs[at][kv+o]
					}
				}
				if m.Norm.W != nil {
					part := Norm{Kind: NormLayer, W: m.Norm.W[c : c+dim], B: m.Norm.B[c : c+dim], Eps: m.Norm.Eps}
					copy(y[c:], layerNormed(y[c:c+dim], &part))
				}
				for j := c; j < c+dim; j++ {
					if y[j] *= sigmoid(g[j]); m.Bonus != nil {
						y[j] *= g[j]
					}
				}
			}
			out, before = append(out, y), x
		}
		return out
	}
	mixes(t, m, rows, []int{9, 1, 70}, definition)
	// Version 5: no row changes how it is mixed, or how states decay.
	whole := *m
	m.LerpFirst, m.LerpDown, m.LerpUp, m.Decay.Down, m.Decay.Up = nil, Linear{}, [rwkv6Inputs]*Linear{}, Linear{}, Linear{}
	mixes(t, m, rows, []int{9, 1, 70}, definition)
	// Hybrids: one head of keys and values for two, no bonus, no norm.
	*m = whole
	key, value = newMatrix(t, r, tensor.F32, dim, hidden, true), newMatrix(t, r, tensor.F32, dim, hidden, true)
	m.K, m.V, m.KVHeads, m.Bonus, m.Norm = key.Linear, value.Linear, 1, nil, Norm{}
	mixes(t, m, rows, []int{9, 1, 70}, definition)
}

// A layer of RWKV-4's time mixing is that of its definition, though exponents are large.
func TestRWKV4(t *testing.T) {
	const hidden = 32
	r := rand.New(rand.NewPCG(44, 1))
	square := func() *matrix { return newMatrix(t, r, tensor.F32, hidden, hidden, false) }
	receptance, key, value := square(), square(), square()
	m := &RWKV4{R: receptance.Linear, K: key.Linear, V: value.Linear, Out: square().Linear, Rate: randomRow(r, hidden), First: randomRow(r, hidden)}
	for i := range m.Lerp {
		m.Lerp[i] = randomRow(r, hidden)
	}
	for i, v := range m.Rate {
		m.Rate[i] = -float32(math.Exp(float64(v)))
		m.First[i] *= 60 // exponentials of it alone leave the range of float32
	}
	rows := randomActs(r, 80, hidden)
	mixes(t, m, rows, []int{9, 1, 70}, func(first, n int) (out [][]float64) {
		var ks, vs [][]float64
		before := make([]float64, hidden)
		for i := range n {
			x := values(rows, first+i)
			in := func(k int) []float64 { return shifted(x, before, m.Lerp[k]) }
			ks, vs = append(ks, key.times(in(rwkv4K))), append(vs, value.times(in(rwkv4V)))
			y := receptance.times(in(rwkv4R))
			for c := range y {
				own := math.Exp(float64(m.First[c]) + ks[i][c])
				sum, weights := own*vs[i][c], own
				for j := range i { // all rows before, at their distance
					w := math.Exp(ks[j][c] + float64(i-1-j)*float64(m.Rate[c]))
					sum, weights = sum+w*vs[j][c], weights+w
				}
				y[c] = sum / weights / (1 + math.Exp(-y[c]))
			}
			out, before = append(out, y), x
		}
		return out
	})
}
