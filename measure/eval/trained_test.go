package eval

import (
	"context"
	"math/rand/v2"
	"testing"

	"ridge/engine"
	"ridge/internal/testdata"
	"ridge/model"
	"ridge/text/tokenizer"
	"ridge/weights/tensor"
)

const story = `<|im_start|>system
You are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>
<|im_start|>user
Tell me a story about a dog.<|im_end|>
<|im_start|>assistant
Once upon a time, in a small village, there was a little dog named Max. He was a curious and friendly dog, and he loved to
explore the forest near his home. One day, he met a young girl who was lost in the woods. Max knew the way, and he led her
back to the village. From that day on, they were the best of friends.<|im_end|>
`

// With trained weights, numbers mean something: English is far likelier than
// its words in disorder, and halving the precision of keys and values changes
// next to nothing.
func TestTrainedModel(t *testing.T) {
	exact := openTrained(t, tensor.F32)
	ids := exact.Model().Tokenizer().Encode(nil, story, tokenizer.EncodeOptions{ParseSpecial: true})
	w := Windows{Context: len(ids), Stride: 1, BOS: -1}
	ctx := context.Background()
	p, err := Predict(ctx, exact, ids, w)
	if err != nil {
		t.Fatal(err)
	}
	mixed := append([]int32{}, ids...)
	rand.New(rand.NewPCG(1, 1)).Shuffle(len(mixed)-1, func(i, j int) { mixed[i+1], mixed[j+1] = mixed[j+1], mixed[i+1] })
	q, err := Predict(ctx, exact, mixed, w)
	if err != nil {
		t.Fatal(err)
	}
	if p.Perplexity > 100 || q.Perplexity < 20*p.Perplexity {
		t.Errorf("perplexity %.1f of a story, %.1f of its tokens in disorder", p.Perplexity, q.Perplexity)
	}
	d, err := Compare(ctx, exact, openTrained(t, tensor.F16), ids, w)
	if err != nil {
		t.Fatal(err)
	}
	if d.Mean > 2e-3 || d.SameTop < 0.95 {
		t.Errorf("keys and values as F16: KL %g, %.3f the same", d.Mean, d.SameTop)
	}
}

func openTrained(t *testing.T, kv tensor.DType) *engine.Engine {
	t.Helper()
	m, err := model.Open(testdata.Tiny, model.Options{KV: kv, Workers: 2, Context: 512})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return start(t, m)
}
