//go:build unix

package server

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"ridge/engine"
	"ridge/internal/cpu"
	"ridge/internal/testdata"
	"ridge/kvcache"
	"ridge/model"
	"ridge/sched"
	"ridge/server/run"
	"ridge/weights/tensor"
)

// soakModels are served by the soak, two at a time.
var soakModels = map[string]string{
	"llama": "../internal/tinymodel/testdata/llama/llama.gguf",
	"qwen":  "../internal/tinymodel/testdata/qwen3/qwen3.gguf",
	"tiny":  testdata.Tiny,
}

// soak is a server under all that clients do, and what was seen of it.
type soak struct {
	url  string
	reg  *engine.Registry
	http *http.Client
	stop atomic.Bool // clients end what they do and begin nothing

	think atomic.Int64 // nanoseconds between a client's requests

	mu      sync.Mutex
	seen    map[string]int    // requests by kind and status
	answers map[string]string // of requests with a seed
	errs    []string
}

// fail notes what must not happen.
func (k *soak) fail(format string, a ...any) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.errs) < 50 {
		k.errs = append(k.errs, fmt.Sprintf(format, a...))
	}
}

// startSoak starts a server that loads models on demand, with queues, memory
// and patience so small that all limits are met.
func startSoak(t *testing.T, dir string) (*soak, func()) {
	load := func(_ context.Context, name string, pages *kvcache.Budget) (*model.Model, engine.Options, error) {
		mo := model.DefaultOptions()
		mo.Workers, mo.PageTokens, mo.KVBudget, mo.KV, mo.MaxContext = 2, 16, pages, tensor.F16, 256
		m, err := model.Open(soakModels[name], mo)
		cfg := sched.Config{Split: true, MaxTokens: 64, MaxSeqs: 6, MaxQueue: 4, Recovery: sched.Swap, Preemptive: true, Policy: sched.VTC(0, 0)}
		return m, engine.Options{Sched: &cfg, Swap: &sched.RAM{Limit: 1 << 20}, Events: 16, DropAfter: 3 * time.Second}, err
	}
	reg, err := engine.NewRegistry(load, engine.RegistryOptions{PageBytes: 4 << 20, MaxModels: 2, KeepAlive: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	find := func(name string) (run.ModelConfig, bool) {
		if name == "" {
			name = "llama"
		}
		return run.ModelConfig{Name: name, Path: soakModels[name]}, soakModels[name] != ""
	}
	s, err := New(Options{Source: &run.Source{Registry: reg, Find: find}, DataDir: dir, Version: "soak", WriteTimeout: 2 * time.Second, BodyTimeout: 2 * time.Second, Ping: 50 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, l, patience) }()
	k := &soak{url: "http://" + l.Addr().String(), reg: reg, seen: map[string]int{}, answers: map[string]string{},
		http: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 4}}}
	return k, func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

// footprint is what the process has.
type footprint struct {
	heap, rss       uint64 // bytes
	goroutines, fds int
}

func (u footprint) String() string {
	return fmt.Sprintf("heap %.2f MB, resident %.1f MB, %d goroutines, %d descriptors", float64(u.heap)/1e6, float64(u.rss)/1e6, u.goroutines, u.fds)
}

// measure counts after a collection.
func measure() footprint {
	debug.FreeOSMemory()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	u := footprint{heap: m.HeapAlloc, goroutines: runtime.NumGoroutine()}
	if b, err := os.ReadFile("/proc/self/statm"); err == nil {
		var size, pages uint64
		_, _ = fmt.Sscan(string(b), &size, &pages)
		u.rss = pages * uint64(os.Getpagesize())
	}
	if d, err := os.ReadDir("/proc/self/fd"); err == nil {
		u.fds = len(d) - 1 // the one that reads them
	}
	return u
}

// pace keeps the processor time of the process near share of a core.
func (k *soak) pace(ctx context.Context, share float64) {
	const every = time.Second
	for last, now := cpu.Time(), time.Duration(0); ; last = now {
		select {
		case <-time.After(every):
		case <-ctx.Done():
			return
		}
		now = cpu.Time()
		think := k.think.Load()
		if float64(now-last) > share*float64(every) {
			think += think/4 + int64(time.Millisecond)
		} else {
			think -= think / 10
		}
		k.think.Store(min(think, int64(20*time.Second)))
	}
}

// rest waits until nothing is under way and checks that nothing is left over:
// no requests, no pages but cached ones, books that agree.
func (k *soak) rest(t *testing.T) {
	t.Helper()
	k.http.CloseIdleConnections()
	for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		var left []string
		for _, m := range k.reg.Loaded() {
			if err := m.Engine.Check(t.Context()); err != nil && !errors.Is(err, engine.ErrClosed) {
				t.Fatalf("%s: %v", m.Name, err)
			}
			st := m.Engine.Stats()
			if st.Requests != 0 || st.Usage.Used != 0 || m.Leases != 0 {
				left = append(left, fmt.Sprintf("%s: %d requests, %d slots in use, %d leases", m.Name, st.Requests, st.Usage.Used, m.Leases))
			}
		}
		if len(left) == 0 {
			return
		}
		if time.Now().After(end) {
			buf := make([]byte, 1<<20)
			t.Fatalf("not idle: %s\n%s", strings.Join(left, "; "), buf[:runtime.Stack(buf, true)])
		}
	}
}

// TestSoak mixes all that clients do and must not: two seconds of it by
// default, as long as RIDGE_SOAK says. RIDGE_SOAK_CPU bounds the load, in cores.
func TestSoak(t *testing.T) {
	length, share := 2*time.Second, 0.0
	if testing.Short() {
		length = time.Second
	}
	if v := os.Getenv("RIDGE_SOAK"); v != "" {
		var err error
		if length, err = time.ParseDuration(v); err != nil {
			t.Fatal(err)
		}
	}
	if v := os.Getenv("RIDGE_SOAK_CPU"); v != "" {
		if _, err := fmt.Sscan(v, &share); err != nil {
			t.Fatal(err)
		}
	}
	http.DefaultClient.CloseIdleConnections()
	before := measure()
	k, end := startSoak(t, t.TempDir())
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if share > 0 {
		go k.pace(ctx, share)
	}
	parts := max(2, min(60, int(length/time.Minute)))
	var samples []footprint
	for part := range parts {
		k.round(t, uint64(part), length/time.Duration(parts))
		samples = append(samples, measure())
		t.Logf("part %d of %d: %v, pause %v", part+1, parts, samples[part], time.Duration(k.think.Load()).Round(time.Millisecond))
	}
	cancel()
	end()
	k.report(t)
	k.flat(t, before, samples)
}

// round lets clients loose for a while.
func (k *soak) round(t *testing.T, seed uint64, length time.Duration) {
	k.stop.Store(false)
	var wg sync.WaitGroup
	for i := range uint64(10) {
		c := &soakClient{soak: k, r: rand.New(rand.NewPCG(seed, i))}
		wg.Go(func() {
			for !k.stop.Load() {
				c.act()
				for until := time.Now().Add(time.Duration(c.r.Float64() * 2 * float64(k.think.Load()))); time.Now().Before(until) && !k.stop.Load(); {
					time.Sleep(min(time.Until(until), 50*time.Millisecond))
				}
			}
		})
	}
	time.Sleep(length)
	k.stop.Store(true)
	wg.Wait()
	k.rest(t)
}

// report prints what was seen.
func (k *soak) report(t *testing.T) {
	var kinds []string
	total := 0
	for kind, n := range k.seen {
		kinds = append(kinds, fmt.Sprintf("%s %d", kind, n))
		total += n
	}
	slices.Sort(kinds)
	t.Logf("%d requests: %s", total, strings.Join(kinds, ", "))
	for _, e := range k.errs {
		t.Error(e)
	}
}

// flat compares what the process had after a fifth of the time, when caches
// are full, with what it had later, and what is left in the end with what was
// there before.
func (k *soak) flat(t *testing.T, before footprint, samples []footprint) {
	var after footprint
	until(t, fmt.Sprintf("no more goroutines are left than %d", before.goroutines), func() bool {
		k.http.CloseIdleConnections()
		after = measure()
		return after.goroutines <= before.goroutines
	})
	t.Logf("before: %v; after: %v", before, after)
	if after.fds > before.fds+2 { // the poller's
		t.Errorf("%d descriptors, %d before", after.fds, before.fds)
	}
	if len(samples) < 10 {
		return
	}
	mean := func(of []footprint) (heap, rss float64) {
		for _, u := range of {
			heap += float64(u.heap) / float64(len(of))
			rss += float64(u.rss) / float64(len(of))
		}
		return heap, rss
	}
	n := len(samples) / 5
	heap0, rss0 := mean(samples[n : 2*n])
	heap1, rss1 := mean(samples[len(samples)-n:])
	t.Logf("second fifth: heap %.2f MB, resident %.1f MB; last fifth: heap %.2f MB, resident %.1f MB", heap0/1e6, rss0/1e6, heap1/1e6, rss1/1e6)
	if heap1 > heap0*1.1+2e6 {
		t.Errorf("the heap grew from %.2f to %.2f MB", heap0/1e6, heap1/1e6)
	}
	if rss1 > rss0*1.15+8e6 && !raceDetector {
		t.Errorf("the resident memory grew from %.1f to %.1f MB", rss0/1e6, rss1/1e6)
	}
}
