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
	return m, logitsOfOpen(t, m)
}

// logitsOfOpen computes three tokens.
func logitsOfOpen(t *testing.T, m *Model) (all []float32) {
	t.Helper()
	seq := m.Pool().NewSeq()
	defer m.Pool().Free(seq)
	for _, tokens := range [][]int32{{1, 20, 97}, {5}} {
		if err := m.Forward(&Step{Runs: []Run{{Seq: seq, Tokens: tokens, Outputs: 1}}}); err != nil {
			t.Fatal(err)
		}
		all = append(all, m.Logits(0)...)
	}
	return all
}

// Parts of layers that are read into two places give the same bits as those that are
// mapped, also where layers are asked for in another order, and where a layer has none.
func TestLayerStream(t *testing.T) {
	path := "../internal/tinymodel/testdata/gemma3-layers"
	o := Options{KV: tensor.F16, Workers: 2, Context: 64, KVBytes: 1 << 20}
	m, want := logitsOf(t, path, o)
	size := m.net.packedBytes()
	m.Close()
	defer func(n int64) { reserved = n }(reserved)
	reserved = 0
	o.Memory, o.PackCache = o.KVBytes+size/2, PackCache{Dir: t.TempDir(), Warn: func(s string) { t.Error(s) }}
	for _, c := range []string{"all", "one", "odd"} {
		m, err := Open(path, o)
		if err != nil {
			t.Fatal(err)
		}
		file := m.w.file
		units := make([][]streamed, len(m.net.Layers)+1)
		for l := range m.net.Layers {
			if c == "one" && l != 1 || c == "odd" && l%2 == 0 {
				continue
			}
			for r := range m.net.Layers[l].Regions() {
				for _, x := range r.Mats {
					for i, p := range m.w.packed {
						if p.Packed == x.W {
							units[l] = append(units[l], streamed{x.W, i})
						}
					}
				}
			}
		}
		if s, err := newLayerStream(file, units, 64); s != nil || err != nil {
			t.Errorf("%s: no room: expected no stream, found %v, %v", c, s, err)
		}
		if err := m.stream(file, units, 1<<30); err != nil || m.beyond.layers == nil {
			t.Fatal(err)
		}
		s := m.beyond.layers
		for range 2 {
			if got := logitsOfOpen(t, m); !slices.Equal(got, want) {
				t.Errorf("%s: other logits", c)
			}
			for _, l := range []int{2, 2, 0, 1, len(units) - 1, 1, 0} {
				s.fetch(l)
				s.r.wait.Wait()
				for _, x := range units[l] {
					if !slices.Equal(x.w.Data, file.Bytes(x.index)) {
						t.Fatalf("%s: layer %d: other bytes than the file has", c, l)
					}
				}
			}
		}
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	}
}
