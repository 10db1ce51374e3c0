package techniques

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const root = "../.."

var update = flag.Bool("update", false, "write docs/techniques.md")

func TestTable(t *testing.T) {
	seen := map[string]bool{}
	for _, x := range All {
		if seen[x.ID] {
			t.Errorf("%s stands twice", x.ID)
		}
		seen[x.ID] = true
		if x.What == "" || x.Use == "" {
			t.Errorf("%s: what or use is missing", x.ID)
		}
		if _, err := os.Stat(filepath.Join(root, x.Code)); err != nil {
			t.Errorf("%s: code: %v", x.ID, err)
		}
		checkFunc(t, x.ID, x.Test)
		if x.Bench != "" && !strings.HasPrefix(x.Bench, "ridge ") {
			checkFunc(t, x.ID, x.Bench)
		}
	}
}

// checkFunc looks for a function "dir Name" in the tests of a package.
func checkFunc(t *testing.T, id, ref string) {
	t.Helper()
	dir, name, ok := strings.Cut(ref, " ")
	if !ok {
		t.Errorf("%s: expected a package and a function, found %q", id, ref)
		return
	}
	files, err := filepath.Glob(filepath.Join(root, dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	re := regexp.MustCompile(`(?m)^func ` + regexp.QuoteMeta(name) + `\(`)
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if re.Match(b) {
			return
		}
	}
	t.Errorf("%s: no function %s in the tests of %s", id, name, dir)
}

// The part of the atlas that is kept here has a line for each technique, in the
// same order, with what it asks for.
func TestAtlas(t *testing.T) {
	b, err := os.ReadFile("testdata/atlas.tsv")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")[1:]
	if len(lines) != len(All) {
		t.Fatalf("%d lines for %d techniques", len(lines), len(All))
	}
	for i, line := range lines {
		if id, asks, _ := strings.Cut(line, "\t"); id != All[i].ID || asks == "" {
			t.Errorf("line %d of the atlas: expected %s and what it asks for, found %q", i+2, All[i].ID, line)
		}
	}
}

func TestPage(t *testing.T) {
	path := filepath.Join(root, "docs/techniques.md")
	want := Page()
	if *update {
		if err := os.WriteFile(path, want, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("docs/techniques.md is not up to date (%v): go test ./internal/techniques -update", err)
	}
}
