package model

import (
	"encoding/binary"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ridge/weights/safetensors"
	"ridge/weights/tensor"
)

const tinyAdapters = "../internal/tinymodel/adapters"

// adapterGolden is what PEFT computed for a tiny model with an adapter.
type adapterGolden struct {
	Base   string `json:"base"`
	Every  int    `json:"every"`
	dir    string
	prompt []int32
	logits []float32 // of one row in Every
}

func readAdapterGolden(t *testing.T, name string) *adapterGolden {
	t.Helper()
	g := &adapterGolden{dir: filepath.Join(tinyAdapters, name)}
	b, err := os.ReadFile(filepath.Join(g.dir, "golden.json"))
	if err == nil {
		err = json.Unmarshal(b, g)
	}
	if err != nil {
		t.Fatal(err)
	}
	if b, err = os.ReadFile(filepath.Join(g.dir, "logits.f32")); err != nil {
		t.Fatal(err)
	}
	for ; len(b) > 0; b = b[4:] {
		g.logits = append(g.logits, math.Float32frombits(binary.LittleEndian.Uint32(b)))
	}
	g.prompt = readGolden(t, filepath.Join(tinyModels, g.Base)).Prompt[:64]
	return g
}

// openAdapted opens a base model in one of its forms, and an adapter.
func openAdapted(t *testing.T, base, form, adapter string) (*Model, *Adapter) {
	t.Helper()
	g := readGolden(t, filepath.Join(tinyModels, base))
	path, ok := g.files()[form]
	if !ok {
		t.Skipf("%s has no %s", base, form)
	}
	m := openTiny(t, path, g.Context, Options{KV: tensor.F32, Workers: 2, KVBytes: 16 << 20})
	a, err := m.ReadAdapter(adapter)
	if err != nil {
		t.Fatal(err)
	}
	return m, a
}

// adapted computes tokens in chunks with an adapter, nil for none, beside another
// sequence without one.
func adapted(t *testing.T, m *Model, a *Adapter, tokens []int32, chunk int) (out, beside []float32) {
	t.Helper()
	seq, other := m.Pool().NewSeq(), m.Pool().NewSeq()
	defer m.Pool().Free(seq)
	defer m.Pool().Free(other)
	for i := 0; i < len(tokens); i += chunk {
		part := tokens[i:min(i+chunk, len(tokens))]
		s := &Step{Runs: []Run{{Seq: other, Tokens: part, Outputs: len(part)}, {Seq: seq, Tokens: part, Outputs: len(part), Adapter: a.Run()}}}
		if err := m.Forward(s); err != nil {
			t.Fatal(err)
		}
		for j := range part {
			beside = append(beside, m.Logits(j)...)
		}
		for j := range part {
			out = append(out, m.Logits(len(part)+j)...)
		}
	}
	return out, beside
}

// Adapters give the logits that PEFT computes, of either form of file on either form
// of model; rows beside them keep their bits, however the prompt is cut.
func TestAdapterGolden(t *testing.T) {
	dirs, err := filepath.Glob(tinyAdapters + "/*/golden.json")
	if err != nil || len(dirs) == 0 {
		t.Fatalf("no adapters in %s: %v", tinyAdapters, err)
	}
	for _, dir := range dirs {
		name := filepath.Base(filepath.Dir(dir))
		g := readAdapterGolden(t, name)
		files := []string{g.dir}
		if gguf := filepath.Join(g.dir, name+".gguf"); exists(gguf) {
			files = append(files, gguf)
		}
		for _, form := range []string{"safetensors", "gguf"} {
			for _, file := range files {
				t.Run(form+" "+filepath.Base(file), func(t *testing.T) {
					m, a := openAdapted(t, g.Base, form, file)
					plain := compute(t, m, g.prompt, len(g.prompt))
					got, beside := adapted(t, m, a, g.prompt, len(g.prompt))
					if !equalBits(beside, plain) {
						t.Error("rows without the adapter have other bits beside it")
					}
					vocab := m.Config().Vocab
					var rows []float32
					for r := g.Every - 1; r < len(g.prompt); r += g.Every {
						rows = append(rows, got[r*vocab:(r+1)*vocab]...)
					}
					if d, at := maxDiff(rows, g.logits); d > logitTolerance || len(rows) != len(g.logits) {
						t.Errorf("logit %d of row %d differs by %v", at%vocab, (at/vocab+1)*g.Every-1, d)
					}
					for _, chunk := range []int{1, 7, 23} {
						if again, _ := adapted(t, m, a, g.prompt, chunk); !equalBits(again, got) {
							t.Errorf("chunks of %d give other bits", chunk)
						}
					}
				})
			}
		}
	}
}

// Different adapters in one step give each run the bits that it has alone; a sum
// of adapters adds what its parts do.
func TestAdaptersTogether(t *testing.T) {
	m, one := openAdapted(t, "llama", "safetensors", filepath.Join(tinyAdapters, "llama"))
	two, err := m.ReadAdapter(filepath.Join(tinyAdapters, "llama-rs"))
	if err != nil {
		t.Fatal(err)
	}
	prompt := readAdapterGolden(t, "llama").prompt
	all := []*Adapter{one, nil, two, one.Scaled(0.5).With(two.Scaled(-1)), one.Scaled(0.5).With(one.Scaled(0.5)), one.Scaled(0)}
	s := &Step{}
	for i, a := range all {
		seq := m.Pool().NewSeq()
		defer m.Pool().Free(seq)
		s.Runs = append(s.Runs, Run{Seq: seq, Tokens: prompt[i : 20+i], Outputs: 1 + i, Adapter: a.Run()})
	}
	if err := m.Forward(s); err != nil {
		t.Fatal(err)
	}
	var got [][]float32
	for i := range m.Outputs() {
		got = append(got, append([]float32(nil), m.Logits(i)...))
	}
	row, vocab := 0, m.Config().Vocab
	for i, a := range all {
		want, plain := adapted(t, m, a, prompt[i:20+i], 20)
		for k := range 1 + i {
			if w := want[(20-1-i+k)*vocab:][:vocab]; !equalBits(got[row], w) {
				t.Errorf("run %d, output %d: other bits than alone", i, k)
			}
			row++
		}
		if d, _ := maxDiff(want, plain); (d == 0) != (a == nil || i == 5) {
			t.Errorf("run %d differs by %v from the model without an adapter", i, d)
		}
	}
	halves, _ := adapted(t, m, all[4], prompt, 64)
	whole, _ := adapted(t, m, one, prompt, 64)
	if d, _ := maxDiff(halves, whole); d > 1e-4 {
		t.Errorf("two halves of an adapter differ from it by %v", d)
	}
	m.Project(64+3, 2) // of the outputs behind those of the run without an adapter
	if !equalBits(m.Logits(0), whole[3*vocab:][:vocab]) {
		t.Error("rows that were projected again have other bits")
	}
	if ids := map[string]bool{one.ID: true, two.ID: true, all[3].ID: true, all[4].ID: true}; len(ids) != 4 {
		t.Errorf("adapters share an identity: %v", ids)
	}
}

// Bad adapters are refused, by the name of what is wrong with them.
func TestBadAdapters(t *testing.T) {
	good := filepath.Join(tinyAdapters, "llama")
	q := "base_model.model.model.layers.0.self_attn.q_proj.lora_"
	for name, c := range map[string]struct {
		base    string
		adapter string
		config  map[string]any
		change  func(name string, v *safetensors.Tensor, data []byte)
		want    string
	}{
		"rank":     {config: map[string]any{"r": 5}, want: "expected 5 rows, the rank in adapter_config.json, found 4"},
		"no rank":  {config: map[string]any{"r": "x"}, want: "r: expected a rank"},
		"no alpha": {config: map[string]any{"lora_alpha": nil}, want: "lora_alpha: expected a number"},
		"infinite": {config: map[string]any{"lora_alpha": 1e300}, want: "scale: expected a number"},
		"type":     {config: map[string]any{"peft_type": "LOHA"}, want: `peft_type: expected "LORA", found LOHA`},
		"dora":     {config: map[string]any{"use_dora": true}, want: "lora_magnitude_vector) since use_dora is set, found none"},
		"no dora":  {adapter: "llama-dora", config: map[string]any{"use_dora": false}, want: "since use_dora is not set"},
		"lengths": {adapter: "llama-dora", want: "expected 1 dimensions, found shape [2 16]", change: func(name string, v *safetensors.Tensor, _ []byte) {
			if strings.HasSuffix(name, "0.self_attn.q_proj.lora_magnitude_vector") {
				v.Shape = []uint64{2, v.Shape[0] / 2}
			}
		}},
		"bias":      {config: map[string]any{"bias": "all"}, want: `bias: expected "none"`},
		"pissa":     {config: map[string]any{"init_lora_weights": "pissa"}, want: "init_lora_weights: expected one of"},
		"saved":     {config: map[string]any{"modules_to_save": []string{"lm_head"}}, want: "modules_to_save: expected no value"},
		"unknown":   {config: map[string]any{"use_other_lora": map[string]any{"x": 1}}, want: "use_other_lora: expected no value"},
		"pattern":   {config: map[string]any{"rank_pattern": map[string]any{"(": 4}}, want: "rank_pattern: (: expected the name of modules"},
		"two ranks": {config: map[string]any{"alpha_pattern": map[string]any{"q_proj": 4, ".*_proj": 5}}, want: "expected one number for"},
		"base":      {base: "gemma2", want: "expected 64 rows, as the model's blk.0.attn_q has, found 32"},
		"layers":    {base: "gpt2", want: "expected the name of a matrix of this model (gpt2"},
		"NaN": {want: "row 0, column 2: expected a number, found NaN", change: func(name string, _ *safetensors.Tensor, data []byte) {
			if name == q+"A.weight" {
				data[4], data[5] = 0xc0, 0x7f
			}
		}},
		"infinity": {want: q + `B.weight": row 1, column 0: expected a number, found +Inf`, change: func(name string, _ *safetensors.Tensor, data []byte) {
			if name == q+"B.weight" {
				data[8], data[9] = 0x80, 0x7f
			}
		}},
		"shape": {want: q + `B.weight": expected 4 columns`, change: func(name string, v *safetensors.Tensor, _ []byte) {
			if name == q+"B.weight" {
				v.Shape[0], v.Shape[1] = v.Shape[1], v.Shape[0]
			}
		}},
		"lone": {want: "expected two matrices", change: func(name string, v *safetensors.Tensor, _ []byte) {
			if name == q+"B.weight" {
				v.Name = strings.Replace(name, "q_proj", "x_proj", 1)
			}
		}},
		"other": {want: "no other weights are taken", change: func(name string, v *safetensors.Tensor, _ []byte) {
			if name == q+"B.weight" {
				v.Name = "base_model.model.lm_head.weight"
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			base := c.base
			if base == "" {
				base = "llama"
			}
			m := openTiny(t, filepath.Join(tinyModels, base), 0, Options{KV: tensor.F32, Workers: 1})
			from := good
			if c.adapter != "" {
				from = filepath.Join(tinyAdapters, c.adapter)
			}
			dir := changedAdapter(t, from, c.config, c.change)
			_, err := m.ReadAdapter(dir)
			if err == nil {
				t.Fatal("it was taken")
			}
			if !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "adapter") {
				t.Errorf("expected %q, found: %v", c.want, err)
			}
		})
	}
}

// changedAdapter writes an adapter that is another with some things changed.
func changedAdapter(t *testing.T, from string, config map[string]any, change func(string, *safetensors.Tensor, []byte)) string {
	t.Helper()
	dir := t.TempDir()
	b, err := os.ReadFile(filepath.Join(from, "adapter_config.json"))
	keys := map[string]any{}
	if err == nil {
		err = json.Unmarshal(b, &keys)
	}
	if err != nil {
		t.Fatal(err)
	}
	for k, v := range config {
		keys[k] = v
	}
	if b, err = json.Marshal(keys); err == nil {
		err = os.WriteFile(filepath.Join(dir, "adapter_config.json"), b, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	f, err := safetensors.Open(filepath.Join(from, "adapter_model.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var all []safetensors.Tensor
	for _, info := range f.Tensors() {
		data := append([]byte(nil), f.Data(info.Name)...)
		v := safetensors.Tensor{Name: info.Name, Type: info.Type, Shape: append([]uint64(nil), info.Shape...)}
		if change != nil {
			change(info.Name, &v, data)
		}
		v.Data = safetensors.Bytes(data)
		all = append(all, v)
	}
	if err := safetensors.Write(filepath.Join(dir, "adapter_model.safetensors"), all, nil); err != nil {
		t.Fatal(err)
	}
	return dir
}
