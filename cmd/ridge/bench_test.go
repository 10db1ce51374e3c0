package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"ridge/measure/roofline"
)

const tinyLlama = "../../internal/tinymodel/testdata/llama/llama.gguf"

// runCobra runs a command with arguments and returns what it prints.
func runCobra(t *testing.T, c *cobra.Command, args ...string) (string, error) {
	t.Helper()
	t.Setenv("RIDGE_OFFLINE", "1")
	var out bytes.Buffer
	c.SetArgs(args)
	c.SetOut(&out)
	c.SetErr(&out)
	c.SilenceUsage, c.SilenceErrors = true, true
	err := c.Execute()
	return out.String(), err
}

func TestBenchCommand(t *testing.T) {
	out, err := runCobra(t, benchCommand(), tinyLlama, "-p", "8", "-n", "2,4", "--pg", "4,2", "-d", "0,16", "-t", "1", "-r", "2", "--npl", "1,2", "--probe", "100us")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"| model ", "pp8 ", "tg4 @ d16 x2 ", "pp4+tg2 ", "ridge ", "% of ", "load average"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	if n := strings.Count(out, "\n|"); n != 1+16 {
		t.Errorf("%d rows, want 16:\n%s", n-1, out)
	}
	testBenchPage(t)
	dir := t.TempDir()
	out, err = runCobra(t, benchCommand(), "--synthetic", "tiny:Q4_0", "--keep", dir, "-p", "4", "-n", "0", "-r", "1", "-o", "json", "--kv", "f32")
	if err != nil {
		t.Fatal(err)
	}
	var recs []map[string]any
	if err := json.Unmarshal([]byte(out), &recs); err != nil || len(recs) != 1 || recs[0]["type_k"] != "f32" || recs[0]["model_type"] != "llama 0.1M Q4_0" {
		t.Errorf("%v: %v", err, recs)
	}
	if files, _ := filepath.Glob(dir + "/*.gguf"); len(files) != 1 {
		t.Errorf("kept %v", files)
	}
	for want, args := range map[string][]string{
		"expected a model":                   {},
		"--n-prompt: expected a num":         {tinyLlama, "-p", "x"},
		"--pg: expected PROMPT":              {tinyLlama, "--pg", "1"},
		"--kv: expected f16, f32, bf16 or":   {tinyLlama, "--kv", "q4_0"},
		"--act: expected bf16, bf16x2, int8": {tinyLlama, "--act", "int8,int4"},
		"--html: open":                       {tinyLlama, "--html", dir},
		"output: expected one of":            {tinyLlama, "-o", "xml"},
		"--repetitions":                      {tinyLlama, "-r", "0"},
		"at least one thing":                 {tinyLlama, "-p", "0", "-n", "0"},
		"closing '":                          {tinyLlama, "--peer", "'x"},
		"no such model":                      {"nothing-of-this-name"},
		"synthetic model: shape":             {"--synthetic", "huge"},
	} {
		if out, err := runCobra(t, benchCommand(), args...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q\n%s", args, err, want, out)
		}
	}
}

// The page has what the table has, and nothing from another host.
func testBenchPage(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	file, figures := filepath.Join(dir, "page.html"), filepath.Join(dir, "figures")
	out, err := runCobra(t, benchCommand(), tinyLlama, "-p", "8", "-n", "2", "-d", "0,16", "-t", "1", "-r", "2", "--probe", "100us", "--html", file, "--figures", figures)
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	page, cells := string(b), 0
	for line := range strings.Lines(out) {
		if line = strings.TrimSpace(line); !strings.HasPrefix(line, "|") || strings.Contains(line, "---") || strings.HasPrefix(line, "| model") {
			continue
		}
		for cell := range strings.SplitSeq(strings.Trim(line, "|"), "|") {
			cells++
			if cell = strings.TrimSpace(cell); !strings.Contains(page, ">"+cell+"</td>") {
				t.Errorf("the page lacks %q of the table", cell)
			}
		}
	}
	if cells != 4*11 {
		t.Errorf("%d cells in\n%s", cells, out)
	}
	for _, bad := range []string{"http:", "https:", "src=", "NaN", "Inf"} {
		if strings.Contains(page, bad) {
			t.Errorf("the page has %q", bad)
		}
	}
	for _, name := range []string{"speed-of-each-repetition", "generation-speed-against-depth", "roofline"} {
		if _, err := os.Stat(filepath.Join(figures, "1-"+name+".svg")); err != nil {
			t.Error(err)
		}
	}
}

func TestBenchKernelsCommand(t *testing.T) {
	out, err := runCobra(t, benchCommand(), "kernels", "--types", "Q8_0,f16", "--shapes", "32x64", "--rows", "1-4*2", "--time", "100us", "--tiers", "generic")
	if err != nil || strings.Count(out, "\n| Q8_0 | 32x64 |") != 3 || strings.Count(out, "| F16 ") != 3 {
		t.Errorf("%v\n%s", err, out)
	}
	for want, args := range map[string][]string{
		"--types":  {"kernels", "--types", "Q9"},
		"--shapes": {"kernels", "--shapes", "9"},
		"--rows":   {"kernels", "--rows", "a"},
		"--tiers":  {"kernels", "--tiers", "sse"},
	} {
		if _, err := runCobra(t, benchCommand(), args...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", args, err, want)
		}
	}
}

// thisMachine puts a machine where plan looks for one, so that the test need
// not measure.
func thisMachine(t *testing.T) {
	t.Helper()
	t.Setenv("HOME", t.TempDir())
	t.Setenv("XDG_CACHE_HOME", "")
	path := roofline.CachePath()
	if path == "" {
		t.Skip("no folder for caches")
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	m, err := roofline.PublishedMachine("epyc-9654")
	if err != nil {
		t.Fatal(err)
	}
	m.Source, m.Tier = roofline.Measured, strings.TrimPrefix(strings.Split(filepath.Base(path), "-")[1], "-")
	m.Taken = time.Now().UTC()
	if err := m.Save(path); err != nil {
		t.Fatal(err)
	}
}

func TestPlanCommand(t *testing.T) {
	thisMachine(t)
	saved := filepath.Join(t.TempDir(), "here.json")
	out, err := runCobra(t, planCommand(), tinyLlama, "--ctx", "64", "--check", "--repetitions", "1", "--save", saved, "-t", "1")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"machine ", "memory ", "fits", "limited by", "pp64", "tg64", "predicted", "error"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	out, err = runCobra(t, planCommand(), tinyLlama, "--machine", saved, "--json", "--batch", "3")
	var r roofline.Report
	if err != nil || json.Unmarshal([]byte(out), &r) != nil || r.Seqs != 3 || len(r.Predictions) < 2 || r.Memory.Total() <= 0 {
		t.Errorf("%v\n%s", err, out)
	}
	out, err = runCobra(t, planCommand(), tinyLlama, "--machine", "ryzen-7950x", "--kv", "f32")
	if err != nil || !strings.Contains(out, "not measured") {
		t.Errorf("%v\n%s", err, out)
	}
	for want, args := range map[string][]string{
		"expected a file or one of": {tinyLlama, "--machine", "abacus"},
		"--check measures":          {tinyLlama, "--machine", "epyc-9654", "--check"},
		"expected positive numbers": {tinyLlama, "--batch", "0"},
		"--kv: expected":            {tinyLlama, "--kv", "q4_0"},
		"--act: expected":           {tinyLlama, "--act", "int4"},
		"no such model":             {"nothing-of-this-name"},
	} {
		if _, err := runCobra(t, planCommand(), args...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", args, err, want)
		}
	}
}
