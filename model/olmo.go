package model

import "ridge/nn"

// OLMo: norms without weights.
var olmo = architecture{
	name: "olmo", hf: []string{"olmo"},
	describe: func(d *description, c *Config) {
		llamaLike(c, nn.RopeNorm)
		c.Norm, c.NormEps, c.PlainNorms = nn.NormLayer, 1e-5, true
		c.ClipQKV = d.float32("attention.clamp_kqv", "clip_qkv", 0)
		d.with(d.bool("", "attention_bias", false), attnBias...)
	},
	names: hfNames{layers: "layers.", names: llamaNames(map[string]string{
		"output_norm": "", "attn_norm": "", "ffn_norm": "",
	}), fix: permuteQK},
	build: (*builder).decoder,
}

// OLMo 2: norms only after attention and MLP, queries and keys normalized over
// all heads. OLMo 3 adds a window in three layers of four, whose positions are not
// stretched.
var olmo2 = architecture{
	name: "olmo2", head: true, hf: []string{"olmo2", "olmo3"},
	describe: func(d *description, c *Config) {
		llamaLike(c, nn.RopeNeox)
		c.PostNorms = true
		d.must(qkNorms...)
		d.with(d.bool("", "attention_bias", false), attnBias...)
		c.Window = d.windows(c.Layers, everyButNth(4))
		local := RopeConfig{Base: 500000} // whatever rope_theta is, in transformers
		if !d.hf {
			local.Base = d.float("rope.freq_base_swa", "", c.Rope[0].Base)
		}
		local = d.ropePerType(c, local)
		if d.int("attention.sliding_window", "sliding_window", 0) > 0 {
			c.Rope = append(c.Rope, local)
			c.localRope()
		}
	},
	names: hfNames{layers: "layers.", names: llamaNames(map[string]string{
		"attn_norm": "", "ffn_norm": "",
		"post_attention_norm": "post_attention_layernorm", "post_ffw_norm": "post_feedforward_layernorm",
	})},
	build: (*builder).decoder,
}

// OLMoE: OLMo 2's norms of queries and keys, norms before the parts, and experts.
var olmoe = architecture{
	name: "olmoe", hf: []string{"olmoe"},
	describe: func(d *description, c *Config) {
		llamaLike(c, nn.RopeNeox)
		if d.has("attention.clamp_kqv", "clip_qkv") { // of the normalized queries and keys; no released model has it
			d.fail("clip_qkv", "none", "a limit")
		}
		d.must(qkNorms...)
		d.with(d.bool("", "attention_bias", false), attnBias...)
		c.Experts = d.experts(c, ExpertConfig{})
	},
	names: hfNames{layers: "layers.", names: llamaNames(nil)},
	build: (*builder).decoder,
}
