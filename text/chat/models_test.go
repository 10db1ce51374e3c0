package chat

import (
	"bytes"
	"encoding/binary"
	"io"
	"os"
	"path/filepath"
	"testing"

	"ridge/internal/testdata"
)

// ggufTemplate reads the chat template from the head of a GGUF file. It is
// not a parser: it looks for the key.
func ggufTemplate(t *testing.T, path string) string {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	head, err := io.ReadAll(io.LimitReader(f, 32<<20))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := bytes.Cut(head, []byte("tokenizer.chat_template\x08\x00\x00\x00"))
	if !ok || len(rest) < 8 {
		t.Fatalf("%s has no chat template", path)
	}
	n := binary.LittleEndian.Uint64(rest)
	if n > uint64(len(rest)-8) {
		t.Fatalf("%s: chat template of %d bytes", path, n)
	}
	return string(rest[8 : 8+n])
}

// TestModelGoldens is TestGoldens for the templates inside the real models.
func TestModelGoldens(t *testing.T) {
	g, s := loadGoldens(t, "testdata/goldens.json"), loadScenarios(t)
	for _, model := range []string{"smollm2", "qwen"} {
		t.Run(model, func(t *testing.T) {
			path := testdata.Model(t, model)
			name := filepath.Base(path)
			if g.Templates[name] == nil {
				t.Fatalf("no goldens for %s", name)
			}
			checkTemplate(t, name, ggufTemplate(t, path), g, s)
		})
	}
}
