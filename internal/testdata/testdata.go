// Package testdata finds the texts, vocabularies and real models that tests
// read but that are not part of the repository.
package testdata

import (
	"os"
	"path/filepath"
	"testing"

	"ridge/internal/builtin"
)

// Dir returns the folder of shared test data: $RIDGE_DATA, or the nearest
// shared/data folder beside a parent of the working directory. A test that
// calls it is skipped when there is none, and fails when CI=true.
func Dir(t testing.TB) string {
	t.Helper()
	if d := os.Getenv("RIDGE_DATA"); d != "" {
		return d
	}
	wd, err := os.Getwd()
	if err != nil {
		t.Fatalf("testdata: working directory: %v", err)
	}
	for dir := wd; ; dir = filepath.Dir(dir) {
		d := filepath.Join(dir, "shared", "data")
		if st, err := os.Stat(d); err == nil && st.IsDir() {
			return d
		}
		if filepath.Dir(dir) == dir {
			break
		}
	}
	Skip(t, "shared test data not found (set RIDGE_DATA)")
	return ""
}

// Tiny is the path of the trained model that is part of the program: it is
// always there.
const Tiny = builtin.Prefix + "tiny"

// Model returns the path of a real model ("smollm2", "gemma3" or "qwen") in
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
