package model

import (
	"maps"

	"ridge/nn"
	"ridge/weights/tensor"
)

// BERT and relatives of the same layers (Devlin et al. 2019): attention in both
// directions, learned positions, types of tokens, norms behind each sum. RoBERTa's
// positions begin behind those of padding. DistilBERT has no types.
var bert = architecture{
	name: "bert", hf: []string{"bert", "roberta", "xlm-roberta", "camembert", "distilbert"}, encoder: true,
	describe: func(d *description, c *Config) {
		bertLike(d, c)
		kind := d.str("", "model_type", "bert")
		d.must("position_embd.weight")
		d.must(linearBias...)
		if c.Encoder.Types = 1; kind != "distilbert" { // it has none, and GGUF files say one
			d.types(c)
		}
		if !d.hf {
			return
		}
		d.fixed("position_embedding_type", "absolute")
		d.fixed("sinusoidal_pos_embds", false)
		switch kind {
		case "distilbert":
			if d.classifies() {
				c.Encoder.ClassAct = classReLU
			}
		case "bert":
		default:
			c.Context -= d.padding() + 1
		}
		d.fixed("is_decoder", false)
	},
	aliases: bertAliases, scores: []string{"cls.weight", "cls.bias", "cls.output.bias"},
	names: hfNames{layers: "encoder.layer.|transformer.layer.", names: bertNames(nil), fix: bertPositions},
	build: (*builder).decoder, unused: bertUnused, eps: 1e-12,
}

// MPNet (Song et al. 2020): BERT with biases of scores by distance.
var mpnet = architecture{
	name: "mpnet", hf: []string{"mpnet"}, encoder: true,
	describe: func(d *description, c *Config) {
		bertLike(d, c)
		d.must("position_embd.weight")
		d.must(linearBias...)
		c.Encoder.Buckets = d.int("attention.relative_buckets_count", "relative_attention_num_buckets", 32)
		if d.hf {
			c.Context -= 2
		}
	},
	aliases: bertAliases, scores: []string{"cls.weight", "cls.bias", "cls.output.bias"},
	names: hfNames{layers: "encoder.layer.", fix: bertPositions, names: bertNames(map[string]string{
		"attn_q": "attention.attn.q", "attn_k": "attention.attn.k", "attn_v": "attention.attn.v", "attn_output": "attention.attn.o",
		"attn_norm.weight": "attention.LayerNorm.weight", "attn_norm.bias": "attention.LayerNorm.bias",
		"attn_rel_b": "encoder.relative_attention_bias",
	})},
	build: (*builder).decoder, unused: bertUnused, eps: 1e-12,
}

// NomicBERT: BERT with rotated queries and keys, and gated MLPs without biases.
var nomicBert = architecture{
	name: "nomic-bert", hf: []string{"nomic_bert"}, encoder: true, acts: map[string]nn.Activation{"swiglu": nn.SiLU},
	describe: func(d *description, c *Config) {
		bertLike(d, c)
		c.RopeStyle, c.Gated, c.Act = nn.RopeNeox, true, nn.SiLU
		d.types(c)
	},
	aliases: bertAliases, scores: []string{"cls.weight", "cls.bias", "cls.output.bias"},
	names: hfNames{layers: "layers.|encoder.layers.", names: bertNames(map[string]string{
		"token_embd_norm.weight": "embeddings.LayerNorm.weight|emb_ln.weight", "token_embd_norm.bias": "embeddings.LayerNorm.bias|emb_ln.bias",
		"attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj", "attn_qkv": "attn.Wqkv",
		"attn_output":      "self_attn.o_proj|attn.out_proj",
		"attn_norm.weight": "post_attention_layernorm.weight|norm1.weight", "attn_norm.bias": "post_attention_layernorm.bias|norm1.bias",
		"ffn_norm.weight": "post_mlp_layernorm.weight|norm2.weight", "ffn_norm.bias": "post_mlp_layernorm.bias|norm2.bias",
		"ffn_up": "mlp.up_proj|mlp.fc11", "ffn_gate": "mlp.gate_proj|mlp.fc12", "ffn_down": "mlp.down_proj|mlp.fc2",
	})},
	build: (*builder).decoder, unused: bertUnused, eps: 1e-12,
}

// JinaBERT 2 (Günther et al. 2023, arXiv 2310.19923): BERT with ALiBi in both
// directions and gated MLPs.
var jinaBert2 = architecture{
	name: "jina-bert-v2", hf: []string{"bert/JinaBertModel", "bert/JinaBertForMaskedLM", "bert/JinaBertForSequenceClassification"}, encoder: true,
	describe: func(d *description, c *Config) {
		bertLike(d, c)
		c.AlibiBias, c.Gated = 8, true
		d.must(attnBias...)
		d.must("ffn_down.bias")
		d.types(c)
		d.fixed("feed_forward_type", "geglu")
		d.fixed("position_embedding_type", "alibi")
		d.with(false, qkNorms...)
		d.with(false, qkNormsBias...)
	},
	aliases: bertAliases, scores: []string{"cls.weight", "cls.bias", "cls.output.bias"},
	names: hfNames{layers: "encoder.layer.", names: bertNames(map[string]string{
		"ffn_gate": "mlp.gated_layers_v|mlp.wo_v", "ffn_up": "mlp.gated_layers|mlp.up_gated_layer", "ffn_down": "mlp.wo|mlp.down_layer",
		"ffn_norm.weight": "mlp.layernorm.weight|layer_norm_2.weight", "ffn_norm.bias": "mlp.layernorm.bias|layer_norm_2.bias",
	})},
	build: (*builder).decoder, unused: bertUnused, eps: 1e-12,
}

// bertLike is what relatives of BERT share.
func bertLike(d *description, c *Config) {
	c.Norm, c.Act, c.RopeStyle = nn.NormLayer, nn.GELUErf, nn.RopeNone
	c.SumNorms, c.NoFinalNorm = true, true
	c.Encoder.ClassPool = PoolingCLS
	d.must("token_embd_norm.weight")
	d.must(normBias...)
}

// types says that tokens have types.
func (d *description) types(c *Config) {
	c.Encoder.Types = d.int(".tokenizer.ggml.token_type_count", "type_vocab_size", 2)
	d.with(c.Encoder.Types > 0, "token_types.weight")
}

// padding returns the token that fills texts up, whose place positions are counted
// from.
func (d *description) padding() int {
	if v, ok := d.get("pad_token_id"); ok {
		if n, ok := asInt(v); ok && n >= 0 && n < 1<<20 {
			return n
		}
		d.fail("pad_token_id", "an integer of 0 or more", describe(v))
	}
	return 1
}

// bertPositions leaves out the positions before the first token's: those beyond
// the context.
func bertPositions(c *Config, layer int, part string, bias bool) func(tensor.Mat) (tensor.Mat, error) {
	if part != "position_embd" {
		return nil
	}
	return lastRows(c.Context)
}

// bertAliases are GGUF's names of norms behind sums.
var bertAliases = map[string]string{"attn_norm": "attn_output_norm", "ffn_norm": "layer_output_norm"}

// bertUnused are the parts of checkpoints for training, and tables.
var bertUnused = []string{"*cls.predictions.*", "*cls.seq_relationship.*", "*pooler.dense.*", "*embeddings.position_ids", "*lm_head.*", "vocab_transform.*",
	"vocab_layer_norm.*", "vocab_projector.*", "*embeddings.token_type_ids"}

// bertNames are the names that checkpoints of relatives of BERT share, but for more.
func bertNames(more map[string]string) map[string]string {
	names := map[string]string{
		"token_embd": "embeddings.word_embeddings", "position_embd": "embeddings.position_embeddings", "token_types": "embeddings.token_type_embeddings",
		"attn_q": "attention.self.query|attention.q_lin", "attn_k": "attention.self.key|attention.k_lin", "attn_v": "attention.self.value|attention.v_lin",
		"attn_output": "attention.output.dense|attention.out_lin", "ffn_up": "intermediate.dense|ffn.lin1", "ffn_down": "output.dense|ffn.lin2",
		"cls": "pooler.dense|classifier.dense|pre_classifier", "cls.output": "classifier|classifier.out_proj",
	}
	for part, hf := range map[string]string{"token_embd_norm": "embeddings.LayerNorm", "attn_norm": "attention.output.LayerNorm", "ffn_norm": "output.LayerNorm"} {
		names[part+".weight"], names[part+".bias"] = hf+".weight|"+hf+".gamma", hf+".bias|"+hf+".beta"
	}
	names["attn_norm.weight"] += "|sa_layer_norm.weight"
	names["attn_norm.bias"] += "|sa_layer_norm.bias"
	names["ffn_norm.weight"] += "|output_layer_norm.weight"
	names["ffn_norm.bias"] += "|output_layer_norm.bias"
	maps.Copy(names, more)
	return names
}
