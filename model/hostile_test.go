package model

import (
	"bytes"
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"ridge/internal/testdata"
	"ridge/weights/gguf"
	"ridge/weights/tensor"
)

// rewrite copies a tiny model to a file of dir with some of its metadata and
// tensors changed.
func rewrite(t interface{ Fatal(...any) }, dir, name string, change func(b *gguf.Builder)) string {
	f, err := gguf.Open(filepath.Join(tinyModels, name, name+".gguf"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	b := f.Builder()
	change(b)
	path := filepath.Join(dir, "model.gguf")
	if err := b.Save(path); err != nil {
		t.Fatal(err)
	}
	return path
}

func floatsOf(n int) gguf.Bytes {
	var buf bytes.Buffer
	for i := range n {
		binary.Write(&buf, binary.LittleEndian, float32(i%7)/8)
	}
	return buf.Bytes()
}

// A file whose container is in order but whose model is not gives one line
// that names the file, the field, what was expected and what was found.
func TestOpenRefuses(t *testing.T) {
	set := func(key string, v any) func(*gguf.Builder) {
		return func(b *gguf.Builder) {
			if err := b.Set(key, v); err != nil {
				panic(err)
			}
		}
	}
	for name, c := range map[string]struct {
		change func(*gguf.Builder)
		want   string
	}{
		"unknown architecture": {set("general.architecture", "nosuch"), `metadata "general.architecture": expected one of`},
		"no layers":            {set("llama.block_count", uint32(0)), "layer count: expected 1 to 4096, found 0"},
		"four billion layers":  {set("llama.block_count", uint32(math.MaxUint32)), "layer count: expected 1 to 4096, found 4294967295"},
		"more layers":          {set("llama.block_count", uint32(40)), `tensor "blk.2.attn_norm.weight": expected 32 elements, found none`},
		"layers as text":       {set("llama.block_count", "two"), `metadata "llama.block_count": expected an integer, found two (string)`},
		"huge width":           {set("llama.embedding_length", uint64(1)<<60), "hidden size: expected 1 to 1048576"},
		"negative width":       {set("llama.embedding_length", int32(-5)), "hidden size: expected 1 to 1048576, found -5"},
		"other width":          {set("llama.embedding_length", uint32(48)), `tensor "token_embd.weight": expected 128 x 48, found 128 x 32`},
		"no heads":             {set("llama.attention.head_count", uint32(0)), "head count: expected 1 to 16384, found 0"},
		"uneven heads":         {set("llama.attention.head_count_kv", uint32(3)), "key-value head count: expected a divisor of"},
		"key-value heads of too few layers": {set("llama.attention.head_count_kv", []uint32{1}),
			`metadata "llama.attention.head_count_kv": expected an integer or 2 integers`},
		"both directions":       {set("llama.attention.causal", "no"), `metadata "llama.attention.causal": expected true or false, found no (string)`},
		"odd rotary dimension":  {set("llama.rope.dimension_count", uint32(5)), "rotary dimension: expected an even number up to"},
		"rotary base of NaN":    {set("llama.rope.freq_base", float32(math.NaN())), "rotary base 0: expected a positive number, found NaN"},
		"unknown rope scaling":  {set("llama.rope.scaling.type", "magic"), `metadata "llama.rope.scaling.type": expected none, linear, yarn or longrope, found magic`},
		"norm epsilon":          {set("llama.attention.layer_norm_rms_epsilon", float32(-1)), "norm epsilon: expected 0 to 1, found -1"},
		"huge feed-forward":     {set("llama.feed_forward_length", uint32(1<<31)), "feed-forward size: expected 1 to 4194304"},
		"missing tensor":        {func(b *gguf.Builder) { b.RemoveTensor("blk.1.ffn_down.weight") }, `tensor "blk.1.ffn_down.weight": expected 32 x`},
		"missing output norm":   {func(b *gguf.Builder) { b.RemoveTensor("output_norm.weight") }, `tensor "output_norm.weight": expected 32 elements, found none`},
		"integers for weights":  {retype(tensor.I32, "output_norm.weight", 32), `tensor "output_norm.weight": element type I32 cannot be read`},
		"unknown pre-tokenizer": {set("tokenizer.ggml.pre", "nosuch"), "nosuch"},
	} {
		t.Run(name, func(t *testing.T) {
			path := rewrite(t, t.TempDir(), "llama", c.change)
			m, err := Open(path, Options{KV: tensor.F32, Workers: 1})
			if err == nil {
				m.Close()
				t.Fatal("no error")
			}
			switch msg := err.Error(); {
			case strings.Contains(msg, "\n"):
				t.Errorf("several lines: %q", msg)
			case !strings.Contains(msg, path) || !strings.Contains(msg, c.want):
				t.Errorf("error %q\ndoes not name the file and %q", msg, c.want)
			}
		})
	}
}

func retype(typ tensor.DType, name string, n uint64) func(*gguf.Builder) {
	return func(b *gguf.Builder) {
		b.RemoveTensor(name)
		if err := b.AddTensor(gguf.TensorInfo{Name: name, Type: typ, Dims: []uint64{n}}, floatsOf(int(n))); err != nil {
			panic(err)
		}
	}
}

// Whatever numbers the metadata hold, opening and running a model neither
// panics nor takes memory without bound.
func TestOpenRandomMetadata(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom([]string{"llama", "gemma3", "mpt", "phi3-longrope-short", "gpt2"}).Draw(t, "model")
		path := rewrite(t, dir, name, func(b *gguf.Builder) {
			for range rapid.IntRange(1, 4).Draw(t, "changes") {
				key := rapid.SampledFrom(b.Keys()).Draw(t, "key")
				if strings.HasPrefix(key, "tokenizer.") || key == "general.alignment" || strings.HasPrefix(key, "split.") {
					continue
				}
				v := rapid.OneOf(
					rapid.Custom(func(t *rapid.T) any { return rapid.Uint32().Draw(t, "v") }),
					rapid.Custom(func(t *rapid.T) any { return rapid.Uint32Range(0, 70).Draw(t, "v") }),
					rapid.Custom(func(t *rapid.T) any { return rapid.Int32Range(-9, 9).Draw(t, "v") }),
					rapid.Custom(func(t *rapid.T) any { return rapid.Float32().Draw(t, "v") }),
					rapid.Custom(func(t *rapid.T) any { return rapid.Bool().Draw(t, "v") }),
					rapid.Custom(func(t *rapid.T) any { return rapid.StringN(0, 8, 20).Draw(t, "v") }),
				).Draw(t, "value")
				if err := b.Set(key, v); err != nil {
					t.Fatal(err)
				}
			}
		})
		m, err := Open(path, Options{KV: tensor.F16, Workers: 1, MaxContext: 256, KVBytes: 1 << 20})
		if err != nil {
			return
		}
		defer m.Close()
		seq := m.Pool().NewSeq()
		if err := m.Forward(&Step{Runs: []Run{{Seq: seq, Tokens: []int32{1, 2, 3}, Outputs: 1}}}); err != nil {
			return
		}
		if len(m.Logits(0)) != m.Config().Vocab {
			t.Fatalf("%d logits, want %d", len(m.Logits(0)), m.Config().Vocab)
		}
	})
}

func TestOpenRefusesDirectories(t *testing.T) {
	for name, files := range map[string]map[string]string{
		"empty":           {},
		"not JSON":        {"config.json": "hello"},
		"no type":         {"config.json": "{}"},
		"unknown type":    {"config.json": `{"model_type":"nosuch"}`},
		"no sizes":        {"config.json": `{"model_type":"llama"}`},
		"sizes as text":   {"config.json": `{"model_type":"llama","vocab_size":"many"}`},
		"huge":            {"config.json": `{"model_type":"llama","vocab_size":1e300,"hidden_size":4,"num_hidden_layers":1,"num_attention_heads":1}`},
		"no weights":      {"config.json": `{"model_type":"llama","vocab_size":8,"hidden_size":4,"num_hidden_layers":1,"num_attention_heads":1}`},
		"unknown scaling": {"config.json": `{"model_type":"llama","vocab_size":8,"hidden_size":4,"num_hidden_layers":1,"num_attention_heads":1,"rope_scaling":{"type":"magic"}}`},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for file, text := range files {
				if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			m, err := Open(dir, Options{KV: tensor.F16, Workers: 1})
			if err == nil {
				m.Close()
				t.Fatal("no error")
			}
			if strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), dir) {
				t.Errorf("error %q does not name the directory on one line", err)
			}
		})
	}
}

// A decoded token allocates nothing, in a short context and in one whose keys
// are split over the workers.
func TestDecodeAllocatesNothing(t *testing.T) {
	for _, c := range []struct {
		path string
		held int
		act  Act
	}{
		{tinyModels + "/llama", 700, 0}, {tinyModels + "/gemma3", 65, 0}, {tinyModels + "/gpt2", 65, 0}, {tinyModels + "/mpt", 600, 0}, {tinyModels + "/falcon-7b", 65, 0},
		{testdata.Tiny, 65, ActMixed}, {testdata.Tiny, 65, ActInt8}, {testdata.Tiny, 65, ActInt16}, // the only one with quantized matrices
	} {
		context := 0
		if c.held > 128 {
			context = 1024
		}
		m := openTiny(t, c.path, context, Options{KV: tensor.F16, Act: c.act, Workers: 2})
		seq := m.Pool().NewSeq()
		next := &Step{Runs: []Run{{Seq: seq, Tokens: []int32{1}, Outputs: 1}}}
		step := func() {
			if err := m.Forward(next); err != nil {
				t.Fatal(err)
			}
		}
		for range c.held {
			step() // every buffer has its size, the second page is there
		}
		if n := testing.AllocsPerRun(40, step); n != 0 {
			t.Errorf("%s, %v: %v allocations per token", c.path, c.act, n)
		}
	}
}
