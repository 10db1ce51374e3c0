package nn

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"ridge/internal/cpu"
	"ridge/internal/pool"
	"ridge/kernel"
	"ridge/kvcache"
	"ridge/weights/tensor"
)

// farHidden is the width of what BenchmarkFarSteps runs.
const farHidden = 256

// farMixers are mixers of one size: 256 columns, heads of 64.
func farMixers(b *testing.B) map[string]Mixer {
	const hidden, heads, dim = farHidden, 4, 64
	r := rand.New(rand.NewPCG(65, 1))
	matrix := func(rows, cols int) Linear { return newMatrix(b, r, tensor.Q8_0, rows, cols, false).Linear }
	pair := func() LowRankMLP { return newLowRankTest(b, r, tensor.F32, 32, hidden).m }
	ssd := &SSD{
		In: matrix(2*hidden+2*dim+heads, hidden), Out: matrix(hidden, hidden), Conv: randomConv(r, hidden+2*dim, 4), Heads: heads, HeadDim: dim, Groups: 1,
		States: dim, DtBias: randomRow(r, heads), D: randomRow(r, heads), A: make([]float32, heads), Norm: Norm{W: randomRow(r, hidden), Eps: 1e-5},
	}
	delta := &Delta{
		QKV: matrix(3*hidden, hidden), Z: matrix(hidden, hidden), B: matrix(heads, hidden), A: matrix(heads, hidden), Conv: randomConv(r, 3*hidden, 4),
		Heads: heads, Dim: dim, KeyHeads: heads, KeyDim: dim, DtBias: randomRow(r, heads), Rate: make([]float32, heads),
		Norm: Norm{W: randomRow(r, dim), Eps: 1e-6}, Out: matrix(hidden, hidden),
	}
	fill(ssd.A, -1)
	fill(delta.Rate, -1)
	rwkv := &RWKV7{
		R: matrix(hidden, hidden), K: matrix(hidden, hidden), V: matrix(hidden, hidden), Out: matrix(hidden, hidden), Decay: pair(), Write: pair(),
		Gate: pair(), Heads: heads, Dim: dim, IsFirst: true, KeyUnit: randomRow(r, hidden), KeyWrite: randomRow(r, hidden), Bonus: randomRow(r, hidden),
		Norm: Norm{Kind: NormLayer, W: randomRow(r, hidden), B: randomRow(r, hidden), Eps: 64e-5},
	}
	for i := range rwkv.Lerp {
		rwkv.Lerp[i] = randomRow(r, hidden)
	}
	return map[string]Mixer{"Mamba-2": ssd, "RWKV-7": rwkv, "delta rule": delta}
}

// Steps far into a sequence take the processor time of early ones, and the sequence the
// memory: a round has steps of four sequences in turn, go test ./nn -bench FarSteps.
func BenchmarkFarSteps(b *testing.B) {
	const steps = 64
	lengths := [...]int{1 << 10, 4 << 10, 16 << 10, 64 << 10}
	mixers := farMixers(b)
	for _, name := range []string{"Mamba-2", "RWKV-7", "delta rule"} {
		b.Run(name, func(b *testing.B) {
			far := newFarRun(b, mixers[name])
			defer far.close()
			var seqs [len(lengths)]*kvcache.Seq
			var took [len(lengths)]time.Duration
			var held [len(lengths)]int64
			for i, n := range lengths {
				before := far.kv.Stats().InUse
				seqs[i] = far.kv.NewSeq()
				for seqs[i].Len() < n {
					far.step(b, seqs[i], far.x.N)
				}
				held[i] = int64(far.kv.Stats().InUse-before) * far.kv.PageBytes()
			}
			for b.Loop() {
				for i, seq := range seqs {
					start := cpu.Time()
					for range steps {
						far.step(b, seq, 1)
					}
					took[i] += cpu.Time() - start
				}
			}
			for i, n := range lengths {
				b.ReportMetric(float64(held[i])/1024, fmt.Sprintf("KiB-at-%dk", n>>10))
				b.ReportMetric(took[i].Seconds()*1e6/float64(b.N*steps), fmt.Sprintf("cpu-us-at-%dk", n>>10))
			}
		})
	}
}

// farRun runs a mixer alone, on one worker: that waits for nobody.
type farRun struct {
	m         Mixer
	e         *Exec
	kv        *kvcache.Pool
	pool      *pool.Pool
	x         *kernel.Acts
	part, sum kernel.Acts
}

func newFarRun(b *testing.B, m Mixer) *farRun {
	kv, err := kvcache.New(kvcache.Config{Layers: []kvcache.LayerShape{m.Keeps()}, DType: tensor.F16, MaxBytes: 64 << 20})
	if err != nil {
		b.Fatal(err)
	}
	p := pool.New(1)
	e := NewExec(p)
	e.KV = kv
	return &farRun{m: m, e: e, kv: kv, pool: p, x: randomActs(rand.New(rand.NewPCG(66, 1)), 512, farHidden)}
}

func (f *farRun) close() {
	f.pool.Close()
	f.kv.Close()
}

// step computes n rows of a sequence.
func (f *farRun) step(b *testing.B, seq *kvcache.Seq, n int) {
	if err := f.kv.Grow(seq, n); err != nil {
		b.Fatal(err)
	}
	s := Step{Runs: []Run{{Seq: seq, Tokens: make([]int32, n)}}}
	s.Place()
	formRows(&f.part, n, f.x.K, f.m.Form())
	for i := range n {
		if copy(Row(&f.part, i), Row(f.x, i)); f.m.Form().Quant() {
			f.part.Quantize(i, 0, f.x.K)
		}
	}
	y, w := f.m.Mix(f.e, &s, 0, &f.part)
	f.e.Linear(y, Out{w, &f.sum})
}
