package roofline

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"ridge/internal/golden"
	"ridge/kernel"
	"ridge/model"
	"ridge/nn"
	"ridge/weights/tensor"
)

// linear is a matrix without weights.
func linear(t testing.TB, typ tensor.DType, rows, cols int) nn.Linear {
	t.Helper()
	w, err := kernel.PackedShape(tensor.Mat{Type: typ, Rows: rows, Cols: cols})
	if err != nil {
		t.Fatal(err)
	}
	return nn.Linear{W: w}
}

// shapeOf makes a shape like that of SmolLM2-135M, with all matrices of type t.
func shapeOf(t testing.TB, layers int, typ tensor.DType) *Shape {
	t.Helper()
	const hidden, heads, kv, dim, ffn, vocab = 576, 9, 3, 64, 1536, 49152
	o := &model.Outline{
		Config: model.Config{
			Arch: "llama", Vocab: vocab, Hidden: hidden, Layers: layers, Heads: heads, HeadDim: dim, FFN: ffn, Context: 8192,
			KVHeads: make([]int, layers), Window: make([]int, layers), Rope: make([]model.RopeConfig, 1), RopeDim: dim, Gated: true, Norm: nn.NormRMS, Tied: true,
		},
		Net:        &model.Net{},
		VectorSize: int64(4 * hidden * (2*layers + 1)),
	}
	mat := func(rows, cols int) nn.Linear {
		o.Parameters += int64(rows) * int64(cols)
		return linear(t, typ, rows, cols)
	}
	o.Net.Head.Out = mat(vocab, hidden)
	for i := range layers {
		o.Config.KVHeads[i] = kv
		o.Net.Layers = append(o.Net.Layers, model.Layer{
			Mix: &nn.Attention{
				Heads: heads, KVHeads: kv, HeadDim: dim,
				Q: mat(heads*dim, hidden), K: mat(kv*dim, hidden), V: mat(kv*dim, hidden), Out: mat(hidden, heads*dim),
			},
			FFN: &nn.MLP{Gated: true, Gate: mat(ffn, hidden), Up: mat(ffn, hidden), Down: mat(hidden, ffn)},
		})
	}
	s, err := NewShape(o, tensor.F16)
	if err != nil {
		t.Fatal(err)
	}
	s.Act = model.ActInt8
	return s
}

// neutral are constants that add nothing to the roofline.
var neutral = Constants{Stream: 1, Cache: 1, Overlap: 1000, Attention: 1, AttnStream: 1}

func TestRegions(t *testing.T) {
	s := shapeOf(t, 2, tensor.Q8_0)
	var sizes []int
	for _, r := range s.regions {
		sizes = append(sizes, len(r.mats))
	}
	if want := []int{3, 1, 2, 1, 3, 1, 2, 1}; !cmp.Equal(sizes, want) || len(s.head.mats) != 1 {
		t.Errorf("regions of %v matrices, want %v; head %v", sizes, want, s.head)
	}
}

// Without constants, on a machine whose kernels reach the peak, what is limited
// by memory takes what the roofline says, and so does what is limited by
// arithmetic.
func TestPredictionIsTheRoofline(t *testing.T) {
	s := shapeOf(t, 3, tensor.Q8_0)
	m := sample()
	m.Threads = m.Threads[:1]
	m.Kernels = []KernelRate{{"Q8_0", 1, 400e9}}
	for _, w := range []Work{{Gen: 8}, {Gen: 4, Depth: 1000}, {Prompt: 512}} {
		p := m.predict(s, w, 1, &neutral)
		c := neutral
		if p.Speed > p.Ceiling*1.0001 || p.Speed < p.Ceiling*0.9 {
			t.Errorf("%v: %.1f tokens per second, the roofline allows %.1f (%+v)", w, p.Speed, p.Ceiling, p.Parts)
		}
		slow := c
		slow.Stream, slow.Cache, slow.Attention, slow.AttnStream = 0.5, 0.5, 0.5, 0.5
		if half := m.predict(s, w, 1, &slow); half.Speed < p.Speed*0.49 || half.Speed > p.Speed*0.51 {
			t.Errorf("%v: everything at half the rate gives %.1f, not half of %.1f", w, half.Speed, p.Speed)
		}
	}
	if p := m.Predict(s, Work{Gen: 8}, 1); p.Limit != "memory: reading weights" || p.Parts.WeightOps != 0 {
		t.Errorf("generating is limited by %q: %+v", p.Limit, p.Parts)
	}
	if p := m.Predict(s, Work{Prompt: 512}, 1); p.Limit != "arithmetic: products with weights" {
		t.Errorf("reading a prompt is limited by %q: %+v", p.Limit, p.Parts)
	}
}

// Activations of 16 bits are two rows each for the kernels of quantized
// matrices, and take twice the bytes that rows of 8 do.
func TestAct(t *testing.T) {
	m := sample()
	for _, typ := range []tensor.DType{tensor.Q8_0, tensor.F16} {
		low, high := shapeOf(t, 3, typ), shapeOf(t, 3, typ)
		high.Act = model.ActInt16
		st := Step{{Rows: 8, Outputs: 1}}
		a, b := low.Cost(st), high.Cost(st)
		if b.IntOps != 2*a.IntOps || b.FloatOps != a.FloatOps || b.Bytes() != a.Bytes() {
			t.Errorf("%v: %+v with int8, %+v with int16", typ, a, b)
		}
		w := Work{Prompt: 512}
		if ratio := m.Predict(high, w, 1).Seconds / m.Predict(low, w, 1).Seconds; typ == tensor.F16 && ratio != 1 || typ == tensor.Q8_0 && !(ratio > 1.3 && ratio < 2) {
			t.Errorf("%v: a prompt takes %.2f times as long with int16", typ, ratio)
		}
		u := Use{Context: 512}
		more := high.Memory(u).Activations - low.Memory(u).Activations
		c := &low.Outline.Config
		row := int64(kernel.ActRowBytes(c.Hidden) + kernel.ActRowBytes(c.Heads*c.HeadDim) + kernel.ActRowBytes(c.FFN))
		if want := 512*row + int64(kernel.ActRowBytes(c.Hidden)); more != want {
			t.Errorf("%v: int16 takes %d bytes more, want %d", typ, more, want)
		}
	}
}

func TestPredictionOrder(t *testing.T) {
	shapes := []*Shape{shapeOf(t, 2, tensor.Q4_0), shapeOf(t, 4, tensor.Q8_0), shapeOf(t, 3, tensor.F16)}
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.SampledFrom(shapes).Draw(t, "shape")
		threads := rapid.IntRange(1, 6).Draw(t, "threads")
		w := Work{
			Prompt: rapid.IntRange(0, 600).Draw(t, "prompt"), Gen: rapid.IntRange(0, 200).Draw(t, "gen"), Depth: rapid.IntRange(0, 5000).Draw(t, "depth"),
			Seqs: rapid.IntRange(1, 9).Draw(t, "seqs"),
		}
		if w.Tokens() == 0 {
			w.Gen = 1
		}
		m := sample()
		p := m.Predict(s, w, threads)
		if !(p.Seconds > 0) || !(p.Speed > 0) || p.Parts.total() != p.Seconds || p.Limit == "" {
			t.Fatalf("%v: %+v", w, p)
		}
		if p.Speed > p.Ceiling*1.2 { // Stream may be above 1: prefetching beats a plain loop
			t.Fatalf("%v on %d threads: %.1f tokens per second, the roofline allows %.1f", w, threads, p.Speed, p.Ceiling)
		}
		// More depth, or a slower machine, is not faster.
		deeper := w
		deeper.Depth += 500
		if d := m.Predict(s, deeper, threads); d.Seconds < p.Seconds {
			t.Fatalf("%v takes %v, %v takes %v", w, p.Seconds, deeper, d.Seconds)
		}
		for i := range m.Threads {
			for j := range m.Threads[i].Read {
				m.Threads[i].Read[j].Rate /= 2
			}
		}
		if d := m.Predict(s, w, threads); d.Seconds < p.Seconds {
			t.Fatalf("%v takes %v, and %v with half the bandwidth", w, p.Seconds, d.Seconds)
		}
	})
}

// What a token costs at some positions stands for those between them.
func TestPredictionByStride(t *testing.T) {
	s := shapeOf(t, 3, tensor.Q8_0)
	m := sample()
	whole := m.Predict(s, Work{Gen: 640, Depth: 100}, 4).Seconds
	parts := 0.0
	for i := range 64 {
		parts += m.Predict(s, Work{Gen: 10, Depth: 100 + 10*i}, 4).Seconds
	}
	if abs(whole/parts-1) > 0.01 {
		t.Errorf("640 tokens take %v, in pieces %v", whole, parts)
	}
}

func TestUneven(t *testing.T) {
	for _, c := range []struct{ units, workers, want float64 }{{4, 2, 1}, {3, 2, 4. / 3}, {1, 8, 8}, {2.5, 3, 1}, {60, 64, 64. / 60}} {
		if got := uneven(c.units, c.workers); abs(got-c.want) > 1e-9 {
			t.Errorf("%v units on %v workers: %v, want %v", c.units, c.workers, got, c.want)
		}
	}
}

// observe makes observations of what c predicts.
func observe(t testing.TB, m *Machine, c Constants) []Observation {
	var out []Observation
	for _, s := range []*Shape{shapeOf(t, 3, tensor.Q8_0), shapeOf(t, 6, tensor.F16)} {
		for _, threads := range []int{1, 4} {
			for _, w := range []Work{{Prompt: 256}, {Gen: 4}, {Gen: 4, Depth: 2000}, {Gen: 2, Depth: 100, Seqs: 16}, {Prompt: 256, Depth: 2000}} {
				out = append(out, Observation{Shape: s, Work: w, Threads: threads, Seconds: m.predict(s, w, threads, &c).Seconds})
			}
		}
	}
	return out
}

func TestFitConstants(t *testing.T) {
	m := sample()
	truth := Constants{Stream: 0.8, Cache: 0.7, Overlap: 2, Region: 5e-6, Element: 60, Attention: 0.2, Convert: 2, AttnStream: 0.4}
	obs := observe(t, m, truth)
	c := FitConstants(obs, func(Observation) *Machine { return m }, Fitted())
	for _, o := range obs {
		if e := m.Error(o, &c); abs(e) > 0.05 {
			t.Errorf("%v with %d threads: off by %.1f%% with %+v", o.Work, o.Threads, 100*e, c)
		}
	}
}

func TestCheck(t *testing.T) {
	m, s := sample(), shapeOf(t, 3, tensor.Q8_0)
	p, all := m.Predict(s, Work{Gen: 4}, 4), m.rates(4)
	c := m.NewCheck(Observation{Shape: s, Work: Work{Gen: 4}, Threads: 4, Seconds: 2 * p.Seconds, Read: all.read(s.WeightBytes) / 2}, 1, 2)
	if c.Test != "tg4" || c.Predicted != p.Speed || abs(c.Measured/p.Speed-0.5) > 1e-9 || abs(c.Error-1) > 1e-9 || !(c.Adjusted < 0.5) || c.Min != 1 || c.Max != 2 {
		t.Errorf("%+v of a prediction of %v", c, p.Speed)
	}
}

func TestDuring(t *testing.T) {
	m := sample()
	s := shapeOf(t, 3, tensor.Q8_0)
	o := Observation{Shape: s, Work: Work{Gen: 4}, Threads: 4}
	if d := m.During(o); !cmp.Equal(d.Threads, m.Threads) || !cmp.Equal(d.Kernels, m.Kernels) {
		t.Errorf("nothing measured changes the machine: %+v", d)
	}
	all := m.rates(4)
	o.Read, o.Int, o.Float = all.read(s.WeightBytes)/2, all.IntOps/4, all.FloatOps/5
	d := m.During(o)
	r := d.rates(4)
	if abs(r.read(s.WeightBytes)/o.Read-1) > 0.01 || r.IntOps != o.Int || r.FloatOps != o.Float || d.Kernels[0].OpRate != m.Kernels[0].OpRate/4 {
		t.Errorf("%+v", r)
	}
	if d.rates(1).IntOps != m.rates(1).IntOps/4 || m.rates(4).IntOps != 1600e9 {
		t.Errorf("one thread: %+v", d.rates(1))
	}
}

func TestReadObservations(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "o.json")
	tiny, err := filepath.Abs("../../internal/tinymodel/testdata/llama/llama.gguf")
	if err != nil {
		t.Fatal(err)
	}
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(strings.ReplaceAll(text, "TINY", tiny)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	one := `{"model_filename": "TINY", "n_threads": 2, "type_k": "f16", "n_prompt": 8, "n_gen": 0, "n_depth": 4, "n_seqs": 2, "median_ts": 32, "probe_read_bytes_per_s": 5}`
	for _, text := range []string{one, "[" + one + "]", one + "\n" + one, "[" + one + "," + one + "]"} {
		write(text)
		obs, busy, err := ReadObservations(path)
		if err != nil || busy != 0 || len(obs) != strings.Count(text, "TINY") {
			t.Fatalf("%d observations, %v", len(obs), err)
		}
		if o := obs[0]; o.Seconds != 0.5 || o.Threads != 2 || o.Read != 5 || o.Work.String() != "pp8 @ d4 x2" || o.Shape.KV != tensor.F16 {
			t.Errorf("%+v", o)
		}
	}
	// Repetitions that got less than their processor time do not count.
	with := func(samples, shares string) string {
		return strings.Replace(one, `"median_ts"`, `"samples_ts": [`+samples+`], "samples_cpu_share": [`+shares+`], "median_ts"`, 1)
	}
	write(with("1, 16, 64, 32", "0.5, 0.95, 1, 0.99"))
	if obs, _, err := ReadObservations(path); err != nil || obs[0].Seconds != 0.5 {
		t.Errorf("undisturbed repetitions: %+v, %v", obs, err)
	}
	write(strings.Replace(one, `"n_gen"`, `"activations": "int16", "n_gen"`, 1) + one)
	if obs, _, err := ReadObservations(path); err != nil || obs[0].Shape.Act != model.ActInt16 || obs[1].Shape.Act != model.ActInt8 {
		t.Errorf("activations of 16 bits: %+v, %v", obs, err)
	}
	write(one + with("1, 2", "0.5, 0.6"))
	if obs, busy, err := ReadObservations(path); err != nil || len(obs) != 1 || busy != 1 {
		t.Errorf("a disturbed test: %+v, %d, %v", obs, busy, err)
	}
	for text, want := range map[string]string{
		"":   "at least one undisturbed test",
		"[]": "at least one undisturbed test",
		"{":  "expected what ridge bench prints",
		"[1": "expected what ridge bench prints",
		"{}": "record 1: expected tokens, threads and a speed",
		strings.Replace(one, "TINY", "none.gguf", 1):                         "no such file",
		strings.Replace(one, "f16", "q9", 1):                                 "type_k",
		strings.Replace(one, `"n_gen"`, `"activations": "int4", "n_gen"`, 1): "expected bf16, bf16x2, int8, mixed",
	} {
		write(text)
		if _, _, err := ReadObservations(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", text, err, want)
		}
	}
}

func TestReport(t *testing.T) {
	s := shapeOf(t, 30, tensor.Q8_0)
	m := sample()
	r := NewReport(s, m, Use{Context: 4096, Seqs: 2}, 4, 1<<30)
	r.Checks = []Check{
		{Test: "pp512", Predicted: 90, Measured: 100, Min: 80, Max: 110, Error: -0.1, Adjusted: 0.02},
		{Test: "tg128", Predicted: 105, Measured: 100, Min: 99, Max: 101, Error: 0.05, Adjusted: -0.004},
	}
	var b bytes.Buffer
	if err := r.Write(&b); err != nil {
		t.Fatal(err)
	}
	// Predictions change with the constants: only their shape is kept.
	text := b.String()
	head, _, _ := strings.Cut(text, "\n\n")
	golden.Text(t, "report.txt", head+"\n\n"+text[strings.LastIndex(text, "\n\n")+2:])
	for _, want := range []string{"pp512", "pp4096", "tg128 x2", "tg128 @ d3968 x2", "limited by", "memory: reading weights"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if out, err := json.Marshal(r); err != nil || !bytes.Contains(out, []byte(`"tokens_per_s"`)) {
		t.Errorf("%s, %v", out, err)
	}

	for want, r := range map[string]*Report{
		"fits, and would with up to 8192 tokens each": NewReport(s, m, Use{Context: 4096}, 4, 16<<30),
		"fits, and would with up to":                  NewReport(s, m, Use{Context: 8192}, 4, 16<<30),
		"DOES NOT FIT; 64 sequences of up to":         NewReport(s, m, Use{Context: 4096, Seqs: 64}, 4, 1<<30),
		"DOES NOT FIT with any context":               NewReport(s, m, Use{Context: 4096}, 4, 100<<20),
	} {
		if got := r.fitText(); !strings.Contains(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if r := NewReport(s, m, Use{}, 1, 0); r.Context != 4096 || r.Seqs != 1 || r.Fit.Fits {
		t.Errorf("without a use: %+v", r)
	}
}
