package techniques

import (
	"bytes"
	"flag"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
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
		if x.What == "" || x.Use == "" || x.Show == "" || len(x.Tests) == 0 {
			t.Errorf("%s: what, use, tests or show is missing", x.ID)
		}
		if _, err := os.Stat(filepath.Join(root, x.Code)); err != nil {
			t.Errorf("%s: code: %v", x.ID, err)
		}
		for _, test := range x.Tests {
			checkFunc(t, x.ID, test)
		}
		checkShow(t, x.ID, x.Show)
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
	if !hasFunc(t, dir, regexp.QuoteMeta(name)) {
		t.Errorf("%s: no function %s in the tests of %s", id, name, dir)
	}
}

// hasFunc reports whether the tests of a package have a function whose name
// matches.
func hasFunc(t *testing.T, dir, name string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	re := regexp.MustCompile(`(?m)^func ` + name + `\(`)
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if re.Match(b) {
			return true
		}
	}
	return false
}

// checkShow looks whether a command is one of this program, or runs tests that
// there are.
func checkShow(t *testing.T, id, show string) {
	t.Helper()
	// Tests of real models find them where test.sh has put them.
	show = strings.TrimPrefix(show, "RIDGE_TEST_MODELS=$PWD/.test-models ")
	switch word, rest, _ := strings.Cut(show, " "); word {
	case "ridge":
		return
	case "go":
		dir := "."
		if f := strings.Fields(rest); f[0] == "-C" {
			dir = f[1]
		}
		for _, pkg := range strings.Fields(rest) {
			if !strings.HasPrefix(pkg, ".") {
				continue
			}
			names, part, _ := strings.Cut(pattern(rest), "/")
			for name := range strings.SplitSeq(names, "|") {
				if name != "-" && !hasFunc(t, path.Join(dir, pkg), `(Test|Benchmark|Example)?`+strings.Trim(name, "^$")+`\w*`) {
					t.Errorf("%s: show: no function %s in the tests of %s", id, name, pkg)
				}
			}
			if part != "" && !isTiny(t, part) {
				t.Errorf("%s: show: no tiny model %s", id, part)
			}
		}
	default:
		t.Errorf("%s: show: expected a command of ridge or go, found %q", id, show)
	}
}

// isTiny reports whether a pattern matches the folder of a tiny model, each of
// which is a part of a test.
func isTiny(t *testing.T, pattern string) bool {
	t.Helper()
	folders, err := os.ReadDir(filepath.Join(root, "internal/tinymodel/testdata"))
	if err != nil {
		t.Fatal(err)
	}
	re := regexp.MustCompile(pattern)
	return slices.ContainsFunc(folders, func(e os.DirEntry) bool { return re.MatchString(e.Name()) })
}

// pattern returns the pattern of -run or -bench in the words of a go command.
func pattern(words string) string {
	for _, flag := range []string{"-bench ", "-run "} {
		if _, rest, ok := strings.Cut(words, flag); ok {
			rest, _, _ = strings.Cut(rest, " ")
			return strings.Trim(rest, "'")
		}
	}
	return ""
}

// The part of the atlas that is kept here has a line for each technique, in the
// same order, with what it asks for.
func TestAtlas(t *testing.T) {
	b, err := os.ReadFile("testdata/atlas.tsv")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")[2:] // after the source and the head
	if len(lines) != len(All) {
		t.Fatalf("%d lines for %d techniques", len(lines), len(All))
	}
	for i, line := range lines {
		if id, asks, _ := strings.Cut(line, "\t"); id != All[i].ID || asks == "" {
			t.Errorf("line %d of the atlas: expected %s and what it asks for, found %q", i+3, All[i].ID, line)
		}
	}
}

func TestPage(t *testing.T) {
	page := filepath.Join(root, "docs/techniques.md")
	want := Page()
	if *update {
		if err := os.WriteFile(page, want, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(page)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("docs/techniques.md is not up to date (%v): go test ./internal/techniques -update", err)
	}
}
