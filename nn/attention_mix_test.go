package nn

import (
	"math"
	"math/rand/v2"
	"testing"

	"ridge/internal/pool"
	"ridge/kernel"
	"ridge/kvcache"
	"ridge/weights/tensor"
)

const (
	mixHidden, mixHeads, mixKVHeads, mixDim = 48, 4, 2, 16
	mixTokens                               = 45
)

// mixing is an attention with its matrices.
type mixing struct {
	Attention
	q, k, v, gate, out *matrix
}

func newMixing(t *testing.T, r *rand.Rand, gated bool) *mixing {
	m := &mixing{
		q: newMatrix(t, r, tensor.F32, mixHeads*mixDim, mixHidden, true), k: newMatrix(t, r, tensor.F32, mixKVHeads*mixDim, mixHidden, false),
		v: newMatrix(t, r, tensor.F32, mixKVHeads*mixDim, mixHidden, false), out: newMatrix(t, r, tensor.F32, mixHidden, mixHeads*mixDim, false),
	}
	m.Attention = Attention{Q: m.q.Linear, K: m.k.Linear, V: m.v.Linear, Out: m.out.Linear, Heads: mixHeads, KVHeads: mixKVHeads, HeadDim: mixDim, Scale: 0.25}
	if gated {
		m.gate = newMatrix(t, r, tensor.F32, mixHeads*mixDim, mixHidden, false)
		m.Gate = m.gate.Linear
	}
	return m
}

// head is the query or key of a head at a position, by the definition.
func (m *mixing) head(x []float64, norm *Norm, pos int) []float64 {
	out := append([]float64(nil), x...)
	normalize := func() {
		if norm.W != nil {
			out = normalized(out, norm)
		}
	}
	if !m.NormRotated {
		normalize()
	}
	if m.Rope != nil {
		for i, f := range m.Rope.Inv {
			sin, cos := math.Sincos(float64(pos) * float64(f))
			a, b := out[i], out[i+len(m.Rope.Inv)]
			out[i], out[i+len(m.Rope.Inv)] = a*cos-b*sin, a*sin+b*cos
		}
	}
	if m.NormRotated {
		normalize()
	}
	return out
}

// row is what the attention gives for the last of the rows before its output
// matrix, by the definition.
func (m *mixing) row(xs [][]float64) []float64 {
	pos := len(xs) - 1
	var ks, vs [][]float64
	for _, x := range xs {
		ks, vs = append(ks, m.k.times(x)), append(vs, m.v.times(x))
	}
	qs, out := m.q.times(xs[pos]), make([]float64, mixHeads*mixDim)
	for h := range mixHeads {
		kv := h / (mixHeads / mixKVHeads) * mixDim
		q := m.head(qs[h*mixDim:][:mixDim], &m.QNorm, pos)
		if s := m.Temper; s.Beta != 0 {
			f := 1 + float64(s.Beta)*math.Log(1+math.Floor(float64(pos+s.Shift)/float64(s.Period)))
			for i := range q {
				q[i] *= f
			}
		}
		first, sum := 0, 0.0
		if m.Chunk > 0 {
			first = pos - pos%m.Chunk
		}
		for j := first; j <= pos; j++ {
			score := 0.0
			for i, k := range m.head(ks[j][kv:][:mixDim], &m.KNorm, j) {
				score += q[i] * k
			}
			w := math.Exp(score * float64(m.Scale))
			sum += w
			for i, v := range vs[j][kv:][:mixDim] {
				out[h*mixDim+i] += w * v
			}
		}
		for i := range mixDim {
			out[h*mixDim+i] /= sum
		}
	}
	if m.gate != nil {
		for i, g := range m.gate.times(xs[pos]) {
			out[i] /= 1 + math.Exp(-g)
		}
	}
	return out
}

// The variants of attention that families have are what their definitions say,
// whatever the number of workers, in one step and token by token.
func TestAttentionVariants(t *testing.T) {
	ones := make([]float32, mixDim)
	weights := make([]float32, mixDim)
	rope := &Rope{Style: RopeNeox, Scale: 1}
	for i := range mixDim {
		ones[i], weights[i] = 1, 0.5+float32(i)/mixDim
		if i < mixDim/2 {
			rope.Inv = append(rope.Inv, float32(math.Pow(100, -float64(i)/8)))
		}
	}
	for name, set := range map[string]func(a *Attention){
		"gate": nil,
		"norms before": func(a *Attention) {
			a.Rope, a.QNorm, a.KNorm = rope, Norm{W: weights, Eps: 1e-5}, Norm{W: weights, Eps: 1e-5}
		},
		"norms after": func(a *Attention) {
			a.Rope, a.NormRotated, a.QNorm, a.KNorm = rope, true, Norm{W: weights, Eps: 1e-5}, Norm{W: ones, Eps: 1e-5}
		},
		"temperature": func(a *Attention) { a.Temper = Temper{Beta: 0.7, Period: 8, Shift: 1} },
		"chunks, norms after": func(a *Attention) {
			a.Chunk, a.Rope, a.NormRotated, a.QNorm, a.KNorm = 13, rope, true, Norm{W: ones, Eps: 1e-5}, Norm{W: ones, Eps: 1e-5}
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(3, 5))
			m := newMixing(t, r, set == nil)
			if set != nil {
				set(&m.Attention)
			}
			x := randomActs(r, mixTokens, mixHidden)
			var xs [][]float64
			for i := range x.N {
				xs = append(xs, values(x, i))
			}
			var all []float32
			for workers := 1; workers <= 3; workers++ {
				got := mix(t, &m.Attention, x, workers, mixTokens)
				if one := mix(t, &m.Attention, x, workers, 1); !sameBits(one, got) {
					t.Errorf("%d workers: token by token other than at once", workers)
				}
				if all == nil {
					all = got
				} else if !sameBits(got, all) {
					t.Errorf("%d workers: other than with one", workers)
				}
			}
			for i := range xs {
				for j, want := range m.row(xs[:i+1]) {
					if d := math.Abs(float64(all[i*mixHeads*mixDim+j]) - want); !(d < 2e-5) {
						t.Fatalf("row %d, value %d: differs by %g from %v", i, j, d, want)
					}
				}
			}
		})
	}
}

// mix returns what goes into the output matrix for the rows of x, computed in
// steps of so many rows.
func mix(t *testing.T, a *Attention, x *kernel.Acts, workers, step int) []float32 {
	t.Helper()
	kv, err := kvcache.New(kvcache.Config{Layers: []kvcache.LayerShape{a.Keeps()}, PageTokens: 16, DType: tensor.F32, MaxBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer kv.Close()
	p := pool.New(workers)
	defer p.Close()
	e := NewExec(p)
	e.KV = kv
	seq := kv.NewSeq()
	defer kv.Free(seq)
	var out []float32
	for first := 0; first < x.N; first += step {
		n := min(step, x.N-first)
		if err := kv.Grow(seq, n); err != nil {
			t.Fatal(err)
		}
		s := &Step{Runs: []Run{{Seq: seq, Tokens: make([]int32, n), Outputs: n}}}
		s.Place()
		e.Begin(s)
		part := *x
		part.N, part.F32 = n, x.F32[first*x.LDF:]
		got, _ := a.Mix(e, s, 0, &part)
		for i := range n {
			out = append(out, Row(got, i)...)
		}
	}
	return out
}

func sameBits(a, b []float32) bool {
	for i := range a {
		if math.Float32bits(a[i]) != math.Float32bits(b[i]) {
			return false
		}
	}
	return len(a) == len(b)
}
