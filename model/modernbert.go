package model

import (
	"slices"

	"ridge/nn"
)

// ModernBERT (Warner et al. 2024, arXiv 2412.13663): norms before the parts, gated
// MLPs, rotated queries and keys, and two layers of three that look only so far.
var modernBert = architecture{
	name: "modern-bert", hf: []string{"modernbert"}, encoder: true,
	describe: func(d *description, c *Config) {
		c.Norm, c.Act, c.Gated, c.RopeStyle = nn.NormLayer, nn.GELUErf, true, nn.RopeNeox
		d.must("token_embd_norm.weight")
		c.Encoder.FirstPlain = true
		d.with(d.bool("", "norm_bias", false), slices.Concat(normBias, []string{"cls.norm.bias"})...)
		d.with(d.bool("", "attention_bias", false), attnBias...)
		d.with(d.bool("", "mlp_bias", false), mlpBias...)
		d.modernReach(c)
		c.Encoder.ClassAct, c.Encoder.ClassPool = classGELU, PoolingMean
		if s := d.str("", "classifier_pooling", "mean"); s == "cls" {
			if d.classifies() {
				c.Encoder.ClassPool = PoolingCLS
			}
		} else if s != "mean" {
			d.fail("classifier_pooling", "cls or mean", s)
		}
		if s := d.str("", "classifier_activation", "gelu"); s != "gelu" {
			d.fail("classifier_activation", "gelu", s)
		}
		d.with(d.bool("", "classifier_bias", false), "cls.bias")
	},
	scores: []string{"cls.weight", "cls.norm.weight", "cls.output.bias"},
	names: hfNames{layers: "layers.", names: map[string]string{
		"token_embd": "embeddings.tok_embeddings", "token_embd_norm": "embeddings.norm", "output_norm": "final_norm",
		"attn_norm": "attn_norm", "attn_qkv": "attn.Wqkv", "attn_output": "attn.Wo", "ffn_norm": "mlp_norm", "ffn_up": "mlp.Wi", "ffn_down": "mlp.Wo",
		"cls": "head.dense", "cls.norm": "head.norm", "cls.output": "classifier",
	}},
	build: (*builder).decoder, unused: slices.Concat(bertUnused, []string{"head.*", "decoder.*"}),
}
