package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ridge/hub"
	"ridge/internal/packfile"
)

// doctor counts the files with packed weights, says which are damaged, on
// request by reading them whole, and whose model is gone.
func TestListPacked(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("HOME", t.TempDir())
	data := bytes.Repeat([]byte{1}, 1<<20)
	var models []string
	for range 2 {
		model := filepath.Join(t.TempDir(), "m.gguf")
		if err := os.WriteFile(model, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		d := &packfile.Directory{Model: model, Matrix: []packfile.Entry{{Name: "a", Rows: 1, Cols: 1}}}
		if err := packfile.Write(t.Context(), packfile.Dir(), d, packfile.Writing{Bytes: func(int) []byte { return data }}); err != nil {
			t.Fatal(err)
		}
		models = append(models, model)
	}
	in := listPacked(true)
	if len(in.Files) != 2 || in.Bytes < 2<<20 || len(in.advice()) != 0 {
		t.Errorf("%+v, %q", in, in.advice())
	}
	path := packfile.Path(packfile.Dir(), models[0])
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b[1000] = 7 // where only a look at everything finds it
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	if in = listPacked(false); len(in.advice()) != 0 {
		t.Errorf("without a check: %q", in.advice())
	}
	if in = listPacked(true); len(in.advice()) != 1 || !strings.Contains(in.advice()[0], path) || !strings.Contains(in.advice()[0], "damaged") {
		t.Errorf("with a check: %q", in.advice())
	}
	if err := os.Remove(models[1]); err != nil {
		t.Fatal(err)
	}
	if in = listPacked(false); len(in.advice()) != 1 || !strings.Contains(in.advice()[0], "is gone") {
		t.Errorf("of a model that is gone: %q", in.advice())
	}
}

// The list has a column for packed weights where there are some.
func TestWriteModels(t *testing.T) {
	var b strings.Builder
	writeModels(&b, []hub.Model{{Name: "one", Size: 1 << 20}})
	if strings.Contains(b.String(), "PACKED") {
		t.Errorf("list:\n%s", b.String())
	}
	b.Reset()
	writeModels(&b, []hub.Model{{Name: "one", Size: 1 << 20}, {Name: "two", Size: 1 << 20, Packed: 3 << 20}})
	if !strings.Contains(b.String(), "\tPACKED\n") || !strings.Contains(b.String(), "\t3.0 MiB\n") {
		t.Errorf("list:\n%s", b.String())
	}
}
