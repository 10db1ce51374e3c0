package nn

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"ridge/internal/pool"
	"ridge/kernel"
	"ridge/kvcache"
	"ridge/weights/tensor"
)

// testLatent is latent attention and its matrices as they are decoded.
type testLatent struct {
	*Latent
	qDown, q, kvDown *matrix // qDown is nil where queries have no low rank
	keys, values     []*matrix
}

const latentHidden = 64

func newLatent(t testing.TB, r *rand.Rand, typ tensor.DType, heads, queryRank int, style RopeStyle) *testLatent {
	t.Helper()
	a := &Latent{Heads: heads, Rank: 64, PlainDim: 32, RopeDim: 16, ValueDim: 32, Scale: 0.4}
	l := &testLatent{Latent: a}
	norm := func(n int) Norm { return Norm{Kind: NormRMS, W: randomRow(r, n), Eps: 1e-6} }
	in := latentHidden
	if queryRank > 0 {
		l.qDown = newMatrix(t, r, typ, queryRank, latentHidden, true)
		a.QDown, a.QNorm, in = l.qDown.Linear, norm(queryRank), queryRank
	}
	l.q = newMatrix(t, r, typ, heads*(a.PlainDim+a.RopeDim), in, false)
	l.kvDown = newMatrix(t, r, typ, a.Rank+a.RopeDim, latentHidden, true)
	a.Q, a.KVDown, a.KVNorm = l.q.Linear, l.kvDown.Linear, norm(a.Rank)
	for range heads {
		k, v := newMatrix(t, r, typ, a.Rank, a.PlainDim, false), newMatrix(t, r, typ, a.ValueDim, a.Rank, false)
		l.keys, l.values = append(l.keys, k), append(l.values, v)
		a.KeyUp, a.ValueUp = append(a.KeyUp, k.Linear), append(a.ValueUp, v.Linear)
	}
	a.Out = newMatrix(t, r, typ, latentHidden, heads*a.ValueDim, false).Linear
	a.Rope = &Rope{Style: style, Scale: 1.25}
	for i := range a.RopeDim / 2 {
		a.Rope.Inv = append(a.Rope.Inv, float32(math.Pow(100, -float64(i)/float64(a.RopeDim/2))))
	}
	a.Ready()
	return l
}

func rmsNormed(x []float64, n *Norm) []float64 {
	if n.W == nil {
		return x
	}
	return normalized(x, n)
}

// rotated turns the elements of x by position pos.
func (l *testLatent) rotated(x []float64, pos int) []float64 {
	out, half := make([]float64, len(x)), len(x)/2
	for i, f := range l.Rope.Inv {
		a, b := i, i+half
		if l.Rope.Style == RopeNorm {
			a, b = 2*i, 2*i+1
		}
		sin, cos := math.Sincos(float64(float32(pos) * f))
		sin, cos = sin*float64(l.Rope.Scale), cos*float64(l.Rope.Scale)
		out[a], out[b] = x[a]*cos-x[b]*sin, x[b]*cos+x[a]*sin
	}
	return out
}

// expanded is the definition for a sequence of the rows of x: keys and values of
// all heads are made first.
func (l *testLatent) expanded(x *kernel.Acts) [][]float64 {
	var latents, shared [][]float64
	var out [][]float64
	for pos := range x.N {
		row := values(x, pos)
		kv := l.kvDown.times(row)
		latents = append(latents, rmsNormed(kv[:l.Rank], &l.KVNorm))
		shared = append(shared, l.rotated(kv[l.Rank:], pos))
		q := row
		if l.qDown != nil {
			q = rmsNormed(l.qDown.times(row), &l.QNorm)
		}
		q = l.q.times(q)
		var all []float64
		for h := range l.Heads {
			q := q[h*(l.PlainDim+l.RopeDim):][:l.PlainDim+l.RopeDim]
			turned := l.rotated(q[l.PlainDim:], pos)
			sum, read := 0.0, make([]float64, l.ValueDim)
			for j, c := range latents {
				score := 0.0
				for p := range l.PlainDim {
					key := 0.0
					for r, v := range c {
						key += float64(l.keys[h].w[r][p]) * v
					}
					score += q[p] * key
				}
				for p, v := range turned {
					score += v * shared[j][p]
				}
				w := math.Exp(score * float64(l.Scale))
				sum += w
				for i, v := range l.values[h].times(c) {
					read[i] += w * v
				}
			}
			for _, v := range read {
				all = append(all, v/sum)
			}
		}
		out = append(out, all)
	}
	return out
}

// mixLatent runs the rows of x in pieces, beside another sequence, and returns
// the rows for the output matrix.
func mixLatent(t testing.TB, e *Exec, l *Latent, x *kernel.Acts, kv tensor.DType, page, piece int) *kernel.Acts {
	t.Helper()
	p, err := kvcache.New(kvcache.Config{Layers: []kvcache.LayerShape{{Heads: 1, KDim: 8, VDim: 8}, l.Keeps()}, PageTokens: page, DType: kv, MaxBytes: 1 << 19})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	e.KV = p
	mine, other := p.NewSeq(), p.NewSeq()
	var out kernel.Acts
	Rows(&out, x.N, l.Heads*l.ValueDim, false)
	for at := 0; at < x.N; at += piece {
		n := min(piece, x.N-at)
		for s, n := range map[*kvcache.Seq]int{mine: n, other: 1} {
			if err := p.Grow(s, n); err != nil {
				t.Fatal(err)
			}
		}
		s := &Step{Runs: []Run{{Seq: other, Tokens: make([]int32, 1)}, {Seq: mine, Tokens: make([]int32, n)}}}
		s.Place()
		e.Begin(s)
		var in kernel.Acts
		formRows(&in, n+1, x.K, l.Form())
		for i := range n + 1 {
			copy(Row(&in, i), Row(x, at+max(i-1, 0)))
			if len(in.Q) > 0 {
				in.Quantize(i, 0, in.K)
			}
		}
		mixed, _ := l.Mix(e, s, 1, &in)
		for i := range n {
			copy(Row(&out, at+i), Row(mixed, 1+i))
		}
	}
	if err := p.Check(mine, other); err != nil {
		t.Fatal(err)
	}
	return &out
}

// The absorbed form gives what the expanded one does, and the same bits however
// rows are cut into steps, whatever the size of pages and the number of workers.
func TestLatent(t *testing.T) {
	for i, c := range []struct {
		typ       tensor.DType
		heads     int
		queryRank int
		style     RopeStyle
	}{{tensor.F32, 3, 0, RopeNorm}, {tensor.F32, 14, 48, RopeNeox}, {tensor.Q8_0, 2, 64, RopeNorm}} {
		r := rand.New(rand.NewPCG(5, uint64(i)))
		l := newLatent(t, r, c.typ, c.heads, c.queryRank, c.style)
		x := randomActs(r, 40, latentHidden)
		want := l.expanded(x)
		kvs := []tensor.DType{tensor.F32, tensor.F16, tensor.BF16, tensor.Q8_0}
		if i > 0 {
			kvs = kvs[:1]
		}
		for _, kv := range kvs {
			withWorkers(t, func(e *Exec) []*kernel.Acts {
				whole := mixLatent(t, e, l.Latent, x, kv, 16, x.N)
				for _, piece := range []int{1, 19} {
					sameActs(t, fmt.Sprint(c, kv, " in pieces of ", piece), mixLatent(t, e, l.Latent, x, kv, 32, piece), whole)
				}
				if kv == tensor.F32 {
					for row := range x.N {
						near(t, fmt.Sprint(c), whole, row, want[row], c.typ != tensor.F32)
					}
				}
				return []*kernel.Acts{whole}
			})
		}
	}
}

// A token keeps its latent and the rotated key, and nothing else.
func TestLatentKeeps(t *testing.T) {
	a := &Latent{Heads: 16, Rank: 512, RopeDim: 64}
	for kv, want := range map[tensor.DType]int{tensor.F16: 2 * (512 + 64), tensor.BF16: 2 * (512 + 64), tensor.F32: 4 * (512 + 64), tensor.Q8_0: 512 + 64 + 4} {
		const layers, tokens = 3, 128
		cfg := kvcache.Config{DType: kv, PageTokens: 64}
		for range layers {
			cfg.Layers = append(cfg.Layers, a.Keeps())
		}
		if got, err := kvcache.SequenceBytes(cfg, tokens, 0); err != nil || got != int64(layers*tokens*want) {
			t.Errorf("%v: a token takes %d bytes in a layer, expected %d (%v)", kv, got/layers/tokens, want, err)
		}
	}
}

func TestLatentAllocations(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	l := newLatent(t, r, tensor.Q8_0, 2, 64, RopeNorm)
	p := pool.New(2)
	defer p.Close()
	e := NewExec(p)
	kv, err := kvcache.New(kvcache.Config{Layers: []kvcache.LayerShape{l.Keeps()}, PageTokens: 64, DType: tensor.F16, MaxBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer kv.Close()
	e.KV = kv
	seq := kv.NewSeq()
	if err := kv.Grow(seq, 1); err != nil {
		t.Fatal(err)
	}
	s := &Step{Runs: []Run{{Seq: seq, Tokens: make([]int32, 1)}}}
	x := randomActs(r, 1, latentHidden)
	if n := testing.AllocsPerRun(20, func() {
		s.Place()
		e.Begin(s)
		l.Mix(e, s, 0, x)
	}); n != 0 {
		t.Errorf("a step allocates %v times", n)
	}
}
