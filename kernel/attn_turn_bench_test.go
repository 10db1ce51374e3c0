package kernel

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"ridge/internal/cpu"
	"ridge/weights/tensor"
)

// BenchmarkAttendLatent: rows of 16 heads over 4096 latents of 512 and a rotated
// key of 64, the shape of DeepSeek-V2-Lite; and the same rows in the expanded
// form, over keys of 192 and values of 128 for each head.
func BenchmarkAttendLatent(b *testing.B) {
	const n, heads = 4096, 16
	for _, rows := range []int{1, 32} {
		for _, kv := range []tensor.DType{tensor.F16, tensor.BF16, tensor.Q8_0} {
			for _, form := range []string{"absorbed", "expanded"} {
				for _, tier := range cpu.Tiers()[3:] {
					b.Run(fmt.Sprintf("%s/%s/rows%d/%s", kv, form, rows, tier), func(b *testing.B) {
						defer cpu.Set(tier)()
						r := rand.New(rand.NewPCG(1, 1))
						s := &AttnSpec{HeadDim: 576, VHeadDim: 512, Scale: 0.1, KV: kv, ValuesInKeys: true}
						calls, queries := 1, heads
						if form == "expanded" {
							s = &AttnSpec{HeadDim: 192, VHeadDim: 128, Scale: 0.1, KV: kv}
							calls, queries = heads, 1
						}
						var cs []*AttnCall
						for range calls {
							c := randomCall(r, s, newKVSeq(r, s, n, 4), rows, queries)
							for i := range c.Start {
								c.Start[i], c.End[i] = 0, int32(n-rows+i+1)
							}
							cs = append(cs, c)
						}
						var scratch AttnScratch
						var attend samples
						for b.Loop() {
							attend.add(func() {
								for _, c := range cs {
									Attend(c, &scratch)
								}
							})
						}
						size := calls * n / TileTokens * (s.KeyTileBytes() + s.ValueTileBytes())
						b.ReportMetric(float64(size)/attend.p10()/1e9, "GB/s")
						b.ReportMetric(attend.p10()*1e6/float64(rows), "us/row")
						b.ReportMetric(float64(2*rows*heads*(s.HeadDim+s.VHeadDim))*n/attend.p10()/1e9, "GFLOP/s")
						b.ReportMetric(0, "ns/op")
					})
				}
			}
		}
	}
}
