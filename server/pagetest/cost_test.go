package pagetest

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"ridge/internal/testdata"
)

// What it costs the server to be looked at, while clients have it write as fast as it
// can: in turns alone, with what an open view of the engine asks for, and with that view
// open in a browser on the same machine, which takes its part of the processor beside
// that. Each round is a pair; the medians of what the server writes less than alone are
// reported, in percent.
//
//	go test ./server/pagetest -run xxx -bench PageOpen -benchtime 5x
func BenchmarkPageOpen(b *testing.B) {
	const clients = 4
	srv := httptest.NewServer(openModel(b, testdata.Model(b, "smollm2")).Handler())
	defer srv.Close()
	url := srv.URL
	stop := write(b, url, clients)
	defer stop()
	for name, look := range map[string]func() func(){
		"subscriber": func() func() { return subscribe(b, url) },
		"chromium": func() func() {
			t := browse(b, url+"/#engine", 1200, 1400)
			t.until(`Number(document.querySelector("[data-number='running'] dd")?.innerText) > 0`)
			return func() { _ = chromedp.Cancel(t.Context) }
		},
	} {
		var slower []float64
		for i := range b.N {
			with := func() float64 {
				leave := look()
				defer leave()
				return written(b, url)
			}
			var alone, seen float64
			if i%2 == 0 {
				alone, seen = written(b, url), with()
			} else {
				seen, alone = with(), written(b, url)
			}
			slower = append(slower, 100*(1-seen/alone))
			b.Logf("%s: %.0f tok/s alone, %.0f looked at", name, alone, seen)
		}
		slices.Sort(slower)
		b.ReportMetric(slower[len(slower)/2], name+"-%slower")
	}
}

// span is how long a rate is measured.
const span = 5 * time.Second

// written is how many tokens the server writes in a second.
func written(b *testing.B, url string) float64 {
	type status struct {
		Models []struct {
			Generated float64 `json:"generated_tokens"`
		}
	}
	time.Sleep(span / 10)
	begun, before := time.Now(), fetch[status](b, url+"/ridge/status").Models[0].Generated
	time.Sleep(span)
	return (fetch[status](b, url+"/ridge/status").Models[0].Generated - before) / time.Since(begun).Seconds()
}

// write keeps answers under way until the function that it returns is called.
func write(b *testing.B, url string, clients int) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	for i := range clients {
		wg.Go(func() {
			for ctx.Err() == nil {
				body := fmt.Sprintf(`{"prompt":"Story number %d:","max_tokens":400,"ignore_eos":true,"stream":true}`, i)
				r, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/v1/completions", strings.NewReader(body))
				if err != nil {
					b.Error(err)
					return
				}
				drain(r)
			}
		})
	}
	return func() { cancel(); wg.Wait() }
}

// drain reads an answer to its end, or to that of its context.
func drain(r *http.Request) {
	if resp, err := http.DefaultClient.Do(r); err == nil {
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
	}
}

// subscribe asks for what the view of the engine asks for, as often as that.
func subscribe(b *testing.B, url string) (leave func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	for path, every := range map[string]time.Duration{"/ridge/events": 0, "/ridge/kv": 500 * time.Millisecond, "/ridge/roofline": time.Second} {
		wg.Go(func() {
			for ctx.Err() == nil {
				r, err := http.NewRequestWithContext(ctx, http.MethodGet, url+path, nil)
				if err != nil {
					b.Error(err)
					return
				}
				drain(r)
				select {
				case <-time.After(every):
				case <-ctx.Done():
				}
			}
		})
	}
	return func() { cancel(); wg.Wait() }
}
