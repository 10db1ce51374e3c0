package kernel

import (
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"
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
