package kernel

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"ridge/internal/cpu"
)

// stateCase is a block of a state, and what moves it.
type stateCase struct {
	s, out, w, k, q, v []float32
}

func newStateCase(r *rand.Rand, keys int) *stateCase {
	row := func(n int, lo, hi float64) []float32 {
		x := make([]float32, n)
		for i := range x {
			x[i] = float32(lo + (hi-lo)*r.Float64())
		}
		return x
	}
	return &stateCase{
		s: row(keys*StateColumns, -1, 1), out: row(StateColumns, 0, 0), w: row(keys, 0.5, 1), k: row(keys, -1, 1),
		q: row(keys, -1, 1), v: row(StateColumns, -1, 1),
	}
}

func (c *stateCase) clone() *stateCase {
	d := *c
	d.s, d.out = append([]float32(nil), c.s...), append([]float32(nil), c.out...)
	return &d
}

// stateOps are the operations on blocks, with their definitions in float64: the
// new value of row k, column j from the old one, and what is read.
var stateOps = []struct {
	name string
	f    func(c *stateCase)
	want func(c *stateCase, k, j int) float64
}{
	{"StateRead", func(c *stateCase) { StateRead(c.out, c.s, c.q) }, func(c *stateCase, k, j int) float64 { return float64(c.s[k*StateColumns+j]) }},
	{"StateMove", func(c *stateCase) { StateMove(c.out, c.s, c.w, c.k, c.q, c.v) }, func(c *stateCase, k, j int) float64 {
		return float64(c.w[k])*float64(c.s[k*StateColumns+j]) + float64(c.k[k])*float64(c.v[j])
	}},
}

// Steps of a state are those of their definition on every tier, and the same bits
// on those of vectors.
func TestStateSteps(t *testing.T) {
	for _, keys := range []int{4, 12, 64, 128} {
		first := newStateCase(rand.New(rand.NewPCG(uint64(keys), 1)), keys)
		for _, op := range stateOps {
			bits := map[string]string{}
			for _, tier := range cpu.Tiers() {
				restore := cpu.Set(tier)
				got := first.clone()
				op.f(got)
				vectors := cpu.Vectors() >= cpu.AVX2
				restore()
				for j := range StateColumns {
					sum := 0.0
					for k := range keys {
						want := op.want(first, k, j)
						if d := math.Abs(float64(got.s[k*StateColumns+j]) - want); d > 1e-6 {
							t.Fatalf("%s, %v: %d keys: state %d, %d: off by %g", op.name, tier, keys, k, j, d)
						}
						sum += float64(first.q[k]) * want
					}
					if d := math.Abs(float64(got.out[j]) - sum); d > 2e-5 {
						t.Fatalf("%s, %v: %d keys: column %d: got %v, want %v", op.name, tier, keys, j, got.out[j], sum)
					}
				}
				if vectors {
					bits[fmt.Sprint(got.s, got.out)] = tier.String()
				}
			}
			if len(bits) > 1 {
				t.Errorf("%s: %d keys: other bits on %d tiers", op.name, keys, len(bits))
			}
		}
	}
}

// A row of a selective scan is that of its definition on every tier, with the same
// bits on those of vectors.
func TestSelective(t *testing.T) {
	for _, n := range []int{1, 5, 16} {
		c := newStateCase(rand.New(rand.NewPCG(uint64(n), 2)), n)
		a, dt := newStateCase(rand.New(rand.NewPCG(uint64(n), 3)), n).s, make([]float32, StateColumns)
		for i := range a {
			a[i] -= 1.5
		}
		for i := range dt {
			dt[i] = float32(i) / 8
		}
		bits := map[string]string{}
		for _, tier := range cpu.Tiers() {
			restore := cpu.Set(tier)
			got := c.clone()
			Selective(got.out, got.s, a, dt, c.v, c.k, c.q)
			vectors := cpu.Vectors() >= cpu.AVX2
			restore()
			for j := range StateColumns {
				sum := 0.0
				for i := range n {
					at := i*StateColumns + j
					want := math.Exp(float64(dt[j])*float64(a[at]))*float64(c.s[at]) + float64(c.k[i])*float64(dt[j])*float64(c.v[j])
					if d := math.Abs(float64(got.s[at]) - want); d > 1e-6 {
						t.Fatalf("%v: state %d, %d: off by %g", tier, i, j, d)
					}
					sum += float64(c.q[i]) * want
				}
				if d := math.Abs(float64(got.out[j]) - sum); d > 1e-5 {
					t.Fatalf("%v: column %d: got %v, want %v", tier, j, got.out[j], sum)
				}
			}
			if vectors {
				bits[fmt.Sprint(got.s, got.out)] = tier.String()
			}
		}
		if len(bits) > 1 {
			t.Errorf("%d states: other bits on %d tiers", n, len(bits))
		}
	}
}

// The step of one block of a head, and that of one block of a selective scan.
func BenchmarkState(b *testing.B) {
	for _, op := range stateOps {
		b.Run(op.name, func(b *testing.B) {
			c := newStateCase(rand.New(rand.NewPCG(1, 1)), 128)
			for b.Loop() {
				op.f(c)
			}
			b.ReportMetric(float64(b.N)*128*StateColumns/b.Elapsed().Seconds()/1e9, "Gelem/s")
		})
	}
	b.Run("Selective", func(b *testing.B) {
		c := newStateCase(rand.New(rand.NewPCG(1, 1)), 16)
		a := newStateCase(rand.New(rand.NewPCG(1, 2)), 16).s
		for i := range a {
			a[i] -= 1
		}
		for b.Loop() {
			Selective(c.out, c.s, a, c.w, c.v, c.k, c.q)
		}
		b.ReportMetric(float64(b.N)*16*StateColumns/b.Elapsed().Seconds()/1e9, "Gelem/s")
	})
}

// Softplus and sums of products are those of their definition on every tier, with
// the same bits on those of vectors, whatever the length.
func TestStateElements(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	for _, n := range []int{1, 7, 16, 50, 200} {
		x, y := make([]float32, n), make([]float32, n)
		for i := range x {
			x[i], y[i] = float32(30*r.NormFloat64()), float32(r.NormFloat64())
		}
		x[0] = float32(math.NaN())
		bits := map[string]bool{}
		for _, tier := range cpu.Tiers() {
			restore := cpu.Set(tier)
			soft, sum := make([]float32, n), append([]float32(nil), y...)
			Softplus(soft, x)
			AddProduct(sum, y, y)
			if cpu.Vectors() >= cpu.AVX2 {
				bits[fmt.Sprint(soft, sum)] = true
			}
			restore()
			for i, v := range x {
				want := max(float64(v), 0) + math.Log1p(math.Exp(-math.Abs(float64(v))))
				if d := math.Abs(float64(soft[i]) - want); d > 4e-7*want+1e-37 || math.IsNaN(want) != math.IsNaN(float64(soft[i])) {
					t.Fatalf("%v: Softplus(%v): got %v, want %v", tier, v, soft[i], want)
				}
				if want := float64(y[i]) + float64(y[i])*float64(y[i]); math.Abs(float64(sum[i])-want) > 3e-7*(1+want*want) {
					t.Fatalf("%v: AddProduct(%v): got %v, want %v", tier, y[i], sum[i], want)
				}
			}
		}
		if len(bits) > 1 {
			t.Errorf("%d values: other bits on %d tiers", n, len(bits))
		}
	}
}
