package mmap

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

func TestOpen(t *testing.T) {
	for _, size := range []int{0, 1, 4095, 4096, 4097, 1 << 20} {
		want := make([]byte, size)
		for i := range want {
			want[i] = byte(i * 7)
		}
		path := filepath.Join(t.TempDir(), "f")
		if err := os.WriteFile(path, want, 0o600); err != nil {
			t.Fatal(err)
		}
		m, err := Open(path)
		if err != nil {
			t.Fatalf("size %d: %v", size, err)
		}
		for a := Normal; a <= DontNeed; a++ {
			if err := m.Advise(a); err != nil {
				t.Errorf("size %d: Advise(%d): %v", size, a, err)
			}
			if !bytes.Equal(m.Bytes(), want) {
				t.Errorf("size %d: content differs after Advise(%d)", size, a)
			}
		}
		for range 2 {
			if err := m.Close(); err != nil {
				t.Errorf("size %d: Close: %v", size, err)
			}
		}
		if m.Bytes() != nil {
			t.Errorf("size %d: bytes left after Close", size)
		}
	}
}

func TestOpenSurvivesReplacement(t *testing.T) {
	dir := t.TempDir()
	path, next := filepath.Join(dir, "f"), filepath.Join(dir, "g")
	for p, s := range map[string]string{path: "old content", next: "new"} {
		if err := os.WriteFile(p, []byte(s), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	m, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if err := os.Rename(next, path); err != nil {
		t.Fatal(err)
	}
	if string(m.Bytes()) != "old content" {
		t.Errorf("content is %q after the file was replaced", m.Bytes())
	}
}

func TestOpenRefuses(t *testing.T) {
	if _, err := Open(filepath.Join(t.TempDir(), "absent")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("absent file: got %v", err)
	}
	if _, err := Open(t.TempDir()); !errors.Is(err, ErrNotRegular) {
		t.Errorf("directory: got %v", err)
	}
}
