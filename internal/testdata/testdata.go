// Package testdata finds the texts, vocabularies, templates and real models that
// tests of several packages read.
package testdata

import (
	"compress/bzip2"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"ridge/internal/builtin"
)

// Dir returns the folder internal/testdata/data of the repository that the
// working directory is in; its README.md says what is there. Texts and
// vocabularies are packed in it: File unpacks them.
func Dir(t testing.TB) string {
	t.Helper()
	wd, err := os.Getwd()
	if err != nil {
		t.Fatalf("testdata: working directory: %v", err)
	}
	for dir := wd; ; dir = filepath.Dir(dir) {
		d := filepath.Join(dir, "internal", "testdata", "data")
		if st, err := os.Stat(d); err == nil && st.IsDir() {
			return d
		}
		if filepath.Dir(dir) == dir {
			t.Fatalf("testdata: no internal/testdata/data beside a parent of %s", wd)
		}
	}
}

// unpacked has the bytes of files that were unpacked, by path.
var unpacked sync.Map

// File returns the path of a file of Dir, by its slash-separated name. A packed
// one is unpacked into a folder that goes with the test.
func File(t testing.TB, name string) string {
	t.Helper()
	path := filepath.Join(Dir(t), filepath.FromSlash(name))
	_, err := os.Stat(path)
	if err == nil {
		return path
	}
	if !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("testdata: %v", err)
	}
	b, ok := unpacked.Load(path)
	if !ok {
		f, err := os.Open(path + packed)
		if err != nil {
			t.Fatalf("testdata: %v", err)
		}
		defer f.Close()
		if b, err = io.ReadAll(bzip2.NewReader(f)); err != nil {
			t.Fatalf("testdata: %s: %v", f.Name(), err)
		}
		unpacked.Store(path, b)
	}
	out := filepath.Join(t.TempDir(), filepath.Base(path))
	if err := os.WriteFile(out, b.([]byte), 0o600); err != nil {
		t.Fatal(err)
	}
	return out
}

// packed ends the name of a packed file.
const packed = ".bz2"

// Vocabularies returns the names of the vocabularies, sorted: NAME is the file
// tokenizers/NAME.gguf.
func Vocabularies(t testing.TB) []string {
	t.Helper()
	end := ".gguf" + packed
	files, err := filepath.Glob(filepath.Join(Dir(t), "tokenizers", "*"+end))
	if err != nil || len(files) == 0 {
		t.Fatalf("testdata: no vocabularies: %v", err)
	}
	for i, f := range files {
		files[i] = strings.TrimSuffix(filepath.Base(f), end)
	}
	return files
}

// Tiny is the path of the trained model that is part of the program: it is
// always there.
const Tiny = builtin.Prefix + "tiny"

// Model returns the path of a real model ("smollm2", "gemma3", "qwen" or "minilm") in
// the folder $RIDGE_TEST_MODELS, where the test command puts what it pulled.
// A test that calls it is skipped when the model is not there, and fails when
// CI=true. "tiny" is Tiny.
func Model(t testing.TB, name string) string {
	t.Helper()
	if name == "tiny" {
		return Tiny
	}
	files := map[string]string{
		"smollm2": "SmolLM2-135M-Instruct.Q4_1.gguf",
		"gemma3":  "gemma-3-270m-q4_k_m.gguf",
		"qwen":    "qwen-0.5b.gguf",
		"minilm":  "all-MiniLM-L6-v2",
	}
	file, ok := files[name]
	if !ok {
		t.Fatalf("testdata: no real model is called %q", name)
	}
	dir := os.Getenv("RIDGE_TEST_MODELS")
	if dir == "" {
		Skip(t, "real models not available (set RIDGE_TEST_MODELS)")
	}
	path := filepath.Join(dir, file)
	if _, err := os.Stat(path); err != nil {
		Skip(t, "real model not available: "+err.Error())
	}
	return path
}

// Skip skips t with the reason why, or fails it when CI=true: on the test
// machines everything must be there.
func Skip(t testing.TB, why string) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatalf("not available, and CI=true: %s", why)
	}
	t.Skipf("skipped: %s", why)
}
