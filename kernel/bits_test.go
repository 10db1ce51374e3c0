package kernel

import (
	"encoding/binary"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"ridge/internal/cpu"
)

// vectorBits has, per operation, a hash of what every tier of assembly, on
// every architecture, makes of the same inputs: AVX2, AVX-512 and NEON do the
// same operations in the same order. The numbers are from AVX-512.
var vectorBits = map[string]uint64{
	"Add":            0x5253ca7b7cad3037,
	"AddScaled":      0xf1446827006e8a93,
	"GELU":           0xf4c9495e2316dc2a,
	"GELUErf":        0x0b96f38bf59d0729,
	"GELUMul":        0xadc55c79b572b0eb,
	"LayerNorm":      0xa54fd9d85a4d20b1,
	"Mul":            0x35768d166fc07291,
	"RMSNorm":        0x4ef151949715456e,
	"ReLU":           0x5c172eee3eedd53c,
	"RopeNeox":       0x849056fa22d1f644,
	"RopeNorm":       0xbdc954c460aa982c,
	"Scale":          0xf1e97c083f9337d0,
	"SiLU":           0x1384d98384b0b60d,
	"SiLUMul":        0x71e1ba9f37ade80f,
	"Softcap":        0x9f014b3519bf6de7,
	"attention":      0x84a040bbbbdf38da,
	"exp shifted":    0xe18e33372846b743,
	"exp":            0xe9cf5fa6675db2e8,
	"max":            0xe06f2904d0ec0cbb,
	"sum of exp":     0x61812c77357c9f1d,
	"sum of squares": 0x9c75ae3f6e444b5c,
	"sum":            0xeb6e5432419a0eaa,
	"weigh":          0x9e5ce21cc7ba7454,
}

// TestVectorBits compares the tiers of assembly across architectures.
// TestTiersAgree finds the place of a difference between two of one machine.
func TestVectorBits(t *testing.T) {
	if cpu.Best() <= cpu.Generic {
		t.Skip("this processor runs no assembly")
	}
	for _, tier := range cpu.Tiers()[2:] {
		restore := cpu.Set(tier)
		for name, got := range hashVectors() {
			if want := vectorBits[name]; got != want {
				t.Errorf("%v: %q: %#016x, want %#016x", tier, name, got, want)
			}
		}
		restore()
	}
}

// hashVectors runs all operations.
func hashVectors() map[string]uint64 {
	hashes := map[string]uint64{}
	r := rand.New(rand.NewPCG(11, 12))
	add := func(name string, vals ...float32) {
		h := fnv.New64a()
		b := binary.LittleEndian.AppendUint64(nil, hashes[name])
		for _, v := range vals {
			if v != v {
				v = float32(math.NaN()) // which NaN is not defined
			}
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
		}
		h.Write(b)
		hashes[name] = h.Sum64()
	}
	for _, n := range []int{1, 3, 4, 15, 18, 63, 64, 65, 131, 300} {
		x, z := exactRow(r, n, -20, 40), exactRow(r, n, -8, 8)
		y, dst := exactRow(r, n, -3, 3), make([]float32, n)
		if n > 30 {
			x[7], x[8], x[9], x[10] = float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.Copysign(0, -1))
		}
		for _, c := range mapCases {
			if strings.HasSuffix(c.name, " far") {
				continue // an operation again, on other values
			}
			c.f(dst, x, y)
			add(c.name, dst...)
			c.f(dst, z, y)
			add(c.name, dst...)
		}
		add("sum", sum(z))
		add("sum of squares", sumSquares(z, 0.3))
		add("max", MaxF32(x), float32(Argmax(x)))
		copy(dst, z)
		add("sum of exp", ExpSum(dst, 4))
		add("weigh", Weigh(z, 2, 0.7), Weigh(z, 2, 0), Weigh(x, 5, 1))
		RMSNorm(dst, z, y, 1e-5)
		add("RMSNorm", dst...)
		RMSNorm(dst, z, nil, 1e-5)
		add("RMSNorm", dst...)
		LayerNorm(dst, z, y, x, 1e-5)
		add("LayerNorm", dst...)
		LayerNorm(dst, z, nil, y, 1e-5)
		add("LayerNorm", dst...)
		copy(dst, z)
		RopeNorm(dst, y[:n/2], x[:n/2])
		add("RopeNorm", dst...)
		copy(dst, z)
		RopeNeox(dst, y[:n/2], x[:n/2])
		add("RopeNeox", dst...)
	}
	for i := range 18 {
		add("attention", attendExact(r, i)...)
	}
	return hashes
}

// exactRow returns n values of magnitudes between 2^lo and 2^hi that are the
// same on every architecture.
func exactRow(r *rand.Rand, n, lo, hi int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(math.Ldexp(float64(int32(r.Uint32()))/(1<<31), lo+r.IntN(hi-lo+1)))
	}
	return x
}

// attendExact computes attention of a shape that depends on i.
func attendExact(r *rand.Rand, i int) []float32 {
	s := &AttnSpec{HeadDim: 8 + r.IntN(70), VHeadDim: 8 + r.IntN(140), Scale: 0.2, KV: kvTypes[i%len(kvTypes)]}
	if i%4 == 1 {
		s.Softcap = 20
	}
	keys, rows, heads := 1+r.IntN(600), 1+r.IntN(5), 1+r.IntN(5)
	tiles := (keys + TileTokens - 1) / TileTokens
	kb, vb := s.KeyTileBytes(), s.ValueTileBytes()
	page := make([]byte, tiles*(kb+vb)+64)
	for p := range keys {
		at := page[p/TileTokens*(kb+vb):]
		StoreKV(at[:kb], at[kb:kb+vb], p%TileTokens, exactRow(r, s.HeadDim, -3, 1), exactRow(r, s.VHeadDim, -3, 1), s.KV)
	}
	c := &AttnCall{Spec: s, Rows: rows, Heads: heads, LDQ: heads * s.HeadDim, LDO: heads * s.VHeadDim,
		Q: exactRow(r, rows*heads*s.HeadDim, -3, 1), Out: make([]float32, rows*heads*s.VHeadDim),
		Tiles: Tiles{Pages: []*byte{&page[0]}, PerPage: tiles, V: kb, Step: kb + vb}}
	for range rows {
		start := r.IntN(keys)
		c.Start, c.End = append(c.Start, int32(start)), append(c.End, int32(start+1+r.IntN(keys-start)))
	}
	if i%3 == 2 {
		c.Slope = exactRow(r, heads, -5, -1)
	}
	if i%2 == 1 {
		c.Sink = exactRow(r, heads, -2, 1)
	}
	Attend(c, new(AttnScratch))
	return c.Out
}
