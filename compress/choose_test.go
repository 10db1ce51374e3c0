package compress_test

import (
	"context"
	"math"
	"math/rand/v2"
	"path/filepath"
	"regexp"
	"testing"

	"ridge"
	"ridge/compress"
	"ridge/engine"
	"ridge/measure/eval"
	"ridge/model"
	"ridge/weights/gguf"
	"ridge/weights/tensor"
)

// What Choose deals out fits the budget, and is worse than the best of all choices by
// less than what one step changes, seldom by much.
func TestChooseAgainstAll(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 4))
	excess, cases := 0.0, 0
	for range 60 {
		all := make([]compress.Sensitive, 5)
		step, low, high := 0.0, uint64(0), uint64(0)
		for i := range all {
			bytes, loss := uint64(100+rng.IntN(900)), rng.ExpFloat64()
			for range 4 {
				all[i].Bytes, all[i].Loss = append(all[i].Bytes, bytes), append(all[i].Loss, loss)
				all[i].Types = append(all[i].Types, tensor.Q4_K)
				bytes += uint64(50 + rng.IntN(500))
				loss *= rng.Float64()
			}
			step, low, high = max(step, all[i].Loss[0]), low+all[i].Bytes[0], high+all[i].Bytes[3]
		}
		if _, err := compress.Choose(all, low-1); err == nil {
			t.Fatal("expected an error below the smallest types")
		}
		for budget := low; budget <= high+100; budget += 317 {
			got, err := compress.Choose(all, budget)
			if err != nil {
				t.Fatal(err)
			}
			used, loss := total(all, got)
			best := math.Inf(1)
			for code := range 1 << 10 {
				pick := []int{code & 3, code >> 2 & 3, code >> 4 & 3, code >> 6 & 3, code >> 8}
				if u, l := total(all, pick); u <= budget {
					best = min(best, l)
				}
			}
			if used > budget || loss > best+step {
				t.Fatalf("budget %d: expected at most a step above %v, found %v with %d bytes", budget, best, loss, used)
			}
			excess, cases = excess+(loss-best)/(best+0.01), cases+1
		}
	}
	if excess/float64(cases) > 0.15 {
		t.Errorf("expected losses near the least possible ones, found them %.1f%% above on average", 100*excess/float64(cases))
	}
}

func total(all []compress.Sensitive, pick []int) (bytes uint64, loss float64) {
	for i, k := range pick {
		bytes, loss = bytes+all[i].Bytes[k], loss+all[i].Loss[k]
	}
	return bytes, loss
}

// On a float model, and on a text that the scan never saw, types chosen for each matrix
// are nearer to the float model than one type for all in no fewer bytes.
func TestMixedLowersDivergence(t *testing.T) {
	if testing.Short() {
		t.Skip("computes a text with each matrix rounded")
	}
	f, err := gguf.Open(prose)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	open := func(path string) *ridge.Model {
		m, err := ridge.OpenFile(path, ridge.Options{Act: model.ActInt16})
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	base := open(prose)
	defer base.Close()
	text := tokens(t, base.Tokenizer(), calibrationText, 512)
	o := compress.Options{Threads: 2}
	all, err := compress.Scan(context.Background(), f, o, t.TempDir(), func(path string) (float64, error) {
		m := open(path)
		defer m.Close()
		d, err := eval.Compare(context.Background(), base.Engine(), m.Engine(), text, eval.Windows{Context: 256, BOS: -1})
		return d.Mean, err
	})
	if err != nil {
		t.Fatal(err)
	}
	write := func(name string, o compress.Options) (*ridge.Model, uint64) {
		p, err := compress.NewPlan(f, o)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), name)
		if _, err := p.Write(context.Background(), path); err != nil {
			t.Fatal(err)
		}
		_, size := p.Size()
		m := open(path)
		t.Cleanup(func() { m.Close() })
		return m, size
	}
	o.Mixture, _ = compress.ParseMixture("Q3_K_S")
	o.Pure = true
	uniform, size := write("uniform.gguf", o)
	var budget uint64
	for _, s := range all {
		budget += s.Bytes[1]
	}
	pick, err := compress.Choose(all, budget)
	if err != nil {
		t.Fatal(err)
	}
	o.Pure = false
	counts := map[tensor.DType]int{}
	for i, s := range all {
		counts[s.Types[pick[i]]]++
		o.Overrides = append(o.Overrides, compress.Override{Pattern: regexp.MustCompile("^" + regexp.QuoteMeta(s.Name) + "$"), Type: s.Types[pick[i]]})
	}
	mixed, mixedSize := write("mixed.gguf", o)
	if mixedSize > size {
		t.Errorf("expected at most %d bytes, found %d", size, mixedSize)
	}
	each, pairs, err := eval.CompareAll(context.Background(), base.Engine(), []*engine.Engine{uniform.Engine(), mixed.Engine()}, tokens(t, base.Tokenizer(), heldOut, 3072), eval.Windows{Context: 256, BOS: -1})
	if err != nil {
		t.Fatal(err)
	}
	p := pairs[0].KL
	t.Logf("Q3_K %.5f nats in %d bytes, mixed %.5f in %d (%v): %+.5f, from %+.5f to %+.5f", each[0].Mean, size, each[1].Mean, mixedSize, counts, p.Mean, p.Low, p.High)
	if p.Verdict() != "lower" {
		t.Errorf("expected a lower divergence, found %s", p.Verdict())
	}
}
