package server

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// BenchmarkStructured compares the speed of answers that are held to a schema
// with that of free ones, on a real model through server and engine, alone and
// eight at a time. Pairs are measured in turn; "ratio" is the median of
// constrained by free tokens per second.
func BenchmarkStructured(b *testing.B) {
	_, srv := serveSmol(b)
	schema := `{"type":"array","minItems":40,"items":{"type":"object","properties":{"name":{"type":"string","maxLength":20},"age":{"type":"integer","minimum":0,"maximum":120},"tags":{"type":"array","items":{"enum":["a","b","c"]},"maxItems":3}},"required":["name","age","tags"],"additionalProperties":false}}`
	const tokens = 48
	body := func(seed int, format string) string {
		return fmt.Sprintf(`{"messages":[{"role":"user","content":"Tell me of %d people."}],"temperature":1,"seed":%d,"max_tokens":%d,"ignore_eos":true%s}`, seed, seed, tokens, format)
	}
	run := func(clients int, format string) float64 {
		var wg sync.WaitGroup
		begin := time.Now()
		for i := range clients {
			wg.Go(func() {
				resp, err := http.Post(srv.URL+"/v1/chat/completions", "application/json", strings.NewReader(body(i, format)))
				if err != nil {
					b.Error(err)
					return
				}
				defer resp.Body.Close()
				if _, err := io.Copy(io.Discard, resp.Body); err != nil || resp.StatusCode != 200 {
					b.Errorf("status %d, %v", resp.StatusCode, err)
				}
			})
		}
		wg.Wait()
		return float64(clients*tokens) / time.Since(begin).Seconds()
	}
	held := `,"response_format":{"type":"json_schema","json_schema":{"name":"x","schema":` + schema + `}}`
	for _, clients := range []int{1, 8} {
		b.Run(fmt.Sprint(clients), func(b *testing.B) {
			run(clients, "")
			run(clients, held)
			var ratios, free []float64
			for b.Loop() {
				f := run(clients, "")
				free = append(free, f)
				ratios = append(ratios, run(clients, held)/f)
			}
			slices.Sort(ratios)
			slices.Sort(free)
			b.ReportMetric(ratios[len(ratios)/2], "ratio")
			b.ReportMetric(free[len(free)/2], "free-tok/s")
		})
	}
}
