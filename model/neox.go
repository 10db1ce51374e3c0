package model

import "ridge/nn"

// GPT-NeoX and Pythia: attention and MLP side by side behind a LayerNorm each,
// partial rotation.
var gptneox = architecture{
	name: "gptneox", head: true, hf: []string{"gpt_neox"},
	describe: func(d *description, c *Config) {
		gptLike(c, nn.GELUErf)
		c.RopeStyle = nn.RopeNeox
		d.must(normBias...)
		d.must(mlpBias...)
		d.with(d.bool("", "attention_bias", true), attnBias...)
		d.must("ffn_norm.weight")
		c.Parallel = d.bool("use_parallel_residual", "use_parallel_residual", true)
	},
	names: hfNames{layers: "layers.", home: "gpt_neox.", names: map[string]string{
		"token_embd": "embed_in", "output_norm": "final_layer_norm", "output": "embed_out",
		"attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm",
		"attn_qkv": "attention.query_key_value", "attn_output": "attention.dense",
		"ffn_up": "mlp.dense_h_to_4h", "ffn_down": "mlp.dense_4h_to_h",
	}, fix: interleavedHeads},
	build:  (*builder).decoder,
	unused: []string{"*layers.*.attention.bias", "*layers.*.attention.masked_bias"}, // causal masks
}
