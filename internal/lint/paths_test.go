package lint

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	address   = regexp.MustCompile(`https?://\S+`)
	link      = regexp.MustCompile(`\]\(([^)#\s]+)(?:#[^)\s]*)?\)`)
	pathWord  = regexp.MustCompile(`(^|[^\w/.~{}$-])((?:\.\.?/)*[\w*-][\w.*-]*(?:/[\w.*-]+)*)`)
	sourceExt = []string{".go", ".s", ".py", ".sh"} // of files that documents also name without their folder
)

// repository is what lies in the module's folder.
type repository struct {
	files []string // of folders too, from the root, with slashes
	tops  []string // folders of the root
}

func readRepository(t *testing.T) *repository {
	t.Helper()
	var r repository
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(root, p)
		switch rel = filepath.ToSlash(rel); {
		case rel == ".":
		case strings.HasPrefix(d.Name(), "."):
			if d.IsDir() {
				return filepath.SkipDir
			}
		default:
			r.files = append(r.files, rel)
			if d.IsDir() && !strings.Contains(rel, "/") {
				r.tops = append(r.tops, rel)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return &r
}

// has reports whether a file or folder is there, by its path from the root, which
// may have stars.
func (r *repository) has(name string) bool {
	return slices.ContainsFunc(r.files, func(f string) bool {
		ok, err := path.Match(name, f)
		return ok && err == nil
	})
}

// hasBelow reports whether a path is there without the folders before it.
func (r *repository) hasBelow(name string) bool {
	parts := strings.Count(name, "/")
	return slices.ContainsFunc(r.files, func(f string) bool {
		segments := strings.Split(f, "/")
		ok, err := path.Match(name, path.Join(segments[max(len(segments)-1-parts, 0):]...))
		return ok && err == nil
	})
}

// missing returns what a page names that is not there: targets of links; words
// that begin with a folder of the root; names of sources, which may lack the
// folders before.
func (r *repository) missing(page, text string) []string {
	var out []string
	text = address.ReplaceAllString(text, "")
	near := func(name string) bool { return r.has(path.Join(path.Dir(page), name)) }
	for _, m := range link.FindAllStringSubmatch(text, -1) {
		if !near(m[1]) {
			out = append(out, m[1])
		}
	}
	for _, m := range pathWord.FindAllStringSubmatch(text, -1) {
		word := strings.TrimSuffix(strings.TrimRight(m[2], "."), "/")
		name := strings.TrimPrefix(word, "./")
		first, _, inside := strings.Cut(name, "/")
		source := slices.Contains(sourceExt, path.Ext(name))
		switch {
		case mimeTypes[name], !source && !(inside && slices.Contains(r.tops, first)):
		case r.has(name), near(name), source && r.hasBelow(name):
		default:
			out = append(out, word)
		}
	}
	return out
}

// mimeTypes look like paths.
var mimeTypes = map[string]bool{"text/event-stream": true, "text/plain": true, "text/html": true}

// What documents name of the repository is there.
func TestPathsInDocs(t *testing.T) {
	r := readRepository(t)
	pages := []string{"README.md", "CONTRIBUTING.md"}
	for _, f := range r.files {
		if strings.HasPrefix(f, "docs/") && path.Ext(f) == ".md" {
			pages = append(pages, f)
		}
	}
	for _, page := range pages {
		b, err := os.ReadFile(filepath.Join(root, page))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range r.missing(page, string(b)) {
			t.Errorf("%s names %s, which is not there", page, name)
		}
	}
}

func TestMissingPaths(t *testing.T) {
	r := &repository{files: []string{"docs", "docs/a.md", "kernel", "kernel/attn.go", "kernel/x_amd64.s", "text", "text/chat"}, tops: []string{"docs", "kernel", "text"}}
	for text, want := range map[string]string{
		"see [a](a.md#part) and [b](b.md)":                      "[b.md]",
		"`kernel/attn.go`, kernel/nosuch.go.":                   "[kernel/nosuch.go]",
		"go test ./kernel ./nosuch ./text/... ./text/nosuch":    "[./text/nosuch]",
		"attn.go, `nosuch.go`, x_*.s, kernel/*.s, kernel/*.c":   "[nosuch.go kernel/*.c]",
		"https://host/docs/b.md, text/plain, and/or, /docs/b":   "[]",
		"[k](../kernel/attn.go) | [k](../kernel/n.go) | text/a": "[../kernel/n.go ../kernel/n.go text/a]",
	} {
		if got := fmt.Sprint(r.missing("docs/a.md", text)); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}
