package model

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ridge/weights/safetensors"
	"ridge/weights/tensor"
)

// Every GGUF file of a tiny model becomes the checkpoint that transformers has of it:
// the same tensors under the same names, of the same shapes and values, and a
// description that is read alike; or an error that says what is not written.
func TestToCheckpoint(t *testing.T) {
	files, err := filepath.Glob(tinyModels + "/*/*.gguf")
	if err != nil || len(files) == 0 {
		t.Fatalf("no tiny models: %v", err)
	}
	written := 0
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".gguf")
		if strings.Contains(name, "-of-") {
			continue
		}
		dst := filepath.Join(t.TempDir(), name)
		if _, err := Convert(file, dst+"/", "f32", 0, nil); err != nil {
			if left, _ := os.ReadDir(filepath.Dir(dst)); len(left) > 0 || !strings.HasPrefix(err.Error(), "model: convert: ") {
				t.Errorf("left %v: %v", left, err)
			}
			t.Logf("%s: %v", name, err)
			continue
		}
		written++
		sameTensors(t, filepath.Dir(file), dst)
		if written%6 == 1 { // of the others the tensors and the description tell it
			sameLogits(t, file, dst)
		}
	}
	if t.Logf("%d of %d written", written, len(files)); written < 70 {
		t.Errorf("%d of %d written, expected at least 70", written, len(files))
	}
}

// sameTensors compares a checkpoint with that of transformers.
func sameTensors(t *testing.T, want, got string) {
	t.Helper()
	w, err := safetensors.Open(want)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	g, err := safetensors.Open(got)
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	for _, x := range g.Tensors() {
		y, ok := w.Tensor(x.Name)
		if !ok || !slices.Equal(x.Shape, y.Shape) {
			t.Errorf("%s: %s: shape %d, transformers' is %d", got, x.Name, x.Shape, y.Shape)
			continue
		}
		a, err := g.Mat(x.Name)
		if err != nil {
			t.Fatal(err)
		}
		b, err := w.Mat(x.Name)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(allValues(a), allValues(b)) {
			t.Errorf("%s: %s: other values than transformers'", got, x.Name)
		}
	}
	for _, y := range w.Tensors() {
		if _, ok := g.Tensor(y.Name); !ok {
			t.Logf("%s: without %s", got, y.Name) // what the network does not need
		}
	}
}

// allValues returns the values of a matrix.
func allValues(m tensor.Mat) []float32 {
	x := make([]float32, m.Rows*m.Cols)
	for r := range m.Rows {
		m.DecodeRow(x[r*m.Cols:][:m.Cols], r)
	}
	return x
}
