package model

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"ridge/internal/testdata"
	"ridge/kvcache"
	"ridge/weights/tensor"
)

// One answer: the logits of a sequence have the same bits whatever else is in
// the batch, however its tokens are cut into steps, whatever the page size and
// the number of threads.
func TestOneAnswer(t *testing.T) {
	for _, name := range []string{"llama", "gemma3", "falcon-7b", "mpt", "phi3-swa", "gpt2", "ministral3", "exaone4", "gemma4", "gemma3n", "opt-sums", "chatglm", "refact", "minicpm", "jais", "bitnet", "deepseek2", "deepseek3"} {
		t.Run(name, func(t *testing.T) {
			g := readGolden(t, filepath.Join(tinyModels, name))
			oneAnswer(t, filepath.Join(tinyModels, name), g.Prompt, g.Context, 6, Options{KV: tensor.F16})
			oneAnswer(t, filepath.Join(tinyModels, name), g.Prompt, g.Context, 3, Options{KV: tensor.Q8_0})
			oneAnswer(t, filepath.Join(tinyModels, name), g.Prompt, g.Context, 3, Options{KV: tensor.BF16})
		})
	}
}

func TestOneAnswerOfTrainedModel(t *testing.T) {
	oneAnswer(t, testdata.Tiny, randomPrompt(120), 1024, 3, Options{KV: tensor.F16})
	oneAnswer(t, testdata.Tiny, randomPrompt(120), 1024, 3, Options{KV: tensor.Q8_0})
	oneAnswer(t, testdata.Tiny, randomPrompt(120), 1024, 3, Options{KV: tensor.BF16})
	for _, a := range Acts()[1:] {
		oneAnswer(t, testdata.Tiny, randomPrompt(70), 1024, 2, Options{KV: tensor.F16, Act: a})
	}
}

func randomPrompt(n int) []int32 {
	r := rand.New(rand.NewPCG(1, 2))
	prompt := make([]int32, n)
	for i := range prompt {
		prompt[i] = r.Int32N(40000)
	}
	return prompt
}

func TestOneAnswerOfRealModels(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and the tiny models cover the other tiers")
	}
	for _, name := range []string{"smollm2", "gemma3", "qwen"} {
		t.Run(name, func(t *testing.T) {
			oneAnswer(t, testdata.Model(t, name), randomPrompt(150), 1024, 3, Options{KV: tensor.F16})
			oneAnswer(t, testdata.Model(t, name), randomPrompt(150), 1024, 2, Options{KV: tensor.Q8_0})
			oneAnswer(t, testdata.Model(t, name), randomPrompt(150), 1024, 2, Options{KV: tensor.BF16})
			if name == "smollm2" {
				for _, a := range Acts()[1:] {
					oneAnswer(t, testdata.Model(t, name), randomPrompt(150), 1024, 2, Options{KV: tensor.F16, Act: a})
				}
			}
		})
	}
}

func oneAnswer(t *testing.T, path string, prompt []int32, context, rounds int, o Options) {
	o.Workers, o.PageTokens = 1, 16
	ref := openTiny(t, path, context, o)
	want := compute(t, ref, prompt, len(prompt))
	r := rand.New(rand.NewPCG(7, 7))
	for i := range rounds {
		workers, page := 1+i%3, 16<<(i%4)
		o.Workers, o.PageTokens, o.KVBytes = workers, page, 64<<20
		m := openTiny(t, path, context, o)
		for range 2 {
			size := 1 + r.IntN(len(prompt))
			if got := compute(t, m, prompt, size); !equalBits(got, want) {
				d, at := maxDiff(got, want)
				t.Errorf("%v, %v, %d threads, pages of %d, chunks of %d: logit %d differs by %v", o.KV, o.Act, workers, page, size, at, d)
			}
		}
		if err := mixed(m, prompt, want, r); err != nil {
			t.Errorf("%v, %v, %d threads, pages of %d: %v", o.KV, o.Act, workers, page, err)
		}
	}
}

// mixed runs the prompt in random steps beside other sequences that come and
// go, and compares its logits.
func mixed(m *Model, prompt []int32, want []float32, r *rand.Rand) error {
	vocab := m.Config().Vocab
	pool := m.Pool()
	mine := pool.NewSeq()
	defer pool.Free(mine)
	others := make([]*kvcache.Seq, 3)
	for i := range others {
		others[i] = pool.NewSeq()
		defer pool.Free(others[i])
	}
	for done := 0; done < len(prompt); {
		n := min(1+r.IntN(20), len(prompt)-done)
		runs := []Run{{Seq: mine, Tokens: prompt[done : done+n], Outputs: n}}
		for _, o := range others {
			switch r.IntN(4) {
			case 0:
				pool.Free(o)
			case 1:
				pool.Truncate(o, o.Len()/2)
			}
			tokens := make([]int32, 1+r.IntN(12))
			for i := range tokens {
				tokens[i] = r.Int32N(int32(vocab))
			}
			if o.Len()+len(tokens) <= m.Context() {
				runs = append(runs, Run{Seq: o, Tokens: tokens, Outputs: r.IntN(2)})
			}
		}
		at := r.IntN(len(runs)) // my place in the batch
		runs[0], runs[at] = runs[at], runs[0]
		row := 0
		for _, s := range runs[:at] {
			row += s.Outputs
		}
		if err := m.Forward(&Step{Runs: runs}); err != nil {
			return err
		}
		for i := range n {
			if w := want[(done+i)*vocab:][:vocab]; !equalBits(m.Logits(row+i), w) {
				d, _ := maxDiff(m.Logits(row+i), w)
				return fmt.Errorf("position %d in a batch of %d sequences: logits differ by %v", done+i, len(runs), d)
			}
		}
		done += n
	}
	return pool.Check(append(others, mine)...)
}

// A batch that cannot be computed changes nothing.
func TestForwardRefuses(t *testing.T) {
	g := readGolden(t, filepath.Join(tinyModels, "llama"))
	m := openTiny(t, g.dir, 64, Options{KV: tensor.F16, KVBytes: 1})
	a, b := m.Pool().NewSeq(), m.Pool().NewSeq()
	if err := m.Forward(&Step{Runs: []Run{{Seq: a, Tokens: g.Prompt[:10], Outputs: 1}}}); err != nil {
		t.Fatal(err)
	}
	for name, runs := range map[string][]Run{
		"too long":       {{Seq: a, Tokens: make([]int32, 60)}},
		"unknown token":  {{Seq: a, Tokens: []int32{int32(g.Vocab)}}},
		"negative token": {{Seq: a, Tokens: []int32{-1}}},
		"outputs":        {{Seq: a, Tokens: []int32{1}, Outputs: 2}},
		"no page left":   {{Seq: a, Tokens: []int32{1}}, {Seq: b, Tokens: []int32{1}}},
	} {
		if err := m.Forward(&Step{Runs: runs}); err == nil {
			t.Errorf("%s: Forward succeeded", name)
		}
		if a.Len() != 10 || b.Len() != 0 {
			t.Fatalf("%s: the sequences have %d and %d tokens, want 10 and 0", name, a.Len(), b.Len())
		}
		if err := m.Pool().Check(a, b); err != nil {
			t.Fatal(err)
		}
	}
}
