package eval

import (
	"math"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"ridge/gguf"
	"ridge/internal/cpu"
	"ridge/internal/testdata"
	"ridge/model"
	"ridge/tensor"
	"ridge/tokenizer"
)

// budgetFormat bounds what kernels with quantized activations may change of a
// model's perplexity, as a share, in every format that ridge can write.
const budgetFormat = 1e-3

// BenchmarkFormats compares the kernels of every format with the reference, by
// the perplexity of one model that is converted to it: matrices whose columns
// do not fill the format's blocks become Q8_0. RIDGE_FORMAT_TOKENS sets how much
// text is read; the more, the less chance is in the figure.
func BenchmarkFormats(b *testing.B) {
	text, err := os.ReadFile(filepath.Join(testdata.Dir(b), "wikitext2_valid.txt"))
	if err != nil {
		b.Fatal(err)
	}
	n := 512
	if s := os.Getenv("RIDGE_FORMAT_TOKENS"); s != "" {
		if n, err = strconv.Atoi(s); err != nil {
			b.Fatal(err)
		}
	}
	src := testdata.Model(b, "smollm2")
	for t := tensor.F32; t <= tensor.MXFP4; t++ {
		if !t.Valid() || !t.CanEncode() || !t.CanDecode() || t == tensor.F32 {
			continue
		}
		b.Run(t.String(), func(b *testing.B) {
			path := filepath.Join(b.TempDir(), "model.gguf")
			share := convert(b, src, path, t)
			for b.Loop() {
				kernels := perplexityOn(b, path, string(text), n)
				restore := cpu.Set(cpu.Ref)
				ref := perplexityOn(b, path, string(text), n)
				restore()
				change := kernels/ref - 1
				b.ReportMetric(ref, "ppl-ref")
				b.ReportMetric(100*change, "%change")
				b.ReportMetric(100*share, "%converted")
				if math.Abs(change) > budgetFormat {
					b.Logf("%s: kernels change the perplexity by %+.3f%%, budget %.1f%%", t, 100*change, 100*budgetFormat)
				}
			}
		})
	}
}

func perplexityOn(b *testing.B, path, text string, n int) float64 {
	b.Helper()
	m, err := model.Open(path, model.Options{KV: tensor.F32, Context: 256})
	if err != nil {
		b.Fatal(err)
	}
	defer m.Close()
	ids := m.Tokenizer().Encode(nil, text[:min(len(text), 8*n)], tokenizer.EncodeOptions{})
	p, err := Predict(b.Context(), m, ids[:n], Windows{Context: 256, BOS: -1})
	if err != nil {
		b.Fatal(err)
	}
	return p.Perplexity
}

// convert writes src with its matrices in format t, or Q8_0 where that does not
// fit, and returns the share of their values that are in t.
func convert(b *testing.B, src, dst string, t tensor.DType) float64 {
	b.Helper()
	f, err := gguf.Open(src)
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	out := gguf.NewBuilder()
	for _, k := range f.Keys() {
		v, _ := f.Lookup(k)
		if err := out.Set(k, v); err != nil {
			b.Fatal(err)
		}
	}
	var in, all float64
	for _, info := range f.Tensors() {
		data := f.Data(info)
		if len(info.Dims) == 2 {
			from, cols, rows := info.Type, int(info.Dims[0]), int(info.Dims[1])
			if info.Type = t; t.RowBytes(cols) < 0 {
				info.Type = tensor.Q8_0
			} else {
				in += float64(cols * rows)
			}
			all += float64(cols * rows)
			x, size := make([]float32, cols), info.Type.RowBytes(cols)
			enc := make([]byte, rows*size)
			for r := range rows {
				from.Decode(x, data[r*from.RowBytes(cols):])
				if err := info.Type.Encode(enc[r*size:(r+1)*size], x); err != nil {
					b.Fatal(err)
				}
			}
			data = enc
		}
		if err := out.AddTensor(info, gguf.Bytes(data)); err != nil {
			b.Fatal(err)
		}
	}
	if err := out.Save(dst); err != nil {
		b.Fatal(err)
	}
	return in / all
}
