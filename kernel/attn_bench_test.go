package kernel

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"ridge/internal/cpu"
	"ridge/weights/tensor"
)

// BenchmarkAttendPrefill: a chunk of 512 rows from the start of a sequence.
func BenchmarkAttendPrefill(b *testing.B) {
	for i := range 8 {
		shape, kv := []struct{ hd, heads int }{{64, 3}, {64, 7}, {128, 4}, {256, 4}}[i/2], kvTypes[i%2*2]
		for _, tier := range cpu.Tiers()[2:] {
			b.Run(fmt.Sprintf("%s/hd%d/heads%d/%s", kv, shape.hd, shape.heads, tier), func(b *testing.B) {
				defer cpu.Set(tier)()
				r := rand.New(rand.NewPCG(1, 1))
				s := &AttnSpec{HeadDim: shape.hd, VHeadDim: shape.hd, Scale: 0.1, KV: kv}
				seq := newKVSeq(r, s, 512, 4)
				c := randomCall(r, s, seq, 512, shape.heads)
				var flops float64
				for i := range c.Start {
					c.Start[i], c.End[i] = 0, int32(i+1)
					flops += float64(4 * shape.hd * shape.heads * (i + 1))
				}
				var scratch AttnScratch
				var peak, attend samples
				peakOps := 0
				for b.Loop() {
					attend.add(func() { Attend(c, &scratch) })
					peak.add(func() { peakOps = dotProbe(false, 20000) })
				}
				b.ReportMetric(flops/attend.p10()/1e9, "GFLOP/s")
				b.ReportMetric(flops/attend.p10()*peak.p10()/float64(peakOps), "of-peak")
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}

// BenchmarkAttendDecode: one row at a context of 4096, over more keys and
// values than the caches hold.
func BenchmarkAttendDecode(b *testing.B) {
	const n = 4096
	for i := range 10 {
		shape, kv := []struct{ hd, heads int }{{64, 1}, {64, 3}, {64, 7}, {128, 4}, {128, 8}}[i/2], kvTypes[i%2*2]
		r := rand.New(rand.NewPCG(1, 1))
		s := &AttnSpec{HeadDim: shape.hd, VHeadDim: shape.hd, Scale: 0.1, KV: kv}
		size := n / TileTokens * (s.KeyTileBytes() + s.ValueTileBytes())
		count := 96 << 20 / size
		mem := make([]byte, count*size+64)
		for i := range mem {
			mem[i] = byte(r.Uint32() & 0x37)
		}
		for at := 0; kv == tensor.Q8_0 && at < len(mem)-64; at += s.KeyTileBytes() {
			for i := range TileTokens { // scales that are not denormal
				binary.LittleEndian.PutUint32(mem[at+4*i:], math.Float32bits(0.01))
			}
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
		for _, tier := range cpu.Tiers()[2:] {
			b.Run(fmt.Sprintf("%s/hd%d/heads%d/%s", kv, shape.hd, shape.heads, tier), func(b *testing.B) {
				defer cpu.Set(tier)()
				i := 0
				var read, attend samples
				for b.Loop() {
					c.Tiles = tiles[i%count]
					attend.add(func() { Attend(c, &scratch) })
					at := (i + count/2) % count * size
					read.add(func() { readProbe(mem[at : at+size]) })
					i++
				}
				b.ReportMetric(float64(size)/attend.p10()/1e9, "GB/s")
				b.ReportMetric(read.p10()/attend.p10(), "of-read")
				b.ReportMetric(n/attend.p10()/1e6, "Mkeys/s")
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}

// BenchmarkStoreKV: a tile of 16 tokens, as decoding stores it, token by token,
// and at once, as a prompt does. Time is per token.
func BenchmarkStoreKV(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 1))
	const hd = 64
	k, v := randomRow(r, hd*TileTokens, 1), randomRow(r, hd*TileTokens, 1)
	for _, kv := range kvTypes {
		kt, vt := make([]byte, KVTileBytes(hd, kv)), make([]byte, KVTileBytes(hd, kv))
		b.Run(fmt.Sprintf("%s/token", kv), func(b *testing.B) {
			var store samples
			for b.Loop() {
				store.add(func() {
					for at := range TileTokens {
						StoreKV(kt, vt, at, k[at*hd:][:hd], v[at*hd:][:hd], kv)
					}
				})
			}
			b.ReportMetric(store.p10()*1e9/TileTokens, "ns/token")
			b.ReportMetric(0, "ns/op")
		})
		b.Run(fmt.Sprintf("%s/tile", kv), func(b *testing.B) {
			var store samples
			for b.Loop() {
				store.add(func() { StoreKVTile(kt, vt, k, hd, hd, v, hd, hd, kv) })
			}
			b.ReportMetric(store.p10()*1e9/TileTokens, "ns/token")
			b.ReportMetric(0, "ns/op")
		})
	}
}
