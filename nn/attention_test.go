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

// attnCase is attention of some sequences, with everything that was stored.
type attnCase struct {
	name                    string
	heads, kvHeads, headDim int
	lens, rows              []int // per sequence: tokens, and how many of the last are rows
	softcap                 float32
	window, chunk           int
	slopes, sinks           []float32
}

var attnCases = []attnCase{
	{name: "one row, splits", heads: 6, kvHeads: 2, headDim: 16, lens: []int{1100}, rows: []int{1}},
	{name: "few rows, splits", heads: 4, kvHeads: 2, headDim: 16, lens: []int{900, 257}, rows: []int{4, 3}},
	{name: "prompt", heads: 3, kvHeads: 3, headDim: 24, lens: []int{75}, rows: []int{75}},
	{name: "mixed", heads: 8, kvHeads: 1, headDim: 16, lens: []int{1, 33, 600, 256, 700}, rows: []int{1, 33, 1, 2, 5}},
	{name: "window", heads: 2, kvHeads: 1, headDim: 16, lens: []int{900, 40}, rows: []int{2, 40}, window: 300},
	{name: "chunks", heads: 2, kvHeads: 1, headDim: 16, lens: []int{900, 40, 601}, rows: []int{2, 40, 3}, chunk: 300},
	{name: "soft cap and slopes", heads: 4, kvHeads: 2, headDim: 16, lens: []int{530, 20}, rows: []int{1, 20}, softcap: 3, slopes: []float32{0.5, 0.25, 0.1, 0}},
	{name: "sinks", heads: 4, kvHeads: 2, headDim: 16, lens: []int{530, 20, 1}, rows: []int{1, 20, 1}, window: 300, sinks: []float32{1, -2, 0, 40}},
}

// attnInput is a case's rows and what its sequences hold.
type attnInput struct {
	attn    Attention
	kv      *kvcache.Pool
	step    Step
	q       kernel.Acts
	k, v    [][][]float32 // per sequence and token, the values of all kv heads
	queries [][]float32   // per row
}

func newAttnInput(t *testing.T, c *attnCase) *attnInput {
	t.Helper()
	p, err := kvcache.New(kvcache.Config{
		Layers:     []kvcache.LayerShape{{Heads: 1, KDim: 8, VDim: 8}, {Heads: c.kvHeads, KDim: c.headDim, VDim: c.headDim}},
		PageTokens: 32, DType: tensor.F32, MaxBytes: 16 << 20,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	r := rand.New(rand.NewPCG(1, uint64(c.headDim)))
	in := &attnInput{kv: p, attn: Attention{
		Heads: c.heads, KVHeads: c.kvHeads, HeadDim: c.headDim,
		Scale: 0.3, Softcap: c.softcap, Window: c.window, Chunk: c.chunk, Slopes: c.slopes, Sinks: c.sinks,
	}}
	random := func(n int) []float32 {
		x := make([]float32, n)
		for i := range x {
			x[i] = float32(r.NormFloat64())
		}
		return x
	}
	rows := 0
	for i, n := range c.lens {
		s := p.NewSeq()
		if err := p.Grow(s, n); err != nil {
			t.Fatal(err)
		}
		var ks, vs [][]float32
		for at := range n {
			k, v := random(c.kvHeads*c.headDim), random(c.kvHeads*c.headDim)
			for h := range c.kvHeads {
				kt, vt := p.Tile(1, h, s, at/kvcache.TileTokens)
				kernel.StoreKV(kt, vt, at%kvcache.TileTokens, k[h*c.headDim:][:c.headDim], v[h*c.headDim:][:c.headDim], tensor.F32)
			}
			ks, vs = append(ks, k), append(vs, v)
		}
		in.k, in.v = append(in.k, ks), append(in.v, vs)
		in.step.Runs = append(in.step.Runs, Run{Seq: s, Tokens: make([]int32, c.rows[i]), row: rows, pos: n - c.rows[i]})
		rows += c.rows[i]
	}
	Rows(&in.q, rows, c.heads*c.headDim, false)
	for i := range rows {
		in.queries = append(in.queries, random(c.heads*c.headDim))
		copy(Row(&in.q, i), in.queries[i])
	}
	return in
}

// naive is the attention of row i of run s for a head, in float64.
func (in *attnInput) naive(s, i, head int) []float64 {
	a, run := &in.attn, &in.step.Runs[s]
	kv, pos := head/(a.Heads/a.KVHeads)*a.HeadDim, run.pos+i
	q := in.queries[run.row+i][head*a.HeadDim:][:a.HeadDim]
	out, sum := make([]float64, a.HeadDim), 0.0
	first := 0
	if a.Window > 0 {
		first = max(0, pos+1-a.Window)
	}
	if a.Chunk > 0 {
		first = pos - pos%a.Chunk
	}
	for j := first; j <= pos; j++ {
		score := 0.0
		for d, x := range q {
			score += float64(x) * float64(in.k[s][j][kv+d])
		}
		score *= float64(a.Scale)
		if a.Softcap > 0 {
			score = float64(a.Softcap) * math.Tanh(score/float64(a.Softcap))
		}
		if a.Slopes != nil {
			score += float64(a.Slopes[head]) * float64(j-pos)
		}
		w := math.Exp(score)
		sum += w
		for d := range out {
			out[d] += w * float64(in.v[s][j][kv+d])
		}
	}
	if a.Sinks != nil {
		sum += math.Exp(float64(a.Sinks[head]))
	}
	for d := range out {
		out[d] /= sum
	}
	return out
}

// Attention over pages, splits and several sequences is that of the definition,
// and the same bits for any number of workers.
func TestAttention(t *testing.T) {
	for _, c := range attnCases {
		t.Run(c.name, func(t *testing.T) {
			in := newAttnInput(t, &c)
			var first kernel.Acts
			for _, workers := range []int{1, 2, 3, 5} {
				p := pool.New(workers)
				e := NewExec(p)
				e.KV = in.kv
				var dst kernel.Acts
				for range 3 { // what one step leaves does not reach the next
					e.attend(&in.attn, &in.step, 1, &dst, &in.q, Form{Planes: 1})
				}
				p.Close()
				if workers == 1 {
					first = dst
					in.compare(t, &dst)
					continue
				}
				sameActs(t, fmt.Sprintf("%d workers", workers), &dst, &first)
			}
		})
	}
}

// A row has the same bits alone and with the rows of other runs.
func TestAttentionAlone(t *testing.T) {
	p := pool.New(2)
	defer p.Close()
	for _, c := range attnCases {
		in := newAttnInput(t, &c)
		e := NewExec(p)
		e.KV = in.kv
		var all, one kernel.Acts
		e.attend(&in.attn, &in.step, 1, &all, &in.q, Form{Planes: 1})
		for _, s := range in.step.Runs {
			for i := range s.Rows() {
				var q kernel.Acts
				Rows(&q, 1, in.q.K, false)
				copy(Row(&q, 0), in.queries[s.row+i])
				alone := Step{Runs: []Run{{Seq: s.Seq, Tokens: s.Tokens[:1], pos: s.pos + i}}}
				e.attend(&in.attn, &alone, 1, &one, &q, Form{Planes: 1})
				want := kernel.Acts{N: 1, K: all.K, F32: Row(&all, s.row+i), LDF: all.LDF, Q: all.Q[(s.row+i)*all.LDQ:][:all.LDQ], LDQ: all.LDQ}
				sameActs(t, fmt.Sprintf("%s: row %d alone", c.name, s.row+i), &one, &want)
			}
		}
	}
}

func (in *attnInput) compare(t *testing.T, dst *kernel.Acts) {
	t.Helper()
	a := &in.attn
	worst := 0.0
	for s := range in.step.Runs {
		for i := range in.step.Runs[s].Rows() {
			got := Row(dst, in.step.Runs[s].row+i)
			for h := range a.Heads {
				for d, want := range in.naive(s, i, h) {
					worst = max(worst, math.Abs(float64(got[h*a.HeadDim+d])-want))
				}
			}
		}
	}
	if !(worst <= 2e-5) {
		t.Errorf("differs from the definition by up to %g", worst)
	}
}

// sameActs compares rows bit for bit, their quantized form too.
func sameActs(t *testing.T, what string, got, want *kernel.Acts) {
	t.Helper()
	if got.N != want.N || got.K != want.K || len(got.Q) != len(want.Q) {
		t.Fatalf("%s: %d x %d, %d quantized bytes; want %d x %d, %d", what, got.N, got.K, len(got.Q), want.N, want.K, len(want.Q))
	}
	for r := range got.N {
		for i, x := range Row(got, r) {
			if w := Row(want, r)[i]; math.Float32bits(x) != math.Float32bits(w) {
				t.Fatalf("%s: row %d, value %d: %v, want %v", what, r, i, x, w)
			}
		}
	}
	if string(got.Q) != string(want.Q) {
		t.Fatalf("%s: other quantized values", what)
	}
}
