package ridge

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// packagesInDocs are what fragments of code in the documents may use.
var packagesInDocs = map[string]string{
	"fmt": "fmt", "sync": "sync", "json": "encoding/json", "ridge": "ridge", "chat": "ridge/text/chat",
	"constraint": "ridge/text/constraint", "sample": "ridge/sample", "grammar": "ridge/text/grammar",
	"schema": "ridge/text/grammar/schema", "tokenizer": "ridge/text/tokenizer",
}

// givenInDocs declares what fragments of a document take for granted; they are
// compiled and not run.
var givenInDocs = map[string]string{
	"docs/grammars.md": "var tok *tokenizer.Tokenizer\nvar ends []int32\nvar source []byte\nvar logits []float32\nvar sampler *sample.Sampler\n",
}

var (
	goBlock   = regexp.MustCompile("(?ms)^```go\n(.*?)^```$")
	qualifier = regexp.MustCompile(`\b([a-z]+)\.[A-Z]`)
)

// The Go code in README.md and docs compiles, and runs with the model tiny.
// Fragments of a page are one program, in their order.
func TestCodeInDocs(t *testing.T) {
	pages := []string{"README.md"}
	err := filepath.WalkDir("docs", func(path string, d fs.DirEntry, err error) error {
		if filepath.Ext(path) == ".md" {
			pages = append(pages, filepath.ToSlash(path))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	var ran []string
	for _, page := range pages {
		b, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		fragments := ""
		for _, block := range goBlock.FindAllStringSubmatch(string(b), -1) {
			if strings.HasPrefix(block[1], "package ") {
				runInDocs(t, page, block[1], true)
				ran = append(ran, page)
			} else {
				fragments += block[1]
			}
		}
		if fragments != "" {
			runInDocs(t, page, wrap(givenInDocs[page]+fragments), givenInDocs[page] == "")
			ran = append(ran, page)
		}
	}
	for _, page := range []string{"README.md", "docs/go.md", "docs/grammars.md"} {
		if !slices.Contains(ran, page) {
			t.Errorf("%s: no code was found", page)
		}
	}
}

// wrap makes a program of fragments.
func wrap(body string) string {
	imports := "\t\"context\"\n\t\"log\"\n"
	var names []string
	for _, q := range qualifier.FindAllStringSubmatch(body, -1) {
		if path, ok := packagesInDocs[q[1]]; ok && !slices.Contains(names, q[1]) {
			names = append(names, q[1])
			imports += fmt.Sprintf("\t%q\n", path)
		}
	}
	return "package main\n\nimport (\n" + imports + ")\n\nfunc main() {\n\tif err := run(context.Background()); err != nil {\n\t\tlog.Fatal(err)\n\t}\n}\n\nfunc run(ctx context.Context) error {\n" + body + "\nreturn nil\n}\n"
}

// runInDocs builds a program and, if run is set, runs it.
func runInDocs(t *testing.T, page, source string, run bool) {
	t.Helper()
	dir := t.TempDir()
	file, bin := filepath.Join(dir, "main.go"), filepath.Join(dir, "main")
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(source, `"smollm2"`, `"tiny"`)), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("go", "build", "-o", bin, file).CombinedOutput(); err != nil {
		t.Errorf("%s: the code does not compile: %v\n%s", page, err, out)
		return
	}
	if !run {
		return
	}
	cmd := exec.Command(bin)
	cmd.Env = append(os.Environ(), "RIDGE_OFFLINE=1", "HOME="+dir)
	out, err := cmd.CombinedOutput()
	if err != nil || len(strings.TrimSpace(string(out))) == 0 {
		t.Errorf("%s: the program ends with %v and prints %q", page, err, out)
	}
	t.Logf("%s:\n%s", page, out)
}
