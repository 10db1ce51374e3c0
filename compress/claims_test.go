package compress_test

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ridge"
	"ridge/compress"
	"ridge/internal/testdata"
	"ridge/measure/eval"
	"ridge/model"
	"ridge/text/tokenizer"
	"ridge/weights/gguf"
)

// On a float model, a text that calibration never saw, and at equal bytes, K-quants of
// 2 and 3 bits made with an importance matrix are nearer to the float model than plain
// ones, by more than two standard errors.
func TestImportanceLowersDivergence(t *testing.T) {
	if testing.Short() {
		t.Skip("computes some windows with five models")
	}
	const float = "../testdata/prose.gguf"
	im := importanceOf(t, float, calibrationText)
	for _, typ := range []string{"Q2_K", "Q3_K_S"} {
		plain, plainBytes := divergence(t, float, typ, nil, heldOut)
		weighed, weighedBytes := divergence(t, float, typ, im, heldOut)
		t.Logf("%s: plain %.5f ± %.5f nats, with an importance matrix %.5f ± %.5f, %d tokens", typ, plain.Mean, plain.StdErr, weighed.Mean, weighed.StdErr, plain.Tokens)
		if plainBytes != weighedBytes {
			t.Errorf("%s: expected equal sizes, found %d and %d bytes", typ, plainBytes, weighedBytes)
		}
		if plain.Mean-weighed.Mean < 2*math.Hypot(plain.StdErr, weighed.StdErr) {
			t.Errorf("%s: expected a divergence clearly below %.5f ± %.5f, found %.5f ± %.5f", typ, plain.Mean, plain.StdErr, weighed.Mean, weighed.StdErr)
		}
	}
}

// tokens returns the first tokens of a text: a path, or one of the test data.
func tokens(t *testing.T, tok *tokenizer.Tokenizer, text string, most int) []int32 {
	t.Helper()
	if !strings.Contains(text, "/") {
		text = testdata.File(t, text)
	}
	b, err := os.ReadFile(text)
	if err != nil {
		t.Fatal(err)
	}
	ids := tok.Encode(nil, string(b), tokenizer.EncodeOptions{})
	return ids[:min(most, len(ids))]
}

func importanceOf(t *testing.T, path, text string) *compress.Importance {
	t.Helper()
	m, err := model.Open(path, model.DefaultOptions())
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	im, _, err := compress.Calibrate(context.Background(), m, m.GGUF(), tokens(t, m.Tokenizer(), text, 4096), compress.Calibration{Chunk: 256})
	if err != nil {
		t.Fatal(err)
	}
	return im
}

func divergence(t *testing.T, float, typ string, im *compress.Importance, text string) (eval.Divergence, int64) {
	t.Helper()
	f, err := gguf.Open(float)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	m, err := compress.ParseMixture(typ)
	if err != nil {
		t.Fatal(err)
	}
	p, err := compress.NewPlan(f, compress.Options{Mixture: m, Importance: im, Threads: 2})
	if err != nil {
		t.Fatal(err)
	}
	small := filepath.Join(t.TempDir(), "small.gguf")
	if _, err := p.Write(context.Background(), small); err != nil {
		t.Fatal(err)
	}
	st, err := os.Stat(small)
	if err != nil {
		t.Fatal(err)
	}
	open := func(path string) *ridge.Model {
		m, err := ridge.OpenFile(path, ridge.Options{Act: model.ActInt16})
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	base, other := open(float), open(small)
	defer base.Close()
	defer other.Close()
	d, err := eval.Compare(context.Background(), base.Engine(), other.Engine(), tokens(t, base.Tokenizer(), text, 4096), eval.Windows{Context: 256, BOS: -1})
	if err != nil {
		t.Fatal(err)
	}
	return d, st.Size()
}
