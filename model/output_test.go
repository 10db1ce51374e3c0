package model

import (
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"ridge/weights/gguf"
	"ridge/weights/safetensors"
	"ridge/weights/tensor"
)

// float32sOf returns the values of a tensor.
func (c *checkpoint) float32s(t *testing.T, name string) []float32 {
	t.Helper()
	for _, x := range c.tensors {
		if b, ok := x.Data.(safetensors.Bytes); ok && x.Name == name {
			return decoded([]byte(b))
		}
	}
	t.Fatalf("no tensor %s", name)
	return nil
}

// A shared output matrix has its bias.
func TestSharedOutputHasItsBias(t *testing.T) {
	shared := copyCheckpoint(t, "phi", map[string]any{"tie_word_embeddings": true}, func(c *checkpoint) { c.remove("lm_head.weight") })
	apart := copyCheckpoint(t, "phi", nil, func(c *checkpoint) {
		c.set("lm_head.weight", []int{128, 32}, c.float32s(t, "model.embed_tokens.weight"))
	})
	bare := copyCheckpoint(t, "phi", map[string]any{"tie_word_embeddings": true}, func(c *checkpoint) {
		c.remove("lm_head.weight")
		c.set("lm_head.bias", []int{128}, make([]float32, 128))
	})
	var logits [3][]float32
	for i, dir := range []string{shared, apart, bare} {
		logits[i] = compute(t, openTiny(t, dir, 0, Options{KV: tensor.F32, Workers: 1}), []int32{3, 4, 5}, 3)
	}
	if !equalBits(logits[0], logits[1]) {
		t.Error("a shared matrix with a bias gives other logits than the same matrix apart")
	}
	if equalBits(logits[0], logits[2]) {
		t.Error("the bias has no effect")
	}
}

// The second generation of Baichuan divides the rows of the output matrix by their
// lengths.
func TestUnitOutput(t *testing.T) {
	const name = "baichuan-7b"
	f, err := gguf.Open(filepath.Join(tinyModels, name, name+".gguf"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w, err := f.Mat("output.weight")
	if err != nil {
		t.Fatal(err)
	}
	tokens := []int32{3, 4, 5}
	plain := compute(t, openTiny(t, filepath.Join(tinyModels, name), 0, Options{KV: tensor.F32, Workers: 1}), tokens, 3)
	unit := compute(t, openTiny(t, copyCheckpoint(t, name, map[string]any{"z_loss_weight": 0}, func(*checkpoint) {}), 0, Options{KV: tensor.F32, Workers: 1}), tokens, 3)
	row := make([]float32, w.Cols)
	for i := range plain {
		w.DecodeRow(row, i%w.Rows)
		sum := 0.0
		for _, v := range row {
			sum += float64(v) * float64(v)
		}
		if want := float64(plain[i]) / math.Sqrt(sum); math.Abs(float64(unit[i])-want) > 1e-5 {
			t.Fatalf("logit %d: expected %v, found %v", i, want, unit[i])
		}
	}
}

// Kept weights of a checkpoint that is said to share its output matrix are those
// of the file: the matrix of its own, or one that is the same.
func TestKeptOutputMatrix(t *testing.T) {
	for _, factor := range []float32{1, 2} {
		dir := copyCheckpoint(t, "llama-tied-mha", nil, func(c *checkpoint) {
			w := c.float32s(t, "model.embed_tokens.weight")
			for i := range w {
				w[i] *= factor
			}
			c.set("lm_head.weight", []int{128, 32}, w)
		})
		old := time.Now().Add(-time.Hour)
		for _, file := range []string{"model.safetensors", "config.json"} {
			if err := os.Chtimes(filepath.Join(dir, file), old, old); err != nil {
				t.Fatal(err)
			}
		}
		eachWay(t, func(t *testing.T, way string) {
			s := &shelf{dir: t.TempDir()}
			packed := s.start(t, dir, "")
			if kept := s.start(t, dir, way); !equalBits(packed, kept) {
				t.Errorf("output matrix %v times the embedding: kept weights give other logits", factor)
			}
			s.silent(t)
		})
	}
}
