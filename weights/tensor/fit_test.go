package tensor

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"ridge/internal/cpu"
)

// fitRows are rows of n values that searches meet: plain ones, of every magnitude, few
// different values, all alike, of one sign, zeros of both signs, subnormal numbers.
func fitRows(rng *rand.Rand, n int) [][]float32 {
	kinds := []func(i int) float64{
		func(int) float64 { return rng.NormFloat64() },
		func(int) float64 { return rng.NormFloat64() * math.Exp(8*rng.NormFloat64()) },
		func(int) float64 { return float64(rng.IntN(3)-1) * 0.25 },
		func(i int) float64 { return float64(i / 64) },
		func(int) float64 { return -math.Abs(rng.NormFloat64()) },
		func(int) float64 { return 1 + rng.Float64()/64 },
		func(i int) float64 { return math.Copysign(0, float64(i%2)-0.5) },
		func(int) float64 { return rng.NormFloat64() * 1e-42 },
		func(int) float64 { return rng.NormFloat64() * 1e-15 },
		func(i int) float64 { return map[bool]float64{true: 3e8 * rng.Float64()}[i%37 == 5] },
	}
	var rows [][]float32
	for _, k := range kinds {
		row := make([]float32, n)
		for i := range row {
			row[i] = float32(k(i))
		}
		rows = append(rows, row)
	}
	return rows
}

// Encoders with kernels give the same bytes, or the same error, on every tier, with an
// importance and without, whatever the number of superblocks.
func TestEncodeOnTiers(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 16))
	for _, n := range []int{256, 512, 1280} {
		for i, x := range fitRows(rng, n) {
			importance := make([]float32, n)
			for j := range importance {
				importance[j] = float32(rng.ExpFloat64()) * float32(j%7)
			}
			for _, d := range []DType{Q4_0, Q4_1, Q5_0, Q5_1, Q2_K, Q3_K, Q4_K, Q5_K, Q6_K} {
				for _, w := range [][]float32{nil, importance} {
					encodeOnTiers(t, fmt.Sprintf("%s, row %d of %d values, importance %v", d, i, n, w != nil), d, x, w)
				}
			}
		}
	}
}

func encodeOnTiers(t *testing.T, what string, d DType, x, importance []float32) {
	t.Helper()
	var want []byte
	var wantErr error
	for i, tier := range []cpu.Tier{cpu.Ref, cpu.AVX2, cpu.AVX512} {
		if !tier.Runs() {
			continue
		}
		restore := cpu.Set(tier)
		got := make([]byte, d.RowBytes(len(x)))
		err := d.EncodeWeighted(got, x, importance)
		restore()
		if i == 0 {
			want, wantErr = got, err
		} else if fmt.Sprint(err) != fmt.Sprint(wantErr) || err == nil && !bytes.Equal(got, want) {
			t.Errorf("%s, %v: expected the bytes of plain Go, found others (%v, %v)", what, tier, wantErr, err)
		}
	}
}
