package logits

import (
	"math"
	"math/rand/v2"
	"testing"

	"ridge/internal/cpu"
)

var (
	inf = float32(math.Inf(1))
	nan = float32(math.NaN())
)

func TestWeights(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for _, tier := range cpu.Tiers() {
		restore := cpu.Set(tier)
		for range 200 {
			x := make([]float32, 1+r.IntN(300))
			top := float32(r.NormFloat64() * 10)
			for i := range x {
				x[i] = top - float32(r.ExpFloat64()*10)
				switch r.IntN(20) {
				case 0:
					x[i] = nan
				case 1:
					x[i] = -inf
				}
			}
			temp := []float32{1e-40, 1e-3, 0.7, 1, 3, math.MaxFloat32}[r.IntN(6)]
			w := make([]float32, len(x))
			got, want := Weight(x, top, temp), 0.0
			Weights(w, x, top, temp)
			for i, v := range x {
				e := 0.0
				if v == v {
					e = math.Exp((float64(v) - float64(top)) / float64(temp))
				}
				want += e
				if math.Abs(float64(w[i])-e) > 1e-5*e+1e-30 {
					t.Fatalf("tier %v: exp((%v - %v)/%v) = %v, want %v", tier, v, top, temp, w[i], e)
				}
			}
			if math.Abs(got-want) > 1e-5*want+1e-30 {
				t.Fatalf("tier %v: sum %v, want %v", tier, got, want)
			}
		}
		restore()
	}
}

func TestArgmax(t *testing.T) {
	for _, c := range []struct {
		x    []float32
		want int
		max  float32
	}{
		{nil, -1, -inf}, {[]float32{nan}, -1, -inf}, {[]float32{-inf, nan}, -1, -inf},
		{[]float32{-inf, -5, nan, -5}, 1, -5}, {[]float32{0, inf, inf}, 1, inf},
	} {
		if got := Argmax(c.x); got != c.want {
			t.Errorf("Argmax(%v) = %d, want %d", c.x, got, c.want)
		}
		if got := Max(c.x); got != c.max {
			t.Errorf("Max(%v) = %v, want %v", c.x, got, c.max)
		}
	}
}
