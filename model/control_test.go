package model

import (
	"encoding/binary"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ridge/weights/gguf"
	"ridge/weights/tensor"
)

const tinyControls = "../internal/tinymodel/controls"

// Control vectors give the logits that transformers gives with them added behind the
// layers; rows beside them keep their bits, however the prompt is cut.
func TestControlGolden(t *testing.T) {
	for _, name := range []string{"llama", "gemma2"} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(tinyControls, name)
			b, err := os.ReadFile(filepath.Join(dir, "golden.json"))
			g := &adapterGolden{}
			if err == nil {
				err = json.Unmarshal(b, g)
			}
			if err == nil {
				b, err = os.ReadFile(filepath.Join(dir, "logits.f32"))
			}
			if err != nil {
				t.Fatal(err)
			}
			var want []float32
			for ; len(b) > 0; b = b[4:] {
				want = append(want, math.Float32frombits(binary.LittleEndian.Uint32(b)))
			}
			prompt := readGolden(t, filepath.Join(tinyModels, name)).Prompt[:64]
			m := openTiny(t, filepath.Join(tinyModels, name), 0, Options{KV: tensor.F32, Workers: 2, KVBytes: 16 << 20})
			a, err := m.ReadControl(filepath.Join(dir, "control.gguf"), 0, 0)
			if err != nil {
				t.Fatal(err)
			}
			got, beside := adapted(t, m, a, prompt, 64)
			if !equalBits(beside, compute(t, m, prompt, 64)) {
				t.Error("rows without the vectors have other bits beside them")
			}
			vocab := m.Config().Vocab
			var rows []float32
			for r := g.Every - 1; r < len(prompt); r += g.Every {
				rows = append(rows, got[r*vocab:(r+1)*vocab]...)
			}
			if d, at := maxDiff(rows, want); d > logitTolerance || len(rows) != len(want) {
				t.Errorf("logit %d of row %d differs by %v", at%vocab, (at/vocab+1)*g.Every-1, d)
			}
			for _, chunk := range []int{1, 7} {
				if again, _ := adapted(t, m, a, prompt, chunk); !equalBits(again, got) {
					t.Errorf("chunks of %d give other bits", chunk)
				}
			}
			// Given to the whole model, rows have the same bits, and the model is another.
			before := m.Fingerprint()
			if err := m.Steer(a); err != nil {
				t.Fatal(err)
			}
			if !equalBits(compute(t, m, prompt, 7), got) || m.Fingerprint() == before {
				t.Error("a steered model does not compute what its runs did, or has not changed")
			}
			m.net.steer = nil
			halves, _ := adapted(t, m, a.Scaled(0.25).With(a.Scaled(0.75)), prompt, 64)
			if d, _ := maxDiff(halves, got); d > 1e-3 {
				t.Errorf("two parts of the vectors differ from them by %v", d)
			}
		})
	}
}

// Bad control vectors are refused by the name of what is wrong with them.
func TestBadControls(t *testing.T) {
	m := openTiny(t, filepath.Join(tinyModels, "llama"), 0, Options{KV: tensor.F32, Workers: 1})
	n := m.Config().Hidden
	for name, c := range map[string]struct {
		arch, hint, tensor string
		size               int
		value              float32
		first, last        int
		want               string
	}{
		"another kind":  {arch: "llama", want: `general.architecture: expected "controlvector", found "llama"`},
		"another model": {hint: "gemma2", want: `controlvector.model_hint: expected "llama", the model's, found "gemma2"`},
		"size":          {size: n - 1, want: "expected shape ["},
		"layer":         {tensor: "direction.2", want: "expected direction.N, N from 1 to 1"},
		"first layer":   {tensor: "direction.0", want: "expected direction.N, N from 1 to 1"},
		"name":          {tensor: "vector.1", want: "expected direction.N"},
		"NaN":           {value: float32(math.NaN()), want: "number 0: expected a number, found NaN"},
		"range":         {first: 1, last: 2, want: "layers: expected a range within 1 to 1, found 1 to 2"},
	} {
		t.Run(name, func(t *testing.T) {
			b := gguf.NewBuilder()
			set := func(key, v, usual string) {
				if v == "" {
					v = usual
				}
				if err := b.Set(key, v); err != nil {
					t.Fatal(err)
				}
			}
			set("general.architecture", c.arch, "controlvector")
			set("controlvector.model_hint", c.hint, "llama")
			size := n
			if c.size > 0 {
				size = c.size
			}
			data := make([]byte, 4*size)
			binary.LittleEndian.PutUint32(data, math.Float32bits(c.value))
			info := gguf.TensorInfo{Name: "direction.1", Type: tensor.F32, Dims: []uint64{uint64(size)}}
			if c.tensor != "" {
				info.Name = c.tensor
			}
			if err := b.AddTensor(info, gguf.Bytes(data)); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(t.TempDir(), "control.gguf")
			if err := b.Save(path); err != nil {
				t.Fatal(err)
			}
			_, err := m.ReadControl(path, c.first, c.last)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("expected %q, found: %v", c.want, err)
			}
		})
	}
}
