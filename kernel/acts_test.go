package kernel

import (
	"bytes"
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"

	"ridge/internal/cpu"
	"ridge/kernel/internal/layout"
)

func addr(b []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(b))) }

func TestFMA32(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	next := func() float32 {
		return math.Float32frombits(rng.Uint32()&0x807fffff | uint32(127-14+rng.IntN(28))<<23)
	}
	for range 2000000 {
		a, b, c := next(), next(), next()
		if rng.IntN(2) == 0 { // ties: a short product beside a long sum
			a, b = math.Float32frombits(math.Float32bits(a)&0xfff00000), math.Float32frombits(math.Float32bits(b)&0xff000000)
		}
		p := float64(a) * float64(b)
		// The exact sum, rounded to odd at 53 bits, rounds right to 24.
		s := p + float64(c)
		t1 := s - p
		rest := (p - (s - t1)) + (float64(c) - t1)
		if rest != 0 && math.Float64bits(s)&1 == 0 {
			if (rest > 0) == (s > 0) {
				s = math.Float64frombits(math.Float64bits(s) + 1)
			} else {
				s = math.Float64frombits(math.Float64bits(s) - 1)
			}
		}
		if got := fma32(a, b, c); got != float32(s) {
			t.Fatalf("fma32(%v, %v, %v) = %v, want %v", a, b, c, got, float32(s))
		}
	}
}

// TestQuantizeRow compares the tiers bit by bit, and the values with what the
// format promises.
func TestQuantizeRow(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	odd := []float32{0, 1, -1, 127, -127, 126.5, 0.5, -0.5, 1.5, 2.5, 1e-30, -1e-31, 1e-38, 3e38, -3e38, 1e-45,
		float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN()), float32(math.Copysign(0, -1))}
	for n := range 300 {
		x := make([]float32, n)
		scale := math.Exp(rng.NormFloat64() * 20)
		for i := range x {
			x[i] = float32(rng.NormFloat64() * scale)
			if n%7 == 3 {
				x[i] = odd[rng.IntN(len(odd)-4*(n&1))]
			}
		}
		size := ActRowBytes(n)
		want := make([]byte, size)
		quantizeGeneric(want, x)
		for _, tier := range cpu.Tiers()[1:] {
			restore := cpu.Set(tier)
			got := bytes.Repeat([]byte{0xa5}, size+64)
			QuantizeRow(got, x)
			restore()
			if !bytes.Equal(got[:size], want) {
				t.Fatalf("%s: row of %d differs from the definition", tier, n)
			}
			if !bytes.Equal(got[size:], bytes.Repeat([]byte{0xa5}, 64)) {
				t.Fatalf("%s: wrote beyond the row of %d", tier, n)
			}
		}
		for i, v := range actValues(want, n) {
			d := float64(actFloat(want[i/32*layout.ActBlock:], layout.ActD))
			finite := !math.IsNaN(d)
			if finite && !(math.Abs(v-float64(x[i])) <= d*0.5001+2*actTiny) {
				t.Fatalf("value %d of %d: %v became %v with scale %v", i, n, x[i], v, d)
			}
			if bad := math.IsNaN(float64(x[i])) || math.IsInf(float64(x[i]), 0); bad && finite {
				t.Fatalf("value %d of %d: %v has the scale %v", i, n, x[i], d)
			}
		}
	}
}
