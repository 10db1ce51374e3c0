package model

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"ridge/nn"
	"ridge/weights/tensor"
)

// config returns the config.json of a model type: what the GGUF file says under a
// key for which its class has another, and then what follows from the whole of it.
func (c *conversion) config(m *Model, cfg *Config, kind string) (map[string]any, error) {
	class := classes()[kind]
	out := map[string]any{"model_type": kind, "pad_token_id": nil} // a class may have one that the vocabulary lacks
	if typ, of, ok := strings.Cut(kind, "/"); ok {
		out["model_type"], out["architectures"] = typ, []string{of}
	}
	set := func(keys string, v any) {
		for key := range strings.SplitSeq(keys, "|") {
			if class.knows(key) {
				out[key] = v
				return
			}
		}
	}
	d := ggufDescription(m.gg, m.arch.name)
	d.noted = func(keys string, v any, want string) {
		if n, ok := asInt(v); ok && (n == -1 || n == math.MaxUint32) {
			return
		}
		if f, ok := asFloat(v); ok && want == "a number" {
			v = decimal(f)
		}
		if heads, ok := asInts(v); ok && strings.HasPrefix(keys, "num_key_value_heads") && cfg.Conv.Layers != nil {
			v = slices.Max(heads) // of the others
		}
		set(keys, v)
	}
	var again Config
	if err := m.arch.read(d, &again); err != nil {
		return nil, err
	}
	typ := c.o.Type
	if c.o.Keep {
		mat, _, err := m.src.mat("token_embd.weight")
		if err != nil {
			return nil, err
		}
		typ = mat.Type
	}
	out["torch_dtype"] = map[tensor.DType]string{tensor.F32: "float32", tensor.F16: "float16", tensor.BF16: "bfloat16"}[typ]
	set("vocab_size", cfg.Vocab)
	set("tie_word_embeddings", !m.src.has("output.weight"))
	set("head_dim", cfg.HeadDim)
	for _, t := range [][2]string{{"bos_token_id", "bos_token_id"}, {"eos_token_id", "eos_token_id"}, {"padding_token_id", "pad_token_id"}} {
		if v, ok := m.gg.Lookup("tokenizer.ggml." + t[0]); ok {
			out[t[1]] = v
		}
	}
	set("rms_norm_eps|layer_norm_epsilon|layer_norm_eps|norm_epsilon|norm_eps", cfg.NormEps)
	for keys, weight := range map[string]string{
		"attention_bias|qkv_bias|use_qkv_bias": "attn_q.bias", "attention_out_bias": "attn_output.bias", "mlp_bias": "ffn_down.bias",
		"use_bias": "ffn_up.bias", "use_qk_norm": "attn_q_norm.weight",
	} {
		set(keys, m.src.has("blk.0."+weight) || strings.HasPrefix(weight, "attn_q.") && m.src.has("blk.0.attn_qkv.bias"))
	}
	set("lm_head_bias", m.src.has("output.bias"))
	set("block_auto_adjust_ff_dim", false)
	if cfg.AttnScale > 0 {
		set("query_pre_attn_scalar", math.Round(1e3/float64(cfg.AttnScale)/float64(cfg.AttnScale))/1e3)
	}
	for name, act := range map[string]nn.Activation{"silu": nn.SiLU, "relu": nn.ReLU, "relu2": nn.ReLU2, "gelu": nn.GELUErf, "gelu_pytorch_tanh": nn.GELUTanh} {
		if act == cfg.Act && len(m.arch.acts) == 0 {
			set("hidden_act|hidden_activation|activation_function|activation", name)
		}
	}
	set("norm_topk_prob", cfg.Experts.Normalize)
	if first := slices.Index(cfg.Experts.Layers, true); first > 0 {
		set("first_k_dense_replace", first)
	}
	windowConfig(set, cfg)
	return out, ropeConfig(set, m, cfg)
}

// decimal is a number that JSON has with a point: readers tell it from integers.
type decimal float64

// MarshalJSON implements json.Marshaler.
func (d decimal) MarshalJSON() ([]byte, error) {
	b, err := json.Marshal(float32(d))
	if err == nil && !bytes.ContainsAny(b, ".e") {
		b = append(b, ".0"...)
	}
	return b, err
}

// windowConfig sets which layers have a window.
func windowConfig(set func(string, any), cfg *Config) {
	size := slices.Max(cfg.Window)
	if size == 0 {
		set("sliding_window", nil)
		set("use_sliding_window", false)
	}
	types := make([]string, len(cfg.Window))
	for i, w := range cfg.Window {
		types[i] = map[bool]string{true: "sliding_attention", false: "full_attention"}[w > 0]
	}
	if size > 0 {
		set("sliding_window", size)
		set("use_sliding_window", true)
	}
	for i, conv := range cfg.Conv.Layers {
		if conv {
			types[i] = "conv"
		}
	}
	set("layer_types", types)
}

// ropeConfig sets the rotation. The factors of Llama 3 are known by their values.
func ropeConfig(set func(string, any), m *Model, cfg *Config) error {
	if cfg.RopeStyle == nn.RopeNone {
		return nil
	}
	if cfg.Latent.Rank == 0 {
		set("rotary_pct|partial_rotary_factor", float64(cfg.RopeDim)/float64(cfg.HeadDim))
	}
	r := &cfg.Rope[0]
	set("rotary_emb_base|rope_theta", decimal(r.Base))
	if len(cfg.Rope) > 1 {
		set("rope_local_base_freq", cfg.Rope[1].Base)
	}
	s := &r.Scaling
	scaling := map[string]any{"rope_type": s.Kind, "factor": decimal(s.Factor), "original_max_position_embeddings": s.Original}
	switch s.Kind {
	case "":
		f, ok, err := m.src.mat("rope_freqs.weight")
		if err != nil || !ok {
			return err
		}
		have := make([]float32, f.Cols)
		f.DecodeRow(have, 0)
		if scaling = llama3Of(have, r.Base, cfg.RopeDim); scaling == nil {
			return fmt.Errorf("model: convert: %s: tensor \"rope_freqs.weight\": expected factors that follow from Llama 3's rule, found others", m.path)
		}
	case "linear":
		delete(scaling, "original_max_position_embeddings")
	case "yarn":
		scaling["beta_fast"], scaling["beta_slow"] = decimal(s.BetaFast), decimal(s.BetaSlow)
		if s.AttnFactor != 0 {
			scaling["attention_factor"] = decimal(s.AttnFactor)
		}
	default:
		return fmt.Errorf("model: convert: %s: rope.scaling.type: expected none, linear, yarn or the factors of Llama 3, found %s, which is not written", m.path, s.Kind)
	}
	set("rope_scaling", scaling)
	return nil
}

// llama3Of returns the parameters of Llama 3's rule that give factors of
// frequencies, nil if none of those in use do.
func llama3Of(have []float32, base float64, dim int) map[string]any {
	if len(have) != dim/2 {
		return nil
	}
	inv := make([]float32, dim/2)
	fill(inv, base, dim)
	for _, original := range []int{8192, 4096, 2048, 16384, 32768, 64, 32} {
		for _, factor := range []float64{8, 32, 4, 2, 16, 64} {
			s := RopeScaling{Kind: "llama3", Factor: factor, Original: original, LowFreq: 1, HighFreq: 4}
			same := true
			for i, f := range inv {
				same = same && math.Abs(float64(f/llama3Frequency(f, &s)/have[i])-1) < 1e-5
			}
			if same {
				return map[string]any{"rope_type": "llama3", "factor": decimal(factor), "original_max_position_embeddings": original, "low_freq_factor": decimal(1), "high_freq_factor": decimal(4)}
			}
		}
	}
	return nil
}
