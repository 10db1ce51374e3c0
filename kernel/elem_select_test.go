package kernel

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestAtLeast: against the definition, for all lengths up to 300, for shares of
// values that count from none to all, and without a write outside of dst.
func TestAtLeast(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	forTiers(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(1, 1))
		for n := range 300 {
			for _, v := range []float32{-inf, -math.MaxFloat32, 0, 1, 3, 4, inf, nan} {
				x, _ := guarded(n, n%7)
				for i := range x {
					x[i] = []float32{nan, inf, -inf, 0, 1, 2, 3}[r.IntN(7)]
				}
				const unused = math.MinInt32
				mem := make([]int32, n+64)
				for i := range mem {
					mem[i] = unused
				}
				want := []int32{}
				for i, u := range x {
					if u >= v {
						want = append(want, int32(i))
					}
				}
				dst := mem[16 : 16+n]
				if got := AtLeast(dst, x, v); got != len(want) || !slices.Equal(dst[:got], want) {
					t.Fatalf("length %d, at least %v: %d of them, %v, want %v", n, v, got, dst[:min(got, n)], want)
				}
				for i, id := range mem {
					if id != unused && (i < 16 || i >= 16+n) {
						t.Fatalf("length %d, at least %v: wrote to place %d", n, v, i-16)
					}
				}
			}
		}
		if got := AtLeast(make([]int32, 3), make([]float32, 20), 0); got != 3 {
			t.Errorf("%d indices in room for 3", got)
		}
	})
}

func TestCenter(t *testing.T) {
	forTiers(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(1, 1))
		for n := range 100 {
			x := randomRow(r, n, 10)
			dst := make([]float32, n)
			if Center(dst, x, 3.5, 0.7); n > 0 {
				Center(x, x, 3.5, 0.7) // in place
			}
			for i := range dst {
				if dst[i] != x[i] {
					t.Fatalf("length %d, element %d: %v, in place %v", n, i, dst[i], x[i])
				}
			}
			if x := []float32{3.5, 4.5, 2.5}; n == 3 {
				Center(dst, x, 3.5, 0.5)
				if want := []float32{0, 0.5, -0.5}; !slices.Equal(dst, want) {
					t.Errorf("got %v, want %v", dst, want)
				}
			}
		}
	})
}

// TestWeigh: against the definition, for all lengths up to 300; a NaN shows in the
// result, -Inf weighs nothing.
func TestWeigh(t *testing.T) {
	forTiers(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(1, 1))
		for n := range 300 {
			x, _ := guarded(n, n%7)
			want := 0.0
			for i := range x {
				x[i] = 3 - float32(r.ExpFloat64()*10)
				if r.IntN(9) == 0 {
					x[i] = float32(math.Inf(-1))
				}
				want += math.Exp((float64(x[i]) - 3) * 1.25)
			}
			if got := Weigh(x, 3, 1.25); math.Abs(float64(got)-want) > 2e-6*want {
				t.Fatalf("length %d: %v, want %v", n, got, want)
			}
			if n > 0 {
				x[r.IntN(n)] = float32(math.NaN())
				if got := Weigh(x, 3, 1.25); got == got {
					t.Fatalf("length %d with NaN: %v", n, got)
				}
			}
		}
	})
}

func BenchmarkAtLeast(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 1))
	const n = 49152
	x, dst := randomRow(r, n, 1), make([]int32, n)
	for _, v := range []float32{4, 2, 1, -10} {
		b.Run(fmt.Sprintf("%d of %d", AtLeast(dst, x, v), n), func(b *testing.B) {
			b.SetBytes(4 * n)
			for b.Loop() {
				AtLeast(dst, x, v)
			}
		})
	}
}
