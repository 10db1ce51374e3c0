package main

import (
	"bytes"
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
