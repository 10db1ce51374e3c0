package quant

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"ridge/internal/testdata"
	"ridge/model"
	"ridge/text/tokenizer"
)

func config(t *testing.T, only string) Config {
	t.Helper()
	const prose = "../../testdata/prose.gguf"
	m, err := model.Open(prose, model.DefaultOptions())
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	read := func(name string, n int) []int32 {
		b, err := os.ReadFile(testdata.File(t, name))
		if err != nil {
			t.Fatal(err)
		}
		return m.Tokenizer().Encode(nil, string(b[:6*n]), tokenizer.EncodeOptions{})[:n]
	}
	return Config{
		Model: prose, Calibration: read("wikitext2_valid.txt", 256), Text: read("wikitext2_test.txt", 512),
		Window: 64, Threads: 2, Dir: t.TempDir(), Only: regexp.MustCompile(only),
	}
}

func find(t *testing.T, rows []Row, method, grid string) *Measured {
	t.Helper()
	for _, r := range rows {
		if r.Method == method && r.Grid == grid {
			return r.Measured
		}
	}
	t.Fatalf("no row %s, %s", method, grid)
	return nil
}

// With outliers in fixed columns one step for a row costs much; SmoothQuant's factors,
// values of LLM.int8() kept apart, and a rotation take most of it away. Rows that were
// measured are not measured again, a line that was cut off is, and others stay empty.
func TestOutliersAndResuming(t *testing.T) {
	cfg := config(t, "^(rtn|smoothquant|llm-int8|rotation) W8A8 a row, outliers$")
	ctx := context.Background()
	rows, err := Measure(ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	grid := "W8A8 a row, outliers"
	worst := find(t, rows, "rtn", grid).KL.Mean
	for _, method := range []string{"smoothquant", "llm-int8", "rotation"} {
		m := find(t, rows, method, grid)
		t.Logf("%s: %.6f of %.6f nats", method, m.KL.Mean, worst)
		if m.Paired.KL.Verdict() != "lower" || m.KL.Mean > worst/4 {
			t.Errorf("%s: expected a quarter of the %.5f nats of plain rounding at most, found %.5f", method, worst, m.KL.Mean)
		}
		if m.Bytes != find(t, rows, "rtn", grid).Bytes {
			t.Errorf("%s: expected equal bytes", method)
		}
	}
	if find(t, rows, "gptq", "Q4_0") != nil {
		t.Error("gptq, Q4_0: expected an empty row")
	}
	var table bytes.Buffer
	if err := WriteMarkdown(&table, rows); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(table.String(), "| Q4_0 | gptq | | | | | rtn | | | | |\n") {
		t.Errorf("expected an empty row of gptq, found\n%s", table.String())
	}

	// The last row's line was cut off when the program was ended.
	kept := filepath.Join(cfg.Dir, "rows.jsonl")
	b, err := os.ReadFile(kept)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(kept, b[:len(b)-40], 0o644); err != nil {
		t.Fatal(err)
	}
	again, err := Measure(ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	var first, second bytes.Buffer
	WriteJSON(&first, rows)
	WriteJSON(&second, again)
	if first.String() != second.String() {
		t.Errorf("expected the same rows, found\n%s\nand\n%s", first.String(), second.String())
	}
	lines, err := os.ReadFile(kept)
	if n := bytes.Count(lines, []byte(`"key"`)); err != nil || n != 5 {
		t.Errorf("expected one row measured again, found %d lines of 5 (%v)", n, err)
	}
	if left, _ := filepath.Glob(filepath.Join(cfg.Dir, ".files-*")); len(left) > 0 {
		t.Errorf("expected no files left, found %v", left)
	}
}
