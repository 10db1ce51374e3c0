package roofline

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ridge/weights/tensor"
)

// hurry measures in some milliseconds.
var hurry = &effort{window: 100 * time.Microsecond, readWindow: 100 * time.Microsecond, kernel: 100 * time.Microsecond, windows: 3, sizes: []int64{64 << 10, 1 << 20}}

func TestMeasureAndKeep(t *testing.T) {
	ctx := context.Background()
	cache := filepath.Join(t.TempDir(), "new", "machine.json")
	o := MeasureOptions{Threads: []int{1, 2}, Types: []tensor.DType{tensor.Q8_0, tensor.F32, tensor.IQ2_XXS}, Build: "b", effort: hurry}
	var notes []string
	note := func(s string) { notes = append(notes, s) }
	m, err := Here(ctx, o, cache, false, note)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.validate(); err != nil {
		t.Error(err)
	}
	if m.Source != Measured || len(m.Threads) != 2 || m.MaxThreads() != 2 || len(m.Kernels) != 3*len(kernelRows) || len(m.Threads[0].Read) != 2 {
		t.Errorf("measured %+v", m)
	}
	again, err := Here(ctx, o, cache, false, note)
	if err != nil || !cmp.Equal(m, again) {
		t.Errorf("kept and read again, %v:\n%s", err, cmp.Diff(m, again))
	}
	o.Types = append(o.Types, tensor.Q4_0)
	if more, err := Here(ctx, o, cache, false, note); err != nil || len(more.Kernels) != 4*len(kernelRows) || !more.Taken.Equal(m.Taken) {
		t.Errorf("with one more type: %v, %+v", err, more)
	}
	want := []string{"measuring this machine", "measuring more kernels"}
	if !cmp.Equal(notes, want) {
		t.Errorf("notes %q, want %q", notes, want)
	}

	// What is old, or of other threads, is measured again.
	old := *m
	old.Taken = old.Taken.Add(-2 * MaxAge)
	for _, change := range []func(){
		func() { old.Save(cache) },
		func() { o.Threads = []int{1, 3} },
		func() { os.WriteFile(cache, []byte("{"), 0o644) },
	} {
		notes = nil
		change()
		if _, err := Here(ctx, o, cache, false, note); err != nil || len(notes) != 1 {
			t.Errorf("%v, notes %q", err, notes)
		}
	}
	notes = nil
	if _, err := Here(ctx, o, cache, true, note); err != nil || len(notes) != 1 {
		t.Errorf("asked to measure again: %v, notes %q", err, notes)
	}
	// A cache that cannot be written is no error.
	notes = nil
	if _, err := Here(ctx, o, filepath.Join(cache, "x", "y"), false, note); err != nil || len(notes) != 2 {
		t.Errorf("%v, notes %q", err, notes)
	}
	if CachePath() != "" && !strings.HasSuffix(CachePath(), ".json") {
		t.Errorf("cache at %q", CachePath())
	}
}

func TestMeasureStops(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Measure(ctx, MeasureOptions{Threads: []int{1}, effort: hurry}); err != context.Canceled {
		t.Errorf("error %v", err)
	}
}

// sample is a machine with round numbers.
func sample() *Machine {
	read := func(a, b, c float64) []ReadPoint {
		return []ReadPoint{{1 << 20, a * 1e9}, {1 << 26, b * 1e9}, {1 << 30, c * 1e9}}
	}
	return &Machine{
		Name: "Sample CPU", Source: Measured, Arch: "amd64", Tier: "avx512", Cores: 4, L2: 1 << 20, L3: 32 << 20, Memory: 16 << 30,
		Taken: time.Date(2026, 11, 27, 20, 30, 0, 0, time.UTC), Load: 0.1, Build: "test",
		Threads: []ThreadRates{
			{1, read(100, 40, 20), 400e9, 100e9, 0, 0},
			{4, read(400, 100, 40), 1600e9, 400e9, 1e-6, 0},
		},
		Kernels: []KernelRate{{"Q8_0", 1, 200e9}, {"Q8_0", 4, 300e9}, {"Q8_0", 512, 320e9}},
	}
}

func TestMachineFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "m.json")
	if err := sample().Save(path); err != nil {
		t.Fatal(err)
	}
	got, err := LoadMachine(path)
	if err != nil || !cmp.Equal(got, sample()) {
		t.Fatalf("%v\n%s", err, cmp.Diff(got, sample()))
	}
	for want, text := range map[string]string{
		"expected JSON":                                    `{`,
		"ridge_machine: expected 2, found 0":               `{}`,
		"ridge_machine: expected 2, found 1":               `{"ridge_machine": 1, "machine": {}}`,
		"threads: expected at least one entry":             `{"ridge_machine": 2, "machine": {}}`,
		"threads: expected rising counts, found 0 after 0": `{"ridge_machine": 2, "machine": {"threads": [{}]}}`,
		"threads: 1: expected rates of reads":              `{"ridge_machine": 2, "machine": {"threads": [{"threads": 1}]}}`,
		"read: expected rising sizes":                      `{"ridge_machine": 2, "machine": {"threads": [{"threads": 1, "int8_ops_per_s": 1, "f32_ops_per_s": 1, "read": [{"bytes": 1, "bytes_per_s": -1}]}]}}`,
		"kernel_rates: expected a type, rows and a rate":   `{"ridge_machine": 2, "machine": {"threads": [{"threads": 1, "int8_ops_per_s": 1, "f32_ops_per_s": 1, "read": [{"bytes": 1, "bytes_per_s": 1}]}], "kernel_rates": [{"type": "Q9", "rows": 1, "ops_per_s": 1}]}}`,
	} {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := LoadMachine(path); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: error %v, want %q", text, err, want)
		}
	}
	if _, err := LoadMachine(filepath.Join(dir, "none.json")); err == nil {
		t.Error("a missing file: no error")
	}
	if err := sample().Save(filepath.Join(dir, "no", "where.json")); err == nil {
		t.Error("a missing folder: no error")
	}
}

func FuzzMachineFile(f *testing.F) {
	path := filepath.Join(f.TempDir(), "m.json")
	if err := sample().Save(path); err != nil {
		f.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := parseMachine(b)
		if err != nil {
			return
		}
		// What was accepted can be computed with.
		for _, n := range []int{1, 2, 3, m.MaxThreads(), m.MaxThreads() + 1} {
			r := m.rates(n)
			if r.Threads != n || !(r.read(1) > 0) || !(r.read(1<<40) > 0) {
				t.Errorf("%d threads: %+v", n, r)
			}
		}
	})
}

func TestRates(t *testing.T) {
	m := sample()
	for _, c := range []struct {
		threads   int
		bytes     int64
		read, ops float64
	}{
		{1, 1, 100, 400}, {1, 1 << 20, 100, 400}, {1, 1 << 23, 70, 400}, {1, 1 << 40, 20, 400},
		{4, 1 << 26, 100, 1600}, {2, 1 << 26, 60, 800}, {3, 1 << 30, 20 + 40./3, 1200}, {8, 1 << 30, 40, 1600},
	} {
		r := m.rates(c.threads)
		if got := r.read(c.bytes) / 1e9; abs(got-c.read) > 1e-6 || abs(r.IntOps/1e9-c.ops) > 1e-6 || r.Threads != c.threads {
			t.Errorf("%d threads, %d bytes: %v GB/s and %v GOP/s, want %v and %v", c.threads, c.bytes, got, r.IntOps/1e9, c.read, c.ops)
		}
	}
	m.Threads = m.Threads[1:]
	if r := m.rates(1); r.IntOps != 400e9 || r.read(1<<30) != 10e9 {
		t.Errorf("a quarter of four threads: %+v", r)
	}
}

func abs(x float64) float64 { return max(x, -x) }

func TestPublished(t *testing.T) {
	names := PublishedNames()
	if len(names) < 5 {
		t.Fatalf("only %v", names)
	}
	for _, name := range names {
		m, err := PublishedMachine(strings.ToUpper(name))
		if err != nil {
			t.Fatal(err)
		}
		if err := m.validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if m.Source != Published || !strings.Contains(m.Note, "not measured") || m.MaxThreads() != m.Cores {
			t.Errorf("%s: %+v", name, m)
		}
		one, all := m.Threads[0].read(1<<30), m.Threads[1].read(1<<30)
		if one > all || all > 1e12 || all < 1e10 {
			t.Errorf("%s: one core reads %.0f, all %.0f", name, one, all)
		}
	}
	if _, err := PublishedMachine("abacus"); err == nil || !strings.Contains(err.Error(), "epyc-9654") {
		t.Errorf("an unknown machine: %v", err)
	}
}
