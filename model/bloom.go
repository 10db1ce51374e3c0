package model

import "ridge/nn"

// BLOOM: ALiBi, a norm behind the embedding, heads kept together in fused
// projections.
var bloom = architecture{
	name: "bloom", hf: []string{"bloom"},
	describe: func(d *description, c *Config) {
		gptLike(c, nn.GELUTanh)
		d.must(linearBias...)
		d.must(normBias...)
		d.must("token_embd_norm.weight")
		c.AlibiBias = 8
		if d.hf {
			c.FFN = 4 * c.Hidden
		}
		c.NormResid = d.bool("", "apply_residual_connection_post_layernorm", false)
	},
	names: hfNames{layers: "h.", home: "transformer.", names: map[string]string{
		"token_embd": "word_embeddings", "token_embd_norm": "word_embeddings_layernorm",
		"output_norm": "ln_f", "output": "lm_head",
		"attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm",
		"attn_qkv": "self_attention.query_key_value", "attn_output": "self_attention.dense",
		"ffn_up": "mlp.dense_h_to_4h", "ffn_down": "mlp.dense_4h_to_h",
	}, fix: interleavedHeads},
	build: (*builder).decoder,
}
