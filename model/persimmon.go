package model

import (
	"slices"

	"ridge/nn"
)

// Persimmon 8B: LayerNorm, also of queries and keys, half of each head rotated, MLPs
// without a gate and with the square of ReLU, biases everywhere.
var persimmon = architecture{
	name: "persimmon", hf: []string{"persimmon"}, head: true,
	describe: func(d *description, c *Config) {
		gptLike(c, nn.ReLU2)
		c.RopeStyle = nn.RopeNeox
		d.must(linearBias...)
		d.must(normBias...)
		d.with(d.bool("", "qk_layernorm", true), slices.Concat(qkNorms, qkNormsBias)...)
	},
	names: hfNames{layers: "layers.", names: llamaNames(map[string]string{
		"output_norm": "final_layernorm", "attn_q": "", "attn_k": "", "attn_v": "", "ffn_gate": "",
		"attn_qkv": "self_attn.query_key_value", "attn_output": "self_attn.dense",
		"attn_q_norm": "self_attn.q_layernorm", "attn_k_norm": "self_attn.k_layernorm",
		"ffn_up": "mlp.dense_h_to_4h", "ffn_down": "mlp.dense_4h_to_h",
	}), fix: interleavedHeads},
	build: (*builder).decoder,
}
