//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/creack/pty"

	"ridge/server"
)

// watched is a server with a model at work: a second and 100 tokens pass from
// look to look.
func watched(t *testing.T) (*httptest.Server, *atomic.Int64) {
	t.Helper()
	var looks atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/ridge/status" {
			http.NotFound(w, r)
			return
		}
		if r.Header.Get("Authorization") != "Bearer sesame" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		_ = json.NewEncoder(w).Encode(sampleStatus(looks.Add(1)))
	}))
	t.Cleanup(s.Close)
	return s, &looks
}

func TestSwapLines(t *testing.T) {
	m := server.ModelStatus{Shed: 3, Swap: server.SwapStatus{Now: 2, RAMBytes: 1 << 20, DiskBytes: 2 << 20, Out: 5, In: 3, Failures: 1}}
	got := strings.Join(modelLines(&m, nil, time.Time{}, 0, 0), "\n")
	for _, want := range []string{"swap: 2 sequences, 1.0 MB in memory, 2.1 MB on disk; 5 out, 3 back, 1 failed", "3 dropped"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in %s", want, got)
		}
	}
	m.Prefixes = server.PrefixStatus{Pinned: 9, Files: 2, Bytes: 3 << 20, Hits: 4, Tokens: 500, Refused: 1}
	if got := strings.Join(modelLines(&m, nil, time.Time{}, 0, 0), "\n"); !strings.Contains(got, "prefixes: 9 pages pinned, 2 on disk, 3.1 MB; 4 read, 500 tokens; 1 refused") {
		t.Errorf("prefixes are not in %s", got)
	}
	if got := strings.Join(modelLines(&server.ModelStatus{}, nil, time.Time{}, 0, 0), "\n"); strings.Contains(got, "swap") || strings.Contains(got, "dropped") {
		t.Errorf("without either: %s", got)
	}
}

func sampleStatus(n int64) *server.Status {
	at := time.Date(2026, 11, 28, 12, 0, int(n%60), 0, time.UTC)
	expires := at.Add(90 * time.Second)
	m := server.ModelStatus{
		Name: "smol", Arch: "llama", Quant: "Q8_0", Params: 135e6, Threads: 2, Context: 8192, Expires: &expires, Running: 2, Waiting: 40, Submitted: 50,
		PromptTokens: 1000 * n, GeneratedTokens: 100 * n, CachedTokens: 30, LookedUp: 60, Preemptions: 3, Steps: 10 * n, Busy: float64(n), Kernels: .9 * float64(n), StepError: .081,
		Memory: server.MemoryStatus{PageTokens: 32, Pages: 100, PageBytes: 1 << 20, Slots: 3200, Used: 792, Waste: 8, Cached: 800, Free: 1600, HeldBytes: 64 << 20, BudgetBytes: 128 << 20, BudgetUsed: 80 << 20, Taken: 7, Given: 3},
	}
	for i := range 2 {
		m.Sequences = append(m.Sequences, server.SequenceStatus{ID: fmt.Sprintf("req-%d\x1b[2J", i), Choice: i, State: "running", Position: -1, Prompt: 128, Computed: 140, Tokens: 12 + int(n)*25, Max: 100, Pages: 5, Age: 3})
	}
	for i := range 40 {
		m.Sequences = append(m.Sequences, server.SequenceStatus{ID: fmt.Sprint("wait-", i), State: "waiting", Position: i, Prompt: 50, Tenant: "bob"})
	}
	return &server.Status{Version: "v1", Now: at, Uptime: 4000, Models: []server.ModelStatus{m}}
}

// All lines fit on the screen, whatever its size, and say the speeds since the
// last look. What clients chose cannot control the terminal.
func TestStatusLines(t *testing.T) {
	before, st := sampleStatus(1), sampleStatus(2)
	for _, size := range [][2]int{{80, 23}, {40, 10}, {200, 60}, {12, 3}, {1, 1}, {0, 0}} {
		lines := statusLines(st, before, "http://x", size[0], size[1])
		if size[1] > 0 && len(lines) > size[1] {
			t.Errorf("%v: %d lines", size, len(lines))
		}
		for _, l := range lines {
			if size[0] > 0 && utf8.RuneCountInString(l) > size[0] || strings.ContainsRune(l, '\x1b') {
				t.Errorf("%v: line %q", size, l)
			}
		}
	}
	text := strings.Join(statusLines(st, before, "http://x", 80, 23), "\n")
	for _, want := range []string{
		"ridge v1 at http://x   up 1h06m", "smol: llama Q8_0, 135M parameters, 2 threads, context 8192, unloads in 1m30s", "prefill 1000 tok/s, decode 100 tok/s",
		"2 running, 40 waiting", "used 25.0%, waste 1.0% of that, cached 25.0%", "100 pages of 32 tokens", "all models 83.9 MB of 134.2 MB; 7 pieces taken, 3 given back", "prefix cache found 50.0%; 3 preempted",
		"step 100.0 ms, 90.0% of it in the model, predicted with 8.1% error", "   25.0 ", "wait 1", "bob", "… and ",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if n := strings.Count(text, "\n") + 1; n != 23 {
		t.Errorf("%d lines of 23", n)
	}
	one := strings.Join(statusLines(st, nil, "u", 0, 0), "\n")
	if !strings.Contains(one, "2000 tokens read, 200 generated") || strings.Count(one, "wait-") != 40 {
		t.Errorf("a single look:\n%s", one)
	}
	if got := strings.Join(statusLines(&server.Status{Version: "v1", Draining: true}, nil, "u", 80, 24), "\n"); !strings.Contains(got, "no model is loaded") || !strings.Contains(got, "takes no new requests") {
		t.Errorf("an empty server:\n%s", got)
	}
}

func TestPs(t *testing.T) {
	s, _ := watched(t)
	t.Setenv("RIDGE_API_KEY", "sesame")
	out, err := runCobra(t, psCommand(), "--url", s.URL+"/v1/")
	if err != nil || !strings.Contains(out, "decode 100 tok/s") {
		t.Errorf("%v: %s", err, out)
	}
	out, err = runCobra(t, psCommand(), "--url", s.URL, "--json")
	var st server.Status
	if err != nil || json.Unmarshal([]byte(out), &st) != nil || st.Models[0].Memory.Waste != 8 {
		t.Errorf("%v: %s", err, out)
	}
	out, err = runCobra(t, topCommand(), "--url", s.URL, "-i", "100ms", "-n", "3")
	if err != nil || strings.Count(out, "ridge v1 at") != 3 || strings.ContainsRune(out, '\x1b') {
		t.Errorf("%v: %s", err, out)
	}
	other := httptest.NewServer(http.NotFoundHandler())
	defer other.Close()
	for want, args := range map[string][]string{
		"wants an API key": {"--url", s.URL, "--api-key", "wrong"},
		"no server":        {"--url", "127.0.0.1:1"},
		"expected a ridge": {"--url", other.URL},
	} {
		if _, err := runCobra(t, psCommand(), args...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: got %v, want %q", args, err, want)
		}
	}
	if _, err := runCobra(t, topCommand(), "-i", "1ms"); err == nil || !strings.Contains(err.Error(), "--interval") {
		t.Errorf("got %v", err)
	}
}

// On a terminal top draws over what was there, follows the terminal's size,
// and leaves it as it was.
func TestTopOnTerminal(t *testing.T) {
	s, _ := watched(t)
	for name, end := range map[string]string{"q": "q", "ctrl-c": "\x03"} {
		t.Run(name, func(t *testing.T) {
			p := startScreen(t, 80, 24, t.TempDir(), nil, "top", "--url", s.URL, "--api-key", "sesame", "-i", "150ms")
			p.expect("\x1b[?1049h") // the other screen
			p.sees("decode 100 tok/s")
			p.mu.Lock()
			p.vt.Resize(30, 6)
			p.mu.Unlock()
			if err := pty.Setsize(p.f, &pty.Winsize{Rows: 6, Cols: 30}); err != nil {
				t.Fatal(err)
			}
			p.see("six lines of 30 columns", func(text string) bool {
				lines := strings.Split(text, "\n")
				return len(lines) <= 6 && strings.HasPrefix(text, "ridge v1 at http://127.0.0.1:"[:20]) && strings.HasSuffix(lines[0], "…") && strings.Contains(text, "smol: llama")
			})
			p.send(end)
			p.expect("\x1b[?1049l")
			if err := p.cmd.Wait(); err != nil {
				t.Errorf("it ended with %v", err)
			}
		})
	}
}
