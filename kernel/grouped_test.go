package kernel

import (
	"math"
	"math/rand/v2"
	"testing"

	"ridge/internal/cpu"
	"ridge/weights/tensor"
)

// TestMulGrouped routes rows at random and compares every result, bit for bit,
// with the product of its row alone.
func TestMulGrouped(t *testing.T) {
	forTiers(t, func(t *testing.T) {
		for i, typ := range []tensor.DType{tensor.Q4_0, tensor.Q6_K, tensor.F16, tensor.Q4_0} {
			planes := 1 + i/3
			rng := rand.New(rand.NewPCG(uint64(typ), 21))
			const outputs, cols, n, top = 40, 512, 60, 2
			var experts []*Packed
			for range 6 {
				experts = append(experts, packTest(t, randomMat(rng, typ, outputs, cols)))
			}
			x := randomPlanes(rng, n, cols, planes)
			rows := make([][]int32, len(experts))
			for r := range int32(n) {
				for range top {
					e := rng.IntN(len(experts) - 1) // the last gets none
					rows[e] = append(rows[e], r)
				}
			}
			rows[0] = rows[0][:1]                    // one row
			rows[1] = []int32{7, 17, 27, 37, 47, 57} // evenly spaced
			rows[2] = []int32{9, 4, 4, 1}            // backwards, one twice
			rows[3] = []int32{5, 5}
			total := 0
			for _, l := range rows {
				total += len(l)
			}
			ldd := 3 * Lanes
			got := make([]float32, total*ldd)
			MulGrouped(got, ldd, x, experts, rows, 0, 2)
			MulGrouped(got, ldd, x, experts, rows, 2, 3)
			one := make([]float32, n*ldd)
			i := 0
			for e, list := range rows {
				for _, r := range list {
					experts[e].Mul(one, ldd, x, int(r), int(r)+1, 0, 3)
					for o := range outputs {
						if a, b := got[i*ldd+o], one[int(r)*ldd+o]; math.Float32bits(a) != math.Float32bits(b) {
							t.Fatalf("%s: expert %d row %d output %d: %v grouped, %v alone", typ, e, r, o, a, b)
						}
					}
					i++
				}
			}
			if cpu.Current() > cpu.Generic {
				if n := testing.AllocsPerRun(5, func() { MulGrouped(got, ldd, x, experts, rows, 0, 3) }); n > 0 {
					t.Errorf("%s: %g allocations", typ, n)
				}
			}
		}
	})
}
