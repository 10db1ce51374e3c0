package eval

import (
	"context"
	"math"
	"slices"
	"testing"

	"ridge/engine"
	"ridge/model"
	"ridge/weights/tensor"
)

const tiny = "../../internal/tinymodel/testdata/llama/llama.gguf"

func open(t *testing.T) *model.Model {
	t.Helper()
	m, err := model.Open(tiny, model.Options{KV: tensor.F32, Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

// start runs an engine on m until the end of the test.
func start(t testing.TB, m *model.Model) *engine.Engine {
	t.Helper()
	e, err := engine.New(m, engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return e
}

func text(n, vocab int) []int32 {
	ids := make([]int32, n)
	for i := range ids {
		ids[i] = int32(i * i * 7 % vocab)
	}
	return ids
}

// naive computes what Predict does with one step per window and plain sums.
func naive(t *testing.T, m *model.Model, tokens []int32, wins []window, bos int32) (nll float64, n int) {
	t.Helper()
	for _, w := range wins {
		part := slices.Clone(tokens[w.lo:w.hi])
		if bos >= 0 {
			part[0] = bos
		}
		seq := m.Pool().NewSeq()
		if err := m.Forward(&model.Step{Runs: []model.Run{{Seq: seq, Tokens: part, Outputs: len(part)}}}); err != nil {
			t.Fatal(err)
		}
		for i := w.first; i < len(part); i++ {
			sum := 0.0
			for _, v := range m.Logits(i - 1) {
				sum += math.Exp(float64(v))
			}
			nll += math.Log(sum) - float64(m.Logits(i - 1)[part[i]])
			n++
		}
		m.Pool().Free(seq)
	}
	return nll, n
}

func TestPredictAgainstNaive(t *testing.T) {
	m, e := open(t), start(t, open(t))
	tokens := text(300, m.Config().Vocab)
	for name, w := range map[string]Windows{
		"side by side":   {Context: 96, BOS: -1},
		"with BOS":       {Context: 64, BOS: 1},
		"stride":         {Context: 64, Stride: 16, BOS: -1},
		"odd stride":     {Context: 50, Stride: 7, BOS: -1},
		"small windows":  {Context: 2, BOS: -1},
		"one step":       {Context: 33, Stride: 1, BOS: -1},
		"larger than 64": {Context: 128, BOS: -1},
	} {
		t.Run(name, func(t *testing.T) {
			wins, err := w.cut(len(tokens))
			if err != nil {
				t.Fatal(err)
			}
			got, err := Predict(context.Background(), e, tokens, w)
			if err != nil {
				t.Fatal(err)
			}
			nll, n := naive(t, m, tokens, wins, w.BOS)
			if got.Tokens != n || math.Abs(got.NLL-nll/float64(n)) > 1e-9 {
				t.Errorf("%d tokens with a mean of %v, want %d with %v", got.Tokens, got.NLL, n, nll/float64(n))
			}
		})
	}
}

// With a stride every token but the first is scored exactly once.
func TestStrideScoresEachTokenOnce(t *testing.T) {
	for _, n := range []int{64, 65, 100, 257} {
		for _, stride := range []int{1, 5, 32, 63} {
			w := Windows{Context: 64, Stride: stride}
			wins, err := w.cut(n)
			if err != nil {
				t.Fatal(err)
			}
			scored := make([]int, n)
			for _, win := range wins {
				for i := win.lo + win.first; i < win.hi; i++ {
					scored[i]++
				}
			}
			for i, c := range scored {
				if want := min(i, 1); c != want {
					t.Fatalf("%d tokens, stride %d: token %d is scored %d times, want %d", n, stride, i, c, want)
				}
			}
		}
	}
}

func TestCutRefuses(t *testing.T) {
	for _, w := range []Windows{{Context: 1}, {Context: 64, Stride: 64}, {Context: 64, Stride: -1}, {Context: 1000}} {
		if _, err := w.cut(300); err == nil {
			t.Errorf("%+v: no error", w)
		}
	}
}

func TestCompareWithItself(t *testing.T) {
	a, b := start(t, open(t)), start(t, open(t))
	d, err := Compare(context.Background(), a, b, text(200, a.Model().Config().Vocab), Windows{Context: 64, BOS: -1})
	if err != nil {
		t.Fatal(err)
	}
	if d.Mean != 0 || d.Max != 0 || d.SameTop != 1 || d.Base != d.Model || d.Tokens == 0 {
		t.Errorf("a model differs from itself: %+v", d)
	}
}

func TestComparisonOfKnownDistributions(t *testing.T) {
	var c comparison
	p, q := []float32{0, 0}, []float32{float32(math.Log(3)), 0} // 1/2 1/2 and 3/4 1/4
	c.add(differ(p, q, 1))
	d := c.result([]window{{0, 1, 0}})
	want := 0.5*math.Log(0.5/0.75) + 0.5*math.Log(0.5/0.25)
	if math.Abs(d.Mean-want) > 1e-7 {
		t.Errorf("divergence %v, want %v", d.Mean, want)
	}
	if math.Abs(d.Base.Perplexity-2) > 1e-6 || math.Abs(d.Model.Perplexity-4) > 1e-5 {
		t.Errorf("perplexities %v and %v, want 2 and 4", d.Base.Perplexity, d.Model.Perplexity)
	}
}
