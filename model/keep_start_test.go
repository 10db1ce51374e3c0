package model

import (
	"bytes"
	"fmt"
	"hash/fnv"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"ridge/internal/packfile"
	"ridge/internal/testdata"
	"ridge/weights/tensor"
)

// childStart tells a test process what to start, in which folder.
const childStart = "RIDGE_TEST_KEPT"

// Processes that start the same model at the same time.
func TestKeptWeightsProcesses(t *testing.T) {
	if dir, path, ok := strings.Cut(os.Getenv(childStart), "\n"); ok {
		s := &shelf{dir: dir}
		m, err := Open(path, s.options())
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		fmt.Println("child:", m.PackedFrom(), hashOf(someLogits(t, m)))
		return
	}
	path, s := tinyCopy(t, "llama/llama.gguf"), &shelf{dir: t.TempDir()}
	time.Sleep(60 * time.Millisecond) // else each of them does
	run := func(n int) (out []string) {
		all := make([]bytes.Buffer, n)
		var wg sync.WaitGroup
		for i := range all {
			wg.Go(func() {
				c := exec.Command(os.Args[0], "-test.run=^TestKeptWeightsProcesses$")
				c.Env = append(os.Environ(), childStart+"="+s.dir+"\n"+path)
				c.Stdout, c.Stderr = &all[i], &all[i]
				if err := c.Run(); err != nil {
					t.Errorf("%v\n%s", err, all[i].Bytes())
				}
			})
		}
		wg.Wait()
		for i := range all {
			for line := range strings.Lines(all[i].String()) {
				if text, ok := strings.CutPrefix(line, "child: "); ok {
					out = append(out, strings.TrimSpace(text))
				}
			}
		}
		return out
	}
	first := run(4)
	later := run(2)
	plain, err := Open(path, Options{KV: tensor.F32, Workers: 2, Context: 16})
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	want := hashOf(someLogits(t, plain))
	for _, got := range slices.Concat(first, later) {
		if !strings.HasSuffix(got, want) {
			t.Errorf("logits %q, want %q", got, want)
		}
	}
	if packed := func(s string) bool { return s == want }; len(first) != 4 || len(later) != 2 || slices.ContainsFunc(later, packed) {
		t.Errorf("first starts: %q, later ones: %q", first, later)
	}
}

func hashOf(x []float32) string {
	h := fnv.New64a()
	fmt.Fprint(h, x)
	return fmt.Sprintf("%016x", h.Sum64())
}

// BenchmarkStart is the time from opening SmolLM2's file to the logits of the
// first token: packing, packing while the packed weights are written, and with
// weights that were kept.
func BenchmarkStart(b *testing.B) {
	path := testdata.Model(b, "smollm2")
	dir := b.TempDir()
	start := func(b *testing.B, cache PackCache, from string) {
		for b.Loop() {
			m, err := Open(path, Options{KV: tensor.F16, Context: 512, PackCache: cache})
			if err != nil {
				b.Fatal(err)
			}
			if err := m.Forward(&Step{Runs: []Run{{Seq: m.Pool().NewSeq(), Tokens: []int32{1}, Outputs: 1}}}); err != nil {
				b.Fatal(err)
			}
			b.StopTimer()
			if m.PackedFrom() != from {
				b.Fatalf("packed from %q, want %q", m.PackedFrom(), from)
			}
			if m.Close(); from == "" {
				os.RemoveAll(dir)
			}
			b.StartTimer()
		}
	}
	cache := PackCache{Dir: dir, Warn: func(s string) { b.Error(s) }}
	b.Run("packing", func(b *testing.B) { start(b, PackCache{}, "") })
	b.Run("writing", func(b *testing.B) { start(b, cache, "") })
	for _, way := range []string{"mapped", "copied"} {
		b.Run(way, func(b *testing.B) {
			defer func(was func(*Model, *packfile.File) bool) { inPlace = was }(inPlace)
			inPlace = func(*Model, *packfile.File) bool { return way == "mapped" }
			m, err := Open(path, Options{PackCache: cache})
			if err != nil {
				b.Fatal(err)
			}
			m.Close() // the file is there now
			start(b, cache, way)
		})
	}
}
