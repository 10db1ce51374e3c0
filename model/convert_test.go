package model

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"ridge/text/tokenizer"
	"ridge/weights/gguf"
	"ridge/weights/tensor"
)

// otherwiseWritten are families that are not yet written as llama.cpp has them: an error, or a
// file that ridge reads and llama.cpp does not.
var otherwiseWritten = map[string]string{
	"dbrx":       "sizes lie in objects of config.json",
	"arctic":     "the width of the dense MLP has another key",
	"bailingmoe": "queries, keys and values are written in one matrix",
	"jais":       "embedding and output matrix are not multiplied by its scales: an error",

	"falcon-h1": "multipliers are not written into weights: an error",
	"rwkv6":     "the numbers that mix rows lie in one tensor there: an error",
	"rwkv7":     "the numbers that mix rows lie in one tensor there, and its sizes have other keys: an error",

	"gemma3n": "the cutoffs of its gates are not written: an error", "gemma4": "the rotation of a part of the frequencies is not: an error",
	"gemma4-keys": "the rotation of a part of the frequencies is not: an error", "gemma4-moe": "the rotation of a part of the frequencies is not: an error",
}

// Every checkpoint that llama.cpp's converter takes becomes a GGUF file that gives the same logits, and whose
// metadata say what llama.cpp's converter says, as far as it is read.
func TestToGGUF(t *testing.T) {
	dirs, err := filepath.Glob("../internal/tinymodel/testdata/*/config.json")
	if err != nil || len(dirs) == 0 {
		t.Fatalf("no tiny models: %v", err)
	}
	for _, config := range dirs {
		dir := filepath.Dir(config)
		name := filepath.Base(dir)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), name+".gguf")
			out, err := Convert(dir, path, "keep", 0, nil)
			if _, none := os.Stat(filepath.Join(dir, name+".gguf")); err != nil && (none != nil || strings.Contains(err.Error(), "found dynamic")) { // a scaling that llama.cpp's converter drops
				left, _ := os.ReadDir(filepath.Dir(path))
				if len(left) > 0 || !strings.HasPrefix(err.Error(), "model: convert: ") {
					t.Fatalf("left %v: %v", left, err)
				}
				t.Log(err)
				return
			}
			if why, ok := otherwiseWritten[name]; ok {
				t.Logf("%s: %v", why, err)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if len(out) != 1 || out[0] != path {
				t.Errorf("wrote %q, want %q", out, path)
			}
			sameLogits(t, dir, path)
			sameMetadata(t, path, filepath.Join(dir, name+".gguf"))
		})
	}
}

func sameLogits(t *testing.T, a, b string) {
	t.Helper()
	o := Options{KV: tensor.F32, Workers: 1, Context: 64}
	m, want := logitsOf(t, a, o)
	defer m.Close()
	n, got := logitsOf(t, b, o)
	defer n.Close()
	exact := m.cfg.Rope[0].Scaling.Kind != "llama3" // whose factors are rounded in a tensor
	for i := range want {
		if d := got[i] - want[i]; exact && d != 0 || d > 1e-3 || d < -1e-3 {
			t.Fatalf("logit %d: got %v, want %v", i, got[i], want[i])
		}
	}
	if text := "The quick 12345 brown fox's\n\n jump"; m.tok != nil && !slices.Equal(m.tok.Encode(nil, text, encodeAll), n.tok.Encode(nil, text, encodeAll)) {
		t.Error("other tokens")
	}
}

// sameMetadata compares the keys that two files have and that are read.
func sameMetadata(t *testing.T, got, want string) {
	t.Helper()
	w, err := gguf.Open(want)
	if err != nil {
		return // GGUF cannot express it with llama.cpp's converter
	}
	defer w.Close()
	g, err := gguf.Open(got)
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	arch, read := w.String("general.architecture", ""), map[string]bool{}
	d := ggufDescription(w, arch)
	d.asked = func(key, _ string) { read[key[len(d.in)-1:]] = true }
	var c Config
	if err := byName(arch).read(d, &c); err != nil {
		t.Fatal(err)
	}
	for _, key := range w.Keys() {
		if !read[strings.TrimPrefix(key, arch)] && !strings.HasPrefix(key, "tokenizer.") {
			continue
		}
		x, _ := w.Lookup(key)
		y, ok := g.Lookup(key)
		if n, isInt := x.(uint32); isInt && strings.HasSuffix(key, "sliding_window_pattern") { // the same in short
			list, _ := y.([]bool)
			x = patternOf(int(n), len(list))
		}
		if scaling := strings.HasPrefix(key, arch+".rope.scaling."); !ok && (x == "none" || x == uint32(0) || scaling && c.Rope[0].Scaling.Kind == "") { // the same as nothing
			continue
		}
		if !ok || !reflect.DeepEqual(x, y) {
			t.Errorf("%s: got %v, want %v", key, y, x)
		}
	}
	have := map[string][]uint64{}
	for _, x := range g.Tensors() {
		have[x.Name] = shape(x.Dims)
	}
	for _, x := range w.Tensors() {
		if !slices.Equal(have[x.Name], shape(x.Dims)) {
			t.Errorf("tensor %q: got %d, want %d", x.Name, have[x.Name], x.Dims)
		}
	}
	if len(g.Tensors()) != len(w.Tensors()) {
		t.Errorf("%d tensors, want %d", len(g.Tensors()), len(w.Tensors()))
	}
}

// patternOf says which of so many layers have a window if every n-th has none.
func patternOf(n, layers int) []bool {
	out := make([]bool, layers)
	for i := range out {
		out[i] = everyButNth(n)(i)
	}
	return out
}

// shape leaves dimensions of 1 out at the end.
func shape(dims []uint64) []uint64 {
	for len(dims) > 1 && dims[len(dims)-1] == 1 {
		dims = dims[:len(dims)-1]
	}
	return dims
}

var encodeAll = tokenizer.EncodeOptions{AddSpecial: true, ParseSpecial: true}
