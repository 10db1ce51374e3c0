package pagetest

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"ridge/internal/testdata"
)

// What it costs the server to be looked at, while four clients have it write as fast
// as it can: with what an open view of the engine asks for, and with views open in a
// browser on the same machine. Each round measures the server alone and looked at, in
// turns; reported are the medians of what the server's process takes more for a token
// (by its processor time, which others on the machine change least), of what it writes
// less in a second, and the processor seconds that the browser takes in a minute. As
// one view is lost in the noise there are sixteen subscribers; what is reported of the
// server is a sixteenth.
//
//	go test ./server/pagetest -run xxx -bench PageOpen -benchtime 5x
func BenchmarkPageOpen(b *testing.B) {
	for _, l := range []struct {
		name string
		of   float64 // viewers
		look func(b *testing.B, url string) (process int, leave func())
	}{
		{"subscriber", subscribers, subscribe},
		{"chat", 1, viewer("#chat", false)},
		{"engine", 1, viewer("#engine", false)},
		{"hidden", 1, viewer("#engine", true)},
		{"requests", 1, viewer("#requests", false)},
	} {
		b.Run(l.name, func(b *testing.B) {
			s := serveAlone(b, testdata.Model(b, "smollm2"))
			defer write(b, s.url, 4)()
			var dearer, slower, browser []float64
			for i := range b.N {
				alone := func() spent { return s.spend(b, 0) }
				seen := func() spent {
					process, leave := l.look(b, s.url)
					defer leave()
					return s.spend(b, process)
				}
				var x, y spent
				if i%2 == 0 {
					x, y = alone(), seen()
				} else {
					y, x = seen(), alone()
				}
				b.Logf("%.3f ms of processor and %.0f tokens a second alone, %.3f and %.0f looked at; browser %.1f s a minute", 1e3*x.token, x.rate, 1e3*y.token, y.rate, y.browser)
				dearer, slower, browser = append(dearer, 100*(y.token/x.token-1)/l.of), append(slower, 100*(1-y.rate/x.rate)/l.of), append(browser, y.browser)
			}
			median := func(v []float64) float64 { slices.Sort(v); return v[len(v)/2] }
			b.ReportMetric(median(dearer), "%cpu/token")
			b.ReportMetric(median(slower), "%slower")
			b.ReportMetric(median(browser), "browser-s/min")
		})
	}
}

// span is how long is measured at a time.
const span = 6 * time.Second

// alone is a server in a process of its own.
type alone struct {
	url     string
	process int
}

// spent is what was taken in a time.
type spent struct {
	token   float64 // processor seconds of the server for a token
	rate    float64 // tokens that it wrote in a second
	browser float64 // processor seconds of the browser in a minute
}

// serveAlone builds ridge and serves a model as people do.
func serveAlone(b *testing.B, model string) *alone {
	b.Helper()
	program := filepath.Join(b.TempDir(), "ridge")
	build := exec.Command("go", "build", "-o", program, "./cmd/ridge")
	build.Dir = filepath.Join("..", "..")
	if out, err := build.CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	cmd := exec.Command(program, "serve", model, "--port", "0", "--name", "tiny", "--speculative", "off")
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	cmd.Stderr = cmd.Stdout
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait() // its status is that of the signal
	})
	at := regexp.MustCompile(`http://[0-9.:]+`)
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if url := at.FindString(lines.Text()); url != "" {
			go func() { _, _ = io.Copy(io.Discard, out) }()
			return &alone{url, cmd.Process.Pid}
		}
	}
	b.Fatal("the server tells no address")
	return nil
}

// spend measures for a span, from a moment after it is called.
func (s *alone) spend(b *testing.B, browser int) spent {
	b.Helper()
	type status struct {
		Models []struct {
			Generated float64 `json:"generated_tokens"`
		}
	}
	tokens := func() float64 {
		st := fetch[status](b, s.url+"/ridge/status")
		if len(st.Models) == 0 {
			b.Fatalf("no model is loaded: %v", fetch[any](b, s.url+"/ridge/status"))
		}
		return st.Models[0].Generated
	}
	time.Sleep(span / 4)
	begun, n, own, others := time.Now(), tokens(), processor(b, s.process), processor(b, browser)
	time.Sleep(span)
	took := time.Since(begun).Seconds()
	n = tokens() - n
	return spent{(processor(b, s.process) - own) / n, n / took, 60 * (processor(b, browser) - others) / took}
}

// processor returns the processor seconds that a process and those that it has started
// have taken, as far as they still run; 0 for the process 0.
func processor(b *testing.B, process int) (seconds float64) {
	b.Helper()
	if process == 0 {
		return 0
	}
	all, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		b.Fatal(err)
	}
	parent, took := map[int]int{}, map[int]float64{}
	for _, file := range all {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		// Behind the name, which may have spaces: state, parent, and ten others
		// before the ticks of a hundredth of a second.
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		f := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
		parent[pid], _ = strconv.Atoi(f[1])
		for _, ticks := range f[11:13] {
			n, _ := strconv.Atoi(ticks)
			took[pid] += float64(n) / 100
		}
	}
	for pid := range took {
		for p := pid; p > 1; p = parent[p] {
			if p == process {
				seconds += took[pid]
				break
			}
		}
	}
	return seconds
}

// viewer opens a view in a browser, hidden behind another tab if that is wanted.
func viewer(view string, hidden bool) func(b *testing.B, url string) (int, func()) {
	return func(b *testing.B, url string) (int, func()) {
		t := browse(b, url+"/"+view, 1200, 1400)
		t.until(`document.querySelector("main select")?.value || document.querySelector("main tbody tr")`)
		if hidden {
			value[any](t, `Object.defineProperty(document, "hidden", {value: true}), document.dispatchEvent(new Event("visibilitychange"))`)
		}
		return chromedp.FromContext(t.Context).Browser.Process().Pid, func() { _ = chromedp.Cancel(t.Context) }
	}
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

// subscribers are so many that what one costs can be told from noise.
const subscribers = 16

// subscribe asks for what the view of the engine asks for, as often as that, for each
// of the subscribers.
func subscribe(b *testing.B, url string) (process int, leave func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	for i := range subscribers {
		for path, every := range map[string]time.Duration{"/ridge/events": 0, "/ridge/kv": time.Second, "/ridge/roofline": 2 * time.Second} {
			wg.Go(func() {
				// They do not all ask at the same moment.
				for wait := every * time.Duration(i) / subscribers; ; wait = every {
					select {
					case <-time.After(wait):
					case <-ctx.Done():
						return
					}
					r, err := http.NewRequestWithContext(ctx, http.MethodGet, url+path, nil)
					if err != nil {
						b.Error(err)
						return
					}
					drain(r)
				}
			})
		}
	}
	return 0, func() { cancel(); wg.Wait() }
}
