package kernel

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"testing"

	"ridge/internal/cpu"
)

// Error budgets of the approximations, on all tiers. A result may be off by
// rel·|exact| + abs, with the exact value computed in float64 from the float32
// operands; abs covers results in or near the subnormal range.
const (
	expRel     = 1.2e-7 // 1 ulp
	swishRel   = 3.5e-7 // exp, an addition, a division
	geluRel    = 3e-6   // the argument of exp, up to 17, is a polynomial with three roundings
	geluErfRel = 1.5e-6 // exp of -x²/2, up to 12.5, which is rounded
	tanhRel    = 3e-7   // two roundings for the scales
	mulRel     = 1.2e-7
	tinyAbs    = 2e-37
)

// A mapCase is an operation on elements: f(dst, x, y) with the definition want.
type mapCase struct {
	name   string
	f      func(dst, x, y []float32)
	want   func(x, y float64) float64
	rel    float64
	lo, hi float64 // the range of x in which the budget holds
}

func inPlace(f func(x []float32)) func(dst, x, y []float32) {
	return func(dst, x, y []float32) {
		copy(dst, x[:len(dst)])
		f(dst)
	}
}

func unary(f func(dst, x []float32)) func(dst, x, y []float32) {
	return func(dst, x, y []float32) { f(dst, x) }
}

func onCopy(f func(dst, y []float32)) func(dst, x, y []float32) {
	return func(dst, x, y []float32) {
		copy(dst, x[:len(dst)])
		f(dst, y)
	}
}

func silu(x float64) float64 { return swish(x, 1) }

func geluErf(x float64) float64 { return x / 2 * math.Erfc(-x/math.Sqrt2) }

var mapCases = []mapCase{
	{name: "Add", f: onCopy(Add), want: func(x, y float64) float64 { return x + y }, rel: mulRel, lo: -1e30, hi: 1e30},
	{name: "AddScaled", f: onCopy(func(d, y []float32) { AddScaled(d, y, 0.25) }), want: func(x, y float64) float64 { return x + y*0.25 }, rel: mulRel, lo: -1e30, hi: 1e30},
	{name: "Mul", f: onCopy(Mul), want: func(x, y float64) float64 { return x * y }, rel: mulRel, lo: -1e30, hi: 1e30},
	{name: "Scale", f: inPlace(func(x []float32) { Scale(x, 0.7) }), want: func(x, y float64) float64 { return x * float64(float32(0.7)) }, rel: mulRel, lo: -1e30, hi: 1e30},
	{name: "ReLU", f: unary(ReLU), want: func(x, y float64) float64 { return max(x, 0) }, lo: -1e38, hi: 1e38},
	{name: "SiLU", f: unary(SiLU), want: func(x, y float64) float64 { return silu(x) }, rel: swishRel, lo: -86, hi: 1e30},
	{name: "SiLUMul", f: SiLUMul, want: func(x, y float64) float64 { return silu(x) * y }, rel: swishRel, lo: -60, hi: 1e5},
	{name: "GELU", f: unary(GELU), want: func(x, y float64) float64 { return gelu(x) }, rel: geluRel, lo: -5, hi: 1e10},
	{name: "GELU far", f: unary(GELU), want: func(x, y float64) float64 { return gelu(x) }, rel: 1e-5, lo: -9.5, hi: -5},
	{name: "GELUMul", f: GELUMul, want: func(x, y float64) float64 { return gelu(x) * y }, rel: geluRel, lo: -5, hi: 1e5},
	{name: "GELUErf", f: unary(GELUErf), want: func(x, y float64) float64 { return geluErf(x) }, rel: geluErfRel, lo: -5, hi: 1e10},
	{name: "GELUErf far", f: unary(GELUErf), want: func(x, y float64) float64 { return geluErf(x) }, rel: 1e-5, lo: -12.5, hi: -5},
	{name: "Softcap", f: inPlace(func(x []float32) { Softcap(x, 30) }), want: func(x, y float64) float64 { return 30 * math.Tanh(x/30) }, rel: tanhRel, lo: -1e30, hi: 1e30},
	{name: "exp", f: inPlace(func(x []float32) { ExpSum(x, 0) }), want: func(x, y float64) float64 { return math.Exp(x) }, rel: expRel, lo: -87, hi: 88.7},
	{name: "exp shifted", f: inPlace(func(x []float32) { ExpSum(x, 3) }), want: func(x, y float64) float64 { return math.Exp(x - 3) }, rel: 1.6e-6, lo: -20, hi: 3},
}

// check compares a result with its definition.
func (c *mapCase) check(x, y, got float32) error {
	want := c.want(float64(x), float64(y))
	if math.IsNaN(want) && math.IsNaN(float64(got)) {
		return nil
	}
	if float64(got) == want || math.Abs(float64(got)-want) <= c.rel*math.Abs(want)+tinyAbs {
		return nil
	}
	return fmt.Errorf("%s(%g, %g): got %g want %g, relative error %.3g", c.name, x, y, got, want, math.Abs(float64(got)-want)/math.Abs(want))
}

const guard = float32(-12345.5)

// guarded returns n floats at an odd offset between guards, and a function
// that checks the guards.
func guarded(n, align int) (x []float32, intact func() bool) {
	mem := make([]float32, n+64)
	for i := range mem {
		mem[i] = guard
	}
	return mem[16+align : 16+align+n : 16+align+n], func() bool {
		for i, v := range mem {
			if v != guard && (i < 16+align || i >= 16+align+n) {
				return false
			}
		}
		return true
	}
}

// sample returns a value between lo and hi: uniform near zero, and of any
// magnitude.
func sample(r *rand.Rand, lo, hi float64) float32 {
	for {
		x := r.NormFloat64() * 3
		if r.IntN(2) == 0 {
			x = math.Copysign(math.Exp(r.Float64()*160-90), x)
		}
		if x >= lo && x <= hi {
			return float32(x)
		}
	}
}

func TestMaps(t *testing.T) {
	forTiers(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(1, 1))
		for _, c := range mapCases {
			for n := 0; n < 1024; n += 1 + n/40*2 {
				x, xok := guarded(n, n%7)
				y, yok := guarded(n, n%5)
				dst, dok := guarded(n, n%3)
				for i := range x {
					x[i], y[i] = sample(r, c.lo, c.hi), float32(r.NormFloat64())
				}
				c.f(dst, x, y)
				for i := range dst {
					if err := c.check(x[i], y[i], dst[i]); err != nil {
						t.Fatal(err)
					}
				}
				if !xok() || !yok() || !dok() {
					t.Fatalf("%s: length %d: wrote outside", c.name, n)
				}
				for i := 0; i < n; i += 1 + n/8 { // one element alone gives the same bits
					var one [1]float32
					c.f(one[:], x[i:i+1], y[i:i+1])
					if math.Float32bits(one[0]) != math.Float32bits(dst[i]) {
						t.Fatalf("%s(%g): %g alone, %g at %d of %d", c.name, x[i], one[0], dst[i], i, n)
					}
				}
				want := append([]float32(nil), dst...)
				c.f(x, x, y)
				for i := range want {
					if math.Float32bits(want[i]) != math.Float32bits(x[i]) {
						t.Fatalf("%s: in place: %g, else %g", c.name, x[i], want[i])
					}
				}
			}
		}
	})
}

// TestMapSweep runs all operations of one operand over float32 values of every
// exponent, about 200 000 of them.
func TestMapSweep(t *testing.T) {
	step := uint32(1 << 32 / 200000)
	var xs []float32
	for b := uint32(0); b < math.MaxUint32-step; b += step {
		if x := math.Float32frombits(b); !math.IsNaN(float64(x)) {
			xs = append(xs, x)
		}
	}
	for x := float64(-110); x < 100; x += 0.00071 { // densely where the functions bend
		xs = append(xs, float32(x))
	}
	y := make([]float32, len(xs))
	for i := range y {
		y[i] = 1.25
	}
	forTiers(t, func(t *testing.T) {
		for _, c := range mapCases {
			var in, ys []float32
			for i, x := range xs {
				if float64(x) >= c.lo && float64(x) <= c.hi {
					in, ys = append(in, x), append(ys, y[i])
				}
			}
			dst := make([]float32, len(in))
			c.f(dst, in, ys)
			for i := range dst {
				if err := c.check(in[i], ys[i], dst[i]); err != nil {
					t.Error(err)
					break
				}
			}
		}
	})
}

// TestExpExhaustive checks exp for every float32 in the range where results are
// normal numbers, on every tier; it takes minutes and runs if RIDGE_EXHAUSTIVE
// is set. The largest relative error was 7.6e-8, on both vector tiers.
func TestExpExhaustive(t *testing.T) {
	if os.Getenv("RIDGE_EXHAUSTIVE") == "" {
		t.Skip("set RIDGE_EXHAUSTIVE to check all values")
	}
	x := make([]float32, 1<<16)
	in := make([]float32, len(x))
	forTiers(t, func(t *testing.T) {
		worst, at := 0.0, float32(0)
		for base := uint64(0); base < 1<<32; base += uint64(len(x)) {
			n := 0
			for b := base; b < base+uint64(len(x)); b++ {
				if v := math.Float32frombits(uint32(b)); v >= -87 && v <= 88.72 {
					in[n] = v
					n++
				}
			}
			copy(x, in[:n])
			ExpSum(x[:n], 0)
			for i, v := range in[:n] {
				want := math.Exp(float64(v))
				if e := math.Abs(float64(x[i])-want) / want; e > worst {
					worst, at = e, v
				}
			}
		}
		t.Logf("largest relative error %.3g at %g", worst, at)
		if worst > expRel {
			t.Errorf("exp(%g): relative error %.3g", at, worst)
		}
	})
}

// TestMapSpecials: NaN gives NaN, and outside the budgeted range the result is
// right up to an absolute error that is negligible there.
func TestMapSpecials(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	xs := []float32{nan, inf, -inf, 0, float32(math.Copysign(0, -1)), 1e-45, -1e-45, math.MaxFloat32, -math.MaxFloat32, 100, -100, 130, -130, 89, -89, 200, -200, 1000, -1000, 20, -20, 1e10, -1e10, 1e20, -1e20}
	y := make([]float32, len(xs))
	for i := range y {
		y[i] = 0.5
	}
	forTiers(t, func(t *testing.T) {
		for _, c := range mapCases {
			dst := make([]float32, len(xs))
			c.f(dst, xs, y)
			for i, x := range xs {
				want := float64(float32(c.want(float64(x), float64(y[i]))))
				got := float64(dst[i])
				if math.IsNaN(want) {
					if !math.IsNaN(got) && !math.IsInf(float64(x), 0) {
						t.Errorf("%s(%g): got %g want NaN", c.name, x, got)
					}
					continue
				}
				if math.IsInf(float64(x), 0) && math.IsNaN(got) && (c.name != "exp" && c.name != "Softcap" && c.name != "ReLU") {
					continue // x·sigmoid(x) may be Inf·0
				}
				if got != want && !(math.Abs(got-want) <= 1e-5*math.Abs(want)+1e-35) {
					t.Errorf("%s(%g): got %g want %g", c.name, x, got, want)
				}
			}
		}
	})
}

// sumBudget bounds the error of sums relative to the sum of magnitudes: at
// most n/64 + 7 roundings of partial sums.
const sumBudget = 1e-6

func TestReductions(t *testing.T) {
	reductions := []struct {
		name string
		f    func(a, b []float32) float32
		want func(a, b float64) float64
	}{
		{"sum", func(a, b []float32) float32 { return sum(a) }, func(a, b float64) float64 { return a }},
		{"sumSquares", func(a, b []float32) float32 { return sumSquares(a, 0.5) }, func(a, b float64) float64 { return (a - 0.5) * (a - 0.5) }},
		{"expSum", func(a, b []float32) float32 { return ExpSum(append([]float32(nil), a...), 1) }, func(a, b float64) float64 { return math.Exp(a - 1) }},
	}
	forTiers(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(1, 1))
		for _, c := range reductions {
			for n := 0; n < 1400; n += 1 + n/40*2 {
				a, _ := guarded(n, n%7)
				b, _ := guarded(n, n%5)
				var want, size float64
				for i := range a {
					a[i], b[i] = float32(r.NormFloat64()), float32(r.NormFloat64())
					v := c.want(float64(a[i]), float64(b[i]))
					want, size = want+v, size+math.Abs(v)
				}
				got := c.f(a, b)
				if math.Abs(float64(got)-want) > sumBudget*size {
					t.Fatalf("%s: length %d: got %g want %g", c.name, n, got, want)
				}
				a2, _ := guarded(n, 0)
				b2, _ := guarded(n, 1)
				copy(a2, a)
				copy(b2, b)
				if again := c.f(a2, b2); again != got {
					t.Fatalf("%s: length %d: %g or %g by alignment", c.name, n, got, again)
				}
			}
			nan := []float32{1, 2, float32(math.NaN()), 4}
			if x := c.f(nan, nan); !math.IsNaN(float64(x)) {
				t.Errorf("%s: NaN gives %g", c.name, x)
			}
		}
	})
}

const normBudget = 2e-6 // relative to the largest result

func TestNorms(t *testing.T) {
	forTiers(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(1, 1))
		for n := 1; n < 1400; n += 1 + n/40*2 {
			x, w, b := randomRow(r, n, 2), randomRow(r, n, 1), randomRow(r, n, 1)
			for i := range x {
				x[i] += 0.5
			}
			dst, ok := guarded(n, n%7)
			for _, layer := range []bool{false, true} {
				for opt := range 4 {
					w, b := w, b
					if opt&1 != 0 {
						w = nil
					}
					if opt&2 != 0 || !layer {
						b = nil
					}
					if layer {
						LayerNorm(dst, x, w, b, 1e-5)
					} else {
						RMSNorm(dst, x, w, 1e-5)
					}
					for i, want := range naiveNorm(x, w, b, layer) {
						if e := math.Abs(float64(dst[i]) - want); e > normBudget*(math.Abs(want)+4) {
							t.Fatalf("length %d layer %v element %d: got %g want %g", n, layer, i, dst[i], want)
						}
					}
					if !ok() {
						t.Fatal("wrote outside")
					}
				}
			}
			want := append([]float32(nil), x...)
			RMSNorm(want, x, w, 1e-6)
			RMSNorm(x, x, w, 1e-6)
			for i := range x {
				if x[i] != want[i] {
					t.Fatal("in place differs")
				}
			}
		}
		RMSNorm(nil, nil, nil, 1e-5)
		LayerNorm(nil, nil, nil, nil, 1e-5)
	})
}

func naiveNorm(x, w, b []float32, layer bool) []float64 {
	var mean, sq float64
	if layer {
		for _, v := range x {
			mean += float64(v) / float64(len(x))
		}
	}
	for _, v := range x {
		sq += (float64(v) - mean) * (float64(v) - mean) / float64(len(x))
	}
	out := make([]float64, len(x))
	for i, v := range x {
		out[i] = (float64(v) - mean) / math.Sqrt(sq+1e-5)
		if w != nil {
			out[i] *= float64(w[i])
		}
		if b != nil {
			out[i] += float64(b[i])
		}
	}
	return out
}

func TestSoftmax(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	forTiers(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(1, 1))
		for n := 1; n < 1200; n += 1 + n/20 {
			x, ok := guarded(n, n%7)
			var sum float64
			in := randomRow(r, n, 5)
			if n > 3 {
				in[n/2] = -inf
			}
			for i, v := range in {
				x[i] = v
				sum += math.Exp(float64(v))
			}
			SoftmaxInPlace(x)
			for i, v := range in {
				want := math.Exp(float64(v)) / sum
				if math.Abs(float64(x[i])-want) > 2e-6*want+1e-37 {
					t.Fatalf("length %d: got %g want %g", n, x[i], want)
				}
			}
			if !ok() {
				t.Fatal("wrote outside")
			}
		}
		for _, bad := range [][]float32{{1, nan}, {nan}, {inf, 0}, {-inf, -inf, -inf}} {
			SoftmaxInPlace(bad)
			for _, v := range bad {
				if !math.IsNaN(float64(v)) {
					t.Errorf("got %g want NaN", v)
				}
			}
		}
		SoftmaxInPlace(nil)
	})
}

func TestArgmax(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	forTiers(t, func(t *testing.T) {
		for _, c := range []struct {
			x    []float32
			want int
		}{
			{nil, -1}, {[]float32{nan}, -1}, {[]float32{nan, nan, nan}, -1}, {[]float32{nan, -inf, nan}, 1},
			{[]float32{-inf, -inf}, 0}, {[]float32{1, 3, 3, 2}, 1}, {[]float32{nan, 1, inf, nan, inf}, 2},
		} {
			if got := Argmax(c.x); got != c.want {
				t.Errorf("%v: got %d want %d", c.x, got, c.want)
			}
		}
		r := rand.New(rand.NewPCG(1, 1))
		for n := 1; n < 700; n++ {
			x, _ := guarded(n, n%7)
			for i := range x {
				x[i] = float32(r.IntN(1+n/2)) - 40 // with ties
				if r.IntN(5) == 0 {
					x[i] = nan
				}
			}
			want := -1
			for i, v := range x {
				if v == v && (want < 0 || v > x[want]) {
					want = i
				}
			}
			if got := Argmax(x); got != want {
				t.Fatalf("length %d: got %d want %d", n, got, want)
			}
			if want >= 0 && MaxF32(x) != x[want] {
				t.Fatalf("length %d: maximum %g", n, MaxF32(x))
			}
		}
	})
}

func BenchmarkElem(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 1))
	const n = 1536
	x, y, dst := randomRow(r, n, 1), randomRow(r, n, 1), make([]float32, n)
	freq, cos, sin := randomRow(r, 32, 1), make([]float32, 32), make([]float32, 32)
	RopeTables(cos, sin, 17, freq, 1)
	half, logits := make([]byte, 2*n), randomRow(r, 49152, 1)
	for _, c := range []struct {
		name string
		n    int
		f    func()
	}{
		{"RMSNorm", n, func() { RMSNorm(dst, x, y, 1e-5) }},
		{"LayerNorm", n, func() { LayerNorm(dst, x, y, y, 1e-5) }},
		{"Add", n, func() { Add(dst, x) }},
		{"SiLUMul", n, func() { SiLUMul(dst, x, y) }},
		{"GELUMul", n, func() { GELUMul(dst, x, y) }},
		{"GELUErf", n, func() { GELUErf(dst, x) }},
		{"Softcap", n, func() { Softcap(dst, 30) }},
		{"Softmax", n, func() { SoftmaxInPlace(dst) }},
		{"Argmax", len(logits), func() { Argmax(logits) }},
		{"decodeF16", n, func() { decodeF16(dst, half) }},
		{"RopeNeox64", 64, func() { RopeNeox(x[:64], cos, sin) }},
		{"RopeNorm64", 64, func() { RopeNorm(x[:64], cos, sin) }},
	} {
		for _, tier := range cpu.Tiers()[1:] {
			b.Run(c.name+"/"+tier.String(), func(b *testing.B) {
				defer cpu.Set(tier)()
				for b.Loop() {
					c.f()
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(c.n), "ns/element")
			})
		}
	}
}
