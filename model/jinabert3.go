package model

import "ridge/nn"

// JinaBERT 3 (Sturua et al. 2024, arXiv 2409.10173): XLM-RoBERTa with rotated queries
// and keys in place of positions. Its tasks are adapters beside it.
var jinaBert3 = architecture{
	name: "jina-bert-v3", hf: []string{"jina_embeddings_v3"}, encoder: true,
	describe: func(d *description, c *Config) {
		bertLike(d, c)
		c.RopeStyle = nn.RopeNeox
		d.must(linearBias...)
		d.types(c)
	},
	aliases: bertAliases, scores: []string{"cls.weight", "cls.bias", "cls.output.bias"},
	names: hfNames{layers: "layers.|encoder.layers.", names: bertNames(map[string]string{
		"token_embd_norm.weight": "embeddings.LayerNorm.weight|emb_ln.weight", "token_embd_norm.bias": "embeddings.LayerNorm.bias|emb_ln.bias",
		"attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj", "attn_qkv": "mixer.Wqkv",
		"attn_output":      "self_attn.o_proj|mixer.out_proj",
		"attn_norm.weight": "post_attention_layernorm.weight|norm1.weight", "attn_norm.bias": "post_attention_layernorm.bias|norm1.bias",
		"ffn_norm.weight": "post_mlp_layernorm.weight|norm2.weight", "ffn_norm.bias": "post_mlp_layernorm.bias|norm2.bias",
		"ffn_up": "mlp.fc1", "ffn_down": "mlp.fc2", "cls": "classifier.dense", "cls.output": "classifier.out_proj",
	})},
	build: (*builder).decoder, unused: bertUnused, eps: 1e-5,
}
