package kernel

import (
	"bytes"
	"math"
	"math/rand/v2"
	"testing"

	"ridge/internal/cpu"
	"ridge/weights/tensor"
)

// budgetPlanes bounds the error of an activation of two planes, relative to the
// largest of its block: half a step of the second plane, which has 127 steps in
// half a step of the first, and the rounding of float32.
const budgetPlanes = 0.5/(254*127) + 0x1p-22

// Both planes together are 254 times as exact as one, on every tier the same,
// and a row may be quantized in parts.
func TestQuantizePlanes(t *testing.T) {
	rng := rand.New(rand.NewPCG(15, 16))
	for _, n := range []int{1, 31, 32, 33, 64, 95, 128, 256, 300, 576, 1000} {
		x := randomPlanes(rng, 1, n, 2)
		if n > 100 {
			clear(x.F32[64:96])
			x.F32[96] = 3e38
		}
		restore := cpu.Set(cpu.Generic)
		x.Quantize(0, 0, n)
		restore()
		for i, v := range codedRow(x, 0) {
			block, top := x.F32[i&^31:min(i|31+1, n)], 0.0
			for _, b := range block {
				top = max(top, math.Abs(float64(b)))
			}
			if e := math.Abs(v - float64(x.F32[i])); !(e <= budgetPlanes*top) {
				t.Fatalf("value %d of %d: %v became %v: off by %g of the block's largest", i, n, x.F32[i], v, e/top)
			}
		}
		for _, tier := range cpu.Tiers()[1:] {
			y := *x
			y.Q = bytes.Clone(x.Q)
			clear(y.Q)
			restore := cpu.Set(tier)
			for c := 0; c < n; {
				end := min(n, c+64*(1+rng.IntN(6)))
				y.Quantize(0, c, end)
				c = end
			}
			restore()
			if !bytes.Equal(y.Q, x.Q) {
				t.Fatalf("%s: a row of %d, quantized in parts, differs from the definition", tier, n)
			}
		}
	}
}

// Rows of one plane are what QuantizeRow writes, and their products what they
// were before there were planes.
func TestOnePlane(t *testing.T) {
	rng := rand.New(rand.NewPCG(17, 18))
	const rows, cols, n = 2 * Lanes, 192, 3
	p := packTest(t, randomMat(rng, tensor.Q8_0, rows, cols))
	x := randomPlanes(rng, n, cols, 1)
	y := *x
	y.Q, y.Planes = make([]byte, len(x.Q)), 0
	for r := range n {
		QuantizeRow(y.Q[r*y.LDQ:], x.F32[r*x.LDF:][:cols])
	}
	if !bytes.Equal(x.Q, y.Q) {
		t.Fatal("a row of one plane differs from that of QuantizeRow")
	}
	got, want := make([]float32, n*rows), make([]float32, n*rows)
	p.Mul(got, rows, x, 0, n, 0, p.Groups)
	p.mul(want, rows, &y, 0, n, 0, p.Groups)
	for i, v := range got {
		if math.Float32bits(v) != math.Float32bits(want[i]) {
			t.Fatalf("output %d is %v, want %v", i, v, want[i])
		}
	}
}

// A value that is no number spoils its block in both planes.
func TestQuantizePlanesNotFinite(t *testing.T) {
	for _, bad := range []float64{math.Inf(1), math.NaN()} {
		x := randomPlanes(rand.New(rand.NewPCG(1, 1)), 1, 128, 2)
		x.F32[40] = float32(bad)
		x.Quantize(0, 0, 128)
		for i, v := range codedRow(x, 0) {
			if math.IsNaN(v) != (i/32 == 1) {
				t.Fatalf("%v at 40: value %d is %v", bad, i, v)
			}
		}
	}
}

// A product of planes is the sum of those of its planes, bit for bit, with more
// rows and groups than are worked on at a time.
func TestMulPlanesAddUp(t *testing.T) {
	tiers(t, func(t *testing.T) {
		for _, typ := range []tensor.DType{tensor.Q8_0, tensor.Q4_K, tensor.Q6_K, tensor.F16} {
			rng := rand.New(rand.NewPCG(uint64(typ), 17))
			const rows, cols = 70*Lanes - 3, 256
			p := packTest(t, randomMat(rng, typ, rows, cols))
			ldd := p.Groups * Lanes
			for _, n := range []int{1, 2, 5, 64, 65, 150} {
				if cpu.Current() == cpu.Generic && n > 5 {
					continue // slow, and the others are equal to it
				}
				x := randomPlanes(rng, n, cols, 2)
				got, first, second := make([]float32, n*ldd), make([]float32, n*ldd), make([]float32, n*ldd)
				one := *x
				one.Planes = 1
				p.Mul(first, ldd, &one, 0, n, 0, p.Groups)
				one.Q = one.Q[x.LDQ/2:]
				p.Mul(second, ldd, &one, 0, n, 0, p.Groups)
				mid := rng.IntN(p.Groups)
				p.Mul(got, ldd, x, 0, n, 0, mid)
				p.Mul(got, ldd, x, 0, n, mid, p.Groups)
				for i, v := range got {
					want := first[i]
					if p.UsesQuant() {
						want += second[i]
					}
					if math.Float32bits(v) != math.Float32bits(want) {
						t.Fatalf("%s, %d rows: row %d output %d is %v, want %v", typ, n, i/ldd, i%ldd, v, want)
					}
				}
				if cpu.Current() == cpu.Generic {
					continue
				}
				if a := testing.AllocsPerRun(5, func() { p.Mul(got, ldd, x, 0, n, 0, p.Groups) }); a > 0 {
					t.Errorf("%s, %d rows: %g allocations", typ, n, a)
				}
			}
		}
	})
}
