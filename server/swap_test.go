package server

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"ridge/engine"
	"ridge/internal/testdata"
	"ridge/model"
	"ridge/sched"
	"ridge/server/run"
	"ridge/weights/tensor"
)

// Requests that do not all fit into memory have their answers byte for byte,
// whether what preempted sequences had computed is kept in memory or on disk, and
// also where there is no room for it, or the disk fails.
func TestSwap(t *testing.T) {
	const n = 8
	body := func(i int) string {
		return fmt.Sprintf(`{"prompt":"once upon a time %s","seed":%d,"temperature":%g,"max_tokens":80,"ignore_eos":true,"return_token_ids":true}`, strings.Repeat("and ", i), i, float64(i%3)/2)
	}
	page := int64(0) // bytes
	open := func(memory int64, eo engine.Options) (*Server, string) {
		mm, err := model.Open(testdata.Tiny, model.Options{KV: tensor.F16, MaxContext: 256, KVBytes: memory, PageTokens: 16})
		if err != nil {
			t.Fatal(err)
		}
		page = mm.Pool().Stats().PageBytes
		s, srv := serveAs(t, mm, run.ModelConfig{Path: testdata.Tiny}, eo)
		return s, srv.URL
	}
	ids := func(t *testing.T, url string, i int) string {
		return fmt.Sprint(post(t, url+"/v1/completions", body(i), 200).at("choices", 0, "token_ids"))
	}
	want := make([]string, n)
	_, url := open(32<<20, engine.Options{})
	for i := range want {
		want[i] = ids(t, url, i)
	}
	file := filepath.Join(t.TempDir(), "a file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		ram, disk int64
		dir       string
		back      bool // sequences come back from there
		fails     bool
		vanish    bool // somebody removes the files
	}{
		"RAM":            {ram: 1 << 30, back: true},
		"disk":           {disk: 1 << 30, dir: t.TempDir(), back: true},
		"RAM, then disk": {ram: 4 * page, disk: 1 << 30, dir: t.TempDir(), back: true},
		"full":           {ram: 1, disk: 1, dir: t.TempDir(), fails: true},
		"files vanish":   {disk: 1 << 30, dir: t.TempDir(), fails: true, vanish: true},
		"broken disk":    {disk: 1 << 30, dir: file, fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			space := engine.NewSwapSpace(c.ram, c.disk, c.dir)
			cfg := sched.Config{Split: true, MaxTokens: 32, MaxSeqs: n, Recovery: sched.Swap}
			s, url := open(13*page, engine.Options{Sched: &cfg, Swap: space.Store(), NoPrefixCache: true})
			stop := make(chan struct{})
			var remover sync.WaitGroup
			if c.vanish {
				remover.Go(func() {
					for {
						select {
						case <-stop:
							return
						case <-time.After(50 * time.Microsecond):
							files, _ := filepath.Glob(filepath.Join(c.dir, "*", "*"))
							for _, f := range files {
								_ = os.Remove(f) // it may be gone already
							}
						}
					}
				})
			}
			for round := range 2 {
				var wg sync.WaitGroup
				for i := range want {
					wg.Go(func() {
						if got := ids(t, url, i); got != want[i] {
							t.Errorf("round %d, request %d: got %s, want %s", round, i, got, want[i])
						}
					})
				}
				wg.Wait()
			}
			close(stop)
			remover.Wait()
			st := s.o.Models[0].Stats()
			t.Logf("%d written out, %d back, %d computed again, %d failures", st.Sched.SwapOuts, st.Sched.SwapIns, st.Sched.Recomputes, st.Swap.Failures)
			if (st.Swap.Failures > 0) != c.fails || !c.vanish && ((st.Sched.SwapIns > 0) != c.back || (st.Sched.Recomputes > 0) != c.fails) {
				t.Errorf("%+v, %+v", st.Sched, st.Swap)
			}
			if st.Swap.RAMBytes != 0 || st.Swap.DiskBytes != 0 {
				t.Errorf("left: %+v", st.Swap)
			}
			if left, _ := filepath.Glob(filepath.Join(c.dir, "*", "*")); c.dir != "" && len(left) != 0 {
				t.Errorf("left on disk: %v", left)
			}
			_, _, m := send(t, http.MethodGet, url+"/metrics", "")
			for _, line := range []string{`ridge_swapped_out_total{model="tiny"} %d`, `ridge_swapped_in_total{model="tiny"} %[2]d`, `ridge_swap_failures_total{model="tiny"} %[3]d`, `ridge_swap_disk_bytes{model="tiny"} 0`} {
				if line = strings.Split(fmt.Sprintf(line, st.Sched.SwapOuts, st.Sched.SwapIns, st.Swap.Failures), "%!")[0]; !strings.Contains(string(m), line+"\n") {
					t.Errorf("the metrics lack %s", line)
				}
			}
			if got := get(t, url+"/ridge/status", 200).at("models", 0, "swap", "in"); got != float64(st.Sched.SwapIns) {
				t.Errorf("status: %v came back, want %d", got, st.Sched.SwapIns)
			}
		})
	}
}
