package suite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ridge/internal/cpu"
	"ridge/internal/golden"
	"ridge/measure/bench"
)

// lab measures with made-up numbers and notes what it was asked.
type lab struct {
	t        *testing.T
	asked    []string
	fails    map[string]error // by the names of rows
	here     map[string]bool  // models that are on this machine
	cannot   map[string]error // models that cannot be had
	progress []string
	after    func() // called after each measurement
}

func (l *lab) options(s *Suite, peers ...Peer) Options {
	return Options{
		Suite: s, Peers: peers, Build: "v1 abc", CPU: "Sample CPU", Processors: 2, Day: "2026-11-28",
		Source: func(name string) string {
			if l.here[name] {
				return name + ".gguf"
			}
			return ""
		},
		File: func(_ context.Context, name string) (string, error) {
			if err := l.cannot[name]; err != nil {
				return "", err
			}
			if l.here == nil {
				l.here = map[string]bool{}
			}
			l.here[name] = true
			return "/models/" + name + ".gguf", nil
		},
		Measure: l.measure,
		Progress: func(r Row) {
			state := "begins"
			switch {
			case r.Measured != nil:
				state = "is measured"
			case r.LeftOut != "":
				state = "is left out"
			case r.Err != nil:
				state = "fails"
			}
			l.progress = append(l.progress, fmt.Sprintf("%d/%d %s", r.N, r.Of, state))
		},
	}
}

func (l *lab) measure(ctx context.Context, c *Case, path string, repeat int, peers []string) (*bench.Result, error) {
	l.asked = append(l.asked, fmt.Sprintf("%s; %s; %d; %s", c.Name(), path, repeat, strings.Join(peers, " + ")))
	if err := l.fails[c.Name()]; err != nil {
		return nil, err
	}
	n := float64(len(l.asked))
	r := &bench.Result{
		Build: "v1", CPU: "Sample CPU", Tier: "avx512", File: path, Model: "llama", Threads: 2, KV: c.KV, Work: c.Work,
		Time: time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC), Seconds: []float64{1, 1.25, 0.5, 1, 1},
		ReadRate: 40e9, Bound: 0.875, Limit: "read", Share: 0.99, Speed: bench.Spread{Median: 12.345 * n * n, StdDev: 1.5 * n},
	}
	if c.Tier != "" {
		r.Tier = c.Tier
	}
	for _, p := range peers {
		name, _, _ := strings.Cut(p, "=")
		pr := &bench.PeerResult{Name: name, Speed: bench.Spread{Median: 10, StdDev: 0.25}, Ratio: n / 2, RatioMin: n / 3, RatioMax: n}
		if name != "ik" {
			pr.Version = "0c1e570 (1)"
		}
		r.Peers = append(r.Peers, pr)
	}
	if l.after != nil {
		l.after()
	}
	return r, ctx.Err()
}

var allPeers = []Peer{{"llama.cpp", "llama-bench -fa on"}, {"ik", "/opt/ik/llama-bench -rtr 1"}, {"batched", "llama-batched-bench"}}

// portable is the sample without a tier that not every machine has.
func portable() string { return strings.Replace(sample, `"tier": "AVX2"`, `"tier": "generic"`, 1) }

func TestRun(t *testing.T) {
	s := mustParse(t, portable())
	l := &lab{t: t}
	rep, err := Run(context.Background(), l.options(s, allPeers...))
	if err != nil || rep.Open() != 0 || rep.Failed() != nil {
		t.Fatalf("%v: %+v", err, rep)
	}
	want := []string{
		"SmolLM2-135M Q8_0: pp512; /models/smol.gguf; 5; llama.cpp=llama-bench -fa on + ik=/opt/ik/llama-bench -rtr 1 -w 0",
		"SmolLM2-135M Q8_0: tg32 @ d4096; /models/smol.gguf; 5; llama.cpp=llama-bench -fa on + ik=/opt/ik/llama-bench -rtr 1 -w 0",
		"SmolLM2-135M Q8_0: tg32 @ d4096, KV Q8_0, 1 thread; /models/smol.gguf; 5; ",
		"1.1B Q4_0: pp512; /models/big.gguf; 7; llama.cpp=llama-bench -fa on + ik=/opt/ik/llama-bench -rtr 1",
		"SmolLM2-135M Q8_0, GENERIC: tg48 @ d128 x8; /models/smol.gguf; 5; batched=llama-batched-bench",
	}
	if !cmp.Equal(l.asked, want) {
		t.Error(cmp.Diff(want, l.asked))
	}
	if len(l.progress) != 10 || l.progress[0] != "1/5 begins" || l.progress[9] != "5/5 is measured" {
		t.Errorf("progress %q", l.progress)
	}
	golden.Text(t, "all.md", rep.Markdown("ridge bench suite speed.json"))

	l = &lab{t: t}
	o := l.options(s)
	o.Repeat = 9
	if rep, err = Run(context.Background(), o); err != nil || len(l.asked) != 5 || !strings.HasSuffix(l.asked[0], "; 9; ") {
		t.Errorf("%v: %q", err, l.asked)
	}
	for _, r := range rep.Rows {
		if !cmp.Equal(r.NoPeers, r.Peers) && len(r.Peers) > 0 {
			t.Errorf("%s: without %q, want %q", r.Name(), r.NoPeers, r.Peers)
		}
	}
}

// What is missing, fails, or waits is named and does not stop the rest.
func TestRunGaps(t *testing.T) {
	text := strings.Replace(portable(), `"tests": ["tg48 @ d128 x8"]`, `"tests": ["tg48 @ d128 x8", "tg1"]`, 1)
	s := mustParse(t, text)
	l := &lab{t: t, cannot: map[string]error{"big": errors.New("no such model\n<b> `x`")}, fails: map[string]error{
		"SmolLM2-135M Q8_0: tg32 @ d4096": errors.New("exit status 1: peer: no memory"),
	}}
	o := l.options(s, allPeers[:1]...)
	o.Only = func(c *Case) bool { return c.Work.String() != "tg1" }
	rep, err := Run(context.Background(), o)
	if err != nil || rep.Open() != 1 || len(rep.Failed()) != 1 || !strings.Contains(rep.Failed()[0].Error(), "bench suite: SmolLM2-135M Q8_0: tg32 @ d4096: exit status 1: peer") {
		t.Errorf("%v: %d open, %v failed", err, rep.Open(), rep.Failed())
	}
	if want := []string{"1/6 begins", "1/6 is measured", "2/6 begins", "2/6 fails", "3/6 begins", "3/6 is measured", "4/6 begins", "4/6 is left out", "5/6 begins", "5/6 is measured"}; !cmp.Equal(l.progress, want) {
		t.Error(cmp.Diff(want, l.progress))
	}
	golden.Text(t, "gaps.md", rep.Markdown("ridge bench suite speed.json"))

	// Nothing at all was measured.
	o.Only = func(*Case) bool { return false }
	rep, err = Run(context.Background(), o)
	if text := rep.Markdown("x"); err != nil || rep.Open() != 6 || !strings.HasPrefix(text, "\nNot measured yet: ") {
		t.Errorf("%v: %d open: %q", err, rep.Open(), text)
	}
	// A processor without the kernels.
	if !cpu.NEON.Runs() {
		s = mustParse(t, strings.Replace(sample, `"tier": "AVX2"`, `"tier": "neon"`, 1))
		rep, err = Run(context.Background(), (&lab{t: t}).options(s))
		if last := rep.Rows[4]; err != nil || rep.Open() != 0 || !strings.Contains(last.LeftOut, "this processor runs") || !strings.HasSuffix(last.LeftOut, "not neon") {
			t.Errorf("%v: %+v", err, last)
		}
	}
	// A result of another test is a mistake of who measured it.
	l = &lab{t: t}
	o = l.options(s)
	o.Measure = func(context.Context, *Case, string, int, []string) (*bench.Result, error) {
		return &bench.Result{}, nil
	}
	if rep, err = Run(context.Background(), o); err != nil || len(rep.Failed()) == 0 || !strings.Contains(rep.Failed()[0].Error(), "expected a result of pp512") {
		t.Errorf("%v: %v", err, rep.Failed())
	}
}

// Runs that are cut off, each after another number of rows, end with the same
// tables as one that is not, and measure nothing twice.
func TestResume(t *testing.T) {
	s := mustParse(t, portable())
	for _, sitting := range []int{1, 2, 3} {
		kept := filepath.Join(t.TempDir(), "kept.jsonl")
		l := &lab{t: t}
		var rep *Report
		for runs := 0; rep == nil || rep.Open() > 0; runs++ {
			if runs > 5 {
				t.Fatal("no end")
			}
			o := l.options(s, allPeers...)
			o.Kept = openKept(t, kept)
			begun := 0
			o.Until = func() bool { begun++; return begun <= sitting }
			var err error
			if rep, err = Run(context.Background(), o); err != nil {
				t.Fatal(err)
			}
		}
		if len(l.asked) != 5 {
			t.Errorf("sittings of %d: measured %d rows: %q", sitting, len(l.asked), l.asked)
		}
		fresh := 0
		for _, r := range rep.Rows {
			if r.Fresh {
				fresh++
			}
		}
		if fresh != 5-(4/sitting)*sitting {
			t.Errorf("sittings of %d: %d rows are from the last one", sitting, fresh)
		}
	}
}

// Ctrl-C keeps the rows that are done and ends with the context's error.
func TestRunCancelled(t *testing.T) {
	s := mustParse(t, portable())
	ctx, cancel := context.WithCancel(context.Background())
	l := &lab{t: t}
	l.after = func() {
		if len(l.asked) == 3 {
			cancel()
		}
	}
	path := filepath.Join(t.TempDir(), "kept.jsonl")
	o := l.options(s, allPeers...)
	o.Kept = openKept(t, path)
	rep, err := Run(ctx, o)
	if !errors.Is(err, context.Canceled) || rep.Rows[1].Measured == nil || rep.Open() != 3 || len(l.asked) != 3 {
		t.Errorf("%v: %+v", err, rep.Rows)
	}
	if k := openKept(t, path); len(k.rows) != 2 {
		t.Errorf("%d rows kept, want 2", len(k.rows))
	}
	o.File = func(ctx context.Context, _ string) (string, error) { return "", ctx.Err() }
	if _, err := Run(ctx, o); !errors.Is(err, context.Canceled) {
		t.Errorf("while fetching: %v", err)
	}
}

// What a measurement depends on is measured again when it changes.
func TestIdentity(t *testing.T) {
	s := mustParse(t, portable())
	path := filepath.Join(t.TempDir(), "kept.jsonl")
	count := func(change func(*Options)) int {
		l := &lab{t: t, here: map[string]bool{"smol": true, "big": true}}
		o := l.options(s, allPeers...)
		o.Kept = openKept(t, path)
		change(&o)
		if _, err := Run(context.Background(), o); err != nil {
			t.Fatal(err)
		}
		return len(l.asked)
	}
	if n := count(func(*Options) {}); n != 5 {
		t.Fatalf("measured %d rows", n)
	}
	for name, c := range map[string]struct {
		change func(*Options)
		want   int
	}{
		"nothing":       {func(*Options) {}, 0},
		"build":         {func(o *Options) { o.Build = "v2" }, 5},
		"day":           {func(o *Options) { o.Day = "2026-11-29" }, 5},
		"processor":     {func(o *Options) { o.CPU = "Other" }, 5},
		"repetitions":   {func(o *Options) { o.Repeat = 7 }, 4},
		"a peer less":   {func(o *Options) { o.Peers = o.Peers[1:] }, 3},
		"a peer's flag": {func(o *Options) { o.Peers = append([]Peer{{"llama.cpp", "llama-bench -fa off"}}, o.Peers[1:]...) }, 3},
		"a model": {func(o *Options) {
			o.Source = func(name string) string { return name + "2" }
		}, 5},
	} {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if n := count(c.change); n != c.want {
			t.Errorf("another %s: measured %d rows, want %d", name, n, c.want)
		}
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
