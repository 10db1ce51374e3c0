package atomicfile

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
)

func TestWrite(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "model.gguf")
	for _, content := range []string{"first", "second, longer"} {
		err := Write(path, func(w io.Writer) error {
			_, err := io.WriteString(w, content)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != content {
			t.Errorf("got %q, %v, want %q", got, err, content)
		}
	}
	wantOnly(t, dir, "model.gguf")
}

func TestWriteFails(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "model.gguf")
	if err := os.WriteFile(path, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	broken := errors.New("broken")
	err := Write(path, func(w io.Writer) error {
		if _, err := io.WriteString(w, "half"); err != nil {
			return err
		}
		if got, _ := os.ReadFile(path); string(got) != "old" {
			t.Errorf("half-way the file holds %q", got)
		}
		return broken
	})
	if err != broken {
		t.Errorf("got error %v", err)
	}
	if got, _ := os.ReadFile(path); string(got) != "old" {
		t.Errorf("after the error the file holds %q", got)
	}
	wantOnly(t, dir, "model.gguf")

	if err := Write(filepath.Join(dir, "absent", "f"), nil); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("absent folder: got %v", err)
	}
	if err := Write(dir, func(io.Writer) error { return nil }); err == nil {
		t.Error("a folder was replaced by a file")
	}
}

func TestSweep(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a.json", "a.json.1x" + Suffix} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	Sweep(dir)
	wantOnly(t, dir, "a.json")
	Sweep(filepath.Join(dir, "absent"))
}

func wantOnly(t *testing.T, dir, name string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != 1 || entries[0].Name() != name {
		t.Errorf("folder holds %v, want only %s", entries, name)
	}
}
