package kernel

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"ridge/internal/arena"
	"ridge/internal/cpu"
	"ridge/weights/tensor"
)

// coldMats packs as many copies of a matrix as fill the given number of bytes,
// more than the caches hold.
func coldMats(b *testing.B, t tensor.DType, rows, cols, bytes int) []*Packed {
	m := randomMat(rand.New(rand.NewPCG(1, 2)), t, rows, cols)
	size, err := PackedBytes(m)
	if err != nil {
		b.Fatal(err)
	}
	n := max(1, bytes/size)
	a, err := arena.New(n * (size + 64))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { a.Free() })
	var ps []*Packed
	for range n {
		p, err := NewPacked(m, a.Alloc)
		if err != nil {
			b.Fatal(err)
		}
		p.Pack(m, 0, p.Groups)
		ps = append(ps, p)
	}
	return ps
}

// samples are the durations of one piece of work, in processor time. Their
// 10th percentile is what it takes when nothing else uses the caches.
type samples []float64

func (s *samples) add(f func()) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	at := clock()
	f()
	*s = append(*s, clock()-at)
}

func (s samples) p10() float64 {
	slices.Sort(s)
	return s[len(s)/10]
}

// BenchmarkMulCold multiplies few rows with weights from main memory. It
// reports the bytes of weights per second and their ratio to a loop that only
// reads them, run in turns.
func BenchmarkMulCold(b *testing.B) {
	for _, t := range packedTypes {
		for _, n := range []int{1, 2, 4, 8} {
			b.Run(fmt.Sprintf("%s/%d", t, n), func(b *testing.B) {
				const rows, cols = 1024, 2048
				ps := coldMats(b, t, rows, cols, 96<<20)
				x := randomActs(rand.New(rand.NewPCG(3, 4)), n, cols)
				dst := make([]float32, n*rows)
				var read, mul samples
				for b.Loop() {
					for i, p := range ps {
						read.add(func() { readProbe(ps[(i+len(ps)/2)%len(ps)].Data) })
						mul.add(func() { p.Mul(dst, rows, x, 0, n, 0, p.Groups) })
					}
				}
				bytes := float64(len(ps[0].Data))
				b.ReportMetric(bytes/mul.p10()/1e9, "GB/s")
				b.ReportMetric(read.p10()/mul.p10(), "of-read")
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}

// BenchmarkMulHot multiplies many rows and reports the operations per second
// and their ratio to a loop of nothing but products, run in turns.
func BenchmarkMulHot(b *testing.B) {
	for _, t := range packedTypes {
		for _, n := range []int{16, 32, 512} {
			b.Run(fmt.Sprintf("%s/%d", t, n), func(b *testing.B) {
				const rows, cols = 256, 2048
				p := coldMats(b, t, rows, cols, 1)[0]
				x := randomActs(rand.New(rand.NewPCG(3, 4)), n, cols)
				dst := make([]float32, n*rows)
				var peak, mul samples
				peakOps := 0
				for b.Loop() {
					peak.add(func() { peakOps = dotProbe(p.UsesQuant(), 20000) })
					mul.add(func() { p.Mul(dst, rows, x, 0, n, 0, p.Groups) })
				}
				rate := float64(2*n*rows*cols) / mul.p10()
				b.ReportMetric(rate/1e9, "GOP/s")
				b.ReportMetric(rate*peak.p10()/float64(peakOps), "of-peak")
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}

func BenchmarkPack(b *testing.B) {
	for _, t := range packedTypes {
		b.Run(t.String(), func(b *testing.B) {
			m := randomMat(rand.New(rand.NewPCG(1, 2)), t, 512, 2048)
			p := packTest(b, m)
			b.SetBytes(int64(len(m.Data)))
			for b.Loop() {
				p.Pack(m, 0, p.Groups)
			}
		})
	}
}

func BenchmarkQuantizeRow(b *testing.B) {
	for _, tier := range cpu.Tiers()[1:] {
		b.Run(tier.String(), func(b *testing.B) {
			defer cpu.Set(tier)()
			x := randomActs(rand.New(rand.NewPCG(3, 4)), 1, 2048)
			b.SetBytes(2048 * 4)
			for b.Loop() {
				QuantizeRow(x.Q, x.F32[:2048])
			}
		})
	}
}

// BenchmarkMulBatch multiplies the numbers of rows that decoding a batch has
// with weights that are not in the second-level cache. For each it reports the
// share of the peak of products; the aggregate speed must rise with the rows.
func BenchmarkMulBatch(b *testing.B) {
	batches := []int{1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 512}
	for _, shape := range [][2]int{{1536, 576}, {576, 1536}, {1024, 2048}, {512, 5632}} {
		for _, t := range []tensor.DType{tensor.Q8_0, tensor.Q4_0, tensor.Q4_1, tensor.Q5_0, tensor.Q4_K, tensor.Q6_K} {
			rows, cols := shape[0], shape[1]
			if cols%t.BlockSize() != 0 {
				continue
			}
			b.Run(fmt.Sprintf("%dx%d/%s", rows, cols, t), func(b *testing.B) {
				ps := coldMats(b, t, rows, cols, 48<<20)
				rng := rand.New(rand.NewPCG(3, 4))
				x := randomActs(rng, batches[len(batches)-1], cols)
				dst := make([]float32, x.N*rows)
				var peak samples
				mul := make([]samples, len(batches))
				peakOps := 0
				for b.Loop() {
					for i, n := range batches {
						peak.add(func() { peakOps = dotProbe(true, 20000) })
						for range 4 {
							p := ps[rng.IntN(len(ps))]
							mul[i].add(func() { p.Mul(dst, rows, x, 0, n, 0, p.Groups) })
						}
					}
				}
				top := float64(peakOps) / peak.p10()
				for i, n := range batches {
					b.ReportMetric(100*float64(2*n*rows*cols)/mul[i].p10()/top, fmt.Sprintf("%%/%d", n))
				}
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}
