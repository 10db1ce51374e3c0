package model

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ridge/internal/packfile"
	"ridge/weights/tensor"
)

// A model that does not fit into memory is refused with the numbers, or computes
// the same from a file of packed weights, of which some are in memory.
func TestBeyondMemory(t *testing.T) {
	defer func(n int64) { reserved = n }(reserved)
	reserved = 0
	for _, path := range []string{"llama/llama.gguf", "llama", "qwen3moe/qwen3moe.gguf", "lfm2/lfm2.gguf"} {
		t.Run(path, func(t *testing.T) {
			path = filepath.Join("../internal/tinymodel/testdata", path)
			o := Options{KV: tensor.F16, Workers: 2, Context: 64, KVBytes: 1 << 20}
			m, want := logitsOf(t, path, o)
			size := m.net.packedBytes()
			m.Close()
			o.Memory = o.KVBytes + size/2
			var e *MemoryError
			if _, err := Open(path, o); !errors.As(err, &e) || e.KV != o.KVBytes || e.Left != o.Memory || e.Weights < size || e.Context != 0 {
				t.Fatalf("got %v, want an error with %d bytes of weights", err, size)
			}
			o.PackCache = PackCache{Dir: t.TempDir(), Warn: func(s string) { t.Error(s) }}
			var written os.FileInfo
			for i := range 2 {
				m, got := logitsOf(t, path, o)
				if !slices.Equal(got, want) {
					t.Errorf("opened %d times: other logits", i+1)
				}
				b := m.Beyond()
				if b == nil || m.PackedFrom() != "read again" {
					t.Fatalf("%v, packed from %q", b, m.PackedFrom())
				}
				found, read, bytes := b.Experts()
				if moe := strings.HasPrefix(path, "../internal/tinymodel/testdata/qwen3moe"); moe != (b.Kept > 0) || moe != (found+read > 0) || (read > 0) != (bytes > 0) {
					t.Errorf("%d bytes for experts; %d were there, %d read with %d bytes", b.Kept, found, read, bytes)
				} else if moe {
					chosen, fetched := int64(0), int64(0)
					for _, l := range m.ExpertLoads() {
						chosen, fetched = chosen+l.Read, fetched+l.Fetched
					}
					if found+read != chosen || fetched != read {
						t.Errorf("%d experts there and %d read of %d chosen, %d fetched", found, read, chosen, fetched)
					}
				}
				if b.Pinned <= 0 || b.Pinned > size/2 || b.Read <= 0 || b.Read > size-b.Pinned || !(b.TokensPerSecond() > 0) {
					t.Errorf("%+v of %d bytes", b, size)
				}
				st, err := os.Stat(packfile.List(o.PackCache.Dir)[0].Path)
				if err != nil {
					t.Fatal(err)
				}
				if i > 0 && !os.SameFile(st, written) {
					t.Error("the file was written again")
				}
				written = st
				m.Close()
			}
			o.Memory = 0
			if m, got := logitsOf(t, path, o); m.Beyond() != nil || !slices.Equal(got, want) {
				t.Error("with room it runs otherwise than before")
			} else {
				m.Close()
			}
		})
	}
}

// The error says how long a context would fit.
func TestContextBeyondMemory(t *testing.T) {
	const path = "../internal/tinymodel/testdata/llama/llama.gguf"
	o := Options{KV: tensor.F16, Workers: 1, Context: 200}
	m, _ := logitsOf(t, path, o)
	weights := m.net.packedBytes()
	m.Close()
	o.Memory = weights + 40<<10
	var e *MemoryError
	if _, err := Open(path, o); !errors.As(err, &e) || e.Context < 1 || e.Context >= 200 || !strings.Contains(err.Error(), "tokens would fit") {
		t.Fatalf("got %v", err)
	}
	o.Context = e.Context
	m, _ = logitsOf(t, path, o)
	m.Close()
	o.Context = e.Context + 1
	if _, err := Open(path, o); !errors.As(err, &e) {
		t.Errorf("%d tokens fit too: %v", o.Context, err)
	}
}

// logitsOf opens a model and computes three tokens.
func logitsOf(t *testing.T, path string, o Options) (*Model, []float32) {
	t.Helper()
	m, err := Open(path, o)
	if err != nil {
		t.Fatal(err)
	}
	seq := m.Pool().NewSeq()
	defer m.Pool().Free(seq)
	var all []float32
	for _, tokens := range [][]int32{{1, 20, 97}, {5}} {
		if err := m.Forward(&Step{Runs: []Run{{Seq: seq, Tokens: tokens, Outputs: 1}}}); err != nil {
			t.Fatal(err)
		}
		all = append(all, m.Logits(0)...)
	}
	return m, all
}
