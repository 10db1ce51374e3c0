package model

import (
	"ridge/nn"
	"ridge/weights/tensor"
)

// The GPT-2 line: LayerNorm, biases, learned positions or ALiBi, fused
// projections. GPT-2, StarCoder (GPT-BigCode), GPT-NeoX, MPT and BLOOM.
func init() {
	gpt2Names := map[string]string{
		"token_embd": "wte", "position_embd": "wpe", "output_norm": "ln_f", "output": "lm_head",
		"attn_norm": "ln_1", "attn_qkv": "attn.c_attn", "attn_output": "attn.c_proj",
		"ffn_norm": "ln_2", "ffn_up": "mlp.c_fc", "ffn_down": "mlp.c_proj",
	}
	register(&family{
		arch: "gpt2", hf: []string{"gpt2"},
		gguf: func(m *ggufMeta, c *Config) { gptLike(c, nn.GELUTanh) },
		config: func(h *hfMeta, c *Config) {
			gptLike(c, nn.GELUTanh)
			c.Tied = h.bool(true, "tie_word_embeddings")
			if !h.bool(true, "scale_attn_weights") {
				c.AttnScale = 1
			}
			c.ScaleByLayer = h.bool(false, "scale_attn_by_inverse_layer_idx")
		},
		layout: hfLayout{layers: "h.", names: gpt2Names,
			fix: func(c *Config, layer int, part string, bias bool) func(tensor.Mat) (tensor.Mat, error) {
				switch part {
				case "attn_qkv", "attn_output", "ffn_up", "ffn_down":
					if !bias {
						return transpose
					}
				}
				return nil
			}},
	})
	register(&family{
		arch: "starcoder", hf: []string{"gpt_bigcode"},
		gguf: func(m *ggufMeta, c *Config) { gptLike(c, nn.GELUTanh) },
		config: func(h *hfMeta, c *Config) {
			gptLike(c, nn.GELUTanh)
			c.Tied = h.bool(true, "tie_word_embeddings")
			if h.bool(true, "multi_query") {
				c.KVHeads = everyLayer(c.Layers, 1)
			}
		},
		layout: hfLayout{layers: "h.", names: gpt2Names, fix: interleavedHeads},
	})
	registerNeoX()
	registerMPT()
	registerBloom()
}

func registerNeoX() {
	register(&family{
		arch: "gptneox", hf: []string{"gpt_neox"},
		gguf: func(m *ggufMeta, c *Config) {
			gptLike(c, nn.GELUErf)
			c.RopeStyle, c.Parallel = nn.RopeNeox, m.bool("use_parallel_residual", true)
		},
		config: func(h *hfMeta, c *Config) {
			gptLike(c, nn.GELUErf)
			c.RopeStyle, c.Parallel = nn.RopeNeox, h.bool(true, "use_parallel_residual")
			if c.RopeDim == 0 && h.m["rope_parameters"] == nil {
				c.RopeDim = int(float64(c.HeadDim) * h.float(0.25, "rotary_pct"))
			}
		},
		layout: hfLayout{layers: "layers.", names: map[string]string{
			"token_embd": "embed_in", "output_norm": "final_layer_norm", "output": "embed_out",
			"attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm",
			"attn_qkv": "attention.query_key_value", "attn_output": "attention.dense",
			"ffn_up": "mlp.dense_h_to_4h", "ffn_down": "mlp.dense_4h_to_h",
		}, fix: interleavedHeads},
	})
}

func registerMPT() {
	register(&family{
		arch: "mpt", hf: []string{"mpt"},
		gguf: func(m *ggufMeta, c *Config) {
			gptLike(c, nn.GELUErf)
			c.AlibiBias = float32(m.float("attention.max_alibi_bias", 0))
			c.ClipQKV = float32(m.float("attention.clamp_kqv", 0))
		},
		config: func(h *hfMeta, c *Config) {
			gptLike(c, nn.GELUErf)
			c.FFN, c.AlibiBias, c.Tied = 4*c.Hidden, 8, h.bool(true, "tie_word_embeddings")
			if o, ok := h.object("attn_config"); ok {
				a := &hfMeta{path: h.path + ": attn_config", m: o}
				c.ClipQKV = float32(a.float(0, "clip_qkv"))
				c.AttnScale = float32(a.float(0, "softmax_scale"))
				c.KVHeads = everyLayer(c.Layers, a.int(c.Heads, "kv_n_heads"))
				if h.err == nil {
					h.err = a.err
				}
			}
		},
		layout: hfLayout{layers: "blocks.", names: map[string]string{
			"token_embd": "wte", "position_embd": "wpe", "output_norm": "norm_f", "output": "lm_head",
			"attn_norm": "norm_1", "attn_qkv": "attn.Wqkv", "attn_output": "attn.out_proj",
			"ffn_norm": "norm_2", "ffn_up": "ffn.up_proj", "ffn_down": "ffn.down_proj",
		}},
	})
}

func registerBloom() {
	register(&family{
		arch: "bloom", hf: []string{"bloom"},
		gguf: func(m *ggufMeta, c *Config) { gptLike(c, nn.GELUTanh); c.AlibiBias = 8 },
		config: func(h *hfMeta, c *Config) {
			gptLike(c, nn.GELUTanh)
			c.FFN, c.AlibiBias, c.Tied = 4*c.Hidden, 8, h.bool(true, "tie_word_embeddings")
			c.NormResid = h.bool(false, "apply_residual_connection_post_layernorm")
		},
		layout: hfLayout{layers: "h.", names: map[string]string{
			"token_embd": "word_embeddings", "token_embd_norm": "word_embeddings_layernorm",
			"output_norm": "ln_f", "output": "lm_head",
			"attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm",
			"attn_qkv": "self_attention.query_key_value", "attn_output": "self_attention.dense",
			"ffn_up": "mlp.dense_h_to_4h", "ffn_down": "mlp.dense_4h_to_h",
		}, fix: interleavedHeads},
	})
}

func gptLike(c *Config, act nn.Activation) {
	c.Norm, c.Act, c.RopeStyle = nn.NormLayer, act, nn.RopeNone
}

// interleavedHeads reorders fused projections that keep query, key and value
// of each head together. With one key-value head they are in order already.
func interleavedHeads(c *Config, layer int, part string, bias bool) func(tensor.Mat) (tensor.Mat, error) {
	if part != "attn_qkv" || c.KVHeads[layer] != c.Heads {
		return nil
	}
	return groupsToFused(c.Heads, 1, c.HeadDim)
}
