package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ridge/hub"
	"ridge/internal/badfiles"
	"ridge/internal/testdata"
)

// A model that cannot be opened says why, in a line without its path: an unknown
// architecture, a quantization that is not there, a broken file.
func TestFindProblems(t *testing.T) {
	cases, err := badfiles.Write(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	models := []hub.Model{{Name: "good", Files: []string{testdata.Tiny}}}
	var want []string
	for _, c := range cases {
		models = append(models, hub.Model{Name: c.Name, Files: []string{c.Path}})
		want = append(want, c.Want)
	}
	b, err := os.ReadFile(tinyLlama)
	if err != nil {
		t.Fatal(err)
	}
	odd := filepath.Join(t.TempDir(), "odd.gguf")
	if err := os.WriteFile(odd, bytes.ReplaceAll(b, []byte("llama"), []byte("lhama")), 0o600); err != nil {
		t.Fatal(err)
	}
	models = append(models, hub.Model{Name: "odd", Files: []string{odd}})
	want = append(want, `"lhama"`)
	findProblems(models)
	if models[0].Problem != "" || remark(models[0]) != "" {
		t.Errorf("tiny: %q", models[0].Problem)
	}
	for i, m := range models[1:] {
		if m.Problem == "" || strings.Contains(m.Problem, "\n") || strings.Contains(m.Problem, m.Path()+":") || !strings.HasPrefix(remark(m), "cannot run: ") {
			t.Errorf("%s: %q, want one with %q", m.Name, m.Problem, want[i])
		}
	}
	if p := models[len(models)-1].Problem; !strings.Contains(p, "architecture") || !strings.Contains(p, "lhama") {
		t.Errorf("an unknown architecture: %q", p)
	}
}

// Every model of the catalogue is listed with its licence and context, and show
// describes it without fetching it.
func TestCatalogued(t *testing.T) {
	t.Setenv("RIDGE_OFFLINE", "1")
	t.Setenv("RIDGE_MODELS", t.TempDir())
	t.Setenv("HOME", t.TempDir())
	var list bytes.Buffer
	writeModels(&list, toPull(nil))
	for _, e := range hub.Catalog() {
		if want := fmt.Sprintf("%s, context %d", e.License, e.Context); !e.Base && !strings.Contains(list.String(), want) {
			t.Errorf("%s: the list has no %q", e.Name, want)
		}
	}
	c := showCommand()
	var out bytes.Buffer
	c.SetOut(&out)
	c.SetArgs([]string{"qwen3:30b"})
	if err := c.Execute(); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"qwen3:30b-a3b, qwen3:30b\n", "not on this machine; ridge pull qwen3:30b-a3b", "qwen3moe", "apache-2.0", "40960", "17.28 GiB", "ollama:qwen3:30b-a3b-q4_K_M (Q4_K_M)"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("show prints no %q:\n%s", want, &out)
		}
	}
}
