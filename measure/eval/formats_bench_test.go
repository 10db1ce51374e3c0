package eval

import (
	"math"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"ridge/engine"
	"ridge/internal/cpu"
	"ridge/internal/testdata"
	"ridge/kernel"
	"ridge/model"
	"ridge/text/tokenizer"
	"ridge/weights/gguf"
	"ridge/weights/tensor"
)

// Bounds of BenchmarkFormats: of what kernels with activations of 16 bits may
// change of a model's perplexity, as a share, in every format that ridge can
// write; and of how far the float32 kernels are from the reference, as a part of
// what activations of 8 bits change (root mean squares over tokens of the change
// of the log probability): some formats leave a model that is far more sensitive.
const (
	budgetFormat = 1e-3
	budgetExact  = 1e-3
)

// Windows of the texts: one for what is compared with the reference, which is
// slow, and longer ones for the rest.
const (
	formatWindow = 512
	exactWindow  = 128
)

// BenchmarkFormats measures what quantizing activations changes, in every
// format whose matrices read quantized ones, by the log probabilities of a text
// under one model that is converted to it: matrices whose columns do not fill
// the format's blocks become Q8_0. Activations are exact where the same matrices
// are decoded to float32; that this is what the reference computes is checked on
// a short text. RIDGE_FORMAT_TOKENS sets how much text is read; the more, the
// less chance is in the figures.
func BenchmarkFormats(b *testing.B) {
	n := 2 * formatWindow
	if s := os.Getenv("RIDGE_FORMAT_TOKENS"); s != "" {
		var err error
		if n, err = strconv.Atoi(s); err != nil {
			b.Fatal(err)
		}
	}
	text, err := os.ReadFile(testdata.File(b, "wikitext2_valid.txt"))
	if err != nil {
		b.Fatal(err)
	}
	text = text[:min(len(text), 8*n)]
	src := testdata.Model(b, "smollm2")
	for t := tensor.F32; t <= tensor.MXFP4; t++ {
		if !t.Valid() || !t.CanEncode() || !t.CanDecode() || !readsQuantized(b, t) {
			continue
		}
		b.Run(t.String(), func(b *testing.B) {
			path, decoded := filepath.Join(b.TempDir(), "model.gguf"), filepath.Join(b.TempDir(), "decoded.gguf")
			share := convert(b, src, path, t)
			convert(b, path, decoded, tensor.F32)
			for b.Loop() {
				checkExact(b, path, decoded, string(text))
				w := Windows{Context: formatWindow, BOS: -1}
				exact := textLogProbs(b, decoded, string(text), n, w, model.ActInt8)
				b.ReportMetric(math.Exp(-mean(exact)), "ppl")
				b.ReportMetric(100*share, "%converted")
				for _, act := range []model.Act{model.ActInt8, model.ActInt16} {
					c := changeOf(exact, textLogProbs(b, path, string(text), n, w, act))
					b.ReportMetric(100*c.share, "%"+act.String())
					b.ReportMetric(100*c.stdErr, "%err-"+act.String())
					b.ReportMetric(c.rms, "rms-"+act.String())
					if act == model.ActInt16 && math.Abs(c.share)-2*c.stdErr > budgetFormat {
						b.Errorf("%v: activations as %v change the perplexity by %+.3f%% ± %.3f%%, budget %.1f%%", t, act, 100*c.share, 100*c.stdErr, 100*budgetFormat)
					}
				}
			}
		})
	}
}

// readsQuantized reports whether matrices in format t read quantized
// activations.
func readsQuantized(b *testing.B, t tensor.DType) bool {
	b.Helper()
	p, err := kernel.NewPacked(tensor.Mat{Type: t, Rows: 1, Cols: t.BlockSize()}, func(n int) []byte { return make([]byte, n) })
	if err != nil {
		b.Fatal(err)
	}
	return p.UsesQuant()
}

// checkExact compares the float32 kernels on decoded matrices with the reference
// on those of the format.
func checkExact(b *testing.B, path, decoded, text string) {
	b.Helper()
	w := Windows{Context: exactWindow, BOS: -1}
	exact := textLogProbs(b, decoded, text, exactWindow, w, model.ActInt8)
	int8s := textLogProbs(b, path, text, exactWindow, w, model.ActInt8)
	defer cpu.Set(cpu.Ref)()
	ref := textLogProbs(b, path, text, exactWindow, w, model.ActInt8)
	c, q := changeOf(ref, exact), changeOf(ref, int8s)
	b.ReportMetric(c.rms, "rms-exact")
	if !(c.rms <= budgetExact*q.rms) {
		b.Errorf("decoded matrices change log probabilities of the reference by %v, want at most %v of the %v of int8", c.rms, budgetExact, q.rms)
	}
}

// textLogProbs returns the log probabilities that the model at path gives the scored
// tokens among the first n of the text.
func textLogProbs(b *testing.B, path, text string, n int, w Windows, act model.Act) (out []float64) {
	b.Helper()
	m, err := model.Open(path, model.Options{KV: tensor.F32, Act: act, Context: w.Context})
	if err != nil {
		b.Fatal(err)
	}
	defer m.Close()
	ids := m.Tokenizer().Encode(nil, text, tokenizer.EncodeOptions{})
	wins, err := w.cut(min(n, len(ids)))
	if err != nil {
		b.Fatal(err)
	}
	e, err := engine.New(m, engine.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer e.Close()
	for _, win := range wins {
		probs, err := logProbs(b.Context(), e, w.tokens(ids, win), win.first)
		if err != nil {
			b.Fatal(err)
		}
		out = append(out, probs...)
	}
	return out
}

// change is how predictions of the same tokens differ.
type change struct {
	share, stdErr float64 // of the perplexity, and the standard error of that
	rms           float64 // of the tokens' log probabilities
}

// changeOf compares log probabilities, token by token: the spread of their
// differences is much smaller than that of themselves.
func changeOf(base, other []float64) change {
	var sum, squares float64
	for i := range base {
		d := base[i] - other[i]
		sum, squares = sum+d, squares+d*d
	}
	n := float64(len(base))
	c := change{share: math.Expm1(sum / n), rms: math.Sqrt(squares / n)}
	c.stdErr = (1 + c.share) * math.Sqrt(max(squares/n-sum/n*sum/n, 0)/(n-1))
	return c
}

func mean(x []float64) float64 {
	sum := 0.0
	for _, v := range x {
		sum += v
	}
	return sum / float64(len(x))
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
