package compress

import (
	"context"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"ridge/model"
	"ridge/weights/gguf"
	"ridge/weights/tensor"
)

// What is collected is what hooks on the modules of transformers see on the same
// tokens, whatever the number of threads.
func TestCalibrateAgainstTransformers(t *testing.T) {
	var golden struct {
		Model   string
		Squares map[string][]float64
	}
	readJSON(t, "testdata/squares.json", &golden)
	dir := filepath.Join("../internal/tinymodel/testdata", golden.Model)
	var prompt struct{ Prompt []int32 }
	readJSON(t, filepath.Join(dir, "golden.json"), &prompt)
	var first *Importance
	for _, threads := range []int{1, 3} {
		m, err := model.Open(filepath.Join(dir, golden.Model+".gguf"), model.Options{Workers: threads, KV: tensor.F32})
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		im, missed, err := Calibrate(context.Background(), m, m.GGUF(), prompt.Prompt, Calibration{Chunk: len(prompt.Prompt), Dataset: "prompt"})
		if err != nil {
			t.Fatal(err)
		}
		if len(missed) > 0 {
			t.Errorf("missed: expected none, found %v", missed)
		}
		if first == nil {
			first = im
		}
		if !reflect.DeepEqual(im, first) {
			t.Errorf("%d threads: the sums differ", threads)
		}
		for name, want := range golden.Squares {
			e := im.entries[name]
			if e == nil {
				if _, ok := m.GGUF().Tensor(name); ok {
					t.Errorf("%s: expected an entry, found none", name)
				}
				continue
			}
			if len(e.sums) != len(want) || e.counts[0] != float32(len(prompt.Prompt)) {
				t.Fatalf("%s: expected %d sums of %d rows, found %d of %v", name, len(want), len(prompt.Prompt), len(e.sums), e.counts)
			}
			for i, w := range want {
				if math.Abs(float64(e.sums[i])-w) > 1e-4*(w+0.01) {
					t.Errorf("%s: column %d: expected %v, found %v", name, i, w, e.sums[i])
					break
				}
			}
		}
	}
	if n := first.Entries(); n < 14 {
		t.Errorf("entries: expected those of two layers, found %d", n)
	}
}

func readJSON(t *testing.T, path string, v any) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(b, v)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// A matrix that is written is read again, in both forms; an expert that no row met
// counts all columns alike.
func TestImportanceFiles(t *testing.T) {
	im := &Importance{Datasets: []string{"a.txt"}, Chunks: 3, ChunkTokens: 128, entries: map[string]*entry{
		"blk.0.attn_q.weight":        {sums: []float32{1, 2, 3, 4}, counts: []float32{384}},
		"blk.0.ffn_down_exps.weight": {sums: []float32{8, 2, 0, 0}, counts: []float32{4, 0}},
	}}
	for _, name := range []string{"im.gguf", "im.dat"} {
		path := filepath.Join(t.TempDir(), name)
		if err := im.Save(path); err != nil {
			t.Fatal(err)
		}
		got, err := ReadImportance(path)
		if err != nil {
			t.Fatal(err)
		}
		if name == "im.gguf" && !reflect.DeepEqual(got, im) {
			t.Errorf("%s: expected %+v, found %+v", name, im, got)
		}
		if got.Chunks != 3 || !reflect.DeepEqual(got.Datasets, im.Datasets) {
			t.Errorf("%s: expected 3 chunks of a.txt, found %d of %v", name, got.Chunks, got.Datasets)
		}
		for tensor, want := range map[string][]float32{"blk.0.attn_q.weight": {1. / 384, 2. / 384, 3. / 384, 4. / 384}, "blk.0.ffn_down_exps.weight": {2, 0.5, 1, 1}} {
			for i, v := range got.of(tensor) {
				if math.Abs(float64(v-want[i])) > 1e-6 {
					t.Errorf("%s: %s: expected %v, found %v", name, tensor, want, got.of(tensor))
					break
				}
			}
		}
	}
}

// What is no matrix of this model is refused by name.
func TestImportanceRefused(t *testing.T) {
	dir := t.TempDir()
	for name, c := range map[string]struct{ data, want string }{
		"empty.dat":    {"", "number of entries: expected 4 bytes"},
		"many.dat":     {"\xff\xff\xff\x7f", "number of entries: expected 0 to 0"},
		"long.dat":     {"\x01\x00\x00\x00\xff\xff\x00\x00abcdefgh", "length of a name: expected 0 to 12, found 65535"},
		"cut.dat":      {"\x01\x00\x00\x00\x01\x00\x00\x00a\x01\x00\x00\x00\x09\x00\x00\x00abcd", "values of a: expected 0 to 2, found 9"},
		"none.dat":     {"\x00\x00\x00\x00abcdefgh", "expected entries, found none"},
		"notgguf.gguf": {"GGUFxxxxxxxxxxxxxxxxxxxxxxxxx", "version"},
	} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(c.data), 0o666); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadImportance(path); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: expected %q, found %v", name, c.want, err)
		}
	}
	f := randomFile(t, nil)
	for name, c := range map[string]struct {
		im   Importance
		want string
	}{
		"another model": {Importance{entries: map[string]*entry{"blk.0.attn_v.weight": {sums: make([]float32, 128), counts: []float32{1}}}}, "expected 256 values, found 128: it is of another model"},
		"NaN": {Importance{entries: map[string]*entry{"blk.0.attn_v.weight": {sums: append(make([]float32, 255), float32(math.NaN())), counts: []float32{1}}}},
			"value 255: expected a number of at least 0, found NaN"},
	} {
		if _, err := NewPlan(f, Options{Mixture: mixture(t, "Q4_K_M"), Importance: &c.im}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: expected %q, found %v", name, c.want, err)
		}
	}
}

// A text that is too short is refused.
func TestCalibrateShortText(t *testing.T) {
	if _, _, err := Calibrate(context.Background(), nil, new(gguf.File), make([]int32, 100), Calibration{Chunk: 512}); err == nil || !strings.Contains(err.Error(), "at least one chunk of 512 tokens (16 at least), found 100") {
		t.Errorf("expected a refusal with both numbers, found %v", err)
	}
}
