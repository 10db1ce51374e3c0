package eval

import (
	"os"
	"testing"

	"ridge/engine"
	"ridge/internal/testdata"
	"ridge/model"
	"ridge/text/tokenizer"
	"ridge/weights/tensor"
)

// What keys and values as bytes cost: bounds of the divergence from float16, in
// nats, and of the change of perplexity. docs/memory.md has what was seen.
const (
	budgetKVDivergence = 0.01
	budgetKVPerplexity = 0.005
)

// Keys and values as Q8_0 predict a text nearly as well as those as F16.
func TestKVQ8Drift(t *testing.T) {
	text, err := os.ReadFile(testdata.File(t, "wikitext2_valid.txt"))
	if err != nil {
		t.Fatal(err)
	}
	names := []string{"tiny", "smollm2", "qwen"}
	if testing.Short() {
		names = names[:1]
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			var es [2]*engine.Engine
			for i, kv := range []tensor.DType{tensor.F16, tensor.Q8_0} {
				m, err := model.Open(testdata.Model(t, name), model.Options{KV: kv, Context: 256})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { m.Close() })
				es[i] = start(t, m)
			}
			ids := es[0].Model().Tokenizer().Encode(nil, string(text[:8000]), tokenizer.EncodeOptions{})
			d, err := Compare(t.Context(), es[0], es[1], ids[:1024], Windows{Context: 256, BOS: -1})
			if err != nil {
				t.Fatal(err)
			}
			change := d.Model.Perplexity/d.Base.Perplexity - 1
			t.Logf("divergence %.6f, at most %.6f; perplexity %.4f, %+.4f%%", d.Mean, d.Max, d.Base.Perplexity, 100*change)
			if d.Mean > budgetKVDivergence || change > budgetKVPerplexity {
				t.Errorf("divergence %v, change of perplexity %v: want at most %v and %v", d.Mean, change, budgetKVDivergence, budgetKVPerplexity)
			}
			if d.Mean == 0 {
				t.Error("no divergence at all: are the keys and values bytes?")
			}
		})
	}
}
