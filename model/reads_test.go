package model

import (
	"path/filepath"
	"sync/atomic"
	"testing"

	"ridge/kernel"
	"ridge/weights/tensor"
)

// counted returns the bytes of matrices that f makes the kernels read.
func counted(f func()) int64 {
	var n atomic.Int64
	kernel.CountReads(&n)
	defer kernel.CountReads(nil)
	f()
	return n.Load()
}

// A decoded token reads what WeightBytes says: of experts only those that its
// router chose. Tokens of several sequences read an expert once in a step.
func TestBytesRead(t *testing.T) {
	for _, name := range []string{"llama", "qwen2moe", "qwen3moe", "gpt-oss", "granitemoe-shared", "lfm2moe", "glm4moe", "llama4", "phimoe", "smallthinker", "arctic", "gemma4-moe"} {
		g := readGolden(t, filepath.Join(tinyModels, name))
		m := openTiny(t, g.dir, 64, Options{KV: tensor.F32, Workers: 2, KVBytes: 8 << 20})
		compute(t, m, g.Prompt[:20], 20)
		seq := m.Pool().NewSeq()
		for _, token := range g.Prompt[:5] {
			got := counted(func() { step(t, m, Run{Seq: seq, Tokens: []int32{token}, Outputs: 1}) })
			if got != m.WeightBytes() {
				t.Errorf("%s: a token reads %d bytes of matrices, expected %d", name, got, m.WeightBytes())
			}
		}
		m.Pool().Free(seq)
		checkBatch(t, name, m, g.Prompt)
	}
}

// checkBatch compares what a batch reads with what its rows chose.
func checkBatch(t *testing.T, name string, m *Model, tokens []int32) {
	var runs []Run
	for i := range 6 {
		seq := m.Pool().NewSeq()
		defer m.Pool().Free(seq)
		runs = append(runs, Run{Seq: seq, Tokens: tokens[7*i : 7*i+3], Outputs: 3})
	}
	before := m.ExpertLoads()
	got := counted(func() { step(t, m, runs...) })
	want, all := int64(0), int64(0)
	loads := m.ExpertLoads()
	for i := range m.Net().Layers {
		for r := range m.Net().Layers[i].Regions() {
			for _, x := range r.Mats {
				if all += int64(x.W.Size()); r.Active == 1 {
					want += int64(x.W.Size())
				}
			}
		}
		x := m.Net().Layers[i].mixture()
		if x == nil {
			continue
		}
		e, l, b := &x.Experts[0], loads[0], before[0]
		loads, before = loads[1:], before[1:]
		size := int64(e.Up.W.Size() + e.Down.W.Size())
		if e.Gated {
			size += int64(e.Gate.W.Size())
		}
		want += (l.Read - b.Read) * size
		if rows := l.Chosen - b.Chosen; rows != int64(18*x.Router.TopK) || l.Layer != i || l.Experts != len(x.Experts) {
			t.Errorf("%s: layer %d: %d experts chosen of 18 rows: %+v", name, i, rows, l)
		}
		if l.Imbalance() < 1 || l.Imbalance() > float64(l.Experts) || l.Idle >= l.Experts {
			t.Errorf("%s: layer %d: %+v, imbalance %v", name, i, l, l.Imbalance())
		}
	}
	head := int64(m.Net().Head.Out.W.Size())
	if got != want+head || got > all+head {
		t.Errorf("%s: 18 rows read %d bytes of %d, expected %d", name, got, all+head, want+head)
	}
}

func step(t *testing.T, m *Model, runs ...Run) {
	t.Helper()
	if err := m.Forward(&Step{Runs: runs}); err != nil {
		t.Fatal(err)
	}
}
