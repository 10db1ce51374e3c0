package main

import (
	"path/filepath"
	"testing"

	"ridge/internal/testdata"
	"ridge/weights/gguf"
	"ridge/weights/safetensors"
)

// What is extracted of quantized and of plain matrices are the values that they
// stand for.
func TestExtract(t *testing.T) {
	to := filepath.Join(t.TempDir(), "out.safetensors")
	calls := 0
	n, err := extract(testdata.Tiny, "blk.1.*", to, func(done, total int) { calls++ })
	if err != nil {
		t.Fatal(err)
	}
	in, err := gguf.Open(testdata.Tiny)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := safetensors.Open(to)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	if len(out.Tensors()) != n || n == 0 || calls != n {
		t.Fatalf("%d tensors in the file, %d said, %d told", len(out.Tensors()), n, calls)
	}
	for _, x := range out.Tensors() {
		want, err := in.Mat(x.Name)
		if err != nil {
			t.Fatal(err)
		}
		got, err := out.Mat(x.Name)
		if err != nil || got.Rows != want.Rows || got.Cols != want.Cols {
			t.Fatalf("%s: %d x %d, want %d x %d (%v)", x.Name, got.Rows, got.Cols, want.Rows, want.Cols, err)
		}
		a, b := make([]float32, got.Cols), make([]float32, got.Cols)
		for r := range got.Rows {
			got.DecodeRow(a, r)
			want.DecodeRow(b, r)
			for i := range a {
				if a[i] != b[i] {
					t.Fatalf("%s: row %d, value %d: %v, want %v", x.Name, r, i, a[i], b[i])
				}
			}
		}
	}
}
