package model

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"ridge/internal/cpu"
	"ridge/internal/testdata"
	"ridge/weights/safetensors"
	"ridge/weights/tensor"
)

// BenchmarkAdapters measures steps of eight sequences on SmolLM2, with one token each
// and with prompts of 64: without an adapter, with one for all, and with eight; of rank
// 8 that change queries and values, which is PEFT's choice if none is made, and of rank
// 16 that change all seven matrices of every layer.
func BenchmarkAdapters(b *testing.B) {
	m, err := Open(testdata.Model(b, "smollm2"), Options{KV: tensor.F16, PageTokens: 32, KVBytes: 256 << 20, Context: 2048})
	if err != nil {
		b.Fatal(err)
	}
	defer m.Close()
	for _, c := range []struct {
		name     string
		rank     int
		parts    []string
		adapters int
	}{
		{"none", 8, queriesAndValues, 0}, {"one of rank 8", 8, queriesAndValues, 1}, {"eight of rank 8", 8, queriesAndValues, 8},
		{"one of rank 16", 16, allParts, 1}, {"eight of rank 16", 16, allParts, 8},
	} {
		runs := make([]*Adapter, 8)
		for i := range runs {
			if c.adapters == 0 || i > 0 && c.adapters == 1 {
				runs[i] = runs[0]
				continue
			}
			if runs[i], err = m.ReadAdapter(randomAdapter(b, m, c.rank, c.parts, uint64(i))); err != nil {
				b.Fatal(err)
			}
		}
		for _, tokens := range []int{1, 64} {
			b.Run(fmt.Sprintf("%s/tokens=%d", c.name, tokens), func(b *testing.B) { stepWith(b, m, runs, tokens) })
		}
	}
}

// stepWith measures steps of a sequence for each adapter.
func stepWith(b *testing.B, m *Model, runs []*Adapter, n int) {
	s := &Step{}
	for i, a := range runs {
		tokens := make([]int32, n)
		for k := range tokens {
			tokens[k] = int32(100 + i + k)
		}
		s.Runs = append(s.Runs, Run{Seq: m.Pool().NewSeq(), Tokens: tokens, Outputs: 1, Adapter: a.Run()})
	}
	fresh := func() {
		for i := range s.Runs {
			m.Pool().Free(s.Runs[i].Seq)
			s.Runs[i].Seq = m.Pool().NewSeq()
		}
	}
	defer fresh()
	start := cpu.Time()
	for b.Loop() {
		if s.Runs[0].Seq.Len()+n > 512 {
			fresh()
		}
		if err := m.Forward(s); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric((cpu.Time()-start).Seconds()*1e3/float64(b.N), "cpu-ms/step") // which other programs do not change much
	b.ReportMetric(float64(len(runs)*n)*float64(b.N)/b.Elapsed().Seconds(), "tokens/s")
}

// adapterParts are matrices of Llama's layers, as checkpoints and GGUF files name them.
var adapterParts = map[string]string{"self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output",
	"mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down"}

var (
	queriesAndValues = []string{"self_attn.q_proj", "self_attn.v_proj"}
	allParts         = slices.Sorted(maps.Keys(adapterParts))
)

// randomAdapter writes an adapter of random numbers for a model of Llama's shape.
func randomAdapter(t testing.TB, m *Model, rank int, parts []string, seed uint64) string {
	t.Helper()
	dir, random := t.TempDir(), rand.New(rand.NewPCG(seed, 1))
	var all []safetensors.Tensor
	for i := range m.Config().Layers {
		for _, name := range parts {
			w, ok, err := m.src.mat(fmt.Sprintf("blk.%d.%s.weight", i, adapterParts[name]))
			if err != nil || !ok {
				t.Fatal(name, err)
			}
			for half, shape := range [][]uint64{{uint64(rank), uint64(w.Cols)}, {uint64(w.Rows), uint64(rank)}} {
				values := make([]float32, shape[0]*shape[1])
				for k := range values {
					values[k] = float32(random.NormFloat64()) * 0.01
				}
				data := make([]byte, 2*len(values))
				if err := tensor.BF16.Encode(data, values); err != nil {
					t.Fatal(err)
				}
				all = append(all, safetensors.Tensor{Name: fmt.Sprintf("%smodel.layers.%d.%s.lora_%s.weight", peftRoot, i, name, "AB"[half:half+1]), Type: "BF16", Shape: shape, Data: safetensors.Bytes(data)})
			}
		}
	}
	if err := safetensors.Write(filepath.Join(dir, "adapter_model.safetensors"), all, nil); err != nil {
		t.Fatal(err)
	}
	config := fmt.Sprintf(`{"peft_type": "LORA", "r": %d, "lora_alpha": %d}`, rank, rank)
	if err := os.WriteFile(filepath.Join(dir, "adapter_config.json"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}
