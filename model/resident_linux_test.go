package model_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"

	"ridge/internal/packfile"
	"ridge/measure/bench"
	"ridge/model"
	"ridge/weights/safetensors"
	"ridge/weights/tensor"
)

// mappedKB returns how much of the mapping of path is in this process's memory.
func mappedKB(t *testing.T, path string) int {
	t.Helper()
	b, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		t.Skipf("no account of mappings: %v", err)
	}
	sum, here := 0, false
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line)
		switch {
		case len(f) >= 5 && strings.Contains(f[0], "-"):
			here = f[len(f)-1] == path
		case here && len(f) == 3 && f[0] == "Rss:":
			n, err := strconv.Atoi(f[1])
			if err != nil {
				t.Fatal(err)
			}
			sum += n
		}
	}
	return sum
}

// checkpoint writes a model of the Llama family as a Hugging Face folder of
// zero weights: query and key heads are reordered when it is read.
func checkpoint(t *testing.T, dir string) (weights string) {
	t.Helper()
	const layers, hidden, ffn, vocab = 6, 1024, 2816, 4096
	config := fmt.Sprintf(`{"model_type": "llama", "hidden_size": %d, "intermediate_size": %d, "num_hidden_layers": %d, "num_attention_heads": 16,
"num_key_value_heads": 4, "vocab_size": %d, "max_position_embeddings": 256, "rms_norm_eps": 1e-5, "tie_word_embeddings": true}`, hidden, ffn, layers, vocab)
	if err := os.WriteFile(filepath.Join(dir, "config.json"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	var ts []safetensors.Tensor
	add := func(name string, shape ...uint64) {
		size := uint64(2)
		for _, n := range shape {
			size *= n
		}
		ts = append(ts, safetensors.Tensor{Name: name + ".weight", Type: "BF16", Shape: shape, Data: safetensors.Bytes(make([]byte, size))})
	}
	add("model.embed_tokens", vocab, hidden)
	add("model.norm", hidden)
	for i := range layers {
		at := fmt.Sprintf("model.layers.%d.", i)
		add(at+"input_layernorm", hidden)
		add(at+"post_attention_layernorm", hidden)
		add(at+"self_attn.q_proj", hidden, hidden)
		add(at+"self_attn.k_proj", hidden/4, hidden)
		add(at+"self_attn.v_proj", hidden/4, hidden)
		add(at+"self_attn.o_proj", hidden, hidden)
		add(at+"mlp.gate_proj", ffn, hidden)
		add(at+"mlp.up_proj", ffn, hidden)
		add(at+"mlp.down_proj", hidden, ffn)
	}
	weights = filepath.Join(dir, "model.safetensors")
	if err := safetensors.Write(weights, ts, nil); err != nil {
		t.Fatal(err)
	}
	return weights
}

// While a model is loaded its file's pages are given back as they are packed:
// never more than a small part of the file is in memory beside the packed form.
func TestLoadGivesPagesBack(t *testing.T) {
	for _, c := range []struct {
		name string
		make func(t *testing.T, dir string) (open, file string)
	}{
		{"gguf", func(t *testing.T, dir string) (string, string) {
			path := filepath.Join(dir, "m.gguf")
			if err := bench.Synthetic(path, "smol:Q8_0", 1); err != nil {
				t.Fatal(err)
			}
			return path, path
		}},
		{"safetensors", func(t *testing.T, dir string) (string, string) { return dir, checkpoint(t, dir) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			open, file := c.make(t, t.TempDir())
			for workers := range 2 {
				givesPagesBack(t, open, file, 1+workers)
			}
		})
	}
}

// givesPagesBack opens a model whose weights are in file, and looks at its mapping
// whenever progress is told.
func givesPagesBack(t *testing.T, open, file string, workers int) {
	t.Helper()
	st, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	looks, most := 0, 0
	o := model.Options{KV: tensor.F16, Workers: workers, Context: 64, Progress: func(done, total int64) {
		looks, most = looks+1, max(most, mappedKB(t, file))
	}}
	m, err := model.Open(open, o)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	// The first worker tells, and another one may do most of the work.
	if looks < 3 && workers == 1 {
		t.Fatalf("looked %d times", looks)
	}
	// The runs of the workers, and what is mapped around them.
	if limit := int(st.Size()>>10) / 4; most > limit {
		t.Errorf("%d workers: up to %d KiB of the %d of the file were in memory, want at most %d", workers, most, st.Size()>>10, limit)
	}
	if left := mappedKB(t, file); left > 64 {
		t.Errorf("%d workers: %d KiB of the file are in memory after loading, want 0", workers, left)
	}
	t.Logf("%d workers: up to %d KiB of %d", workers, most, st.Size()>>10)
}

// Weights that were kept take no memory of the process's own where they are
// mapped, and once where they are copied: the mapping goes.
func TestKeptWeightsResident(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m.gguf")
	if err := bench.Synthetic(path, "smol:Q8_0", 1); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	o := model.Options{KV: tensor.F16, Workers: 2, Context: 64, PackCache: model.PackCache{Dir: dir, Warn: func(s string) { t.Error(s) }}}
	for i := range 2 {
		debug.FreeOSMemory() // what tests before this one have left
		before := statusKB(t, "RssAnon:")
		m, err := model.Open(path, o)
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		size := int(m.WeightBytes() >> 10)
		if i == 0 {
			if err := m.Close(); err != nil { // the file is written then
				t.Fatal(err)
			}
			continue
		}
		file := packfile.List(dir)[0].Path
		mapped, own := mappedKB(t, file), statusKB(t, "RssAnon:")-before
		t.Logf("%s: %d KiB of weights, %d mapped, %d of the process's own", m.PackedFrom(), size, mapped, own)
		switch m.PackedFrom() {
		case "mapped":
			if mapped < size || own > size/2 {
				t.Errorf("%d of %d KiB are mapped, and %d of its own", mapped, size, own)
			}
		case "copied":
			if mapped > 0 {
				t.Errorf("%d KiB are mapped still", mapped)
			}
		default:
			t.Errorf("packed from %q", m.PackedFrom())
		}
		if left := mappedKB(t, path); left > 64 {
			t.Errorf("%d KiB of the model's file are in memory", left)
		}
	}
}

// statusKB returns a line of the system's account of this process.
func statusKB(t *testing.T, name string) int {
	t.Helper()
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Skipf("no account of memory: %v", err)
	}
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); len(f) == 3 && f[0] == name {
			n, err := strconv.Atoi(f[1])
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
	}
	t.Skipf("no %s in the account of memory", name)
	return 0
}
