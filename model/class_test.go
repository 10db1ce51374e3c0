package model

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// describedBy reads the text of a config.json as Open does: what follows from it
// is the configuration and the weights that must be there.
func describedBy(raw []byte) (string, error) {
	d, err := parseHF("config.json", raw)
	if err != nil {
		return "", err
	}
	a := byType(d.str("", "model_type", ""))
	if a == nil {
		return "", errors.New("no such type")
	}
	var c Config
	err = a.read(d, &c)
	c.defaults()
	var present []string
	for _, name := range slices.Sorted(maps.Keys(d.present)) {
		present = append(present, fmt.Sprint(name, " ", d.present[name]))
	}
	return c.identity() + strings.Join(present, "\n"), err
}

// describedWith is describedBy for a config.json with the keys of config.
func describedWith(t *testing.T, config map[string]any) (string, error) {
	t.Helper()
	raw, err := json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	return describedBy(raw)
}

// configOf reads the config.json of a tiny model. text is the object in it that
// has the language model.
func configOf(t *testing.T, dir string) (config, text map[string]any) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(dir, "config.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &config); err != nil {
		t.Fatal(err)
	}
	if text, _ = config["text_config"].(map[string]any); text == nil {
		text = config
	}
	return config, text
}

// wrappers are types of models with several parts, whose language model is of
// another type.
var wrappers = map[string]bool{"gemma3": true, "gemma3n": true, "gemma4": true, "llama4": true, "mistral3": true}

// Every type that Open knows has its class.
func TestEveryTypeHasItsClass(t *testing.T) {
	for _, kind := range hfTypes() {
		if classes()[kind] == nil && !wrappers[kind] {
			t.Errorf("%s: classes.jsonl: expected its line: see internal/tinymodel/gen/classes.py", kind)
		}
	}
}

// A key that is left out means the default of the class.
func TestClassDefaults(t *testing.T) {
	tried := 0
	for _, dir := range tinyCases(t) {
		config, text := configOf(t, dir)
		c := classes()[exactType(text)]
		for key, def := range c.Keys {
			if def == nil || strings.Contains(key, ": ") {
				continue
			}
			tried++
			kept, had := text[key]
			text[key] = def
			with, errWith := describedWith(t, config)
			delete(text, key)
			without, err := describedWith(t, config)
			if with != without || (err == nil) != (errWith == nil) {
				t.Errorf("%s without %s: %v\nother than with %v: %v\n%s\n%s", filepath.Base(dir), key, err, def, errWith, without, with)
			}
			if text[key] = kept; !had {
				delete(text, key)
			}
		}
	}
	if tried < 700 {
		t.Errorf("only %d keys were tried", tried)
	}
}

// noEffect are keys that are read and change nothing where others say so.
var noEffect = map[string][]string{
	"sliding_window":                   {"use_sliding_window", ""}, // "": it may be as long as the context
	"max_window_layers":                {"use_sliding_window", "layer_types"},
	"sliding_window_pattern":           {"layer_types"},
	"no_rope_layer_interval":           {"no_rope_layers"},
	"multi_query":                      {"new_decoder_architecture"},
	"parallel_attn":                    {"new_decoder_architecture"},
	"num_kv_heads":                     {"new_decoder_architecture"},
	"num_ln_in_parallel_attn":          {"new_decoder_architecture"},
	"rope_theta":                       {"rope_parameters", "alibi", "rotary_emb_base"},
	"rope_local_base_freq":             {"rope_parameters"},
	"rope_parameters":                  {"rope_scaling"},
	"use_sliding_window":               {"sliding_window"}, // which is null
	"decoder_sparse_step":              {"mlp_only_layers"},
	"moe_layer_interval":               {"moe_layer_start_index"},
	"moe_layer_start_index":            {"moe_layer_interval"},
	"global_attn_every_n_layers":       {"layer_types"},
	"sliding_window_size":              {"sliding_window_layout"},
	"first_k_dense_replace":            {"mlp_layer_types"},
	"interleave_moe_layer_step":        {"moe_layers"},
	"attn_scale":                       {"attn_temperature_tuning"},
	"floor_scale":                      {"attn_temperature_tuning"},
	"expert_layer_period":              {""}, // the layers there are need not reach the next
	"attn_layer_period":                {""},
	"mamba_expand":                     {"mamba_d_ssm", "mamba_num_heads"},
	"expand":                           {"mamba_num_heads"},
	"hybrid_override_pattern":          {"layers_block_type"},
	"n_groups":                         {"mamba_n_groups"},
	"conv_kernel":                      {"mamba_d_conv"},
	"use_conv_bias":                    {"mamba_conv_bias"},
	"time_step_limit":                  {"mamba_dt_limit"},
	"mamba_norm_before_gate":           {"mamba_rms_norm"},
	"full_attention_interval":          {"layer_types"},
	"max_position_embeddings":          {"position_embedding_type", "mamba_num_heads"}, // without any there is no limit
	"num_experts_per_tok":              {"expert_layer_period", "num_local_experts"},   // of one expert or none
	"partial_rotary_factor":            {"rope_parameters", "alibi", "rotary_pct"},
	"rotary_emb_base":                  {"rope_parameters"},
	"rotary_pct":                       {"rope_parameters"},
	"original_max_position_embeddings": {"rope_scaling", "rope_parameters", ""},
	"hidden_act":                       {"swiglu_alpha"},
	"intermediate_size":                {"num_experts", "num_local_experts", "block_ff_dim"},
	"block_multiple_of":                {"block_auto_adjust_ff_dim"},
	"block_ffn_dim_multiplier":         {"block_auto_adjust_ff_dim"},
	"tie_word_embeddings":              {"tie_embedding"},
	"head_dim":                         {"kv_lora_rank"},
	"n_group":                          {"topk_method"},
	"topk_group":                       {"topk_method"},
	"vocab_size_per_layer_input":       {""}, // the table has as many rows
	"num_global_key_value_heads":       {"attention_k_eq_v"},
	"use_double_wide_mlp":              {"num_kv_shared_layers"},
	"global_head_dim":                  {"per_layer_config"},
	"model_max_length":                 {"max_position_embeddings"},
	"width_scale":                      {"mup_output_alpha"},
	"hidden_ratio":                     {"intermediate_size"},
}

// Every key that the class of a model has is read, and changes what is computed,
// or is refused by its name when it is not the default.
func TestEveryKeyOfTheClass(t *testing.T) {
	for _, dir := range tinyCases(t) {
		config, text := configOf(t, dir)
		before, err := describedWith(t, config)
		if err != nil {
			t.Fatalf("%s: %v", dir, err)
		}
		c := classes()[exactType(text)]
		for key := range c.Keys {
			in, name := text, key
			if object, inner, ok := strings.Cut(key, ": "); ok {
				if in, _ = text[object].(map[string]any); in == nil {
					continue
				}
				name = inner
			}
			kept, had := in[name]
			old := kept
			if !had {
				old = c.Keys[key]
			}
			in[name] = another(key, old)
			after, err := describedWith(t, config)
			if in[name] = kept; !had {
				delete(in, name)
			}
			switch {
			case err != nil && !strings.Contains(err.Error(), name) && !strings.Contains(err.Error(), "layers: ") && !strings.Contains(err.Error(), "layer_types: ") && !strings.Contains(err.Error(), "_layout: ") && !strings.Contains(err.Error(), "one for each layer"):
				t.Errorf("%s: %s: %v", filepath.Base(dir), key, err)
			case err == nil && after == before && !slices.ContainsFunc(noEffect[key], func(by string) bool { return by == "" || c.knows(by) }):
				t.Errorf("%s: %s: expected another model or an error for %v, found the same as for %v", filepath.Base(dir), key, another(key, old), old)
			}
		}
	}
}

// another returns a value that a key may have other than v.
func another(key string, v any) any {
	switch x := v.(type) {
	case bool:
		return !x
	case float64:
		if x == 0 {
			return 1.0
		}
		if strings.HasSuffix(key, "_eps") || strings.HasSuffix(key, "epsilon") {
			return x * 2
		}
		if x == 0 {
			return 1.0
		}
		if x != float64(int(x)) || strings.HasSuffix(key, "pct") || strings.HasSuffix(key, "factor") {
			return x / 2
		}
		if x == 0 {
			return 6.0
		}
		return x * 2
	case string:
		return x + "x"
	case []any:
		return "x"
	}
	switch key {
	case "rope_parameters", "rope_scaling":
		return map[string]any{"rope_type": "linear", "factor": 2.0}
	case "attn_config":
		return map[string]any{"clip_qkv": 3.0}
	case "rope_layout", "sliding_window_layout", "layer_types", "no_rope_layers", "mlp_only_layers":
		return []any{"x"}
	case "use_bidirectional_attention":
		return true
	case "partial_rotary_factor":
		return 0.5
	}
	return 6.0
}

// What gemma-3-4b-it has in its config.json, which is what is not the default.
func TestGemma34B(t *testing.T) {
	dir := t.TempDir()
	text := `{"architectures": ["Gemma3ForConditionalGeneration"], "boi_token_index": 255999, "eos_token_id": [1, 106],
		"mm_tokens_per_image": 256, "model_type": "gemma3", "text_config": {"hidden_size": 2560, "intermediate_size": 10240,
		"model_type": "gemma3_text", "num_hidden_layers": 34, "rope_scaling": {"factor": 8.0, "rope_type": "linear"},
		"sliding_window": 1024}, "torch_dtype": "bfloat16", "vision_config": {"hidden_size": 1152}}`
	if err := os.WriteFile(filepath.Join(dir, "config.json"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	d, err := hfDescription(dir)
	if err != nil {
		t.Fatal(err)
	}
	var c Config
	if err := gemma3.read(d, &c); err != nil {
		t.Fatal(err)
	}
	c.defaults()
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	got := []any{c.Vocab, c.Layers, c.Heads, c.KVHeads[33], c.HeadDim, c.Context, c.NormEps, c.AttnScale, c.Tied, c.Window[4], c.Window[5]}
	want := []any{262208, 34, 8, 4, 256, 131072, float32(1e-6), float32(1.0 / 16), true, 1024, 0}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("found %v, expected %v", got, want)
	}
	if g, l := c.Rope[0], c.Rope[1]; g.Base != 1e6 || g.Scaling.Factor != 8 || g.Scaling.Kind != "linear" || l.Base != 10000 || l.Scaling.Kind != "" {
		t.Errorf("rotary sets %+v", c.Rope)
	}
}

// Keys that change the computation are refused by name where they are not
// followed, and older spellings are followed.
func TestConfigKeys(t *testing.T) {
	for _, c := range []struct {
		model string
		set   map[string]any
		want  string // an error, or "" for the same model
	}{
		{"gemma3", map[string]any{"use_bidirectional_attention": 1}, "use_bidirectional_attention: expected true or false, found 1"},
		{"gemma", map[string]any{"use_bidirectional_attention": true}, "use_bidirectional_attention: expected nothing, found true"},
		{"llama", map[string]any{"is_causal": "no"}, "is_causal: expected true or false, found no"},
		{"gemma2", map[string]any{"hidden_activation": "relu6"}, `hidden_activation: expected silu, relu, relu2, gelu or gelu_new, found "relu6"`},
		{"gemma", map[string]any{"hidden_act": "gelu"}, ""}, // as all readers of these files take it
		{"gemma2", map[string]any{"hidden_act": "relu"}, ""},
		{"bigcode", map[string]any{"scale_attn_weights": false}, "scale_attn_weights: expected true, found false"},
		{"gpt2", map[string]any{"add_cross_attention": true}, "add_cross_attention: expected false, found true"},
		{"gpt2", map[string]any{"n_embd": nil, "hidden_size": 32, "n_head": nil, "num_attention_heads": 4}, ""},
		{"gpt2", map[string]any{"hidden_size": 48}, "hidden_size: expected 32 as in n_embd, found 48"},
		{"bloom", map[string]any{"hidden_size": nil, "n_embed": 32}, ""},
		{"exaone", map[string]any{"num_hidden_layers": nil, "num_layers": 2, "rms_norm_eps": nil, "layer_norm_epsilon": 1e-5}, ""},
		{"bloom", map[string]any{"n_embed": 64}, "n_embed: expected 32 as in hidden_size, found 64"},
		{"llama", map[string]any{"n_embd": 64, "use_parallel_residual": true, "clip_qkv": 1}, ""}, // LlamaConfig has no such keys
		{"falcon-7b", map[string]any{"model_type": "RefinedWebModel", "num_hidden_layers": nil, "n_layer": 2, "num_attention_heads": nil, "n_head": 4}, ""},
		{"falcon-40b", map[string]any{"model_type": "RefinedWeb", "num_hidden_layers": nil, "n_layer": 2, "num_attention_heads": nil, "n_head": 4,
			"new_decoder_architecture": nil, "num_kv_heads": nil, "n_head_kv": 2, "multi_query": nil}, ""},
		{"stablelm", map[string]any{"model_type": "stablelm_epoch", "layer_norm_eps": nil, "norm_eps": 1e-5, "partial_rotary_factor": nil, "rope_pct": 0.5}, ""},
		{"llama", map[string]any{"quantization_config": map[string]any{"quant_method": "aqlm", "bits": 4}}, `quant_method: expected one of `},
		{"llama", map[string]any{"quantization_config": map[string]any{"quant_method": "AQLM"}}, `found quantization method "AQLM"`},
	} {
		config, _ := configOf(t, filepath.Join(tinyModels, c.model))
		before, err := describedWith(t, config)
		if err != nil {
			t.Fatal(err)
		}
		for k, v := range c.set {
			if config[k] = v; v == nil {
				delete(config, k)
			}
		}
		after, err := describedWith(t, config)
		switch {
		case c.want == "" && (err != nil || after != before):
			t.Errorf("%s with %v: %v, expected the same model\n%s\n%s", c.model, c.set, err, after, before)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s with %v: %v, expected %s", c.model, c.set, err, c.want)
		}
	}
}
