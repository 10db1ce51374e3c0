package model

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ridge/internal/builtin"
	"ridge/internal/packfile"
	"ridge/internal/testdata"
	"ridge/kernel"
	"ridge/weights/tensor"
)

// Columns that are large in every row come first, a large one beside a larger
// one only when that is apart, and then their gain is what is left.
func TestRankColumns(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	const n, k = 16, 96
	x := &kernel.Acts{N: n, K: k, F32: make([]float32, n*k), LDF: k}
	for i := range x.F32 {
		x.F32[i] = rng.Float32() - 0.5
		switch i % k {
		case 40:
			x.F32[i] = 50
		case 41:
			x.F32[i] = -20
		case 95:
			x.F32[i] *= 10
		}
	}
	got := rankColumns(x, 6)
	if len(got) != 6 || got[0].col != 40 || got[1].col != 41 || got[2].col != 95 {
		t.Errorf("ranked %v", got)
	}
	if got[0].gain < 4*got[1].gain || got[2].gain <= 0 {
		t.Errorf("gains %v", got)
	}
	if got := rankColumns(&kernel.Acts{N: 1, K: 64, F32: make([]float32, 64), LDF: 64}, 4); len(got) != 0 {
		t.Errorf("rows of zeros: ranked %v", got)
	}
}

// The columns of a model cost what its plan allows, and all matrices with the
// same input have the same ones.
func TestApartBudget(t *testing.T) {
	for _, a := range []Act{ActMixed, ActFine} {
		m := openTiny(t, testdata.Tiny, 64, Options{KV: tensor.F16, Act: a, Workers: 1})
		all, apart := 0, 0
		for _, in := range m.net.inputs() {
			for _, l := range in.mats {
				all += l.W.Rows * l.W.Cols
				if c := l.W.Apart; c != nil {
					apart += l.W.Rows * len(c.Cols)
					if first := in.mats[0].W.Apart; first == nil || !slices.Equal(first.Cols, c.Cols) {
						t.Errorf("%v: layer %d, input %d: matrices with other columns", a, in.layer, in.site)
					}
					if l.Planes > 1 {
						t.Errorf("%v: layer %d, input %d: %d planes and columns apart", a, in.layer, in.site, l.Planes)
					}
				}
			}
		}
		if share := float64(apart) / float64(all); share > a.Apart() || share < 0.7*a.Apart() {
			t.Errorf("%v: %.4f of the products are those of columns apart, want %.4f", a, share, a.Apart())
		}
	}
}

// Columns apart are kept with packed weights and found again, those of each
// choice; what is damaged is written again.
func TestKeptColumnsApart(t *testing.T) {
	b, ok := builtin.Data(testdata.Tiny)
	if !ok {
		t.Fatal("no model is part of the program")
	}
	path := filepath.Join(t.TempDir(), "m.gguf")
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	eachWay(t, func(t *testing.T, way string) {
		s := &shelf{dir: t.TempDir(), act: ActMixed}
		want := s.start(t, path, "")
		file := s.file(t)
		if got := s.start(t, path, way); !slices.Equal(got, want) {
			t.Error("other logits with columns that were kept")
		}
		f, err := packfile.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		last := f.Matrix[len(f.Matrix)-1]
		f.Close()
		if !strings.HasSuffix(last.Name, apartSuffix) || last.Cols == 0 {
			t.Fatalf("the last kept is %+v, want columns apart", last)
		}
		whole, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		bad := slices.Clone(whole)
		for i := range 4 { // the number of a column that no matrix has
			bad[int(last.Offset)+i] = 0xff
		}
		if err := os.WriteFile(file, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		if got := s.start(t, path, ""); !slices.Equal(got, want) {
			t.Error("other logits after damage")
		}
		if now, err := os.ReadFile(file); err != nil || !slices.Equal(now, whole) {
			t.Errorf("not written again: %v", err)
		}
		s.act = ActInt8
		if slices.Equal(s.start(t, path, ""), want) {
			t.Error("int8 has the logits of mixed")
		}
		s.silent(t)
	})
}
