package engine

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ridge/internal/testdata"
	"ridge/model"
	"ridge/sched"
	"ridge/spec"
	"ridge/text/tokenizer"
	"ridge/weights/safetensors"
	"ridge/weights/tensor"
)

const tinyHeads = "../internal/tinymodel/heads"

// withHead opens a tiny model and has a head of it draft: that at a path, or of the layer
// that is in its own files with those of a head.
func withHead(t *testing.T, name, head string, pages int) (*model.Model, *spec.Drafting) {
	t.Helper()
	m := openTiny(t, name, pages)
	if head == "mtp" {
		dir := besideOwn(t, name)
		var err error
		if m, err = model.Open(dir, model.Options{KV: tensor.F16, Workers: 1 + pages%2, PageTokens: 16, KVBytes: int64(pages+8) * 16 * int64(m.Pool().TokenBytes())}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { m.Close() })
		head = ""
	}
	h, err := m.OpenDraftHead(head)
	if err != nil {
		t.Fatal(err)
	}
	d := &spec.Drafting{New: func(int) spec.Drafter { return spec.NewNGram(0) }, Always: true}
	d.Ask(h)
	return m, d
}

// besideOwn makes a checkpoint of a tiny model and the layer that predicts further tokens.
func besideOwn(t *testing.T, name string) string {
	t.Helper()
	dir, from := t.TempDir(), filepath.Join(tinyModels, name)
	var tensors []safetensors.Tensor
	for _, path := range []string{from, filepath.Join(tinyHeads, "mtp-"+name)} {
		f, err := safetensors.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		for _, x := range f.Tensors() {
			tensors = append(tensors, safetensors.Tensor{Name: x.Name, Type: x.Type, Shape: x.Shape, Data: safetensors.Bytes(f.Data(x.Name))})
		}
	}
	if err := safetensors.Write(filepath.Join(dir, "model.safetensors"), tensors, nil); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"config.json", "tokenizer.json", "tokenizer_config.json"} {
		b, err := os.ReadFile(filepath.Join(from, name))
		if err != nil {
			t.Fatal(err)
		}
		if name == "config.json" {
			var c map[string]any
			if err := json.Unmarshal(b, &c); err != nil {
				t.Fatal(err)
			}
			c["num_nextn_predict_layers"] = 1
			delete(c, "num_mtp_layers")
			if b, err = json.Marshal(c); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// leastSquares returns W with W x about y for all rows of xs and ys, [len(y)][len(x)].
func leastSquares(xs, ys [][]float32) (w []float32) {
	n, k := len(xs[0]), len(ys[0])
	a := make([][]float64, n) // xᵀx and beside it xᵀy
	for i := range a {
		a[i] = make([]float64, n+k)
		a[i][i] = 1e-2
		for r, x := range xs {
			for j := range n {
				a[i][j] += float64(x[i]) * float64(x[j])
			}
			for j := range k {
				a[i][n+j] += float64(x[i]) * float64(ys[r][j])
			}
		}
	}
	for i := range n { // it is positive definite
		for r := range n {
			if r == i {
				continue
			}
			f := a[r][i] / a[i][i]
			for j := i; j < n+k; j++ {
				a[r][j] -= f * a[i][j]
			}
		}
	}
	for j := range k {
		for i := range n {
			w = append(w, float32(a[i][n+j]/a[i][i]))
		}
	}
	return w
}

// fitted writes a head whose one matrix fits what a model said: Medusa's from a state to the
// token after the next, or EAGLE's from an embedding and a state to the next state, its
// layer giving nothing.
func fitted(t *testing.T, m *model.Model, kind string, texts [][]int32) string {
	t.Helper()
	cfg := m.Config()
	taps := []int{0, cfg.Layers}
	var xs, ys [][]float32
	for _, text := range texts {
		seq := m.Pool().NewSeq()
		if err := m.Forward(&model.Step{Runs: []model.Run{{Seq: seq, Tokens: text}}, Taps: taps}); err != nil {
			t.Fatal(err)
		}
		state := func(i int) []float32 {
			s := make([]float32, cfg.Hidden)
			m.Net().Norm.Apply(s, m.Tapped(1, i))
			return s
		}
		for i := range len(text) - 2 {
			if kind == "medusa" {
				y := make([]float32, cfg.Vocab)
				y[text[i+2]] = 1
				xs, ys = append(xs, state(i)), append(ys, y)
			} else {
				xs, ys = append(xs, append(slices.Clone(m.Tapped(0, i+1)), state(i)...)), append(ys, state(i+1))
			}
		}
		m.Pool().Free(seq)
	}
	dir, h := t.TempDir(), cfg.Hidden
	var tensors []safetensors.Tensor
	set := func(name string, values []float32, rows, cols int) {
		var b bytes.Buffer
		if values == nil {
			values = make([]float32, rows*cols)
		}
		binary.Write(&b, binary.LittleEndian, values)
		shape := []uint64{uint64(rows), uint64(cols)}
		if rows == 1 {
			shape = shape[1:]
		}
		tensors = append(tensors, safetensors.Tensor{Name: name, Type: "F32", Shape: shape, Data: safetensors.Bytes(b.Bytes())})
	}
	w := leastSquares(xs, ys)
	if kind == "medusa" {
		set("0.0.linear.weight", nil, h, h)
		set("0.1.weight", w, cfg.Vocab, h)
	} else {
		const layer, ffn = "layers.0.", 16
		q, kv := cfg.Heads*cfg.HeadDim, cfg.KVHeads[0]*cfg.HeadDim
		set("fc.weight", w, h, 2*h)
		set(layer+"self_attn.q_proj.weight", nil, q, h)
		set(layer+"self_attn.k_proj.weight", nil, kv, h)
		set(layer+"self_attn.v_proj.weight", nil, kv, h)
		set(layer+"self_attn.o_proj.weight", nil, h, q)
		set(layer+"post_attention_layernorm.weight", nil, 1, h)
		set(layer+"mlp.gate_proj.weight", nil, ffn, h)
		set(layer+"mlp.up_proj.weight", nil, ffn, h)
		set(layer+"mlp.down_proj.weight", nil, h, ffn)
		b, err := json.Marshal(map[string]any{"model_type": "llama", "hidden_size": h, "intermediate_size": ffn, "num_hidden_layers": 1,
			"num_attention_heads": cfg.Heads, "num_key_value_heads": cfg.KVHeads[0], "head_dim": cfg.HeadDim, "vocab_size": cfg.Vocab})
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, "config.json"), b, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := safetensors.Write(filepath.Join(dir, "model.safetensors"), tensors, nil); err != nil {
		t.Fatal(err)
	}
	return dir
}

// One answer with heads that were trained to guess, whose weights are random, or fit what the
// model says: chains and trees, in batches, chunks and with prefixes that were known, and
// whoever is preempted. Those that fit are right far more often than chance.
func TestOneAnswerWithHeads(t *testing.T) {
	for i, c := range []struct{ name, head string }{
		{"llama", "medusa fitted"}, {"llama", "eagle fitted"}, {"llama", tinyHeads + "/medusa-map"}, {"llama", tinyHeads + "/eagle3"},
		{"deepseek3", "mtp"}, {"glm4moe", "mtp"}, {"qwen3next", "mtp"},
	} {
		r := rand.New(rand.NewPCG(uint64(i), 29))
		ref := openTiny(t, c.name, 64)
		reqs := workload(r, 12, ref.Config().Vocab, 60, 30)
		want := replies(t, ref, reqs)
		kind, _, fits := strings.Cut(c.head, " ")
		if fits {
			var texts [][]int32
			for i, q := range reqs {
				for _, choice := range want[i].choices {
					texts = append(texts, slices.Concat(q.Tokens, choice.tokens))
				}
			}
			c.head = fitted(t, ref, kind, texts)
		}
		right, guessed := int64(0), int64(0)
		for k, s := range settings(t, r) {
			if (k+i)%8 != 0 {
				continue
			}
			t.Run(c.name+" "+filepath.Base(c.head)+" "+s.name, func(t *testing.T) {
				m, d := withHead(t, c.name, c.head, s.pages)
				d.Most, d.Width, d.Always = 1+r.IntN(5), 1+k%3, k%5 > 0
				s.o.Draft = d
				e := start(t, m, s.o)
				play(t, e, s.share(reqs), want, r, 0)
				play(t, e, s.share(reqs), want, r, 0)
				var st Stats
				until(t, "drafters hold nothing", func() bool { st = e.Stats(); return st.Requests == 0 && st.DraftBytes == 0 })
				right, guessed = right+st.Right, guessed+st.Guessed
			})
		}
		if guessed == 0 {
			t.Errorf("%s, %s: nothing was guessed", c.name, c.head)
		}
		if chance := guessed / int64(ref.Config().Vocab); fits && right < 3*chance {
			t.Errorf("%s, %s: %d of %d guesses were right, by chance %d would be", c.name, kind, right, guessed, chance)
		}
	}
}

// A prefix that was known is not computed, and what a head reads of it is not there: it
// guesses from the rest of the prompt on. So it does of what was preempted.
func TestHeadsBehindPrefixes(t *testing.T) {
	ref := openTiny(t, "llama", 64)
	q := long(40)
	q.N, q.Tokens = 1, randomTokens(rand.New(rand.NewPCG(4, 4)), 40, 120)
	want := []reply{{choices: []answer{alone(t, ref, q)}}}
	text := slices.Concat(q.Tokens, want[0].choices[0].tokens)
	m, d := withHead(t, "llama", fitted(t, ref, "eagle", [][]int32{text}), 64)
	cfg := sched.Config{Split: true}
	e := start(t, m, Options{Draft: d, Sched: &cfg})
	var steps [2]int64
	cached := 0
	for i := range steps {
		before := e.Stats()
		cached = play(t, e, []Request{q}, want, rand.New(rand.NewPCG(1, 1)), 0)
		st := settled(t, e, int64(40*(i+1)))
		steps[i] = st.Steps - before.Steps
		if right := st.Right - before.Right; right < 5 {
			t.Errorf("round %d: %d of %d guesses were right", i, right, st.Guessed-before.Guessed)
		}
	}
	if cached == 0 {
		t.Error("the prompt was not known the second time")
	}
	if steps[0] > 35 || steps[1] > 30 {
		t.Errorf("%v steps for 40 tokens", steps)
	}
}

// A head of EAGLE's form that fits what a trained model said to some questions is right about
// others, far more often than chance, which is one in 49152 tokens; and answers to these
// are what they are without it.
func TestFittedHeadOfTrainedModel(t *testing.T) {
	m, err := model.Open(testdata.Tiny, model.Options{KV: tensor.F16, Context: 512, KVBytes: 16 << 20})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	var reqs []Request
	for _, what := range []string{"the sea", "a cat", "bread", "the moon", "winter", "a river", "the wind", "a book", "music", "the sun", "a garden", "rain", "a horse", "the city", "tea", "a bridge"} {
		for _, how := range []string{"Write a sentence about %s.", "Tell me about %s.", "What is %s?"} {
			text := "<|im_start|>user\n" + fmt.Sprintf(how, what) + "<|im_end|>\n<|im_start|>assistant\n"
			reqs = append(reqs, Request{Tokens: m.Tokenizer().Encode(nil, text, tokenizer.EncodeOptions{ParseSpecial: true}), MaxTokens: 24, N: 1})
		}
	}
	const held = 9 // questions about three things
	want := replies(t, m, reqs)
	var texts [][]int32
	for i, q := range reqs[held:] {
		texts = append(texts, slices.Concat(q.Tokens, want[held+i].choices[0].tokens))
	}
	h, err := m.OpenDraftHead(fitted(t, m, "eagle", texts))
	if err != nil {
		t.Fatal(err)
	}
	d := &spec.Drafting{New: func(int) spec.Drafter { return spec.NewNGram(0) }, Most: 2, Width: 1, Always: true}
	d.Ask(h)
	e := start(t, m, Options{Draft: d})
	play(t, e, reqs[:held], want, rand.New(rand.NewPCG(1, 2)), 0)
	st := e.Stats()
	t.Logf("%d of %d guesses were right, %d tokens, %d steps", st.Right, st.Guessed, st.Tokens, st.Steps)
	if st.Guessed < 100 || st.Right*10 < st.Guessed {
		t.Errorf("%d of %d guesses were right", st.Right, st.Guessed)
	}
}
