package compress

import (
	"bytes"
	"context"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ridge/weights/gguf"
	"ridge/weights/tensor"
)

// randomFile writes a small float model of random weights; change may alter the values of a
// tensor first.
func randomFile(t *testing.T, change func(name string, x []float32)) *gguf.File {
	t.Helper()
	rng := rand.New(rand.NewPCG(1, 2))
	b := gguf.NewBuilder()
	b.Set("general.architecture", "llama")
	b.Set("llama.block_count", uint32(1))
	b.Set("general.name", "random")
	for _, m := range []struct {
		name string
		dims []uint64
	}{
		{"token_embd.weight", []uint64{256, 64}}, {"blk.0.attn_norm.weight", []uint64{256}}, {"blk.0.attn_v.weight", []uint64{256, 600}},
		{"blk.0.ffn_down_exps.weight", []uint64{512, 40, 3}},
	} {
		n := uint64(1)
		for _, d := range m.dims {
			n *= d
		}
		x := make([]float32, n)
		for i := range x {
			x[i] = float32(rng.NormFloat64()) / 16
		}
		if change != nil {
			change(m.name, x)
		}
		data := make([]byte, 4*n)
		if err := tensor.F32.Encode(data, x); err != nil {
			t.Fatal(err)
		}
		if err := b.AddTensor(gguf.TensorInfo{Name: m.name, Type: tensor.F32, Dims: m.dims}, gguf.Bytes(data)); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(t.TempDir(), "random.gguf")
	if err := b.Save(path); err != nil {
		t.Fatal(err)
	}
	f, err := gguf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func mixture(t *testing.T, name string) Mixture {
	t.Helper()
	m, err := ParseMixture(name)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// The number of threads does not change a byte, and each row is what its type's
// encoder makes of it.
func TestQuantizeThreads(t *testing.T) {
	f := randomFile(t, nil)
	var first []byte
	for _, threads := range []int{1, 2, 7} {
		p, err := NewPlan(f, Options{Mixture: mixture(t, "Q4_K_S"), Threads: threads})
		if err != nil {
			t.Fatal(err)
		}
		dst := filepath.Join(t.TempDir(), "out.gguf")
		if _, err := p.Write(context.Background(), dst); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(dst)
		if err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = got
		}
		if !bytes.Equal(got, first) {
			t.Errorf("%d threads: the file differs", threads)
		}
		g, err := gguf.OpenBytes("out", got)
		if err != nil {
			t.Fatal(err)
		}
		m, _ := g.Mat("blk.0.attn_v.weight")
		was, _ := f.Mat("blk.0.attn_v.weight")
		row, want := make([]float32, 256), make([]byte, m.Type.RowBytes(256))
		was.DecodeRow(row, 517)
		if m.Type.Encode(want, row) != nil || m.Type != tensor.Q5_K || !bytes.Equal(want, m.Row(517)) {
			t.Errorf("row 517 in %s is not what its encoder gives", m.Type)
		}
		if g.Uint("general.file_type", 0) != 14 || g.String("general.name", "") != "random" {
			t.Error("metadata: expected file type 14 and the name")
		}
	}
}

// A model in parts is the model in one file.
func TestQuantizeSplit(t *testing.T) {
	f := randomFile(t, nil)
	dir := t.TempDir()
	var total, done int64
	p, err := NewPlan(f, Options{Mixture: mixture(t, "Q8_0"), Split: 200_000, Progress: func(d, n int64) { done, total = d, n }})
	if err != nil {
		t.Fatal(err)
	}
	files, err := p.Write(context.Background(), filepath.Join(dir, "out.gguf"))
	if err != nil {
		t.Fatal(err)
	}
	if len(files) != 2 || filepath.Base(files[0]) != "out-00001-of-00002.gguf" {
		t.Errorf("files: expected two parts, found %v", files)
	}
	if before, _ := p.Size(); done != total || total != int64(before) {
		t.Errorf("progress: expected %d of %d bytes, found %d of %d", before, before, done, total)
	}
	g, err := gguf.Open(files[0])
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	if len(g.Tensors()) != len(f.Tensors()) {
		t.Errorf("tensors: expected %d, found %d", len(f.Tensors()), len(g.Tensors()))
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 2 {
		t.Errorf("the folder has %v beside the parts", entries)
	}
}

// What cannot be quantized is refused by name, and nothing is left behind.
func TestQuantizeRefuses(t *testing.T) {
	plain := randomFile(t, nil)
	nan := randomFile(t, func(name string, x []float32) {
		if name == "blk.0.ffn_down_exps.weight" {
			x[512*41+7] = float32(math.NaN())
		}
	})
	huge := randomFile(t, func(name string, x []float32) {
		if name == "blk.0.attn_v.weight" {
			x[3] = 1e30
		}
	})
	quantized := quantizedCopy(t, plain, "Q8_0")
	stopped, stop := context.WithCancel(context.Background())
	stop()
	for _, c := range []struct {
		name string
		f    *gguf.File
		typ  string
		ctx  context.Context
		want string
	}{
		{"NaN", nan, "Q4_K_M", context.Background(), `tensor "blk.0.ffn_down_exps.weight", row 41: tensor: encode Q6_K: value 7 is NaN`},
		{"too large", huge, "Q6_K", context.Background(), `tensor "blk.0.attn_v.weight", row 0: tensor: encode Q6_K: value 3 is 1e+30`},
		{"no importance matrix", plain, "Q2_K_S", context.Background(), `Q2_K is of no use without an importance matrix`},
		{"quantized already", quantized, "Q4_0", context.Background(), `tensor "token_embd.weight": expected floats, found Q8_0`},
		{"stopped", plain, "Q4_0", stopped, "context canceled"},
	} {
		dst := filepath.Join(t.TempDir(), "out.gguf")
		p, err := NewPlan(c.f, Options{Mixture: mixture(t, c.typ), Threads: 3})
		if err == nil {
			_, err = p.Write(c.ctx, dst)
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: expected %q, found %v", c.name, c.want, err)
		}
		if entries, _ := os.ReadDir(filepath.Dir(dst)); len(entries) > 0 {
			t.Errorf("%s: left %v behind", c.name, entries)
		}
	}
	if p, err := NewPlan(quantized, Options{Mixture: mixture(t, "Q4_0"), Requantize: true}); err != nil || p.Rows[1].To != tensor.Q4_0 && p.Rows[2].To != tensor.Q4_0 {
		t.Errorf("quantized again: expected Q4_0, found %v", err)
	}
	if _, err := NewPlan(quantized, Options{Mixture: mixture(t, "Q8_0")}); err != nil {
		t.Errorf("to the type that it has: expected no refusal, found %v", err)
	}
	if _, err := os.Stat("/dev/full"); err == nil {
		p, _ := NewPlan(plain, Options{Mixture: mixture(t, "Q4_0")})
		b, err := p.builder(context.Background(), nil)
		if err != nil {
			t.Fatal(err)
		}
		full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer full.Close()
		if _, err := b.WriteTo(full); err == nil || !strings.Contains(err.Error(), "no space left") {
			t.Errorf("disk full: expected its error, found %v", err)
		}
	}
}

func quantizedCopy(t *testing.T, f *gguf.File, typ string) *gguf.File {
	t.Helper()
	p, err := NewPlan(f, Options{Mixture: mixture(t, typ)})
	if err != nil {
		t.Fatal(err)
	}
	dst := filepath.Join(t.TempDir(), "q.gguf")
	if _, err := p.Write(context.Background(), dst); err != nil {
		t.Fatal(err)
	}
	g, err := gguf.Open(dst)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { g.Close() })
	return g
}
