package badfiles_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ridge/internal/badfiles"
	"ridge/weights/gguf"
	"ridge/weights/safetensors"
)

// TestWrite opens every broken file from the disk with the reader that has to
// find the fault.
func TestWrite(t *testing.T) {
	cases, err := badfiles.Write(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, c := range cases {
		if seen[c.Name] {
			t.Errorf("two cases are called %s", c.Name)
		}
		seen[c.Name] = true
		if _, err := os.Stat(c.Path); err != nil {
			t.Errorf("%s: %v", c.Name, err)
		}
		if rel := filepath.Base(filepath.Dir(filepath.Join(c.Path, "x"))); rel == "." {
			t.Errorf("%s: path %q", c.Name, c.Path)
		}
		var f interface{ Close() error }
		switch c.Reader {
		case badfiles.GGUF:
			f, err = gguf.Open(c.Path)
		case badfiles.Safetensors:
			f, err = safetensors.Open(c.Path)
		case badfiles.Model: // in order as a container
			if f, err = gguf.Open(c.Path); err != nil {
				t.Errorf("%s: %v", c.Name, err)
				continue
			}
			f.Close()
			continue
		}
		if err == nil {
			f.Close()
			t.Errorf("%s: opened without an error", c.Name)
			continue
		}
		msg := err.Error()
		if !strings.Contains(msg, c.Want) || !strings.HasPrefix(msg, string(c.Reader)+": ") || strings.ContainsAny(msg, "\n\r\x1b") {
			t.Errorf("%s:\n got %s\nwant %s", c.Name, msg, c.Want)
		}
		if len(msg) > 600 {
			t.Errorf("%s: message of %d bytes", c.Name, len(msg))
		}
	}
}
