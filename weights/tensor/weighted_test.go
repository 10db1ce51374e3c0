package tensor

import (
	"archive/zip"
	"bytes"
	"io"
	"strings"
	"testing"

	"ridge/internal/cpu"
)

// Rows encoded with an importance matrix are those of ggml's quantizer, byte for byte.
func TestGoldenWeighted(t *testing.T) {
	z, err := zip.OpenReader("testdata/weighted.zip")
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	files := map[string][]byte{}
	for _, f := range z.File {
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		if files[f.Name], err = io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
	}
	for _, tier := range []cpu.Tier{cpu.Ref, cpu.AVX2, cpu.AVX512} {
		if tier.Runs() {
			t.Run(tier.String(), func(t *testing.T) {
				defer cpu.Set(tier)()
				goldenWeighted(t, files)
			})
		}
	}
}

func goldenWeighted(t *testing.T, files map[string][]byte) {
	const cols = 512
	x, importance := floats(files["inputs"]), floats(files["importance"])
	types := 0
	for name, want := range files {
		typ, ok := strings.CutSuffix(name, ".encoded")
		if !ok {
			continue
		}
		types++
		d, err := ParseDType(typ)
		if err != nil {
			t.Fatal(err)
		}
		size, wrong := d.RowBytes(cols), 0
		row := make([]byte, size)
		for i := range len(x) / cols {
			if err := d.EncodeWeighted(row, x[i*cols:(i+1)*cols], importance); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(row, want[i*size:(i+1)*size]) {
				wrong++
			}
		}
		if wrong > 0 {
			t.Errorf("%s: %d of %d rows differ", d, wrong, len(x)/cols)
		}
	}
	if types != 25 {
		t.Errorf("types: expected 25, found %d", types)
	}
}
