package kernel

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"ridge/internal/cpu"
	"ridge/weights/tensor"
)

// roundToBrain rounds x to bfloat16, by way of float64 arithmetic.
func roundToBrain(x float32) float32 {
	if x == 0 || x != x {
		return x
	}
	frac, exp := math.Frexp(float64(x))
	return float32(math.Ldexp(math.RoundToEven(frac*256), exp-8))
}

// brainSeq is newKVSeq for bfloat16 tiles. Slots after the last token hold NaN.
func brainSeq(t *testing.T, r *rand.Rand, s *AttnSpec, n, perPage int) *kvSeq {
	t.Helper()
	seq := &kvSeq{}
	kb, vb := s.KeyTileBytes(), s.ValueTileBytes()
	seq.tiles = Tiles{PerPage: perPage, K: 64, V: 64 + kb, Step: kb + vb}
	for p := range n {
		if p%(TileTokens*perPage) == 0 {
			page := make([]byte, 64+perPage*(kb+vb))
			for i := range page {
				page[i] = 0xff
			}
			seq.keep = append(seq.keep, page)
			seq.tiles.Pages = append(seq.tiles.Pages, &page[0])
		}
		k, v := randomRow(r, s.HeadDim, 1), randomRow(r, s.VHeadDim, 1)
		mem := seq.keep[p/TileTokens/perPage][64+p/TileTokens%perPage*(kb+vb):]
		StoreKV(mem[:kb], mem[kb:kb+vb], p%TileTokens, k, v, s.KV)
		for i, x := range k {
			k[i] = roundToBrain(x)
		}
		for i, x := range v {
			v[i] = roundToBrain(x)
		}
		seq.k, seq.v = append(seq.k, k), append(seq.v, v)
	}
	return seq
}

// brainDims are sizes of heads that tile registers take, and others.
var brainDims = [][2]int{{32, 16}, {64, 64}, {96, 96}, {128, 128}, {256, 256}, {192, 128}, {32, 80}, {80, 80}, {20, 20}, {6, 33}, {2, 1}}

// TestAttendBrain compares attention over bfloat16 with the definition. Tile
// registers round queries and weights too: one part in 256 of each at most.
func TestAttendBrain(t *testing.T) {
	forTiers(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(1, 2))
		var scratch AttnScratch
		for _, dims := range brainDims {
			for _, shape := range [][2]int{{1, 1}, {1, 3}, {1, 7}, {1, 17}, {3, 4}, {17, 3}, {40, 5}} {
				s := &AttnSpec{HeadDim: dims[0], VHeadDim: dims[1], Scale: float32(1 / math.Sqrt(float64(dims[0]))), KV: tensor.BF16}
				seq := brainSeq(t, r, s, 1+r.IntN(600), 1+r.IntN(5))
				c := randomCall(r, s, seq, shape[0], shape[1])
				name := fmt.Sprint(dims, shape, decorate(r, c))
				Attend(c, &scratch)
				budget := 4 * attnBudget
				if wideTier(s) {
					budget = 0.012
					for i, x := range c.Q {
						c.Q[i] = roundToBrain(x)
					}
				}
				for row := range c.Rows {
					for h := range c.Heads {
						got := c.Out[row*c.LDO+h*s.VHeadDim:]
						for d, want := range naiveAttention(c, seq, row, h) {
							if e := math.Abs(float64(got[d]) - want); !(e <= budget) {
								t.Fatalf("%s: row %d head %d keys [%d,%d) dim %d: got %g want %g", name, row, h, c.Start[row], c.End[row], d, got[d], want)
							}
						}
					}
				}
			}
		}
	})
}

// TestAttendBrainLaw1 is TestAttendLaw1 for bfloat16, with NaN in all slots that
// no token has.
func TestAttendBrainLaw1(t *testing.T) {
	forTiers(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(3, 4))
		var scratch AttnScratch
		for i := range 40 {
			dims := brainDims[i%len(brainDims)]
			s := &AttnSpec{HeadDim: dims[0], VHeadDim: dims[1], Scale: 0.2, KV: tensor.BF16}
			seed, n := r.Uint64(), 1+r.IntN(900)
			seq := brainSeq(t, rand.New(rand.NewPCG(seed, 0)), s, n, 1)
			c := randomCall(r, s, seq, 1+r.IntN(60), 1+r.IntN(8))
			decorate(r, c)
			Attend(c, &scratch)
			want := append([]float32(nil), c.Out...)
			compare := func(what string) {
				t.Helper()
				for j := range want {
					if a, b := c.Out[j], want[j]; math.Float32bits(a) != math.Float32bits(b) {
						t.Fatalf("case %d, %v, %s: value %d: %g and %g", i, dims, what, j, a, b)
					}
				}
				clear(c.Out)
			}
			c.Tiles = brainSeq(t, rand.New(rand.NewPCG(seed, 0)), s, n, 4).tiles
			clear(c.Out)
			Attend(c, &scratch)
			compare("page of 4 tiles")
			attendRows(c, &scratch, 1)
			compare("rows one by one")
			attendRows(c, &scratch, 7)
			compare("rows by 7")
			attendHeads(c, &scratch)
			compare("heads one by one")
			lo, hi := c.Splits()
			parts := make([]float32, (hi-lo)*c.PartFloats())
			for split := hi - 1; split >= lo; split-- {
				AttendSplits(c, &scratch, split, split+1, parts[(split-lo)*c.PartFloats():])
			}
			MergeSplits(c, parts)
			compare("splits")
			if n := testing.AllocsPerRun(5, func() { Attend(c, &scratch) }); n != 0 {
				t.Fatalf("%v: %g allocations", dims, n)
			}
		}
	})
}

// TestAttendBrainNaN: a query that is not a number stays alone.
func TestAttendBrainNaN(t *testing.T) {
	forTiers(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(5, 6))
		s := &AttnSpec{HeadDim: 32, VHeadDim: 32, Scale: 0.2, KV: tensor.BF16}
		c := randomCall(r, s, brainSeq(t, r, s, 100, 1), 1, 3)
		c.Start[0], c.End[0] = 3, 99
		c.Q[32+5] = float32(math.NaN())
		var scratch AttnScratch
		Attend(c, &scratch)
		for h := range 3 {
			for _, x := range c.Out[h*32 : (h+1)*32] {
				if math.IsNaN(float64(x)) != (h == 1) {
					t.Fatalf("head %d: %g", h, x)
				}
			}
		}
	})
}

// TestStoreBrain stores tokens one by one and a tile at once, and reads them
// back, special values included.
func TestStoreBrain(t *testing.T) {
	forTiers(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(9, 9))
		for _, dims := range brainDims {
			kd, vd := dims[0], dims[1]
			k, v := randomRow(r, TileTokens*kd, 3), randomRow(r, TileTokens*vd, 3)
			for range 20 {
				k[r.IntN(len(k))], v[r.IntN(len(v))] = kvSpecial[r.IntN(len(kvSpecial))], kvSpecial[r.IntN(len(kvSpecial))]
			}
			kt, vt := make([]byte, KVTileBytes(kd, tensor.BF16)), make([]byte, KVTileBytes(vd, tensor.BF16))
			StoreKVTile(kt, vt, k, kd, kd, v, vd, vd, tensor.BF16)
			keys, values := make([]float32, TileTokens*kd), make([]float32, TileTokens*vd)
			decodeKeyPairs(keys, &kt[0], kd)
			decodeValuePairs(values, &vt[0], vd, vd)
			same := func(got, x float32) bool {
				want := roundToBrain(clampF16(x))
				return got == want || got != got && want != want
			}
			for slot := range TileTokens {
				for d := range kd {
					if got, x := keys[d*TileTokens+slot], k[slot*kd+d]; !same(got, x) {
						t.Fatalf("%v: key %d of slot %d: stored %g, read %g", dims, d, slot, x, got)
					}
				}
				for d := range vd {
					if got, x := values[slot*vd+d], v[slot*vd+d]; !same(got, x) {
						t.Fatalf("%v: value %d of slot %d: stored %g, read %g", dims, d, slot, x, got)
					}
				}
			}
		}
	})
}

// TestTilesAgree: with tile registers the products of float16 and float32 keys
// and of matrices have the bits that they have without.
func TestTilesAgree(t *testing.T) {
	if cpu.Best() < cpu.AMX {
		t.Skip("needs AMX")
	}
	for i := range 12 {
		var out [2][]float32
		for j, tier := range []cpu.Tier{cpu.AVX512, cpu.AMX} {
			restore := cpu.Set(tier)
			out[j] = attendExact(rand.New(rand.NewPCG(uint64(i), 1)), i)
			restore()
		}
		for j, x := range out[0] {
			if math.Float32bits(x) != math.Float32bits(out[1][j]) {
				t.Fatalf("case %d: value %d: %g and %g", i, j, x, out[1][j])
			}
		}
	}
}
