package model

import (
	"os"
	"path/filepath"
	"testing"

	"ridge/weights/tensor"
)

// The fingerprint is that of what was loaded: the same for a copy of the file,
// another one when the weights, the shape or the frequencies are others.
func TestFingerprint(t *testing.T) {
	print := func(path string, o Options) string {
		t.Helper()
		o.Workers, o.KVBytes = 1, 1
		m, err := Open(path, o)
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		return m.Fingerprint()
	}
	seen := map[string]string{}
	differs := func(what, print string) {
		t.Helper()
		if was, twice := seen[print]; twice || len(print) != 64 {
			t.Errorf("%s has the fingerprint %q of %q", what, print, was)
		}
		seen[print] = what
	}
	const dir = "../internal/tinymodel/testdata"
	for _, name := range []string{"llama", "llama/llama.gguf", "llama-half", "llama-shards", "qwen2", "llama-rope-linear", "llama-rope-yarn"} {
		differs(name, print(filepath.Join(dir, name), Options{}))
	}
	b, err := os.ReadFile(filepath.Join(dir, "llama/llama.gguf"))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "copy.gguf")
	write := func() {
		t.Helper()
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write()
	if was := seen[print(path, Options{})]; was != "llama/llama.gguf" {
		t.Errorf("the copy's fingerprint is that of %q", was)
	}
	b[len(b)-100] ^= 1 // of a small matrix everything is looked at
	write()
	differs("a bit of a weight", print(path, Options{}))
	const long = "../internal/tinymodel/testdata/phi3-longrope-long"
	differs("activations of 16 bits", print(path, Options{Act: ActInt16}))
	plain := print(filepath.Join(dir, "llama"), Options{KV: tensor.Q8_0})
	if was := seen[plain]; was != "llama" {
		t.Errorf("keys as bytes that are stored as they are: the fingerprint is that of %q", was)
	}
	differs("balanced keys", print(filepath.Join(dir, "qwen2"), Options{KV: tensor.Q8_0}))
	differs("rotation by length", print(long, Options{Context: 8}))
	if was := seen[print(long, Options{Context: 4096})]; was != "rotation by length" {
		t.Errorf("the fingerprint with a longer context is that of %q: frequencies follow the sequence", was)
	}
}
