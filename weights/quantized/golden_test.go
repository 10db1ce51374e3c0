package quantized

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"ridge/weights/safetensors"
	"ridge/weights/tensor"
)

// openCase opens the checkpoint of a case.
func openCase(t testing.TB, dir string) *File {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, "config.json"))
	if err != nil {
		t.Fatal(err)
	}
	var config map[string]any
	if err := json.Unmarshal(b, &config); err != nil {
		t.Fatal(err)
	}
	c, err := ReadConfig(dir, config)
	if err != nil || c == nil {
		t.Fatalf("%s: %v %v", dir, c, err)
	}
	st, err := safetensors.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	f, err := Open(st, c)
	if err != nil {
		st.Close()
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func cases(t testing.TB) []string {
	t.Helper()
	dirs, err := filepath.Glob("testdata/*/golden.json")
	if err != nil || len(dirs) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for i := range dirs {
		dirs[i] = filepath.Dir(dirs[i])
	}
	return dirs
}

// Every weight has the values that the library that its method comes from
// dequantizes it to, bit for bit, once rounded to the type of that library.
func TestValuesOfTheLibraries(t *testing.T) {
	for _, dir := range cases(t) {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			var golden struct {
				Weights map[string]struct {
					Type   string
					Shape  []int
					SHA256 string
				}
			}
			b, err := os.ReadFile(filepath.Join(dir, "golden.json"))
			if err == nil {
				err = json.Unmarshal(b, &golden)
			}
			if err != nil {
				t.Fatal(err)
			}
			f := openCase(t, dir)
			if f.Quantized() != len(golden.Weights) {
				t.Errorf("%d quantized weights, want %d", f.Quantized(), len(golden.Weights))
			}
			types := map[tensor.DType]int{}
			for name, want := range golden.Weights {
				m, err := f.Mat(name)
				if err != nil {
					t.Fatal(err)
				}
				types[m.Type]++
				typ, err := tensor.ParseDType(want.Type)
				if err != nil {
					t.Fatal(err)
				}
				rows := 1
				for _, n := range want.Shape[:len(want.Shape)-1] {
					rows *= n
				}
				if cols := want.Shape[len(want.Shape)-1]; m.Rows != rows || m.Cols != cols {
					t.Fatalf("%s: %d x %d, want %d x %d", name, m.Rows, m.Cols, rows, cols)
				}
				sum := sha256.New()
				row, data := make([]float32, m.Cols), make([]byte, typ.RowBytes(m.Cols))
				for r := range m.Rows {
					m.DecodeRow(row, r)
					for i := range row {
						if m.Type == tensor.MXFP4 {
							row[i] += 0 // it has one zero, without a sign
						}
					}
					if err := typ.Encode(data, row); err != nil {
						t.Fatal(err)
					}
					sum.Write(data)
				}
				if got := hex.EncodeToString(sum.Sum(nil)); got != want.SHA256 {
					t.Errorf("%s (%v): sum %s, want %s", name, m.Type, got, want.SHA256)
				}
			}
			t.Log(f.config.Text, types)
		})
	}
}
