package nn

import (
	"math"
	"math/rand/v2"
	"runtime"
	"testing"

	"ridge/internal/cpu"
	"ridge/internal/pool"
	"ridge/kernel"
	"ridge/kvcache"
	"ridge/weights/tensor"
)

// A state-space layer with heads is that of its chunked definition (the matrices
// of the paper's duality, in float64), over several sequences, in one piece and in
// pieces with the same bits, on any number of workers.
func TestSSD(t *testing.T) {
	const hidden, heads, dim, groups, states, taps = 32, 4, 16, 2, 12, 4
	const inner, columns = heads * dim, heads*dim + 2*groups*states
	r := rand.New(rand.NewPCG(13, 1))
	in, out := newMatrix(t, r, tensor.F32, inner+columns+heads, hidden, true), newMatrix(t, r, tensor.F32, hidden, inner, false)
	m := &SSD{
		In: in.Linear, Out: out.Linear, Conv: randomConv(r, columns, taps), Heads: heads, HeadDim: dim, Groups: groups, States: states,
		DtBias: randomRow(r, heads), D: randomRow(r, heads), A: []float32{-0.1, -0.5, -1, -3}, DtMin: 0.01, DtMax: 2,
		Norm: Norm{W: randomRow(r, inner), Eps: 1e-5, Group: inner / groups},
	}
	rows := randomActs(r, 80, hidden)
	mixes(t, m, rows, []int{9, 1, 70}, func(first, n int) [][]float64 {
		var gates, xbc, dts [][]float64
		for i := range n {
			p := in.times(values(rows, first+i))
			gates, xbc, dts = append(gates, p[:inner]), append(xbc, p[inner:inner+columns]), append(dts, p[inner+columns:])
		}
		return m.chunked(m.Conv.naive(xbc), gates, dts)
	})
}

// chunked computes a sequence in float64 by chunks: within one by the matrix of
// decays, from one to the next by states.
func (m *SSD) chunked(xbc, gates, dts [][]float64) [][]float64 {
	const chunk = 8
	inner, out := m.inner(), make([][]float64, len(xbc))
	for i := range out {
		out[i] = make([]float64, inner)
	}
	for h := range m.Heads {
		b := inner + h/(m.Heads/m.Groups)*m.States
		c := b + m.Groups*m.States
		state := make([]float64, m.HeadDim*m.States)
		for lo := 0; lo < len(xbc); lo += chunk {
			hi := min(lo+chunk, len(xbc))
			var total []float64 // logarithms of decay since the chunk began
			var dt []float64
			for i := lo; i < hi; i++ {
				d := min(max(math.Log1p(math.Exp(dts[i][h]+float64(m.DtBias[h]))), float64(m.DtMin)), float64(m.DtMax))
				dt, total = append(dt, d), append(total, d*float64(m.A[h]))
				if i > lo {
					total[i-lo] += total[i-lo-1]
				}
			}
			next := make([]float64, len(state))
			for p := range m.HeadDim {
				x := h*m.HeadDim + p
				for i := lo; i < hi; i++ {
					y := float64(m.D[h]) * xbc[i][x]
					for n := range m.States {
						y += math.Exp(total[i-lo]) * xbc[i][c+n] * state[p*m.States+n]
					}
					for j := lo; j <= i; j++ {
						dot := 0.0
						for n := range m.States {
							dot += xbc[i][c+n] * xbc[j][b+n]
						}
						y += math.Exp(total[i-lo]-total[j-lo]) * dot * dt[j-lo] * xbc[j][x]
					}
					out[i][x] = y * gates[i][x] / (1 + math.Exp(-gates[i][x]))
				}
				for n := range m.States {
					at := p*m.States + n
					next[at] = math.Exp(total[hi-lo-1]) * state[at]
					for j := lo; j < hi; j++ {
						next[at] += math.Exp(total[hi-lo-1]-total[j-lo]) * dt[j-lo] * xbc[j][x] * xbc[j][b+n]
					}
				}
			}
			state = next
		}
	}
	for i := range out {
		for g := 0; g < inner; g += m.Norm.Group {
			part := Norm{Kind: NormRMS, Eps: m.Norm.Eps, W: m.Norm.W[g : g+m.Norm.Group]}
			copy(out[i][g:], normalized(out[i][g:g+m.Norm.Group], &part))
		}
	}
	return out
}

// mixerPool returns what runs a mixer alone.
func mixerPool(b *testing.B, m Mixer) (*Exec, *kvcache.Pool, func()) {
	kv, err := kvcache.New(kvcache.Config{Layers: []kvcache.LayerShape{{Heads: 1, KDim: 4, VDim: 4}, m.Keeps()}, DType: tensor.F16, MaxBytes: 64 << 20})
	if err != nil {
		b.Fatal(err)
	}
	p := pool.New(runtime.GOMAXPROCS(0))
	e := NewExec(p)
	e.KV = kv
	return e, kv, func() { p.Close(); kv.Close() }
}

// mixerSpeed measures a mixer on a prompt of so many rows, cut into pieces, which
// comes after so many tokens.
func mixerSpeed(b *testing.B, m Mixer, hidden, before, rows, piece int) {
	e, kv, done := mixerPool(b, m)
	defer done()
	x := randomActs(rand.New(rand.NewPCG(1, 2)), rows, hidden)
	seq := kv.NewSeq()
	var part, sum kernel.Acts
	step := func(n, first int) {
		if err := kv.Grow(seq, n); err != nil {
			b.Fatal(err)
		}
		s := Step{Runs: []Run{{Seq: seq, Tokens: make([]int32, n)}}}
		s.Place()
		formRows(&part, n, hidden, m.Form())
		for i := range n {
			if copy(Row(&part, i), Row(x, first+i)); m.Form().Quant() {
				part.Quantize(i, 0, hidden)
			}
		}
		y, w := m.Mix(e, &s, 1, &part)
		e.Linear(y, Out{w, &sum})
	}
	for range before / rows {
		step(rows, 0)
	}
	start := cpu.Time()
	for b.Loop() {
		for first := 0; first < rows; first += piece {
			step(piece, first)
		}
	}
	b.ReportMetric((cpu.Time()-start).Seconds()*1e6/float64(b.N*rows), "cpu-us/row") // which other programs do not change much
	b.ReportMetric(float64(b.N*rows)/b.Elapsed().Seconds(), "rows/s")
}

// A state-space layer of a model of 370 million weights: a prompt at once and step
// by step, and steps far into a sequence.
func BenchmarkSSD(b *testing.B) {
	const hidden, heads, dim, states = 1024, 32, 64, 128
	const inner, columns = heads * dim, heads*dim + 2*states
	r := rand.New(rand.NewPCG(14, 1))
	in, out := newMatrix(b, r, tensor.Q8_0, inner+columns+heads, hidden, false), newMatrix(b, r, tensor.Q8_0, hidden, inner, false)
	m := &SSD{
		In: in.Linear, Out: out.Linear, Conv: randomConv(r, columns, 4), Heads: heads, HeadDim: dim, Groups: 1, States: states,
		DtBias: randomRow(r, heads), D: randomRow(r, heads), A: make([]float32, heads), Norm: Norm{W: randomRow(r, inner), Eps: 1e-5},
	}
	fill(m.A, -1)
	for _, c := range []struct {
		name                string
		before, rows, piece int
	}{{"prompt", 0, 256, 256}, {"steps", 0, 16, 1}, {"steps after 1k", 1 << 10, 16, 1}, {"steps after 16k", 1 << 14, 16, 1}} {
		b.Run(c.name, func(b *testing.B) { mixerSpeed(b, m, hidden, c.before, c.rows, c.piece) })
	}
}
