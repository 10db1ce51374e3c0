package hub

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"ridge/internal/packfile"
)

// The packed weights of a model are listed with it and go with it, or alone.
func TestPackedWeights(t *testing.T) {
	home := filepath.Dir(sandbox(t))
	t.Setenv("XDG_CACHE_HOME", filepath.Join(home, "cache"))
	real, link := filepath.Join(home, "real"), filepath.Join(home, "link")
	if err := errors.Join(os.Mkdir(real, 0o700), os.Symlink(real, link)); err != nil {
		t.Skipf("skipped: %v", err)
	}
	t.Setenv("RIDGE_MODELS", link)
	content := fakeGGUF(1000, 3)
	ref := start(t, &server{}, content) + "/m.gguf"
	m, err := Resolve(t.Context(), ref, Options{})
	if err != nil {
		t.Fatal(err)
	}
	size := func() int64 {
		t.Helper()
		all, err := List(Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range all {
			if l.Ref == m.Ref {
				return l.Packed
			}
		}
		t.Fatal("the model is not listed")
		return 0
	}
	pack := func() (path string) {
		t.Helper()
		d := &packfile.Directory{Model: m.Path(), Matrix: []packfile.Entry{{Name: "a", Rows: 1, Cols: 1}}}
		if err := packfile.Write(t.Context(), packfile.Dir(), d, packfile.Writing{Bytes: func(int) []byte { return content }}); err != nil {
			t.Fatal(err)
		}
		return packfile.Path(packfile.Dir(), m.Path())
	}
	if size() != 0 {
		t.Error("packed weights are listed, and there are none")
	}
	path := pack()
	st, err := os.Stat(path)
	if err != nil || size() != st.Size() {
		t.Errorf("%d bytes are listed: %v", size(), err)
	}
	if n, err := RemovePacked(ref, Options{}); n != st.Size() || err != nil || size() != 0 {
		t.Errorf("removed %d bytes, %v, %d are left", n, err, size())
	}
	if n, err := RemovePacked(ref, Options{}); n != 0 || err != nil {
		t.Errorf("removed %d bytes once more, %v", n, err)
	}
	if pack(); size() != st.Size() {
		t.Error("not written again")
	}
	if err := Remove(ref, Options{}); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the packed weights outlive their model: %v", err)
	}
	if _, err := RemovePacked(ref, Options{}); !errors.Is(err, ErrNotFound) {
		t.Errorf("of a model that is gone: %v", err)
	}
}
