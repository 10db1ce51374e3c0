package tensor

import (
	"math/rand/v2"
	"testing"
)

// A row of 4096 values, as wide as the embedding of an 8B model.
const benchCols = 4096

func gaussian(rng *rand.Rand, n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(rng.NormFloat64()) * 0.02
	}
	return x
}

// BenchmarkDecodeRow reports MB/s of float32 output.
func BenchmarkDecodeRow(b *testing.B) {
	for id := range dtypes {
		d := DType(id)
		if !d.CanDecode() {
			continue
		}
		b.Run(d.String(), func(b *testing.B) {
			m := Mat{Type: d, Rows: 1, Cols: benchCols, Data: make([]byte, d.RowBytes(benchCols))}
			rng := rand.New(rand.NewPCG(1, 2))
			for i := range m.Data {
				m.Data[i] = byte(rng.Uint32())
			}
			if d.CanEncode() { // no subnormals and infinities
				if err := d.Encode(m.Data, gaussian(rng, benchCols)); err != nil {
					b.Fatal(err)
				}
			}
			dst := make([]float32, benchCols)
			b.SetBytes(4 * benchCols)
			b.ReportAllocs()
			for b.Loop() {
				m.DecodeRow(dst, 0)
			}
		})
	}
}

// BenchmarkEncode reports MB/s of float32 input.
func BenchmarkEncode(b *testing.B) {
	src := gaussian(rand.New(rand.NewPCG(1, 2)), benchCols)
	for id := range dtypes {
		d := DType(id)
		if !d.CanEncode() {
			continue
		}
		b.Run(d.String(), func(b *testing.B) {
			dst := make([]byte, d.RowBytes(benchCols))
			b.SetBytes(4 * benchCols)
			b.ReportAllocs()
			for b.Loop() {
				if err := d.Encode(dst, src); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
