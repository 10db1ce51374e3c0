package kernel

import (
	"math"
	"math/rand/v2"
	"testing"

	"ridge/weights/tensor"
)

func TestHalfConversions(t *testing.T) {
	forTiers(t, func(t *testing.T) {
		all := make([]byte, 2<<16)
		for i := range 1 << 16 {
			all[2*i], all[2*i+1] = byte(i), byte(i>>8)
		}
		f := make([]float32, 1<<16)
		decodeF16(f, all)
		for i, x := range f {
			if math.Float32bits(x) != math.Float32bits(tensor.F16ToF32(uint16(i))) {
				t.Fatalf("F16 %#04x: got %#08x want %#08x", i, math.Float32bits(x), math.Float32bits(tensor.F16ToF32(uint16(i))))
			}
		}
		var xs []float32
		for b := uint64(0); b < 1<<32; b += 4093 {
			xs = append(xs, math.Float32frombits(uint32(b)))
		}
		for b := uint64(0); b < 1<<32; b += 1 << 12 { // halves, and their neighbours
			xs = append(xs, math.Float32frombits(uint32(b)), math.Float32frombits(uint32(b-1)), math.Float32frombits(uint32(b+1)))
		}
		out := make([]byte, 2*len(xs))
		encodeKV(out, xs)
		for i, x := range xs {
			if got, want := uint16(out[2*i])|uint16(out[2*i+1])<<8, tensor.F32ToF16(clampF16(x)); got != want {
				t.Fatalf("F16 of %g (%#08x): got %#04x want %#04x", x, math.Float32bits(x), got, want)
			}
		}
		for n := range 70 { // tails
			buf := make([]byte, 2*n+8)
			for i := range buf {
				buf[i] = 0xa5
			}
			encodeKV(buf[3:3+2*n], xs[1000:1000+n])
			for i := range buf {
				if (i < 3 || i >= 3+2*n) && buf[i] != 0xa5 {
					t.Fatalf("length %d: wrote outside", n)
				}
			}
			x, ok := guarded(n, n%5)
			decodeF16(x, buf[3:3+2*n])
			for i := range x {
				if want := tensor.F16ToF32(uint16(buf[3+2*i]) | uint16(buf[4+2*i])<<8); math.Float32bits(x[i]) != math.Float32bits(want) {
					t.Fatalf("length %d: element %d: got %g want %g", n, i, x[i], want)
				}
			}
			if !ok() {
				t.Fatalf("length %d: wrote outside", n)
			}
		}
	})
}

func TestRope(t *testing.T) {
	forTiers(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(1, 1))
		for n := 0; n < 140; n++ {
			freq, cos, sin := make([]float32, n), make([]float32, n), make([]float32, n)
			for i := range freq {
				freq[i] = float32(math.Pow(10000, -float64(i)/float64(n)))
			}
			pos := r.IntN(100000)
			RopeTables(cos, sin, pos, freq, 1.5)
			in := randomRow(r, 2*n, 1)
			for _, neox := range []bool{false, true} {
				x, ok := guarded(2*n, n%7)
				copy(x, in)
				a, b, step := 0, 1, 2
				if neox {
					RopeNeox(x, cos, sin)
					a, b, step = 0, n, 1
				} else {
					RopeNorm(x, cos, sin)
				}
				for i := range n {
					s, c := math.Sincos(float64(pos) * float64(freq[i]))
					u, v := float64(in[a]), float64(in[b])
					wu, wv := 1.5*(u*c-v*s), 1.5*(v*c+u*s)
					size := 1e-6 * (math.Abs(u) + math.Abs(v))
					if math.Abs(float64(x[a])-wu) > size || math.Abs(float64(x[b])-wv) > size {
						t.Fatalf("neox %v pair %d of %d: got %g, %g want %g, %g", neox, i, n, x[a], x[b], wu, wv)
					}
					a, b = a+step, b+step
				}
				if !ok() {
					t.Fatal("wrote outside")
				}
			}
		}
	})
}
