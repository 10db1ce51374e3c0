package gguf_test

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"ridge/internal/testdata"
	"ridge/weights/gguf"
)

func TestShards(t *testing.T) {
	path := "testdata/all_types.gguf"
	whole := open(t, path)
	for _, c := range []struct {
		maxBytes uint64
		parts    int
	}{{0, 5}, {100, 4}, {300, 3}, {1 << 40, 1}} {
		prefix := filepath.Join(t.TempDir(), "name-with-00001-of-00009")
		paths, err := whole.Builder().SaveShards(prefix, c.maxBytes)
		if err != nil {
			t.Fatal(err)
		}
		if len(paths) != c.parts {
			t.Errorf("%d bytes each: %d parts, want %d", c.maxBytes, len(paths), c.parts)
		}
		for i, p := range paths {
			f := open(t, p) // any part opens all
			checkSame(t, whole, f)
			if got := f.Shards(); !reflect.DeepEqual(got, paths) || f.Alignment() != 64 {
				t.Errorf("shards %q, alignment %d", got, f.Alignment())
			}
			if v, _ := f.Lookup("split.count"); v != uint16(len(paths)) {
				t.Errorf("part %d: split.count is %v", i, v)
			}
		}
		if len(paths) == 1 {
			continue
		}
		// Joined again, the model is the file it was split from.
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if got := encode(t, open(t, paths[0]).Builder()); !bytes.Equal(got, want) {
			t.Errorf("%d parts joined: %d bytes differ from %d", len(paths), len(got), len(want))
		}
	}
}

func TestShardsOfModel(t *testing.T) {
	path := testdata.Model(t, "smollm2")
	paths, err := open(t, path).Builder().SaveShards(filepath.Join(t.TempDir(), "smollm2"), 40<<20)
	if err != nil {
		t.Fatal(err)
	}
	if len(paths) < 3 {
		t.Errorf("%d parts", len(paths))
	}
	f := open(t, paths[1])
	c := &comparer{}
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	c.want = file
	if _, err := f.Builder().WriteTo(c); err != nil {
		t.Error(err)
	}
}

// checkSame wants the metadata and tensors of want in got, save for split keys
// and places.
func checkSame(t *testing.T, want, got *gguf.File) {
	t.Helper()
	for _, k := range want.Keys() {
		w, _ := want.Lookup(k)
		if g, ok := got.Lookup(k); !ok || !reflect.DeepEqual(g, w) {
			t.Errorf("%s is %v, want %v", k, g, w)
		}
	}
	if w, g := len(want.Tensors()), len(got.Tensors()); w != g {
		t.Fatalf("%d tensors, want %d", g, w)
	}
	for i, w := range want.Tensors() {
		g := got.Tensors()[i]
		if g.Name != w.Name || g.Type != w.Type || !reflect.DeepEqual(g.Dims, w.Dims) || !bytes.Equal(got.Data(g), want.Data(w)) {
			t.Errorf("tensor %d is %+v, want %+v, or their data differ", i, g, w)
		}
	}
}
