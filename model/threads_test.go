package model

import (
	"bytes"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"unsafe"

	"ridge/internal/pool"
	"ridge/kernel"
	"ridge/nn"
	"ridge/weights/tensor"
)

// Logits have the same bits whatever the numbers of threads of narrow and wide
// steps, and wherever the threads are bound; each step has its number.
func TestOneAnswerOfWidths(t *testing.T) {
	path := filepath.Join(tinyModels, "llama")
	prompt := readGolden(t, path).Prompt
	prompt = slices.Concat(prompt, prompt, prompt)[:40]
	want := compute(t, openTiny(t, path, 64, Options{KV: tensor.F16, Workers: 1}), prompt, len(prompt))
	pinned := Options{Workers: min(2, pool.DefaultWorkers()), Pin: true}
	if runtime.GOOS != "linux" {
		pinned.Pin = false
	}
	for _, o := range []Options{
		{Workers: 1, BatchWorkers: 3}, {Workers: 3, BatchWorkers: 1}, {BatchWorkers: 2, Measured: pool.Counts{Decode: 1, Batch: 3}},
		{Measured: pool.Counts{Decode: 1, Batch: 3}}, {Workers: 2, Measured: pool.Counts{Decode: 1, Batch: 3}}, pinned,
	} {
		o.KV = tensor.F16
		m := openTiny(t, path, 64, o)
		narrow, wide := m.Widths()
		for _, chunk := range []int{1, narrowRows, narrowRows + 1, len(prompt)} {
			width := wide
			if chunk <= narrowRows {
				width = narrow
			}
			got := compute(t, m, prompt, chunk)
			if d := firstDiff(got, want); d >= 0 {
				t.Errorf("%+v, chunks of %d: logit %d differs", o, chunk, d)
			}
			if rest := len(prompt) % chunk; rest == 0 && m.Threads().Width() != width {
				t.Errorf("%+v: %d threads computed a step of %d rows, want %d", o, m.Threads().Width(), chunk, width)
			}
		}
	}
}

func firstDiff(a, b []float32) int {
	if len(a) != len(b) {
		return 0
	}
	for i := range a {
		if a[i] != b[i] {
			return i
		}
	}
	return -1
}

func TestWidths(t *testing.T) {
	usual := pool.DefaultWorkers()
	measured := pool.Counts{Decode: 3, Batch: 5}
	for _, c := range []struct {
		o    Options
		want widths
	}{
		{Options{}, widths{usual, usual}},
		{Options{Measured: measured}, widths{3, 5}},
		{Options{Measured: measured, Workers: 2}, widths{2, 2}},
		{Options{Measured: measured, Workers: 2, BatchWorkers: 4}, widths{2, 4}},
		{Options{Measured: measured, BatchWorkers: 4}, widths{3, 4}},
		{Options{BatchWorkers: 7}, widths{usual, 7}},
		{Options{Measured: pool.Counts{Decode: 3}}, widths{3, 3}},
	} {
		if got := c.o.widths(); got != c.want {
			t.Errorf("%+v: %+v, want %+v", c.o, got, c.want)
		}
	}
}

// packedBy tells which worker packed each group of each matrix of a model whose
// workers lie apart.
func packedBy(t *testing.T, path string, workers int) (*Net, map[*kernel.Packed][]int) {
	t.Helper()
	m := &Model{path: path}
	t.Cleanup(func() { m.Close() })
	if err := m.openSource(); err != nil {
		t.Fatal(err)
	}
	l := m.builder()
	l.print = newFingerprint(&m.cfg)
	m.w = l.w
	net := m.arch.build(l)
	if l.err != nil {
		t.Fatal(l.err)
	}
	by := map[*kernel.Packed][]int{}
	for _, j := range l.jobs {
		by[j.dst] = slices.Repeat([]int{-1}, j.dst.Groups)
	}
	for w := range workers {
		task := &packTask{jobs: l.jobs, apart: true}
		task.release = func(read []byte) {
			for i := range l.jobs {
				j := &l.jobs[i]
				at := uintptr(unsafe.Pointer(&read[0])) - uintptr(unsafe.Pointer(&j.src.Data[0]))
				if at >= uintptr(len(j.src.Data)) {
					continue
				}
				group := kernel.Lanes * j.src.Type.RowBytes(j.src.Cols)
				for g := int(at) / group; g*group < int(at)+len(read); g++ {
					if by[j.dst][g] >= 0 {
						t.Errorf("%s: a group was packed by workers %d and %d", path, by[j.dst][g], w)
					}
					by[j.dst][g] = w
				}
			}
		}
		task.Do(w, workers)
	}
	for _, j := range l.jobs {
		again, err := kernel.NewPacked(j.src, func(n int) []byte { return make([]byte, n) })
		if err != nil {
			t.Fatal(err)
		}
		if again.Pack(j.src, 0, again.Groups); !bytes.Equal(again.Data, j.dst.Data) {
			t.Errorf("%s: packed by %d workers a matrix has other bytes", path, workers)
		}
	}
	return net, by
}

// Where workers lie on several memory nodes, each packs what it reads: the
// groups that Split gives it of the matrices that share a region.
func TestEachWorkerPacksWhatItReads(t *testing.T) {
	for _, file := range []string{"llama/llama.gguf", "gemma3/gemma3.gguf", "phi3-swa/phi3-swa.gguf", "gpt2/gpt2.gguf"} {
		for _, workers := range []int{2, 3, 5} {
			net, by := packedBy(t, filepath.Join(tinyModels, file), workers)
			check := func(name string, ls ...*nn.Linear) {
				var owners []int
				for _, l := range ls {
					owners = append(owners, by[l.W]...)
				}
				for worker := range workers {
					lo, hi := pool.Split(len(owners), worker, workers)
					for g := lo; g < hi; g++ {
						if owners[g] != worker {
							t.Fatalf("%s, %d workers: group %d of %s is read by worker %d and packed by %d", file, workers, g, name, worker, owners[g])
						}
					}
				}
			}
			for i := range net.Layers {
				a, mlp := net.Layers[i].Mix.(*nn.Attention), net.Layers[i].FFN.(*nn.MLP)
				check("q, k and v", &a.Q, &a.K, &a.V)
				check("o", &a.Out)
				check("down", &mlp.Down)
				for _, l := range []*nn.Linear{&mlp.Gate, &mlp.Up} {
					for worker := 0; l.W != nil && worker < workers; worker++ {
						lo, hi := pool.Split((l.W.Groups+3)/4, worker, workers) // four groups stay together
						for g := 4 * lo; g < min(4*hi, l.W.Groups); g++ {
							if by[l.W][g] != worker {
								t.Fatalf("%s, %d workers: group %d of the MLP is read by worker %d and packed by %d", file, workers, g, worker, by[l.W][g])
							}
						}
					}
				}
			}
			check("the output", &net.Head.Out)
		}
	}
}
