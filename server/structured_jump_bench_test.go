package server

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"
)

// BenchmarkJumpAhead writes records with long keys with and without jump-ahead,
// on a real model through server and engine, alone and eight at a time. Pairs are
// measured in turn: "time-ratio" is the median of the times for the same
// documents, with by without; "steps-ratio" that of the engine's steps.
func BenchmarkJumpAhead(b *testing.B) {
	s, srv := serveSmol(b)
	const schema = `{"type":"object","properties":{"customer_identification_number":{"type":"integer","maximum":9999},"customer_first_name":{"type":"string","maxLength":12},"customer_last_name":{"type":"string","maxLength":12},"preferred_method_of_payment":{"enum":["credit card","bank transfer","cash on delivery"]},"is_subscribed_to_newsletter":{"type":"boolean"},"date_of_last_purchase":{"type":"string","format":"date"}},"required":["customer_identification_number","customer_first_name","customer_last_name","preferred_method_of_payment","is_subscribed_to_newsletter","date_of_last_purchase"],"additionalProperties":false}`
	run := func(b *testing.B, clients int, extra string) (took, steps, tokens float64) {
		before, begin := s.o.Models[0].Stats(), time.Now()
		var wg sync.WaitGroup
		for i := range clients {
			wg.Go(func() {
				o := post(b, srv.URL+"/v1/completions", fmt.Sprintf(`{"prompt":"Record %d of the customers:\n","temperature":0.8,"seed":%d,"max_tokens":300,"structured_outputs":{"json":%s%s}}`, i, i, schema, extra), 200)
				if o.at("choices", 0, "finish_reason") != "stop" {
					b.Errorf("%v", o.at("choices", 0))
				}
			})
		}
		wg.Wait()
		took = time.Since(begin).Seconds()
		st := s.o.Models[0].Stats()
		return took, float64(st.Steps - before.Steps), float64(st.Tokens - before.Tokens)
	}
	for _, clients := range []int{1, 8} {
		b.Run(fmt.Sprint(clients), func(b *testing.B) {
			run(b, clients, "")
			run(b, clients, `,"jump_ahead":true`)
			var times, steps, with, without []float64
			for b.Loop() {
				slow, all, n := run(b, clients, "")
				fast, few, m := run(b, clients, `,"jump_ahead":true`)
				times, steps = append(times, fast/slow), append(steps, few/all)
				with, without = append(with, m/fast), append(without, n/slow)
			}
			for name, list := range map[string][]float64{"time-ratio": times, "steps-ratio": steps, "tok/s": with, "plain-tok/s": without} {
				slices.Sort(list)
				b.ReportMetric(list[len(list)/2], name)
			}
		})
	}
}
