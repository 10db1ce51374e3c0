package model

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"ridge/weights/gguf"
	"ridge/weights/tensor"
)

// hiding is a source without one of its tensors.
type hiding struct {
	source
	hidden string
}

func (h hiding) mat(name string) (tensor.Mat, bool, error) {
	if slices.Contains(h.names(name), h.hidden) {
		return tensor.Mat{}, false, nil
	}
	return h.source.mat(name)
}

func (h hiding) has(name string) bool {
	_, ok, _ := h.mat(name)
	return ok
}

func (h hiding) tensors() []string {
	return slices.DeleteFunc(h.source.tensors(), func(n string) bool { return n == h.hidden })
}

// absence has a meaning in a GGUF file for these, for llama.cpp too: the output
// matrix is the embedding, frequencies are not scaled.
var absence = map[string]bool{"output.weight": true, "rope_freqs.weight": true}

// A file that lacks any one tensor is refused, and the tensor named.
func TestEveryTensorIsRequired(t *testing.T) {
	tried := 0
	for _, dir := range tinyCases(t) {
		g := readGolden(t, dir)
		for form, path := range g.files() {
			m := &Model{path: path}
			if err := m.openSource(); err != nil {
				t.Fatal(err)
			}
			defer m.Close()
			if err := buildWithout(m, ""); err != nil {
				t.Fatal(err)
			}
			for _, name := range m.src.tensors() {
				tried++
				err := buildWithout(m, name)
				if err == nil && form == "gguf" && absence[name] && !m.arch.head {
					continue
				}
				if err == nil && m.arch.passedOver(name) {
					continue
				}
				if err == nil || !strings.Contains(err.Error(), strconv.Quote(name)) || !strings.Contains(err.Error(), path) {
					t.Errorf("%s (%s) without %s: %v", filepath.Base(dir), form, name, err)
				}
			}
		}
	}
	if tried < 2000 {
		t.Errorf("only %d tensors were tried", tried)
	}
}

// buildWithout builds the shapes of a network from a source that lacks a tensor.
func buildWithout(m *Model, name string) error {
	lacking := *m
	lacking.cfg.Rope = slices.Clone(m.cfg.Rope)
	b := lacking.builder()
	b.src, b.shapes = hiding{m.src, name}, true
	m.arch.build(b)
	b.checkUnused(m.arch)
	return b.err
}

// A tensor that no layer asks for is refused, in each kind of file.
func TestUnknownTensors(t *testing.T) {
	for _, c := range []struct{ model, tensor, want string }{
		{"llama", "blk.0.attn_sinks.weight", `tensor "blk.0.attn_sinks.weight": expected no such tensor`},
		{"llama", "blk.2.attn_norm.weight", `tensor "blk.2.attn_norm.weight": expected layers 0 to 1, found layer 2`},
		{"llama", "blk.1.attn_q.bias", `tensor "blk.0.attn_q.bias": expected it, found none`},
		{"llama", "blk.1.attn_q_norm.weight", `tensor "blk.1.attn_q_norm.weight": expected no such tensor`},
		{"llama", "output.bias", `tensor "output.bias": expected no such tensor`},
		{"llama", "position_embd.weight", `tensor "position_embd.weight": expected no such tensor`},
		{"qwen3", "cls.norm.weight", `tensor "cls.norm.weight": expected no such tensor`},
		{"gpt2", "blk.0.attn_q.weight", `tensor "blk.0.attn_q.weight": expected no such tensor`},
		{"olmo", "blk.0.attn_norm.weight", `tensor "blk.0.attn_norm.weight": expected no such tensor`},
		{"gemma3", "v.blk.0.attn_q.weight", ""},
		{"llama", "blk.0.attn_rot_embd.weight", ""},
	} {
		path := rewrite(t, t.TempDir(), c.model, func(b *gguf.Builder) { addVector(t, b, c.tensor, 32) })
		checkOpen(t, c.model+" with "+c.tensor, path, c.want)
	}
	for _, c := range []struct{ model, tensor, want string }{
		{"llama", "model.layers.0.self_attn.sinks", `tensor "model.layers.0.self_attn.sinks": expected no such tensor`},
		{"llama", "model.layers.2.input_layernorm.weight", `tensor "model.layers.2.input_layernorm.weight": expected layers 0 to 1, found layer 2`},
		{"llama", "model.layers.0.self_attn.q_proj.bias", `tensor "model.layers.0.self_attn.q_proj.bias": expected no such tensor`},
		{"llama", "lm_head.bias", `tensor "lm_head.bias": expected no such tensor`},
		{"llama", "score.weight", `tensor "score.weight": expected no such tensor`},
		{"llama", "model.vision_tower.x", `tensor "model.vision_tower.x": expected no such tensor`},
		{"gpt2", "transformer.h.0.attn.bias", ""},
		{"neox", "gpt_neox.layers.1.attention.masked_bias", ""},
		{"llama", "model.layers.0.self_attn.rotary_emb.inv_freq", ""},
	} {
		dir := copyCheckpoint(t, c.model, nil, func(b *checkpoint) { b.set(c.tensor, []int{32}, make([]float32, 32)) })
		checkOpen(t, c.model+" with "+c.tensor, dir, c.want)
	}
}

// Weights that lie apart in a file are one, which lacks none of its parts.
func TestStackedTensor(t *testing.T) {
	for i, want := range []string{"norms.0.weight", "norms.1.weight", "norms.2.weight", "expected 1 x 8, found 3 x 8"} {
		name := "model.layers.0.self_attn.q_layernorm.norms." + strconv.Itoa(i) + ".weight"
		dir := copyCheckpoint(t, "stablelm-parallel", nil, func(b *checkpoint) { b.remove(name) })
		checkOpen(t, "stablelm-parallel without "+name, dir, want)
	}
}

// A vocabulary that is longer than the embedding is refused, except for the
// marks of a checkpoint.
func TestVocabularyFits(t *testing.T) {
	short := func(b *gguf.Builder) {
		b.RemoveTensor("token_embd.weight")
		addFloats(t, b, "token_embd.weight", []uint64{32, 100}, floatsOf(32*100))
		b.RemoveTensor("output.weight")
	}
	checkOpen(t, "llama", rewrite(t, t.TempDir(), "llama", short), "vocabulary: expected at most 100 tokens, the rows of the embedding, found 128")
	dir := copyCheckpoint(t, "llama-tied-mha", map[string]any{"vocab_size": 100}, func(b *checkpoint) {
		b.set("model.embed_tokens.weight", []int{100, 32}, make([]float32, 3200))
	})
	checkOpen(t, "llama-tied-mha", dir, "vocabulary: expected at most 100 tokens")
	dir = copyCheckpoint(t, "llama", nil, func(*checkpoint) {})
	path := filepath.Join(dir, "tokenizer.json")
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	mark := []byte(`"added_tokens":[{"id":128,"content":"<image>","single_word":false,"lstrip":false,"rstrip":false,"normalized":false,"special":true},`)
	raw = bytes.Replace(raw, []byte(`"added_tokens":[`), mark, 1)
	if err := os.WriteFile(path, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	checkOpen(t, "llama with a mark", dir, "")
}

// An output matrix of its own is used, whatever else a file says, and so is the
// bias of one that is shared.
func TestOutputMatrix(t *testing.T) {
	for _, name := range []string{"gemma", "gemma2", "gemma3", "command-r", "llama-tied-mha", "gpt2", "starcoder2", "qwen3"} {
		g := readGolden(t, filepath.Join(tinyModels, name))
		// Twice the embedding as the output doubles the logits, but for soft caps.
		double := rewrite(t, t.TempDir(), name, func(b *gguf.Builder) {
			addFloats(t, b, "output.weight", []uint64{32, uint64(g.Vocab)}, doubled(t, filepath.Join(g.dir, name+".gguf")))
			for _, key := range b.Keys() {
				if strings.HasSuffix(key, "final_logit_softcapping") {
					b.Set(key, float32(0))
				}
			}
		})
		plain := rewrite(t, t.TempDir(), name, func(b *gguf.Builder) {
			for _, key := range b.Keys() {
				if strings.HasSuffix(key, "final_logit_softcapping") {
					b.Set(key, float32(0))
				}
			}
		})
		checkDoubled(t, name+".gguf", g, plain, double)
		flag := map[string]any{"tie_word_embeddings": true, "final_logit_softcapping": json.RawMessage("null")}
		plain = copyCheckpoint(t, name, flag, func(*checkpoint) {})
		double = copyCheckpoint(t, name, flag, func(b *checkpoint) {
			b.set("lm_head.weight", []int{g.Vocab, 32}, decoded(doubled(t, filepath.Join(g.dir, name+".gguf"))))
		})
		checkDoubled(t, name, g, plain, double)
	}
}

// checkDoubled checks that the logits of one model are twice those of another.
func checkDoubled(t *testing.T, name string, g *golden, plain, double string) {
	t.Helper()
	one := compute(t, openTiny(t, plain, g.Context, Options{KV: tensor.F32, Workers: 1}), g.Prompt[:8], 8)
	two := compute(t, openTiny(t, double, g.Context, Options{KV: tensor.F32, Workers: 1}), g.Prompt[:8], 8)
	for i := range one {
		one[i] *= 2
	}
	if !equalBits(one, two) {
		d, _ := maxDiff(one, two)
		t.Errorf("%s: the output matrix is not used: twice the logits differ by %v", name, d)
	}
}

// doubled returns the embedding of a GGUF file of float32, times two.
func doubled(t *testing.T, path string) gguf.Bytes {
	t.Helper()
	f, err := gguf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	m, err := f.Mat("token_embd.weight")
	if err != nil || m.Type != tensor.F32 {
		t.Fatal(path, m.Type, err)
	}
	var out bytes.Buffer
	for _, v := range decoded(gguf.Bytes(m.Data)) {
		binary.Write(&out, binary.LittleEndian, 2*v)
	}
	return out.Bytes()
}

func decoded(b gguf.Bytes) []float32 {
	x := make([]float32, len(b)/4)
	binary.Decode(b, binary.LittleEndian, x)
	return x
}

func addVector(t *testing.T, b *gguf.Builder, name string, n uint64) {
	addFloats(t, b, name, []uint64{n}, floatsOf(int(n)))
}

func addFloats(t *testing.T, b *gguf.Builder, name string, dims []uint64, data gguf.Bytes) {
	t.Helper()
	if err := b.AddTensor(gguf.TensorInfo{Name: name, Type: tensor.F32, Dims: dims}, data); err != nil {
		t.Fatal(err)
	}
}

// checkOpen opens a model, which must give an error with the text want, or none
// if that is empty.
func checkOpen(t *testing.T, what, path, want string) {
	t.Helper()
	m, err := Open(path, Options{KV: tensor.F32, Workers: 1})
	if err == nil {
		m.Close()
	}
	switch {
	case want == "" && err != nil:
		t.Errorf("%s: %v", what, err)
	case want != "" && (err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path)):
		t.Errorf("%s: %v\nexpected %s: %s", what, err, path, want)
	}
	if _, outline := ReadOutline(path); (outline == nil) != (err == nil) && !strings.Contains(want, "vocabulary") {
		t.Errorf("%s: the outline gives %v", what, outline)
	}
}

// Layers that predict further tokens are known, and nothing of them is computed.
func TestLayersAhead(t *testing.T) {
	add := func(ahead uint32) string {
		return rewrite(t, t.TempDir(), "glm4moe", func(b *gguf.Builder) {
			b.Set("glm4moe.nextn_predict_layers", ahead)
			b.Set("glm4moe.block_count", 2+ahead)
			addVector(t, b, "blk.2.nextn.enorm.weight", 32)
			addVector(t, b, "blk.2.attn_norm.weight", 32)
		})
	}
	checkOpen(t, "layers that are not counted", add(0), "expected layers 0 to 1, found layer 2")
	path := add(1)
	checkOpen(t, "layers ahead", path, "")
	g := readGolden(t, filepath.Join(tinyModels, "glm4moe"))
	m := openTiny(t, path, g.Context, Options{KV: tensor.F32, Workers: 1})
	if d, _ := g.diff(t, compute(t, m, g.Prompt, len(g.Prompt))); !(d <= logitTolerance) {
		t.Errorf("with layers ahead: logits differ by %v", d)
	}
	dir := copyCheckpoint(t, "glm4moe", map[string]any{"num_nextn_predict_layers": 1}, func(c *checkpoint) {
		c.set("model.layers.2.enorm.weight", []int{32}, make([]float32, 32))
	})
	checkOpen(t, "a checkpoint's layers ahead", dir, "")
	dir = copyCheckpoint(t, "glm4moe", map[string]any{"num_nextn_predict_layers": 1}, func(c *checkpoint) {
		c.set("model.layers.3.enorm.weight", []int{32}, make([]float32, 32))
	})
	checkOpen(t, "a layer more", dir, "found layer 3")
}
