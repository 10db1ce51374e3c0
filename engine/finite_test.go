package engine

import (
	"encoding/binary"
	"errors"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"ridge/model"
	"ridge/weights/gguf"
	"ridge/weights/tensor"
)

// broken opens the tiny llama with a number of one tensor replaced.
func broken(t *testing.T, name string, v float32) *model.Model {
	t.Helper()
	f, err := gguf.Open(filepath.Join(tinyModels, "llama", "llama.gguf"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	b := f.Builder()
	info, _ := f.Tensor(name)
	m, err := f.Mat(name)
	if err != nil {
		t.Fatal(err)
	}
	data := append([]byte(nil), m.Data...)
	for at := 0; at < len(data); at += 4 * 7 {
		binary.LittleEndian.PutUint32(data[at:], math.Float32bits(v))
	}
	b.RemoveTensor(name)
	if err := b.AddTensor(gguf.TensorInfo{Name: name, Type: info.Type, Dims: info.Dims}, gguf.Bytes(data)); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "broken.gguf")
	if err := b.Save(path); err != nil {
		t.Fatal(err)
	}
	out, err := model.Open(path, model.Options{KV: tensor.F16, Workers: 2, PageTokens: 16, KVBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { out.Close() })
	return out
}

// Numbers that are none are said to be so, and where they come from.
func TestNonFiniteIsNamed(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for _, c := range []struct {
		tensor string
		v      float32
		want   string
	}{
		{"token_embd.weight", nan, "the embedding"},
		{"blk.0.attn_norm.weight", inf, "layer 0 of 2"},
		{"blk.1.ffn_norm.weight", nan, "layer 1 of 2"},
		{"output_norm.weight", nan, "the norm behind the last layer"},
		{"output.weight", inf, "the output matrix"},
	} {
		e := start(t, broken(t, c.tensor, c.v), Options{})
		for _, q := range []Request{
			{Tokens: []int32{5, 6, 7}, MaxTokens: 4},
			{Tokens: []int32{8, 6, 7}, MaxTokens: -1, PromptLogProbs: 1},
			{Tokens: []int32{9, 6, 7}, Embed: PoolingMean},
		} {
			if q.Embed != NoPooling && strings.HasPrefix(c.want, "the output") {
				continue
			}
			s := submit(t, e, q)
			var bad *NonFiniteError
			for {
				ev, ok := s.Next(t.Context())
				if !ok {
					break
				}
				if ev.Err != nil && !errors.As(ev.Err, &bad) {
					t.Fatal(ev.Err)
				}
			}
			s.Close()
			if bad == nil || bad.Where != c.want || !strings.Contains(bad.Error(), "NaN or infinities; the first come out of "+c.want) {
				t.Errorf("%s: %v, want %s", c.tensor, bad, c.want)
			}
		}
		if err := e.Check(t.Context()); err != nil {
			t.Error(err)
		}
	}
	m := openTiny(t, "llama", 20)
	if where, err := m.FirstNonFinite([]int32{5, 6, 7}); where != "" || err != nil {
		t.Errorf("a sound model: %q, %v", where, err)
	}
}
