package jinja

import (
	"encoding/json"
	"os"
	"testing"
)

// TestRandom compares random templates with what Python made of them (see
// testdata/gen_random.py). RIDGE_TEST_RANDOM names a file of more of them.
func TestRandom(t *testing.T) {
	path := "testdata/random.json"
	if p := os.Getenv("RIDGE_TEST_RANDOM"); p != "" {
		path = p
	}
	var cases [][2]*string
	readJSON(t, path, &cases)
	if len(cases) < 500 {
		t.Errorf("%d cases, want at least 500", len(cases))
	}
	vars := testVars(t)
	for _, c := range cases {
		source, want := *c[0], c[1]
		got := ""
		p, err := Compile(source)
		if err == nil {
			got, err = p.Render(vars, Options{Now: testNow})
		}
		quoted, _ := json.Marshal(source)
		switch {
		case want == nil && err == nil:
			t.Errorf("%s: Python raises an error, got %q", quoted, got)
		case want != nil && err != nil:
			t.Errorf("%s: %v, want %q", quoted, err, *want)
		case want != nil && got != *want:
			t.Errorf("%s:\n got %q\nwant %q", quoted, got, *want)
		}
	}
}
