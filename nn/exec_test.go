package nn

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"

	"ridge/internal/pool"
	"ridge/kernel"
	"ridge/weights/tensor"
)

// matrix is a Linear and its weights as they are decoded.
type matrix struct {
	Linear
	w [][]float32
}

func newMatrix(t testing.TB, r *rand.Rand, typ tensor.DType, rows, cols int, bias bool) *matrix {
	t.Helper()
	m := tensor.Mat{Type: typ, Rows: rows, Cols: cols, Data: make([]byte, rows*typ.RowBytes(cols))}
	l := &matrix{}
	for i := range rows {
		x := make([]float32, cols)
		for j := range x {
			x[j] = float32(r.NormFloat64()) / float32(math.Sqrt(float64(cols)))
		}
		if err := typ.Encode(m.Data[i*typ.RowBytes(cols):][:typ.RowBytes(cols)], x); err != nil {
			t.Fatal(err)
		}
		m.DecodeRow(x, i)
		l.w = append(l.w, x)
		if bias {
			l.Bias = append(l.Bias, float32(r.NormFloat64()))
		}
	}
	var err error
	if l.W, err = kernel.NewPacked(m, aligned); err != nil {
		t.Fatal(err)
	}
	l.W.Pack(m, 0, l.W.Groups)
	return l
}

func aligned(n int) []byte {
	b := make([]byte, n+64)
	skip := int(-uintptr(unsafe.Pointer(&b[0])) % 64)
	return b[skip : skip+n]
}

// times returns W x + b in float64.
func (m *matrix) times(x []float64) []float64 {
	y := make([]float64, len(m.w))
	for i, row := range m.w {
		for j, w := range row {
			y[i] += float64(w) * x[j]
		}
		if m.Bias != nil {
			y[i] += float64(m.Bias[i])
		}
	}
	return y
}

func randomActs(r *rand.Rand, n, k int) *kernel.Acts {
	a := &kernel.Acts{}
	Rows(a, n, k, true)
	for i := range n {
		for j := range Row(a, i) {
			Row(a, i)[j] = float32(r.NormFloat64())
		}
		a.Quantize(i, 0, k)
	}
	return a
}

// values returns row r of a in float64.
func values(a *kernel.Acts, r int) []float64 {
	var x []float64
	for _, v := range Row(a, r) {
		x = append(x, float64(v))
	}
	return x
}

// near fails unless row r of got is want, with the error that activations of 8
// bits have if coarse is set.
func near(t *testing.T, what string, got *kernel.Acts, r int, want []float64, coarse bool) {
	t.Helper()
	bound := 1e-5
	if coarse {
		bound = 0.05
	}
	for i, w := range want {
		if x := float64(Row(got, r)[i]); !(math.Abs(x-w) <= bound*(1+math.Abs(w))) {
			t.Fatalf("%s: row %d, value %d: %v, want %v", what, r, i, x, w)
		}
	}
}

// withWorkers runs f on pools of several sizes, and checks that what it returns
// has the same bits on all.
func withWorkers(t *testing.T, f func(e *Exec) []*kernel.Acts) {
	t.Helper()
	var first []*kernel.Acts
	for _, workers := range []int{1, 2, 3, 5} {
		p := pool.New(workers)
		got := f(NewExec(p))
		p.Close()
		if first == nil {
			first = got
		}
		for i := range got {
			sameActs(t, fmt.Sprintf("result %d on %d workers", i, workers), got[i], first[i])
		}
	}
}

var execTypes = []tensor.DType{tensor.F32, tensor.Q8_0, tensor.Q4_0}

// Products of several matrices in one region, with and without biases, and
// added to other rows, are those of the definition.
func TestLinear(t *testing.T) {
	for _, typ := range execTypes {
		for _, rows := range []int{1, 3, 40} {
			r := rand.New(rand.NewPCG(uint64(rows), 2))
			x, resid := randomActs(r, rows, 128), randomActs(r, rows, 75)
			a, b := newMatrix(t, r, typ, 75, 128, true), newMatrix(t, r, typ, 200, 128, false)
			withWorkers(t, func(e *Exec) []*kernel.Acts {
				var ya, yb, scratch kernel.Acts
				e.Linear(x, Out{&a.Linear, &ya}, Out{&b.Linear, &yb})
				sum := *resid
				sum.F32 = append([]float32(nil), resid.F32...)
				e.LinearAdd(&sum, &scratch, x, &a.Linear, 0.5)
				for i := range rows {
					in := values(x, i)
					want := a.times(in)
					near(t, "first matrix", &ya, i, want, typ != tensor.F32)
					near(t, "second matrix", &yb, i, b.times(in), typ != tensor.F32)
					for j := range want {
						want[j] = want[j]/2 + float64(Row(resid, i)[j])
					}
					near(t, "added", &sum, i, want, typ != tensor.F32)
				}
				return []*kernel.Acts{&ya, &yb, &sum}
			})
		}
	}
}

// The hidden rows of an MLP are those of the definition, with and without a
// gate, and so is what they are quantized to.
func TestMLPHidden(t *testing.T) {
	acts := map[Activation]func(x float64) float64{
		SiLU:     func(x float64) float64 { return x / (1 + math.Exp(-x)) },
		GELUTanh: func(x float64) float64 { return x / 2 * (1 + math.Tanh(math.Sqrt(2/math.Pi)*(x+0.044715*x*x*x))) },
		GELUErf:  func(x float64) float64 { return x / 2 * (1 + math.Erf(x/math.Sqrt2)) },
		ReLU:     func(x float64) float64 { return max(x, 0) },
	}
	for _, typ := range execTypes {
		for act, f := range acts {
			for _, gated := range []bool{true, false} {
				r := rand.New(rand.NewPCG(uint64(act), 3))
				x := randomActs(r, 5, 96)
				gate, up := newMatrix(t, r, typ, 160, 96, true), newMatrix(t, r, typ, 160, 96, false)
				down := newMatrix(t, r, tensor.Q8_0, 16, 160, false)
				m := &MLP{Gate: gate.Linear, Up: up.Linear, Down: down.Linear, Gated: gated, Act: act}
				withWorkers(t, func(e *Exec) []*kernel.Acts {
					var g, h kernel.Acts
					e.mlpHidden(x, &g, &h, m)
					for i := range x.N {
						in := values(x, i)
						want := up.times(in)
						for j, v := range gate.times(in) {
							if gated {
								want[j] *= f(v)
							} else {
								want[j] = f(want[j])
							}
						}
						near(t, fmt.Sprintf("%v, activation %d, gated: %t", typ, act, gated), &h, i, want, typ != tensor.F32)
					}
					again := kernel.Acts{N: h.N, K: h.K, F32: h.F32, LDF: h.LDF}
					Rows(&again, h.N, h.K, true)
					for i := range h.N {
						again.Quantize(i, 0, h.K)
					}
					sameActs(t, "quantized", &h, &again)
					return []*kernel.Acts{&h}
				})
			}
		}
	}
}

// Norms of rows are those of the definition, alone and added to other rows.
func TestNorm(t *testing.T) {
	const n = 96
	for _, kind := range []NormKind{NormRMS, NormLayer} {
		r := rand.New(rand.NewPCG(1, 4))
		norm := &Norm{Kind: kind, Eps: 1e-5}
		for range n {
			norm.W = append(norm.W, float32(r.NormFloat64()))
			if kind == NormLayer {
				norm.B = append(norm.B, float32(r.NormFloat64()))
			}
		}
		x, y := randomActs(r, 100, n), randomActs(r, 100, n)
		withWorkers(t, func(e *Exec) []*kernel.Acts {
			var dst kernel.Acts
			e.Norm(&dst, x, norm, Form{Planes: 1})
			sum, scratch := *y, *x
			sum.F32, scratch.F32 = append([]float32(nil), y.F32...), append([]float32(nil), x.F32...)
			e.AddNorm(&sum, &scratch, norm, 2)
			for i := range x.N {
				want := normalized(values(x, i), norm)
				near(t, "norm", &dst, i, want, false)
				for j := range want {
					want[j] = 2*want[j] + float64(Row(y, i)[j])
				}
				near(t, "added norm", &sum, i, want, false)
			}
			return []*kernel.Acts{&dst, &sum}
		})
	}
}

func normalized(x []float64, n *Norm) []float64 {
	mean, square := 0.0, 0.0
	for _, v := range x {
		mean += v / float64(len(x))
	}
	if n.Kind == NormRMS {
		mean = 0
	}
	for _, v := range x {
		square += (v - mean) * (v - mean) / float64(len(x))
	}
	out := make([]float64, len(x))
	for i, v := range x {
		out[i] = (v - mean) / math.Sqrt(square+float64(n.Eps)) * float64(n.W[i])
		if n.B != nil {
			out[i] += float64(n.B[i])
		}
	}
	return out
}
