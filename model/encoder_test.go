package model

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ridge/kvcache"
	"ridge/weights/tensor"
)

const tinyEncoders = "../internal/tinymodel/encoders"

// encoderGolden is what Hugging Face transformers computed for a tiny encoder: see
// internal/tinymodel/gen/encoders.py.
type encoderGolden struct {
	dir       string
	Tokens    []int32
	Second    int
	Every     int
	States    [][]float32
	Pooling   string
	Embedding []float32
	Scores    []float32
}

func readEncoders(t *testing.T) []*encoderGolden {
	t.Helper()
	paths, err := filepath.Glob(tinyEncoders + "/*/golden.json")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no tiny encoders in %s: %v", tinyEncoders, err)
	}
	var all []*encoderGolden
	for _, path := range paths {
		g := &encoderGolden{dir: filepath.Dir(path)}
		b, err := os.ReadFile(path)
		if err == nil {
			err = json.Unmarshal(b, g)
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, g)
	}
	return all
}

// states computes texts in one step and returns the states of all tokens of each.
func states(t testing.TB, m *Model, texts ...Run) [][][]float32 {
	t.Helper()
	s := &Step{NoLogits: true}
	for _, r := range texts {
		r.Seq, r.Outputs = m.Pool().NewSeq(), len(r.Tokens)
		s.Runs = append(s.Runs, r)
	}
	if err := m.Forward(s); err != nil {
		t.Fatal(err)
	}
	var out [][][]float32
	row := 0
	for _, r := range s.Runs {
		var rows [][]float32
		for range r.Tokens {
			rows = append(rows, slices.Clone(m.Hidden(row)))
			row++
		}
		out = append(out, rows)
		m.Pool().Free(r.Seq)
	}
	return out
}

// pooled is the state that becomes an embedding or scores.
func pooled(rows [][]float32, p Pooling) []float32 {
	switch p {
	case PoolingCLS:
		return rows[0]
	case PoolingLast:
		return rows[len(rows)-1]
	}
	sum := make([]float64, len(rows[0]))
	for _, row := range rows {
		for i, v := range row {
			sum[i] += float64(v)
		}
	}
	out := make([]float32, len(sum))
	for i, v := range sum {
		out[i] = float32(v / float64(len(rows)))
	}
	return out
}

func unit32(x []float32) []float32 {
	sum := make([]float64, len(x))
	for i, v := range x {
		sum[i] = float64(v)
	}
	return Unit(sum)
}

// Every family of encoders against Hugging Face transformers: states, embeddings and
// scores of labels, the same bits from either kind of file.
func TestEncodersAgainstTransformers(t *testing.T) {
	for _, g := range readEncoders(t) {
		t.Run(filepath.Base(g.dir), func(t *testing.T) {
			var first []float32
			files := map[string]string{"safetensors": g.dir}
			if path := filepath.Join(g.dir, filepath.Base(g.dir)+".gguf"); exists(path) {
				files["gguf"] = path
			}
			for kind, path := range files {
				m := openTiny(t, path, 0, Options{KV: tensor.F32, Workers: 2, KVBytes: 8 << 20})
				second := g.Second
				if kind == "gguf" && m.net.Embed.Types.Rows < 2 {
					second = 0
				}
				rows := states(t, m, Run{Tokens: g.Tokens, Second: second})[0]
				var got, want, all []float32
				for i, row := range rows {
					if all = append(all, row...); (i+1)%g.Every == 0 {
						got, want = append(got, row...), append(want, g.States[i/g.Every]...)
					}
				}
				d, at := maxDiff(got, want)
				t.Logf("%s: states differ by at most %.1e", kind, d)
				if len(got) != len(want) || !(d <= logitTolerance) {
					t.Errorf("%s: states: row %d: %v, want %v", kind, at/len(rows[0]), got[at], want[at])
				}
				if g.Scores != nil {
					k := m.Net().Classes
					if k == nil || m.Defaults().Pooling != PoolingRank {
						t.Fatalf("%s: no classifier, pooling %q", kind, m.Defaults().Pooling)
					}
					scores := m.Classify(pooled(rows, k.Pool))
					if d, _ := maxDiff(scores, g.Scores); len(scores) != len(g.Scores) || !(d <= logitTolerance) {
						t.Errorf("%s: scores %v, want %v", kind, scores, g.Scores)
					}
					all = append(all, scores...)
				} else {
					if kind == "safetensors" && string(m.Defaults().Pooling) != g.Pooling {
						t.Errorf("pooling %q, want %q", m.Defaults().Pooling, g.Pooling)
					}
					e := unit32(m.Represent(pooled(rows, Pooling(g.Pooling))))
					if d, _ := maxDiff(e, g.Embedding); len(e) != len(g.Embedding) || m.EmbeddingSize() != len(e) || !(d <= 1e-4) {
						t.Errorf("%s: embedding differs by %v: %v, want %v", kind, d, e, g.Embedding)
					}
				}
				if first == nil {
					first = all
				} else if !equalBits(first, all) {
					d, _ := maxDiff(first, all)
					t.Errorf("GGUF and safetensors differ by %v", d)
				}
			}
		})
	}
}

// The states of a text have the same bits alone and in any batch, whatever the
// threads and the pages.
func TestEncodersOneAnswer(t *testing.T) {
	for _, g := range readEncoders(t) {
		if g.Scores != nil {
			continue
		}
		t.Run(filepath.Base(g.dir), func(t *testing.T) {
			lone := openTiny(t, g.dir, 0, Options{KV: tensor.F32, Workers: 1, PageTokens: 16})
			want := states(t, lone, Run{Tokens: g.Tokens, Second: g.Second})[0]
			for _, o := range []Options{{Workers: 1, PageTokens: 64}, {Workers: 2, PageTokens: 16}, {Workers: 3, PageTokens: 32}} {
				o.KVBytes = 8 << 20
				m := openTiny(t, g.dir, 0, o)
				batch := []Run{{Tokens: g.Tokens[:1]}, {Tokens: g.Tokens, Second: g.Second}, {Tokens: g.Tokens[5:20]}, {Tokens: g.Tokens, Second: g.Second}, {Tokens: g.Tokens[:33]}}
				got := states(t, m, batch...)
				for _, i := range []int{1, 3} {
					for row := range want {
						if !equalBits(got[i][row], want[row]) {
							t.Fatalf("%d threads, pages of %d: text %d of a batch: row %d differs", o.Workers, o.PageTokens, i, row)
						}
					}
				}
			}
		})
	}
}

// Keys and values of encoders take the memory of one layer, and a text that is not
// whole is refused.
func TestEncodersKeepNothing(t *testing.T) {
	m := openTiny(t, filepath.Join(tinyEncoders, "bert"), 0, Options{})
	if keeps := m.net.Keeps(); keeps[0] == (kvcache.LayerShape{}) || keeps[1] != (kvcache.LayerShape{}) {
		t.Errorf("layers keep %v, want the first alone", keeps)
	}
	if m.Pool().DType() != tensor.F32 {
		t.Errorf("keys of %v, want F32", m.Pool().DType())
	}
	seq := m.Pool().NewSeq()
	defer m.Pool().Free(seq)
	for i, want := range []bool{true, false} {
		err := m.Forward(&Step{NoLogits: true, Runs: []Run{{Seq: seq, Tokens: []int32{5, 6}, Outputs: 1}}})
		if (err == nil) != want {
			t.Errorf("piece %d of a text: %v", i, err)
		}
	}
}

// Layers that only look back cannot be those of a model that looks in both
// directions, and keys of others than BERT's own attention are refused.
func TestEncodersRefuse(t *testing.T) {
	for _, c := range []struct {
		dir, key string
		v        any
		want     string
	}{
		{tinyModels + "/lfm2", "is_causal", false, "expected attention that can look in both directions"},
		{tinyModels + "/deepseek3", "is_causal", false, "expected attention that can look in both directions"},
		{tinyEncoders + "/bert", "position_embedding_type", "relative_key", "position_embedding_type: expected absolute, found relative_key"},
		{tinyEncoders + "/bert", "type_vocab_size", 3, `token_type_embeddings.weight": expected 3 x 32, found 2 x 32`},
		{tinyEncoders + "/bert", "add_cross_attention", true, "add_cross_attention: expected false, found true"},
		{tinyEncoders + "/nomic-bert", "qkv_proj_bias", true, "qkv_proj_bias: expected false, found true"},
		{tinyEncoders + "/nomic-bert-moe", "num_shared_experts", 1, "num_shared_experts: expected 0, found 1"},
		{tinyEncoders + "/nomic-bert-moe", "moe_normalize_expert_weights", true, "moe_normalize_expert_weights: expected false, found true"},
		{tinyEncoders + "/mpnet", "relative_attention_num_buckets", 31, "buckets of distances: expected a multiple of 4"},
		{tinyEncoders + "/modernbert-class", "classifier_pooling", "max", "classifier_pooling: expected cls or mean, found max"},
		{tinyEncoders + "/jina-bert-v2", "feed_forward_type", "original", "feed_forward_type: expected geglu, found original"},
		{tinyEncoders + "/bert-class", "architectures", []string{"BertModel"}, `expected no such tensor`},
	} {
		config, _ := configOf(t, c.dir)
		config[c.key] = c.v
		b, err := json.Marshal(config)
		if err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		for _, name := range []string{"model.safetensors", "tokenizer.json", "tokenizer_config.json"} {
			data, err := os.ReadFile(filepath.Join(c.dir, name))
			if err == nil {
				err = os.WriteFile(filepath.Join(dir, name), data, 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(filepath.Join(dir, "config.json"), b, 0o600); err != nil {
			t.Fatal(err)
		}
		m, err := Open(dir, Options{Workers: 1})
		if err == nil {
			m.Close()
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s with %s %v: %v, want %s", filepath.Base(c.dir), c.key, c.v, err, c.want)
		}
	}
}

// An encoder that was written as a GGUF file is the same model, or what GGUF cannot say
// of it is an error.
func TestEncodersConverted(t *testing.T) {
	for name, want := range map[string]string{
		"bert": "", "distilbert": "", "roberta": "", "mpnet": "", "nomic-bert-first": "", "nomic-bert-moe": "", "modernbert": "", "llama-both": "",
		"bert-class": "", "xlm-roberta-class": "", "modernbert-class": "", "llama-class": "",
		"jina-bert-v2": "", "jina-bert-v3": "", "jina-bert-v3-class": "", "distilbert-class": "Encoder: expected", "modernbert-class-cls": "Encoder: expected",
		"gemma3-both": `tensor "dense_2.weight"`, "nomic-bert": `tensor "dense_2.weight"`,
	} {
		dir := filepath.Join(tinyEncoders, name)
		path := filepath.Join(t.TempDir(), name+".gguf")
		_, err := Convert(dir, path, "keep", 0, nil)
		if want != "" {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %s", name, err, want)
			}
			continue
		} else if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		text := Run{Tokens: []int32{5, 6, 7, 8, 90, 100, 30, 31, 32, 33, 34, 35}, Second: 4}
		a, b := openTiny(t, dir, 0, Options{Workers: 1}), openTiny(t, path, 0, Options{Workers: 1})
		want, got := states(t, a, text)[0], states(t, b, text)[0]
		for i := range want {
			if !equalBits(want[i], got[i]) {
				t.Errorf("%s: row %d differs", name, i)
			}
		}
		if a.Defaults().Pooling != b.Defaults().Pooling {
			t.Errorf("%s: pooling %q, want %q", name, b.Defaults().Pooling, a.Defaults().Pooling)
		}
		if a.Net().Classes != nil && !equalBits(a.Classify(want[0]), b.Classify(got[0])) {
			t.Errorf("%s: scores differ", name)
		}
	}
}
