package nn

import (
	"math"
	"math/rand/v2"
	"testing"

	"ridge/weights/tensor"
)

// lowRankTest is a pair of matrices with its definition.
type lowRankTest struct {
	down, up *matrix
	m        LowRankMLP
}

func newLowRankTest(t testing.TB, r *rand.Rand, typ tensor.DType, rank, hidden int) lowRankTest {
	p := lowRankTest{down: newMatrix(t, r, typ, rank, hidden, false), up: newMatrix(t, r, typ, hidden, rank, false)}
	p.m = LowRankMLP{p.down.Linear, p.up.Linear, randomRow(r, hidden)}
	return p
}

func (p *lowRankTest) times(x []float64, act func(float64) float64) []float64 {
	low := p.down.times(x)
	for i, v := range low {
		low[i] = act(v)
	}
	y := p.up.times(low)
	for i, b := range p.m.Base {
		y[i] += float64(b)
	}
	return y
}

// shifted returns a row mixed with the one before it.
func shifted(x, before []float64, lerp []float32) []float64 {
	out := make([]float64, len(x))
	for i, v := range x {
		out[i] = v + (before[i]-v)*float64(lerp[i])
	}
	return out
}

// A layer of RWKV-7's time mixing is that of its definition, as are the values that it
// takes from the first layer, in one piece and in pieces with the same bits.
func TestRWKV7(t *testing.T) {
	const hidden, heads, dim = 32, 2, 16
	r := rand.New(rand.NewPCG(77, 1))
	square := func() *matrix { return newMatrix(t, r, tensor.F32, hidden, hidden, false) }
	receptance, key, value := square(), square(), square()
	decay, write, gate := newLowRankTest(t, r, tensor.F32, 8, hidden), newLowRankTest(t, r, tensor.F32, 4, hidden), newLowRankTest(t, r, tensor.F32, 12, hidden)
	m := &RWKV7{
		R: receptance.Linear, K: key.Linear, V: value.Linear, Out: square().Linear, Decay: decay.m, Write: write.m, Gate: gate.m,
		KeyUnit: randomRow(r, hidden), KeyWrite: randomRow(r, hidden), Bonus: randomRow(r, hidden), Heads: heads, Dim: dim, IsFirst: true,
		Norm: Norm{Kind: NormLayer, W: randomRow(r, hidden), B: randomRow(r, hidden), Eps: 64e-5},
	}
	for i := range m.Lerp {
		m.Lerp[i] = randomRow(r, hidden)
	}
	rows := randomActs(r, 80, hidden)
	sigmoid := func(x float64) float64 { return 1 / (1 + math.Exp(-x)) }
	mixes(t, m, rows, []int{9, 1, 70}, func(first, n int) (out [][]float64) {
		state, before := make([]float64, heads*dim*dim), make([]float64, hidden) // [head][value][key]
		for i := range n {
			x := values(rows, first+i)
			in := func(k int) []float64 { return shifted(x, before, m.Lerp[k]) }
			q, k, v, y := receptance.times(in(rwkvR)), key.times(in(rwkvK)), value.times(in(rwkvV)), make([]float64, hidden)
			w, a, g := decay.times(in(rwkvW), math.Tanh), write.times(in(rwkvA), func(x float64) float64 { return x }), gate.times(in(rwkvG), sigmoid)
			for h := range heads {
				c, length, bonus := h*dim, 0.0, 0.0
				unit := make([]float64, dim)
				for j := range unit {
					unit[j] = k[c+j] * float64(m.KeyUnit[c+j])
					length += unit[j] * unit[j]
				}
				for j := range unit {
					unit[j] /= math.Sqrt(length)
					k[c+j] *= 1 + (sigmoid(a[c+j])-1)*float64(m.KeyWrite[c+j])
					bonus += q[c+j] * k[c+j] * float64(m.Bonus[c+j])
				}
				for o := range dim {
					s, known := state[(h*dim+o)*dim:][:dim], 0.0
					for j, u := range unit {
						known += s[j] * u
					}
					for j, u := range unit {
						s[j] = s[j]*math.Exp(-math.Exp(-0.5)*sigmoid(w[c+j])) - known*u*sigmoid(a[c+j]) + v[c+o]*k[c+j]
						y[c+o] += s[j] * q[c+j]
					}
				}
				part := Norm{Kind: NormLayer, W: m.Norm.W[c : c+dim], B: m.Norm.B[c : c+dim], Eps: m.Norm.Eps}
				for j, o := range layerNormed(y[c:c+dim], &part) {
					y[c+j] = (o + bonus*v[c+j]) * g[c+j]
				}
			}
			out, before = append(out, y), x
		}
		return out
	})
}

// layerNormed returns x normalized by its mean and deviation.
func layerNormed(x []float64, n *Norm) []float64 {
	mean, square, out := 0.0, 0.0, make([]float64, len(x))
	for _, v := range x {
		mean += v / float64(len(x))
	}
	for _, v := range x {
		square += (v - mean) * (v - mean) / float64(len(x))
	}
	for i, v := range x {
		out[i] = (v-mean)/math.Sqrt(square+float64(n.Eps))*float64(n.W[i]) + float64(n.B[i])
	}
	return out
}

// Channel mixing is that of its definition, without a gate and with one.
func TestChannelMix(t *testing.T) {
	const hidden, ffn = 32, 48
	r := rand.New(rand.NewPCG(78, 1))
	key, value, gate := newMatrix(t, r, tensor.F32, ffn, hidden, false), newMatrix(t, r, tensor.F32, hidden, ffn, false), newMatrix(t, r, tensor.F32, hidden, hidden, false)
	m := &ChannelMix{Lerp: randomRow(r, hidden), Key: key.Linear, Out: value.Linear}
	rows := randomActs(r, 80, hidden)
	definition := func(first, n int) (out [][]float64) {
		before := make([]float64, hidden)
		for i := range n {
			x := values(rows, first+i)
			y := key.times(shifted(x, before, m.Lerp))
			for j, v := range y {
				y[j] = max(v, 0) * max(v, 0)
			}
			if m.Gate.W != nil {
				y = value.times(y)
				for j, g := range gate.times(shifted(x, before, m.GateLerp)) {
					y[j] /= 1 + math.Exp(-g)
				}
			}
			out, before = append(out, y), x
		}
		return out
	}
	mixes(t, m, rows, []int{9, 1, 70}, definition)
	m.Gate, m.GateLerp = gate.Linear, randomRow(r, hidden)
	mixes(t, m, rows, []int{9, 1, 70}, definition)
}

// A layer of RWKV-7 of 1.5B: a prompt at once and step by step, and steps far into a
// sequence.
func BenchmarkRWKV7(b *testing.B) {
	const hidden, dim = 2048, 64
	r := rand.New(rand.NewPCG(79, 1))
	matrix := func() Linear { return newMatrix(b, r, tensor.Q8_0, hidden, hidden, false).Linear }
	pair := func(rank int) LowRankMLP { return newLowRankTest(b, r, tensor.F32, rank, hidden).m }
	m := &RWKV7{
		R: matrix(), K: matrix(), V: matrix(), Out: matrix(), Decay: pair(96), Write: pair(96), Gate: pair(256), Heads: hidden / dim, Dim: dim, IsFirst: true,
		KeyUnit: randomRow(r, hidden), KeyWrite: randomRow(r, hidden), Bonus: randomRow(r, hidden),
		Norm: Norm{Kind: NormLayer, W: randomRow(r, hidden), B: randomRow(r, hidden), Eps: 64e-5},
	}
	for i := range m.Lerp {
		m.Lerp[i] = randomRow(r, hidden)
	}
	for _, c := range []struct {
		name                string
		before, rows, piece int
	}{{"prompt", 0, 256, 256}, {"steps", 0, 16, 1}, {"steps after 1k", 1 << 10, 16, 1}, {"steps after 8k", 1 << 13, 16, 1}} {
		b.Run(c.name, func(b *testing.B) { mixerSpeed(b, m, hidden, c.before, c.rows, c.piece) })
	}
}
