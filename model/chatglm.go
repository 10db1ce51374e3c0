package model

import (
	"maps"
	"slices"
	"strconv"

	"ridge/nn"
)

// ChatGLM 2 and 3, GLM 4 (9B chat), CodeGeeX 4: Llama with half of each head
// rotated, few heads of keys, and fused projections.
var chatglm = architecture{
	name: "chatglm", hf: []string{"chatglm"},
	describe: func(d *description, c *Config) {
		llamaLike(c, nn.RopeNorm)
		d.with(d.bool("", "add_qkv_bias", false), qkvBias...)
		if !d.hf {
			return
		}
		if !c.Tied { // though the class is named as if it had no head
			d.must("output.weight")
		}
		for _, key := range slices.Sorted(maps.Keys(chatglmKeys)) {
			want := chatglmKeys[key]
			if v := d.bool("", key, want); v != want { // no released model has it
				d.fail(key, strconv.FormatBool(want), v)
			}
		}
		if groups := d.int("", "multi_query_group_num", 1); d.bool("", "multi_query_attention", false) {
			c.KVHeads = everyLayer(c.Layers, groups)
		}
		c.RopeDim = c.HeadDim / 2
		c.Rope[0].Base = 10000 * d.float("", "rope_ratio", 1)
	},
	names: hfNames{layers: "encoder.layers.", names: map[string]string{
		"token_embd": "embedding.word_embeddings", "output_norm": "encoder.final_layernorm", "output": "output_layer",
		"attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm",
		"attn_qkv": "self_attention.query_key_value", "attn_output": "self_attention.dense",
		"ffn_up": "mlp.dense_h_to_4h", "ffn_down": "mlp.dense_4h_to_h",
	}},
	build:  (*builder).decoder,
	unused: []string{"*rotary_pos_emb.inv_freq"},
}

// chatglmKeys are what config.json says of the layers, the same of all models.
var chatglmKeys = map[string]bool{
	"rmsnorm": true, "post_layer_norm": true, "add_bias_linear": false, "apply_residual_connection_post_layernorm": false,
}

// GLM 4 as transformers has it, and GLM Edge: the same layers under Llama's names.
var glm = architecture{
	name: "chatglm", hf: []string{"glm"},
	describe: func(d *description, c *Config) {
		llamaLike(c, nn.RopeNorm)
		d.with(d.bool("", "attention_bias", false), qkvBias...)
	},
	names: hfNames{layers: "layers.", names: llamaNames(map[string]string{"ffn_gate": "", "ffn_up": "mlp.gate_up_proj"})},
	build: (*builder).decoder,
}
