package compress_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"ridge/compress"
	"ridge/model"
	"ridge/weights/gguf"
)

// tinyFloat returns a small float model as a file, and the mixture Q4_0.
func tinyFloat(t *testing.T) (*gguf.File, compress.Mixture) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "float.gguf")
	if _, err := model.Convert("../internal/tinymodel/testdata/qwen2", path, "keep", 0, nil); err != nil {
		t.Fatal(err)
	}
	f, err := gguf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	mix, err := compress.ParseMixture("Q4_0")
	if err != nil {
		t.Fatal(err)
	}
	return f, mix
}

// someTokens returns n tokens of m without any sense.
func someTokens(m *model.Model, n int) []int32 {
	ids := make([]int32, n)
	for i := range ids {
		ids[i] = int32(i * 31 % m.Config().Vocab)
	}
	return ids
}

// A run that is ended goes on with the layers that it finished, and gives the same bytes
// and reports; what is damaged is computed again, and what is of other settings refused.
func TestKeepLayers(t *testing.T) {
	dir, keep := t.TempDir(), filepath.Join(t.TempDir(), "keep")
	f, mix := tinyFloat(t)
	m, err := model.Open(f.Name(), model.DefaultOptions())
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	ids := someTokens(m, 64)
	quantize := func(name, keep string, pass compress.Pass, most int) (b []byte, all []compress.Rounded, err error) {
		t.Helper()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		o := compress.Options{Mixture: mix, Threads: 2, Method: &compress.Method{Pass: pass, Model: m, Tokens: ids, Chunk: 16, Keep: keep, Report: func(r compress.Rounded) {
			if all = append(all, r); len(all) == most {
				cancel()
			}
		}}}
		plan, err := compress.NewPlan(f, o)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, name)
		if _, err = plan.Write(ctx, path); err == nil {
			b, err = os.ReadFile(path)
		}
		return b, all, err
	}
	gptq := compress.GPTQ{Damp: 0.01}
	want, reports, err := quantize("whole.gguf", "", gptq, -1)
	if err != nil {
		t.Fatal(err)
	}
	half := len(reports) * 2 / 3
	if _, _, err := quantize("ended.gguf", keep, gptq, half); !errors.Is(err, context.Canceled) {
		t.Fatalf("expected an end, found %v", err)
	}
	kept, err := filepath.Glob(filepath.Join(keep, "*"))
	if err != nil || len(kept) < 1 {
		t.Fatalf("expected layers in the folder, found %v", kept)
	}
	if _, _, err := quantize("other.gguf", keep, compress.GPTQ{Damp: 0.02}, -1); err == nil || !strings.Contains(err.Error(), kept[0]) {
		t.Errorf("other settings: expected an error that names %s, found %v", kept[0], err)
	}
	b, err := os.ReadFile(kept[0])
	if err != nil {
		t.Fatal(err)
	}
	b[len(b)/2] ^= 1
	if err := os.WriteFile(kept[0], b, 0o666); err != nil {
		t.Fatal(err)
	}
	got, again, err := quantize("ended.gguf", keep, gptq, -1)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("expected the file of a run that was not ended, found another one, %v", err)
	}
	if !reflect.DeepEqual(again, reports) {
		t.Errorf("expected the same %d reports, found %d others", len(reports), len(again))
	}
	if _, err := os.Stat(keep); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("expected no folder at the end, found one: %v", err)
	}
	left, err := filepath.Glob(filepath.Join(dir, "*"))
	if slices.Sort(left); err != nil || len(left) != 2 {
		t.Errorf("expected two files, found %v", left)
	}
}

// A model that computes the text from a file of packed weights, with the rows between
// layers in another, gives the same bytes as one in memory.
func TestBeyondMemory(t *testing.T) {
	f, mix := tinyFloat(t)
	var want []byte
	for _, beyond := range []bool{false, true} {
		o, scratch := model.DefaultOptions(), ""
		if o.Context = 32; beyond {
			o.Memory, scratch = 64<<10, t.TempDir()
			o.PackCache = model.PackCache{Dir: scratch}
		}
		m, err := model.Open(f.Name(), o)
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		if (m.Beyond() != nil) != beyond {
			t.Fatalf("expected a model beyond memory: %v, found %v", beyond, m.Beyond() != nil)
		}
		plan, err := compress.NewPlan(f, compress.Options{Mixture: mix, Method: &compress.Method{Pass: compress.GPTQ{Damp: 0.01}, Model: m, Tokens: someTokens(m, 96), Chunk: 16, Scratch: scratch}})
		if err != nil {
			t.Fatal(err)
		}
		out := filepath.Join(t.TempDir(), "out.gguf")
		if _, err := plan.Write(t.Context(), out); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(out)
		if err != nil {
			t.Fatal(err)
		}
		if want == nil {
			want = got
		} else if !bytes.Equal(got, want) {
			t.Error("expected the same file, found another one")
		}
	}
}
