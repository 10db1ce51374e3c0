package gguf_test

import (
	"bytes"
	"testing"

	"ridge/internal/builtin"
	"ridge/weights/gguf"
)

// An embedded model is a file in order: it is opened by its name, is written
// again byte for byte, and is small.
func TestBuiltin(t *testing.T) {
	for _, m := range builtin.List() {
		f, err := gguf.Open(m.Path)
		if err != nil {
			t.Fatal(err)
		}
		want, _ := builtin.Data(m.Path)
		c := &comparer{want: bytes.NewReader(want)}
		if n, err := f.Builder().WriteTo(c); err != nil || n != m.Size {
			t.Errorf("%s: %d bytes written again, want %d: %v", m.Name, n, m.Size, err)
		}
		if m.Size > 8<<20 {
			t.Errorf("%s: %d bytes", m.Name, m.Size)
		}
		if got := f.String("general.license", ""); got != m.License {
			t.Errorf("%s: licence %q in the file, %q in the list", m.Name, got, m.License)
		}
		if found, ok := builtin.Lookup(m.Name); !ok || found != m {
			t.Errorf("Lookup(%q) = %v, %v", m.Name, found, ok)
		}
		f.Close()
	}
	if _, err := gguf.Open("builtin:nothing"); err == nil {
		t.Error("an unknown name opens")
	}
}
