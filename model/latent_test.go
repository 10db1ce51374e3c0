package model

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ridge/internal/cpu"
	"ridge/kvcache"
	"ridge/nn"
	"ridge/weights/gguf"
	"ridge/weights/tensor"
)

// shapeSource has the tensors of a DeepSeek of any size, without their numbers.
type shapeSource struct {
	source
	c *Config
}

func (s shapeSource) mat(name string) (tensor.Mat, bool, error) {
	c, l, x := s.c, &s.c.Latent, &s.c.Experts
	layer, part, suffix := splitName(name)
	mixture := layer >= 0 && x.Layers != nil && x.Layers[layer]
	shapes := map[string][2]int{
		"token_embd": {c.Vocab, c.Hidden}, "output": {c.Vocab, c.Hidden}, "output_norm": {1, c.Hidden},
		"attn_norm": {1, c.Hidden}, "ffn_norm": {1, c.Hidden},
		"attn_kv_a_mqa": {l.Rank + l.RopeDim, c.Hidden}, "attn_kv_a_norm": {1, l.Rank},
		"attn_kv_b": {c.Heads * (l.PlainDim + l.ValueDim), l.Rank}, "attn_output": {c.Hidden, c.Heads * l.ValueDim},
		"attn_q": {c.Heads * (l.PlainDim + l.RopeDim), c.Hidden},
	}
	if l.QueryRank > 0 {
		shapes["attn_q_a"], shapes["attn_q_a_norm"] = [2]int{l.QueryRank, c.Hidden}, [2]int{1, l.QueryRank}
		shapes["attn_q_b"] = [2]int{c.Heads * (l.PlainDim + l.RopeDim), l.QueryRank}
	}
	up, down := [2]int{c.FFN, c.Hidden}, [2]int{c.Hidden, c.FFN}
	if mixture {
		up, down = [2]int{x.Count * x.FFN, c.Hidden}, [2]int{x.Count * c.Hidden, x.FFN}
		shapes["ffn_gate_inp"], shapes["exp_probs_b"] = [2]int{x.Count, c.Hidden}, [2]int{1, x.Count}
		shapes["ffn_gate_shexp"], shapes["ffn_up_shexp"] = [2]int{x.SharedFFN, c.Hidden}, [2]int{x.SharedFFN, c.Hidden}
		shapes["ffn_down_shexp"] = [2]int{c.Hidden, x.SharedFFN}
		part = strings.TrimSuffix(part, "_exps")
	}
	shapes["ffn_gate"], shapes["ffn_up"], shapes["ffn_down"] = up, up, down
	shape, ok := shapes[part]
	if suffix == ".bias" && part != "exp_probs_b" {
		ok = false
	}
	m := tensor.Mat{Type: tensor.BF16, Rows: shape[0], Cols: shape[1]}
	if m.Rows == 1 {
		m.Type, m.Data = tensor.F32, make([]byte, 4*m.Cols)
	}
	return m, ok, nil
}

func (s shapeSource) has(name string) bool {
	_, ok, _ := s.mat(name)
	return ok
}

func (shapeSource) names(name string) []string { return []string{name} }
func (shapeSource) name() string               { return "shapes" }
func (shapeSource) tensors() []string          { return nil }
func (shapeSource) release([]byte)             {}
func (shapeSource) copied() int64              { return 0 }

const yarn40 = `"rope_scaling": {"beta_fast": 32, "beta_slow": 1, "factor": 40, "mscale": %v, "mscale_all_dim": %v,
	"original_max_position_embeddings": 4096, "type": "yarn"}, "max_position_embeddings": 163840, "rope_theta": 10000`

// The config.json files of released models give as many weights, and of these as
// many for a token, as their authors say; a token keeps its latent and the shared
// key.
func TestDeepSeekSizes(t *testing.T) {
	v3 := `"model_type": "deepseek_v3", "first_k_dense_replace": 3, "hidden_size": 7168, "intermediate_size": 18432, "kv_lora_rank": 512,
		"moe_intermediate_size": 2048, "n_group": 8, "n_routed_experts": 256, "n_shared_experts": 1, "num_attention_heads": 128,
		"num_experts_per_tok": 8, "num_hidden_layers": 61, "num_key_value_heads": 128, "num_nextn_predict_layers": 1, "q_lora_rank": 1536,
		"qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "routed_scaling_factor": 2.5, "scoring_func": "sigmoid", "topk_group": 4,
		"topk_method": "noaux_tc", "v_head_dim": 128, "vocab_size": 129280, ` + fmt.Sprintf(yarn40, 1, 1)
	for _, c := range []struct {
		name, config     string
		billions, active float64
		layers           int
		scale            float64 // of scores
	}{
		{"V2-Lite", `"model_type": "deepseek_v2", "first_k_dense_replace": 1, "hidden_size": 2048, "intermediate_size": 10944,
			"kv_lora_rank": 512, "moe_intermediate_size": 1408, "n_group": 1, "n_routed_experts": 64, "n_shared_experts": 2,
			"norm_topk_prob": false, "num_attention_heads": 16, "num_experts_per_tok": 6, "num_hidden_layers": 27, "num_key_value_heads": 16,
			"q_lora_rank": null, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "routed_scaling_factor": 1.0, "scoring_func": "softmax",
			"topk_group": 1, "topk_method": "greedy", "v_head_dim": 128, "vocab_size": 102400, ` + fmt.Sprintf(yarn40, 0.707, 0.707), 15.7, 2.7, 27, 0.1147},
		{"V2", `"model_type": "deepseek_v2", "first_k_dense_replace": 1, "hidden_size": 5120, "intermediate_size": 12288,
			"kv_lora_rank": 512, "moe_intermediate_size": 1536, "n_group": 8, "n_routed_experts": 160, "n_shared_experts": 2,
			"norm_topk_prob": false, "num_attention_heads": 128, "num_experts_per_tok": 6, "num_hidden_layers": 60, "num_key_value_heads": 128,
			"q_lora_rank": 1536, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "routed_scaling_factor": 16.0, "topk_group": 3,
			"topk_method": "group_limited_greedy", "v_head_dim": 128, "vocab_size": 102400, ` + fmt.Sprintf(yarn40, 0.707, 0.707), 236, 21.4, 60, 0.1147},
		{"V3", v3, 671, 37.6, 61, 0.1352},
		{"Kimi K2", `"n_group": 1, "topk_group": 1, "num_attention_heads": 64, "num_key_value_heads": 64, "n_routed_experts": 384,
			"first_k_dense_replace": 1, "routed_scaling_factor": 2.827, "num_nextn_predict_layers": 0, "vocab_size": 163840,
			"max_position_embeddings": 131072, "rope_theta": 50000.0, "rope_scaling": {"beta_fast": 1.0, "beta_slow": 1.0, "factor": 32.0,
			"mscale": 1.0, "mscale_all_dim": 1.0, "original_max_position_embeddings": 4096, "type": "yarn"}, "model_type": "kimi_k2",
			"moe_intermediate_size": 2048, "hidden_size": 7168, "intermediate_size": 18432, "kv_lora_rank": 512, "n_shared_experts": 1,
			"num_experts_per_tok": 8, "num_hidden_layers": 61, "q_lora_rank": 1536, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64,
			"v_head_dim": 128`, 1027, 32.9, 61, 0.1309},
		{"Moonlight", `"model_type": "deepseek_v3", "n_group": 1, "topk_group": 1, "num_attention_heads": 16, "num_key_value_heads": 16,
			"n_routed_experts": 64, "first_k_dense_replace": 1, "routed_scaling_factor": 2.446, "num_nextn_predict_layers": 0,
			"vocab_size": 163840, "max_position_embeddings": 8192, "rope_theta": 50000.0, "moe_intermediate_size": 1408, "hidden_size": 2048,
			"intermediate_size": 11264, "kv_lora_rank": 512, "n_shared_experts": 2, "num_experts_per_tok": 6, "num_hidden_layers": 27,
			"q_lora_rank": null, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128`, 16, 2.9, 27, 0.0722},
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "config.json"), []byte("{"+c.config+"}"), 0o600); err != nil {
			t.Fatal(err)
		}
		d, err := hfDescription(dir)
		if err != nil {
			t.Fatal(c.name, err)
		}
		m := &Model{arch: &deepseek2}
		if err := m.arch.read(d, &m.cfg); err != nil {
			t.Fatal(c.name, err)
		}
		m.cfg.defaults()
		if err := m.cfg.Validate(); err != nil {
			t.Fatal(c.name, err)
		}
		m.present, m.src = d.present, shapeSource{c: &m.cfg}
		b := m.builder()
		b.shapes = true
		net := m.arch.build(b)
		if b.err != nil {
			t.Fatal(c.name, b.err)
		}
		if got := float64(b.w.params) / 1e9; math.Abs(got/c.billions-1) > 0.01 {
			t.Errorf("%s: %.1f billion weights, expected %v", c.name, got, c.billions)
		}
		// The embedding, of which one row is read, is among those that are counted.
		active := float64(net.activeBytes())/2 + float64(m.cfg.Vocab*m.cfg.Hidden)
		if got := active / 1e9; math.Abs(got/c.active-1) > 0.02 {
			t.Errorf("%s: %.1f billion weights for a token, expected %v", c.name, got, c.active)
		}
		if got := float64(m.cfg.AttnScale); math.Abs(got/c.scale-1) > 0.001 {
			t.Errorf("%s: scores are multiplied by %.4f, expected %v", c.name, got, c.scale)
		}
		const tokens = 64
		cache := kvcache.Config{Layers: net.Keeps(), DType: tensor.F16, PageTokens: tokens}
		if got, err := kvcache.SequenceBytes(cache, tokens, 0); err != nil || got != int64(tokens*c.layers*(512+64)*2) {
			t.Errorf("%s: %d bytes for %d tokens, expected %d (%v)", c.name, got, tokens, tokens*c.layers*(512+64)*2, err)
		}
	}
}

// Files with keys and values in one matrix, as they were before the absorbed form,
// are the same model: with plain numbers the same bits.
func TestLatentInOneMatrix(t *testing.T) {
	dir := filepath.Join(tinyModels, "deepseek2")
	g := readGolden(t, dir)
	split := openTiny(t, g.files()["gguf"], g.Context, Options{KV: tensor.F32, Workers: 2})
	want := compute(t, split, g.Prompt, len(g.Prompt))
	l := split.cfg.Latent
	path := rewrite(t, t.TempDir(), "deepseek2", func(b *gguf.Builder) {
		b.Set("deepseek2.attention.key_length", uint32(l.PlainDim+l.RopeDim))
		b.Set("deepseek2.attention.value_length", uint32(l.ValueDim))
		b.Set("deepseek2.attention.head_count_kv", uint32(split.cfg.Heads))
		b.Remove("deepseek2.attention.key_length_mla")
		b.Remove("deepseek2.attention.value_length_mla")
		for i := range split.cfg.Layers {
			joinLatent(t, b, split, fmt.Sprintf("blk.%d.", i))
		}
	})
	m := openTiny(t, path, g.Context, Options{KV: tensor.F32, Workers: 2})
	if got := compute(t, m, g.Prompt, len(g.Prompt)); !equalBits(got, want) {
		d, _ := maxDiff(got, want)
		t.Errorf("one matrix differs from two by %v", d)
	}
}

// joinLatent replaces the matrices of a layer that make keys and values by one.
func joinLatent(t *testing.T, b *gguf.Builder, m *Model, at string) {
	t.Helper()
	c, l := m.cfg, m.cfg.Latent
	k, _, err := m.src.mat(at + "attn_k_b.weight")
	if err != nil {
		t.Fatal(err)
	}
	v, _, err := m.src.mat(at + "attn_v_b.weight")
	if err != nil {
		t.Fatal(err)
	}
	size := k.Type.BlockBytes()
	var data []byte
	for h := range c.Heads {
		for p := range l.PlainDim {
			for r := range l.Rank {
				data = append(data, k.Row(h*l.Rank + r)[p*size:][:size]...)
			}
		}
		for i := range l.ValueDim {
			data = append(data, v.Row(h*l.ValueDim+i)...)
		}
	}
	b.RemoveTensor(at + "attn_k_b.weight")
	b.RemoveTensor(at + "attn_v_b.weight")
	info := gguf.TensorInfo{Name: at + "attn_kv_b.weight", Type: k.Type, Dims: []uint64{uint64(l.Rank), uint64(c.Heads * (l.PlainDim + l.ValueDim))}}
	if err := b.AddTensor(info, gguf.Bytes(data)); err != nil {
		t.Fatal(err)
	}
}

// Blocks along the rows are decoded where columns become rows.
func TestTurnedBlocks(t *testing.T) {
	m := tensor.Mat{Type: tensor.Q8_0, Rows: 3, Cols: 64, Data: make([]byte, 3*tensor.Q8_0.RowBytes(64))}
	var rows [3][]float32
	for r := range rows {
		x := make([]float32, m.Cols)
		for i := range x {
			x[i] = float32(r*100 + i - 30)
		}
		if err := m.Type.Encode(m.Row(r), x); err != nil {
			t.Fatal(err)
		}
		m.DecodeRow(x, r)
		rows[r] = x
	}
	b := &builder{src: shapeSource{}}
	got := b.turned(m)
	if got.Type != tensor.F32 || got.Rows != 64 || got.Cols != 3 || b.copies != 4*3*64 {
		t.Fatalf("found %d x %d of type %v, %d bytes copied", got.Rows, got.Cols, got.Type, b.copies)
	}
	for c := range 64 {
		row := make([]float32, 3)
		got.DecodeRow(row, c)
		for r := range row {
			if row[r] != rows[r][c] {
				t.Fatalf("row %d, column %d: expected %v, found %v", c, r, rows[r][c], row[r])
			}
		}
	}
}

// Latents in any element type stay near those in float32, in a model without
// experts: a router may choose others for a last bit.
func TestLatentKV(t *testing.T) {
	g := readGolden(t, filepath.Join(tinyModels, "youtu"))
	ref := openTiny(t, g.dir, g.Context, Options{KV: tensor.F32, Workers: 2})
	want := compute(t, ref, g.Prompt, len(g.Prompt))
	for kv, bound := range map[tensor.DType]float64{tensor.F16: 0.02, tensor.BF16: 0.3, tensor.Q8_0: 0.5} {
		m := openTiny(t, g.dir, g.Context, Options{KV: kv, Workers: 2})
		if m.Pool().TokenBytes() >= ref.Pool().TokenBytes() {
			t.Errorf("%v: a token takes %d bytes, in float32 %d", kv, m.Pool().TokenBytes(), ref.Pool().TokenBytes())
		}
		d, _ := maxDiff(compute(t, m, g.Prompt, len(g.Prompt)), want)
		t.Logf("%v: logits differ by at most %.3f", kv, d)
		if !(d <= bound) {
			t.Errorf("%v: logits differ by %v, expected at most %v", kv, d, bound)
		}
	}
}

// Sizes that the kernels do not take are refused by name.
func TestLatentRefused(t *testing.T) {
	for key, c := range map[string]struct {
		v    uint32
		want string
	}{
		"attention.kv_lora_rank":     {48, "latent attention: rank of keys and values: expected a multiple of 64 from 64 to 16384, found 48"},
		"rope.dimension_count":       {7, "rotary dimension: expected an even number up to 24, found 7"},
		"attention.value_length_mla": {20, "latent attention: dimension of values: expected a multiple of 16"},
		"attention.head_count_kv":    {3, "head_count_kv"},
	} {
		path := rewrite(t, t.TempDir(), "deepseek2", func(b *gguf.Builder) { b.Set("deepseek2."+key, c.v) })
		checkOpen(t, key, path, c.want)
	}
}

// What is packed of latent attention: see TestPackVersion.
func TestLatentPacked(t *testing.T) {
	if cpu.Current() == cpu.Ref {
		t.Skip("skipped: the kernels of cpu.Ref pack nothing")
	}
	g := readGolden(t, filepath.Join(tinyModels, "deepseek3"))
	for _, path := range g.files() {
		m := openTiny(t, path, g.Context, Options{KV: tensor.F32, Workers: 1})
		a := m.net.Layers[1].Mix.(*nn.Latent)
		var names []string
		for _, p := range m.w.packed {
			if strings.HasPrefix(p.name, "blk.1.attn_k_b") || strings.HasPrefix(p.name, "blk.1.attn_v_b") {
				names = append(names, fmt.Sprintf("%s %dx%d", p.name[6:], p.Rows, p.Cols))
			}
		}
		if got, want := strings.Join(names, ", "), "attn_k_b 64x16, attn_k_b 64x16, attn_v_b 16x64, attn_v_b 16x64"; got != want || len(a.KeyUp) != 2 {
			t.Errorf("%s: packed %s, expected %s", path, got, want)
		}
	}
}
