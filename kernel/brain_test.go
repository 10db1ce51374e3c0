package kernel

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"ridge/internal/cpu"
	"ridge/weights/tensor"
)

// brainActs rounds rows of values to the given number of planes for the tier in use.
func brainActs(values []float32, n, k, planes int) *Acts {
	x := &Acts{N: n, K: k, F32: values, LDF: k, LDQ: planes * (ActRowBytes(k) + 64), Brain: true, Planes: planes}
	x.Q = make([]byte, n*x.LDQ)
	for i := range x.Q {
		x.Q[i] = 0xff // not a number
	}
	for r := range n {
		x.Quantize(r, 0, k)
	}
	return x
}

func brainMat(t *testing.T, rng *rand.Rand, d tensor.DType, rows, cols, planes int) (*Packed, tensor.Mat) {
	m := randomMat(rng, d, rows, cols)
	p := packTest(t, m)
	if !p.SetBrain(planes) || !p.UsesQuant() || p.Brain() != planes {
		t.Fatal("expected bfloat16 activations to be read")
	}
	return p, m
}

// brainKinds are the types of weights, with the numbers of planes of activations.
var brainKinds = []struct {
	weights tensor.DType
	planes  int
	budget  float64 // what rounding may change, relative to |w|·|x|
}{{tensor.BF16, 1, 0.004}, {tensor.BF16, 2, 0x1p-18}, {tensor.F32, 2, 0x1p-17}}

func brainValues(rng *rand.Rand, n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(rng.NormFloat64() * math.Exp(rng.NormFloat64()))
	}
	return x
}

// Every tier, number of rows and split gives the bits of the definition, and
// writes nothing else.
func TestBrainSameBits(t *testing.T) {
	for _, k := range brainKinds {
		for _, cols := range []int{1, 7, 31, 32, 33, 64, 96, 576, 1120} {
			if k.planes == 2 && cols != 64 && cols != 96 && (cols != 33 || k.weights == tensor.F32) {
				continue
			}
			t.Run(fmt.Sprint(k.weights, k.planes, cols), func(t *testing.T) {
				rng := rand.New(rand.NewPCG(31, uint64(cols)))
				const rows, n = 4*Lanes + 5, 77
				p, _ := brainMat(t, rng, k.weights, rows, cols, k.planes)
				values := brainValues(rng, n*cols)
				ldd := p.Groups*Lanes + 5
				restore := cpu.Set(cpu.Generic)
				want := make([]float32, n*ldd)
				p.Mul(want, ldd, brainActs(values, n, cols, k.planes), 0, n, 0, p.Groups)
				restore()
				brainTiers(func(tier string) {
					x := brainActs(values, n, cols, k.planes)
					for lo := 0; lo < n; lo += 1 + rng.IntN(20*k.planes) {
						for cnt := 1; lo+cnt <= n; cnt += 1 + rng.IntN(12*k.planes) {
							g0 := rng.IntN(p.Groups)
							g1 := g0 + 1 + rng.IntN(p.Groups-g0)
							checkBrain(t, p, x, want, ldd, lo, lo+cnt, g0, g1, tier)
						}
					}
				})
			})
		}
	}
}

func checkBrain(t *testing.T, p *Packed, x *Acts, want []float32, ldd, r0, r1, g0, g1 int, tier string) {
	t.Helper()
	const guard = float32(12345)
	got := make([]float32, len(want))
	for i := range got {
		got[i] = guard
	}
	p.Mul(got, ldd, x, r0, r1, g0, g1)
	for i, v := range got {
		r, o, w := i/ldd, i%ldd, guard
		if r >= r0 && r < r1 && o >= g0*Lanes && o < g1*Lanes {
			w = want[i]
		}
		if math.Float32bits(v) != math.Float32bits(w) {
			t.Fatalf("%s: rows %d to %d, groups %d to %d: row %d, output %d: %v (%#x), want %v (%#x)", tier, r0, r1, g0, g1, r, o, v, math.Float32bits(v), w, math.Float32bits(w))
		}
	}
}

// Products are those of the rounded activations, and near those of the float32
// ones.
func TestBrainAgainstDefinition(t *testing.T) {
	tiers(t, func(t *testing.T) {
		for _, k := range brainKinds {
			for _, cols := range []int{1, 33, 256, 2048} {
				if k.weights == tensor.F32 && cols%32 != 0 {
					continue
				}
				rng := rand.New(rand.NewPCG(32, uint64(cols)))
				const rows, n = 35, 3
				p, m := brainMat(t, rng, k.weights, rows, cols, k.planes)
				x := brainActs(brainValues(rng, n*cols), n, cols, k.planes)
				ldd := p.Groups * Lanes
				dst, w := make([]float32, n*ldd), make([]float32, cols)
				p.Mul(dst, ldd, x, 0, n, 0, p.Groups)
				for r := range n {
					for o := range ldd {
						got := float64(dst[r*ldd+o])
						if o >= rows {
							if got != 0 {
								t.Fatalf("row %d: output %d beyond the matrix is %v", r, o, got)
							}
							continue
						}
						m.Type.Decode(w, m.Row(o))
						rounded := brainDot(w, x.F32[r*cols:][:cols], k.weights, k.planes)
						if e := math.Abs(got-rounded.sum) / rounded.size; !(e <= budgetDot) {
							t.Fatalf("%v: row %d output %d: got %v, want %v: off by %g of %g", k, r, o, got, rounded.sum, e, budgetDot)
						}
						if e := math.Abs(rounded.sum-rounded.exact) / rounded.norms; !(e <= k.budget) {
							t.Fatalf("%v: row %d output %d: %v, %v without rounding: off by %g of %g", k, r, o, rounded.sum, rounded.exact, e, k.budget)
						}
					}
				}
			}
		}
	})
}

// brainSums are products in float64: of what is multiplied, of the magnitudes,
// without rounding, and of the lengths.
type brainSums struct{ sum, size, exact, norms float64 }

func brainDot(w, x []float32, d tensor.DType, planes int) (s brainSums) {
	round := func(v float32) (first, rest float64) {
		b := tensor.BF16ToF32(tensor.F32ToBF16(v))
		return float64(b), float64(tensor.BF16ToF32(tensor.F32ToBF16(v - b)))
	}
	var ww, xx float64
	for k, v := range w {
		w0, w1 := round(v)
		x0, x1 := round(x[k])
		if planes == 1 {
			x1 = 0
		}
		product := w0*x0 + w0*x1 + w1*x0
		s.sum += product
		s.size += math.Abs(product)
		s.exact += float64(v) * float64(x[k])
		ww += float64(v) * float64(v)
		xx += float64(x[k]) * float64(x[k])
	}
	s.norms = math.Sqrt(ww * xx)
	return s
}

// A row may be rounded in parts; halves go to even, infinities and what is not a
// number stay, what is too small for a normal number is zero.
func TestRoundRow(t *testing.T) {
	inf := float32(math.Inf(1))
	odd := []struct{ x, want float32 }{
		{1, 1}, {-1, -1}, {1 + 0x1p-8, 1}, {1 + 3*0x1p-8, 1 + 0x1p-6}, {1 + 0x1p-8 + 0x1p-20, 1 + 0x1p-7}, {inf, inf}, {-inf, -inf},
		{math.MaxFloat32, inf}, {0x1p-127, 0}, {0x1p-126, 0x1p-126}, {0, 0}, {3.140625, 3.140625},
	}
	tiers(t, func(t *testing.T) {
		order := orderTier()
		for _, n := range []int{1, 12, 31, 32, 33, 64, 100, 256} {
			values := make([]float32, n)
			for i := range values {
				values[i] = odd[i%len(odd)].x
			}
			x := brainActs(values, 1, n, 1)
			parts := brainActs(values, 1, n, 1)
			for i := range parts.Q {
				parts.Q[i] = 0
			}
			for c := 0; c < n; c += 64 {
				parts.Quantize(0, c, min(c+64, n))
			}
			for i := range ActRowBytes(n) / 2 {
				from, want := i&^31+int(order[i&31]), float32(0)
				if from < n {
					want = odd[from%len(odd)].want
				}
				if got := brainValue(x.Q[2*i:]); got != want {
					t.Errorf("%d values: number %d: %v, want %v", n, from, got, want)
				}
				if got := brainValue(parts.Q[2*i:]); got != want {
					t.Errorf("%d values in parts: number %d: %v, want %v", n, from, got, want)
				}
			}
		}
		nan := brainActs([]float32{float32(math.NaN())}, 1, 1, 1)
		for i := range 32 {
			if v := brainValue(nan.Q[2*i:]); order[i] == 0 && v == v {
				t.Errorf("what is not a number became %v", v)
			}
		}
	})
}

// Activations of the other kind are refused.
func TestBrainKind(t *testing.T) {
	rng := rand.New(rand.NewPCG(33, 33))
	p, _ := brainMat(t, rng, tensor.BF16, Lanes, 32, 1)
	defer func() {
		if recover() == nil {
			t.Error("expected quantized activations to be refused")
		}
	}()
	p.Mul(make([]float32, Lanes), Lanes, randomActs(rng, 1, 32), 0, 1, 0, 1)
}

// BenchmarkBrain compares products of bfloat16 with those of float32
// activations, in turns: of few rows with weights from main memory, of many.
func BenchmarkBrain(b *testing.B) {
	for _, n := range []int{1, 2, 4, 8, 16, 32, 64, 128, 512} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			const rows, cols = 1024, 2048
			ps := coldMats(b, tensor.BF16, rows, cols, 96<<20)
			rng := rand.New(rand.NewPCG(3, 4))
			x := brainActs(brainValues(rng, n*cols), n, cols, 1)
			dst := make([]float32, n*rows)
			var read, float, mul samples
			for b.Loop() {
				for i, p := range ps {
					read.add(func() { readProbe(ps[(i+len(ps)/2)%len(ps)].Data) })
					p.brain = 0
					float.add(func() { p.Mul(dst, rows, x, 0, n, 0, p.Groups) })
					p = ps[(i+len(ps)/3)%len(ps)]
					p.brain = 1
					mul.add(func() { p.Mul(dst, rows, x, 0, n, 0, p.Groups) })
					if n > 64 && i > 8 {
						break
					}
				}
			}
			b.ReportMetric(float64(len(ps[0].Data))/mul.p10()/1e9, "GB/s")
			b.ReportMetric(read.p10()/mul.p10(), "of-read")
			b.ReportMetric(float64(2*n*rows*cols)/mul.p10()/1e9, "GOP/s")
			b.ReportMetric(float.p10()/mul.p10(), "of-float")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// BenchmarkBrainPieces compares float32 weights in two pieces with products of
// float32, in turns.
func BenchmarkBrainPieces(b *testing.B) {
	for _, n := range []int{1, 8, 32, 512} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			const rows, cols = 1536, 384
			p := coldMats(b, tensor.F32, rows, cols, 1)[0]
			pieces := coldMats(b, tensor.F32, rows, cols, 1)[0]
			pieces.SetBrain(2)
			rng := rand.New(rand.NewPCG(3, 4))
			x := brainActs(brainValues(rng, n*cols), n, cols, 2)
			dst := make([]float32, n*rows)
			var float, mul samples
			for b.Loop() {
				float.add(func() { p.Mul(dst, rows, x, 0, n, 0, p.Groups) })
				mul.add(func() { pieces.Mul(dst, rows, x, 0, n, 0, p.Groups) })
			}
			b.ReportMetric(float64(2*n*rows*cols)/mul.p10()/1e9, "GOP/s")
			b.ReportMetric(float.p10()/mul.p10(), "of-float")
			b.ReportMetric(0, "ns/op")
		})
	}
}
