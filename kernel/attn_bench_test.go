package kernel

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"ridge/internal/cpu"
	"ridge/tensor"
)

// BenchmarkAttendPrefill: a chunk of 512 rows from the start of a sequence.
func BenchmarkAttendPrefill(b *testing.B) {
	for _, shape := range []struct{ hd, heads int }{{64, 3}, {64, 7}, {128, 4}, {256, 4}} {
		for tier := cpu.AVX2; tier <= cpu.Best(); tier++ {
			b.Run(fmt.Sprintf("hd%d/heads%d/%s", shape.hd, shape.heads, tier), func(b *testing.B) {
				defer cpu.Set(tier)()
				r := rand.New(rand.NewPCG(1, 1))
				s := &AttnSpec{HeadDim: shape.hd, VHeadDim: shape.hd, Scale: 0.1, KV: tensor.F16}
				seq := newKVSeq(r, s, 512, 4)
				c := randomCall(r, s, seq, 512, shape.heads)
				var flops float64
				for i := range c.Start {
					c.Start[i], c.End[i] = 0, int32(i+1)
					flops += float64(4 * shape.hd * shape.heads * (i + 1))
				}
				var scratch AttnScratch
				for b.Loop() {
					Attend(c, &scratch)
				}
				b.ReportMetric(flops*float64(b.N)/float64(b.Elapsed().Nanoseconds()), "GFLOP/s")
			})
		}
	}
}

// BenchmarkAttendDecode: one row at a context of 4096, over more keys and
// values than the caches hold.
func BenchmarkAttendDecode(b *testing.B) {
	const n = 4096
	for _, shape := range []struct{ hd, heads int }{{64, 1}, {64, 3}, {64, 7}, {128, 4}, {128, 8}} {
		r := rand.New(rand.NewPCG(1, 1))
		s := &AttnSpec{HeadDim: shape.hd, VHeadDim: shape.hd, Scale: 0.1, KV: tensor.F16}
		size := n / TileTokens * (s.KeyTileBytes() + s.ValueTileBytes())
		count := 96 << 20 / size
		mem := make([]byte, count*size+64)
		for i := range mem {
			mem[i] = byte(r.Uint32() & 0x37)
		}
		tiles := make([]Tiles, count)
		for i := range tiles {
			tiles[i] = Tiles{PerPage: 4, V: s.KeyTileBytes(), Step: s.KeyTileBytes() + s.ValueTileBytes()}
			for p := range n / TileTokens / 4 {
				tiles[i].Pages = append(tiles[i].Pages, &mem[i*size+p*4*tiles[i].Step])
			}
		}
		c := &AttnCall{Spec: s, Rows: 1, Heads: shape.heads, Q: randomRow(r, shape.heads*shape.hd, 1), Out: make([]float32, shape.heads*shape.hd), Start: []int32{0}, End: []int32{n}}
		var scratch AttnScratch
		for tier := cpu.AVX2; tier <= cpu.Best(); tier++ {
			b.Run(fmt.Sprintf("hd%d/heads%d/%s", shape.hd, shape.heads, tier), func(b *testing.B) {
				defer cpu.Set(tier)()
				i := 0
				for b.Loop() {
					c.Tiles = tiles[i%count]
					i++
					Attend(c, &scratch)
				}
				b.ReportMetric(float64(size)*float64(b.N)/float64(b.Elapsed().Nanoseconds()), "GB/s")
			})
		}
	}
}
