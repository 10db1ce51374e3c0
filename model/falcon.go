package model

import (
	"cmp"
	"math"

	"ridge/nn"
	"ridge/weights/tensor"
)

// Falcon: attention and MLP side by side behind one LayerNorm (7B) or one each
// (40B), and the older sequential RefinedWeb models with ALiBi.
var falcon = architecture{
	name: "falcon", readOnly: "its norms have names by the number of layers' norms", hf: []string{"falcon", "RefinedWebModel", "RefinedWeb"},
	describe: func(d *description, c *Config) {
		gptLike(c, nn.GELUErf)
		c.RopeStyle, c.Parallel = nn.RopeNeox, true
		d.must(normBias...)
		d.with(d.bool("", "bias", false), linearBias...)
		d.with(false, "attn_norm_2.weight")
		if d.hf {
			falconConfig(d, c)
		}
	},
	names: hfNames{layers: "h.", home: "transformer.", names: map[string]string{
		"token_embd": "word_embeddings", "output_norm": "ln_f", "output": "lm_head",
		"attn_norm": "ln_mlp|input_layernorm", "attn_norm_2": "ln_attn",
		"ffn_norm": "post_attention_layernorm",
		"attn_qkv": "self_attention.query_key_value", "attn_output": "self_attention.dense",
		"ffn_up": "mlp.dense_h_to_4h", "ffn_down": "mlp.dense_4h_to_h",
	}, fix: func(c *Config, layer int, part string, bias bool) func(tensor.Mat) (tensor.Mat, error) {
		groups := c.KVHeads[max(layer, 0)]
		if part != "attn_qkv" || groups == 1 {
			return nil
		}
		return groupsToFused(groups, c.Heads/groups, c.HeadDim)
	}},
	build: (*builder).decoder,
}

// falconConfig reads the wiring, which only a config.json says. The first 40B does
// not say that it is the newer one, of which each group of heads has keys.
func falconConfig(d *description, c *Config) {
	groups, one := d.int("", "num_kv_heads", 0), d.bool("", "multi_query", true)
	parallel, norms := d.bool("", "parallel_attn", true), d.int("", "num_ln_in_parallel_attn", 2)
	newer := d.bool("", "new_decoder_architecture", false) || d.class.Type == "RefinedWeb" && groups > 0
	d.with(newer && norms == 2, "attn_norm_2.weight", "attn_norm_2.bias")
	c.Parallel = newer || parallel
	switch {
	case newer:
		c.KVHeads = everyLayer(c.Layers, cmp.Or(groups, c.Heads))
	case one:
		c.KVHeads = everyLayer(c.Layers, 1)
	default:
		c.KVHeads = everyLayer(c.Layers, c.Heads)
	}
	if d.bool("", "alibi", false) {
		// The bias is scaled along with the scores.
		c.RopeStyle, c.AlibiBias = nn.RopeNone, 8
		c.AlibiScale = float32(1 / math.Sqrt(float64(c.HeadDim)))
	}
}
