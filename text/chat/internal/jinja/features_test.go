package jinja

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var testNow = func() time.Time { return time.Date(2024, 7, 26, 14, 3, 9, 123456000, time.UTC) }

// testVars reads testdata/vars.json, keeping each variable as JSON.
func testVars(t testing.TB) map[string]any {
	t.Helper()
	var raw map[string]json.RawMessage
	readJSON(t, "testdata/vars.json", &raw)
	vars := map[string]any{}
	for k, v := range raw {
		vars[k] = v
	}
	return vars
}

func readJSON(t testing.TB, path string, v any) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, v); err != nil {
		t.Fatal(err)
	}
}

// features reads testdata/features.txt: name and source of each snippet.
func features(t testing.TB) (names, sources []string) {
	t.Helper()
	b, err := os.ReadFile("testdata/features.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range strings.Split(string(b), "=== ")[1:] {
		name, source, _ := strings.Cut(part, "\n")
		if strings.HasPrefix(name, "crlf") {
			source = strings.ReplaceAll(source, "\n", "\r\n")
		}
		names, sources = append(names, name), append(sources, source)
	}
	return names, sources
}

// TestFeatures compares every snippet with what Python made of it. Where
// Python raises an error, so must we, except for the listed leniencies.
func TestFeatures(t *testing.T) {
	var want map[string]*string
	readJSON(t, "testdata/features.json", &want)
	vars := testVars(t)
	names, sources := features(t)
	for i, name := range names {
		t.Run(name, func(t *testing.T) {
			w, ok := want[name]
			if !ok {
				t.Fatal("no golden: run gen_features.py")
			}
			got := ""
			p, err := Compile(sources[i])
			if err == nil {
				got, err = p.Render(vars, Options{Now: testNow})
			}
			switch {
			case w == nil && err == nil && !strings.Contains(name, "lenient"):
				t.Errorf("Python raises an error, got %q", got)
			case w != nil && err != nil:
				t.Error(err)
			case w != nil && got != *w:
				t.Errorf("(-Python +ridge):\n%s", cmp.Diff(*w, got))
			}
		})
	}
}
