package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"ridge"
	"ridge/hub"
	"ridge/internal/badfiles"
	"ridge/internal/testdata"
)

func TestMain(m *testing.M) {
	os.Setenv("RIDGE_TUNE", "off") // no test waits for a measurement that it does not want
	testscript.Main(m, map[string]func(){"ridge": func() {
		if d, err := time.ParseDuration(os.Getenv("RIDGE_TEST_MEASURE")); err == nil {
			measureFor = d
		}
		os.Exit(run())
	}})
}

// The program as a user runs it: each file of testdata/script is a session.
func TestScripts(t *testing.T) {
	tiny, err := filepath.Abs("../../internal/tinymodel/testdata")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(e *testscript.Env) error {
			e.Setenv("TINY", tiny)
			e.Setenv("ENCODERS", filepath.Join(tiny, "../encoders"))
			e.Setenv("ADAPTERS", filepath.Join(tiny, "../adapters"))
			e.Setenv("CONTROLS", filepath.Join(tiny, "../controls"))
			e.Setenv("RIDGE_MODELS", filepath.Join(e.WorkDir, "models"))
			e.Setenv("HOME", e.WorkDir)
			e.Setenv("RIDGE_OFFLINE", "1")
			e.Setenv("RIDGE_TUNE", "off")
			return nil
		},
	})
}

// Sessions with a real model.
func TestRealScripts(t *testing.T) {
	smol, gemma, qwen := testdata.Model(t, "smollm2"), testdata.Model(t, "gemma3"), testdata.Model(t, "qwen")
	testscript.Run(t, testscript.Params{
		Dir: "testdata/real",
		Setup: func(e *testscript.Env) error {
			e.Setenv("SMOLLM2", smol)
			e.Setenv("GEMMA3", gemma)
			e.Setenv("QWEN", qwen)
			e.Setenv("HOME", e.WorkDir)
			e.Setenv("RIDGE_OFFLINE", "1")
			e.Setenv("RIDGE_TUNE", "off")
			return nil
		},
	})
}

// Every broken file gives one line that names the file and what is wrong: the
// container when it is inspected, the model when it is opened.
func TestBrokenFiles(t *testing.T) {
	cases, err := badfiles.Write(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			var err error
			if c.Reader == badfiles.Model {
				var m *ridge.Model
				if m, err = ridge.OpenFile(c.Path, ridge.Options{Workers: 1}); err == nil {
					m.Close()
				}
			} else {
				_, err = inspect(c.Path, true)
			}
			switch {
			case err == nil:
				t.Fatal("no error")
			case strings.ContainsAny(err.Error(), "\n\r"):
				t.Errorf("the error has several lines: %q", err)
			case !strings.Contains(err.Error(), c.Want):
				t.Errorf("error: %q\nwant:  %q", err, c.Want)
			}
		})
	}
}

// What can be pulled is what is not here.
func TestToPull(t *testing.T) {
	all := toPull(nil)
	rest := toPull([]hub.Model{{Name: "other"}, {Name: all[1].Name}})
	if len(all) != len(hub.Catalog()) || len(rest) != len(all)-1 || rest[0].Name != all[0].Name || rest[1].Name != all[2].Name {
		t.Errorf("%d models in all, without %s %d", len(all), all[1].Name, len(rest))
	}
}
