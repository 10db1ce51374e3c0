package model

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ridge/weights/gguf"
	"ridge/weights/safetensors"
	"ridge/weights/tensor"
)

// tinyHeads are draft heads of tiny models, with the logits that PyTorch computes: see
// internal/tinymodel/gen/heads.py.
const tinyHeads = "../internal/tinymodel/heads"

// headGolden is golden.json of a head.
type headGolden struct {
	Base   string  `json:"base"`
	Rows   int     `json:"rows"` // of the base's prompt
	Every  int     `json:"every"`
	Own    []int32 `json:"own"` // tokens that it goes on with from states of its own
	Vocab  int     `json:"vocab"`
	IDs    []int32 `json:"ids"` // the model's tokens that it knows; nil for all
	logits []float32
	base   *golden
}

func readHead(t *testing.T, name string) *headGolden {
	t.Helper()
	dir := filepath.Join(tinyHeads, name)
	g := &headGolden{}
	b, err := os.ReadFile(filepath.Join(dir, "golden.json"))
	if err == nil {
		err = json.Unmarshal(b, g)
	}
	if err != nil {
		t.Fatal(err)
	}
	if b, err = os.ReadFile(filepath.Join(dir, "logits.f32")); err != nil {
		t.Fatal(err)
	}
	for ; len(b) > 0; b = b[4:] {
		g.logits = append(g.logits, math.Float32frombits(binary.LittleEndian.Uint32(b)))
	}
	g.base = readGolden(t, filepath.Join(tinyModels, g.Base))
	return g
}

// openHead opens a tiny model and a head of it. The layers that predict further tokens are
// in files of the model that hold both.
func openHead(t *testing.T, name string, g *headGolden, o Options) (*Model, *DraftHead) {
	t.Helper()
	model, head := filepath.Join(tinyModels, g.Base), filepath.Join(tinyHeads, name)
	if strings.HasPrefix(name, "mtp-") {
		model, head = withHead(t, g.Base, filepath.Join(head, "model.safetensors")), ""
	}
	m := openTiny(t, model, g.base.Context, o)
	return m, openHeadOf(t, m, head)
}

func openHeadOf(t *testing.T, m *Model, path string) *DraftHead {
	t.Helper()
	h, err := m.OpenDraftHead(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	return h
}

// withHead returns a checkpoint with the tensors of a file beside its own.
func withHead(t *testing.T, base, file string) string {
	t.Helper()
	st, err := safetensors.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	config := map[string]any{"num_nextn_predict_layers": 1, "num_mtp_layers": nil}
	if base == "qwen2" {
		config["model_type"], config["architectures"] = "mimo", []string{"MiMoForCausalLM"}
	}
	return copyCheckpoint(t, base, config, func(c *checkpoint) {
		for _, info := range st.Tensors() {
			m, err := st.Mat(info.Name)
			if err != nil {
				t.Fatal(err)
			}
			var shape []int
			for _, d := range info.Shape {
				shape = append(shape, int(d))
			}
			values := make([]float32, m.Rows*m.Cols)
			for r := range m.Rows {
				m.DecodeRow(values[r*m.Cols:], r)
			}
			c.set(info.Name, shape, values)
		}
	})
}

// headStates computes a text in chunks and returns what a head reads of each row.
func headStates(t *testing.T, m *Model, h *DraftHead, tokens []int32, chunk int) []float32 {
	t.Helper()
	seq := m.Pool().NewSeq()
	defer m.Pool().Free(seq)
	var all []float32
	rows := make([][]float32, len(h.Taps()))
	for i := 0; i < len(tokens); i += chunk {
		part := tokens[i:min(i+chunk, len(tokens))]
		if err := m.Forward(&Step{Runs: []Run{{Seq: seq, Tokens: part, Outputs: i % 2, Length: len(tokens)}}, Taps: h.Taps()}); err != nil {
			t.Fatal(err)
		}
		for r := range part {
			for k := range rows {
				rows[k] = m.Tapped(k, r)
			}
			state := make([]float32, h.Width())
			h.Take(state, rows)
			all = append(all, state...)
		}
	}
	return all
}

// logits computes what a head's golden has.
func (g *headGolden) compute(t *testing.T, m *Model, h *DraftHead, chunk int) (got []float32) {
	t.Helper()
	prompt := g.base.Prompt[:g.Rows]
	all, width := headStates(t, m, h, prompt, chunk), h.Width()
	for place := range h.Places() {
		for row := g.Every - 1; row < g.Rows; row += g.Every {
			h.Guess(place, all[row*width:][:width])
			got = append(got, h.Logits(0)...)
		}
	}
	if h.Places() > 0 {
		return got
	}
	seq := h.Pool().NewSeq()
	defer h.Pool().Free(seq)
	var state []float32
	for i := 0; i < len(prompt)-1; i += chunk {
		n := min(chunk, len(prompt)-1-i)
		if err := h.Forward(Run{Seq: seq, Tokens: prompt[1+i:][:n], Outputs: n}, all[i*width:][:n*width], false); err != nil {
			t.Fatal(err)
		}
		for r := range n {
			if (i+r+1)%g.Every == 0 {
				got = append(got, h.Logits(r)...)
			}
		}
		state = slices.Clone(h.State(n - 1))
	}
	for _, id := range g.Own {
		if err := h.Forward(Run{Seq: seq, Tokens: []int32{id}, Outputs: 1}, state, true); err != nil {
			t.Fatal(err)
		}
		got = append(got, h.Logits(0)...)
		state = slices.Clone(h.State(0))
	}
	return got
}

// Heads compute what PyTorch computes by the formulas of their authors, in chunks or at once.
func TestDraftHeads(t *testing.T) {
	names, err := os.ReadDir(tinyHeads)
	if err != nil || len(names) < 5 {
		t.Fatalf("%d heads: %v", len(names), err)
	}
	for _, f := range names {
		name := f.Name()
		t.Run(name, func(t *testing.T) {
			g := readHead(t, name)
			m, h := openHead(t, name, g, Options{KV: tensor.F32, Workers: 2})
			for _, chunk := range []int{1, 7, g.Rows} {
				got := g.compute(t, m, h, chunk)
				if len(got) != len(g.logits) {
					t.Fatalf("%d logits, want %d", len(got), len(g.logits))
				}
				if d, at := maxDiff(got, g.logits); !(d <= logitTolerance) {
					t.Errorf("chunks of %d: row %d: logits differ by %v", chunk, at/g.Vocab, d)
				}
			}
			for i, id := range g.IDs {
				if got := h.Token(int32(i)); got != id {
					t.Errorf("token %d is the model's %d, want %d", i, got, id)
				}
			}
			if h.Bytes() <= 0 {
				t.Error("it has no bytes")
			}
		})
	}
}

// What taps keep changes no logits, and is what layers read: the rows of a model that
// computes its first layers alone.
func TestTaps(t *testing.T) {
	for _, name := range []string{"llama", "gemma3", "qwen3next", "glm4moe", "falcon-7b"} {
		g := readGolden(t, filepath.Join(tinyModels, name))
		m := openTiny(t, g.dir, g.Context, Options{KV: tensor.F32, Workers: 2})
		tokens := g.Prompt[:20]
		run := func(taps []int, outputs int) (logits []float32, tapped [][]float32) {
			seq := m.Pool().NewSeq()
			defer m.Pool().Free(seq)
			if err := m.Forward(&Step{Runs: []Run{{Seq: seq, Tokens: tokens, Outputs: outputs}}, Taps: taps}); err != nil {
				t.Fatal(err)
			}
			for i := range outputs {
				logits = append(logits, m.Logits(i)...)
			}
			for k := range taps {
				var rows []float32
				for r := range tokens {
					rows = append(rows, m.Tapped(k, r)...)
				}
				tapped = append(tapped, rows)
			}
			return logits, tapped
		}
		layers := m.Config().Layers
		all := make([]int, layers+1)
		for i := range all {
			all[i] = i
		}
		want, _ := run(nil, 3)
		got, tapped := run(all, 3)
		if !slices.Equal(got, want) {
			t.Errorf("%s: taps change logits", name)
		}
		if _, one := run([]int{layers}, len(tokens)); !slices.Equal(one[0], tapped[layers]) {
			t.Errorf("%s: a tap depends on the others", name)
		}
		hidden := m.Config().Hidden
		for r := range tokens {
			row := make([]float32, hidden)
			if m.Net().Norm.Apply(row, tapped[layers][r*hidden:][:hidden]); !slices.Equal(row, m.Hidden(r)) {
				t.Errorf("%s: row %d behind the last layer does not give the state that logits are of", name, r)
			}
		}
		rows := make([]float32, m.Config().Hidden)
		for r, id := range tokens {
			if err := m.Net().Embed.lookUp(rows, int(id)); err != nil {
				t.Fatal(err)
			}
			for i, v := range rows {
				if got := tapped[0][r*len(rows)+i]; math.Abs(float64(v*m.Net().Embed.Scale-got)) > 1e-5 {
					t.Fatalf("%s: row %d of what the first layer reads: %v at %d, the embedding has %v", name, r, got, i, v)
				}
			}
		}
	}
	m := openTiny(t, filepath.Join(tinyModels, "llama"), 64, Options{})
	for _, taps := range [][]int{{-1}, {3}, {1, 1}, {2, 1}} {
		seq := m.Pool().NewSeq()
		if err := m.Forward(&Step{Runs: []Run{{Seq: seq, Tokens: []int32{1}}}, Taps: taps}); err == nil || !strings.Contains(err.Error(), "taps: expected rising numbers from 0 to 2") {
			t.Errorf("taps %v: %v", taps, err)
		}
	}
}

// Files that are not what they should be are refused with words that say where.
func TestDraftHeadsRefused(t *testing.T) {
	m := openTiny(t, filepath.Join(tinyModels, "llama"), 64, Options{})
	change := func(name string, config map[string]any, edit func(c *checkpoint)) string {
		return copyHead(t, name, config, edit)
	}
	for _, c := range []struct{ what, path, want string }{
		{"nothing", filepath.Join(t.TempDir(), "none"), "expected a folder or a .safetensors file, found none"},
		{"an empty folder", t.TempDir(), "expected one .safetensors file, found 0"},
		{"PyTorch's", filepath.Join(tinyHeads, "medusa", "golden.json"), "torch.load and safetensors.torch.save_file make one"},
		{"another model", filepath.Join(tinyModels, "gpt2"), "draft head: expected the tensors of one of [medusa eagle3 eagle], found none of them"},
		{"no own layer", "", "expected a layer that predicts further tokens"},
		{"a matrix of another size", change("medusa", nil, func(c *checkpoint) { c.set("1.0.linear.weight", []int{32, 16}, make([]float32, 512)) }),
			`tensor "1.0.linear.weight": expected 32 x 32, found 32 x 16`},
		{"another vocabulary", change("medusa", nil, func(c *checkpoint) { c.set("0.1.weight", []int{100, 32}, make([]float32, 3200)) }),
			`tensor "0.1.weight": expected 128 x 32, found 100 x 32`},
		{"a tensor too much", change("medusa", nil, func(c *checkpoint) { c.set("4.0.linear.weight", []int{32, 32}, make([]float32, 1024)) }),
			`tensor "4.0.linear.weight": expected no such tensor in a draft head of this form, found one`},
		{"a tensor too few", change("eagle", nil, func(c *checkpoint) { c.remove("layers.0.mlp.up_proj.weight") }), `mlp.up_proj.weight`},
		{"another width", change("eagle", map[string]any{"hidden_size": 64}, nil), "expected 128 x 64, found none"},
		{"no heads", change("eagle", map[string]any{"num_attention_heads": 3}, nil), "key-value head count: expected a divisor of 3 heads, found 2"},
		{"many layers", change("eagle", map[string]any{"num_hidden_layers": 1000}, nil), "num_hidden_layers: expected at most 16 in a draft head, found 1000"},
		{"taps that are not there", change("eagle3", map[string]any{"eagle_aux_hidden_state_layer_ids": []int{0, 1, 9}}, nil),
			"eagle_aux_hidden_state_layer_ids: expected rising numbers of layers from 0 to 2, found [0 1 9]"},
		{"fewer taps", change("eagle3", map[string]any{"eagle_aux_hidden_state_layer_ids": []int{0, 1}}, nil), `tensor "fc.weight": expected 32 x 64, found 32 x 96`},
		{"taps of words", change("eagle3", map[string]any{"eagle_aux_hidden_state_layer_ids": []string{"low"}}, nil), "eagle_aux_hidden_state_layer_ids"},
		{"another draft vocabulary", change("eagle3", map[string]any{"draft_vocab_size": 41}, nil), `tensor "d2t": expected 41 elements`},
	} {
		h, err := m.OpenDraftHead(c.path)
		if err == nil {
			h.Close()
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.what, err, c.want)
		}
	}
	head := openHeadOf(t, m, filepath.Join(tinyHeads, "eagle"))
	seq := head.Pool().NewSeq()
	for _, c := range []struct {
		run   Run
		width int
		want  string
	}{
		{Run{Seq: seq, Tokens: []int32{1, 2}, Outputs: 1}, 32, "expected 2 rows of 32 numbers, found 32 numbers"},
		{Run{Seq: seq, Tokens: []int32{128}, Outputs: 1}, 32, "token: expected 0 to 127, found 128"},
		{Run{Seq: seq, Tokens: make([]int32, 65), Outputs: 1}, 65 * 32, "context length exceeded"},
	} {
		if err := head.Forward(c.run, make([]float32, c.width), false); err == nil || !strings.Contains(err.Error(), c.want) || seq.Len() != 0 {
			t.Errorf("%v, want %q; the sequence has %d tokens", err, c.want, seq.Len())
		}
	}
}

// copyHead copies a head with another configuration and other tensors.
func copyHead(t *testing.T, name string, config map[string]any, edit func(c *checkpoint)) string {
	t.Helper()
	from, dir := filepath.Join(tinyHeads, name), t.TempDir()
	files, _ := filepath.Glob(filepath.Join(from, "*.safetensors"))
	f, err := safetensors.Open(files[0])
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	c := &checkpoint{}
	for _, x := range f.Tensors() {
		c.tensors = append(c.tensors, safetensors.Tensor{Name: x.Name, Type: x.Type, Shape: x.Shape, Data: safetensors.Bytes(f.Data(x.Name))})
	}
	if edit != nil {
		edit(c)
	}
	if err := safetensors.Write(filepath.Join(dir, "model.safetensors"), c.tensors, nil); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(filepath.Join(from, "config.json")); err == nil {
		var all map[string]any
		if err := json.Unmarshal(b, &all); err != nil {
			t.Fatal(err)
		}
		maps.Copy(all, config)
		if b, err = json.Marshal(all); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "config.json"), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// A GGUF file has the same layer behind the others, as llama.cpp names it.
func TestDraftHeadOfGGUF(t *testing.T) {
	g := readHead(t, "mtp-glm4moe")
	st, err := safetensors.Open(filepath.Join(tinyHeads, "mtp-glm4moe", "model.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	hf := map[string]string{"nextn.eh_proj.weight": "eh_proj.weight", "nextn.enorm.weight": "enorm.weight", "nextn.hnorm.weight": "hnorm.weight",
		"nextn.shared_head_norm.weight": "shared_head.norm.weight"}
	for part, name := range llamaNames(map[string]string{"post_attention_norm": "post_attention_layernorm", "ffn_norm": ""}) {
		if !strings.HasSuffix(part, ".bias") {
			hf[part+".bias"] = name + ".bias"
			part, name = part+".weight", name+".weight"
		}
		hf[part] = name
	}
	path := rewrite(t, t.TempDir(), "glm4moe", func(b *gguf.Builder) {
		b.Set("glm4moe.nextn_predict_layers", uint32(1))
		b.Set("glm4moe.block_count", uint32(3))
		for part, name := range hf {
			at := func(expert int) string {
				return "model.layers.2." + strings.ReplaceAll(name, "#", fmt.Sprint(expert))
			}
			info, ok := st.Tensor(at(0))
			if !ok {
				continue
			}
			var dims []uint64
			for _, d := range slices.Backward(info.Shape) {
				dims = append(dims, d)
			}
			var values bytes.Buffer
			experts := 0
			for ; ok && (experts == 0 || at(0) != at(1)); experts++ {
				m, err := st.Mat(at(experts))
				if err != nil {
					t.Fatal(err)
				}
				row := make([]float32, m.Cols)
				for r := range m.Rows {
					m.DecodeRow(row, r)
					binary.Write(&values, binary.LittleEndian, row)
				}
				_, ok = st.Tensor(at(experts + 1))
			}
			if strings.Contains(part, ".#") {
				dims, part = append(dims, uint64(experts)), strings.Replace(part, ".#", "", 1)
			}
			addFloats(t, b, "blk.2."+part, dims, gguf.Bytes(values.Bytes()))
		}
	})
	m := openTiny(t, path, g.base.Context, Options{KV: tensor.F32, Workers: 2})
	if d, at := maxDiff(g.compute(t, m, openHeadOf(t, m, ""), 9), g.logits); !(d <= logitTolerance) {
		t.Errorf("row %d: logits differ by %v", at/g.Vocab, d)
	}
}
