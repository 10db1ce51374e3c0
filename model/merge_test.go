package model

import (
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"ridge/weights/gguf"
	"ridge/weights/tensor"
)

// A model with an adapter merged into it gives the logits that it has with the
// adapter beside it, from either kind of file into either.
func TestMerge(t *testing.T) {
	dirs, err := filepath.Glob(tinyAdapters + "/*/golden.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range dirs {
		name := filepath.Base(filepath.Dir(dir))
		g := readAdapterGolden(t, name)
		base := readGolden(t, filepath.Join(tinyModels, g.Base))
		for form, path := range base.files() {
			if form != "safetensors" && form != "gguf" {
				continue
			}
			for _, to := range []string{"merged.gguf", "merged/"} {
				t.Run(name+" "+form+" "+to, func(t *testing.T) {
					m, a := openAdapted(t, g.Base, form, g.dir)
					want, _ := adapted(t, m, a, g.prompt, 64)
					merge := Merge{Adapters: []string{g.dir}, Scales: []float32{1}, Type: "f32"}
					dst := filepath.Join(t.TempDir(), to)
					if to == "merged/" {
						dst += "/"
					}
					files, err := merge.Write(path, dst)
					if err != nil && form == "gguf" && to == "merged/" && strings.Contains(err.Error(), "convert: ") {
						t.Skip(err) // of which convert writes no checkpoint
					}
					if err != nil {
						t.Fatal(err)
					}
					if merge.Lost != 0 || merge.Changed == 0 || len(files) != 1 {
						t.Errorf("%d matrices changed, %v lost, in %v", merge.Changed, merge.Lost, files)
					}
					got := compute(t, openTiny(t, strings.TrimSuffix(dst, "/"), base.Context, Options{KV: tensor.F32, Workers: 2, KVBytes: 16 << 20}), g.prompt, 64)
					if d, at := maxDiff(got, want); !(d <= 1e-4*max(1, math.Abs(float64(want[at])))) {
						t.Errorf("logit %d differs by %v of %v", at, d, want[at])
					}
				})
			}
		}
	}
}

// Eight adapters in one batch give what eight merged models give.
func TestEightAdapters(t *testing.T) {
	base := filepath.Join(tinyModels, "llama")
	names := []string{"llama", "llama-rs", "llama-patterns", "llama-dora"}
	g := readAdapterGolden(t, "llama")
	o := Options{KV: tensor.F32, Workers: 2, KVBytes: 16 << 20}
	m := openTiny(t, base, 0, o)
	s := &Step{}
	var merges []Merge
	for i := range 8 {
		merge := Merge{Type: "f32"}
		var sum *Adapter
		for k := range 1 + i/4 { // four alone, and four sums of two
			name, scale := filepath.Join(tinyAdapters, names[(i+k)%4]), float32(1)-0.5*float32(k)
			a, err := m.ReadAdapter(name)
			if err != nil {
				t.Fatal(err)
			}
			sum = sum.With(a.Scaled(scale))
			merge.Adapters, merge.Scales = append(merge.Adapters, name), append(merge.Scales, scale)
		}
		seq := m.Pool().NewSeq()
		defer m.Pool().Free(seq)
		s.Runs = append(s.Runs, Run{Seq: seq, Tokens: g.prompt[i : 20+i], Outputs: 1, Adapter: sum.Run()})
		merges = append(merges, merge)
	}
	if err := m.Forward(s); err != nil {
		t.Fatal(err)
	}
	for i := range merges {
		dst := filepath.Join(t.TempDir(), "merged.gguf")
		if _, err := merges[i].Write(base, dst); err != nil {
			t.Fatal(err)
		}
		want := compute(t, openTiny(t, dst, 0, o), g.prompt[i:20+i], 20)
		vocab := m.Config().Vocab
		if d, at := maxDiff(m.Logits(i), want[len(want)-vocab:]); !(d <= 1e-4) {
			t.Errorf("adapter %d: logit %d differs by %v from the merged model", i, at, d)
		}
	}
}

// A quantized weight keeps its type, or loses its change, only when that was asked
// for, and what rounding does is measured.
func TestMergeQuantized(t *testing.T) {
	dir := t.TempDir()
	quantized := quantizedLlama(t)
	adapter := filepath.Join(tinyAdapters, "llama")
	write := func(typ string, again bool) (Merge, error) {
		m := Merge{Adapters: []string{adapter}, Scales: []float32{1}, Type: typ, Requantize: again}
		_, err := m.Write(quantized, filepath.Join(dir, fmt.Sprint(typ, again, ".gguf")))
		return m, err
	}
	if _, err := write("keep", false); err == nil || !strings.Contains(err.Error(), "expected a type of plain numbers, found Q8_0") || !strings.Contains(err.Error(), "--requantize") {
		t.Errorf("quantized weights: %v", err)
	}
	exact, err := write("f32", false)
	if err != nil || exact.Lost != 0 {
		t.Errorf("as f32: %v, %v lost", err, exact.Lost)
	}
	rough, err := write("keep", true)
	if err != nil || rough.Lost < 1e-4 || rough.Lost > 0.5 {
		t.Errorf("quantized again: %v, %v lost", err, rough.Lost)
	}
}

// quantizedLlama writes tiny llama with its matrices as Q8_0.
func quantizedLlama(t *testing.T) string {
	t.Helper()
	f, err := gguf.Open(filepath.Join(tinyModels, "llama", "llama.gguf"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	b := f.Builder()
	for _, info := range f.Tensors() {
		if len(info.Dims) < 2 || info.Dims[0]%32 != 0 {
			continue
		}
		m, err := f.Mat(info.Name)
		if err != nil {
			t.Fatal(err)
		}
		data := make([]byte, m.Rows*tensor.Q8_0.RowBytes(m.Cols))
		if err := tensor.Q8_0.Encode(data, decodeAll(m)); err != nil {
			t.Fatal(err)
		}
		b.RemoveTensor(info.Name)
		if err := b.AddTensor(gguf.TensorInfo{Name: info.Name, Type: tensor.Q8_0, Dims: info.Dims}, gguf.Bytes(data)); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(t.TempDir(), "q8.gguf")
	if err := b.Save(path); err != nil {
		t.Fatal(err)
	}
	return path
}
