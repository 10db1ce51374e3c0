package model

import "ridge/nn"

// GPT-NeoX and Pythia: attention and MLP side by side behind a LayerNorm each,
// partial rotation.
var gptneox = architecture{
	name: "gptneox", hf: []string{"gpt_neox"}, rotary: 0.25,
	describe: func(d *description, c *Config) {
		gptLike(c, nn.GELUErf)
		c.RopeStyle = nn.RopeNeox
		c.Parallel = d.bool("use_parallel_residual", "use_parallel_residual", true)
	},
	names: hfNames{layers: "layers.", names: map[string]string{
		"token_embd": "embed_in", "output_norm": "final_layer_norm", "output": "embed_out",
		"attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm",
		"attn_qkv": "attention.query_key_value", "attn_output": "attention.dense",
		"ffn_up": "mlp.dense_h_to_4h", "ffn_down": "mlp.dense_4h_to_h",
	}, fix: interleavedHeads},
	build: (*builder).decoder,
}
