package model

import "ridge/nn"

// DeepSeek's first mixture of experts: attention as Llama's, small experts of
// which some are shared.
var deepseek = architecture{
	name: "deepseek", hf: []string{"deepseek"},
	describe: func(d *description, c *Config) {
		llamaLike(c, nn.RopeNorm)
		d.with(d.bool("", "attention_bias", false), attnBias...)
		d.smallExperts(c, ExpertConfig{})
		first, step := c.Experts.Layers, max(d.int("", "moe_layer_freq", 1), 1)
		c.Experts.Layers = expertLayers(c.Layers, func(i int) bool { return first[i] && i%step == 0 })
		if f := d.str("", "scoring_func", "softmax"); f != "softmax" {
			d.fail("scoring_func", "softmax", f)
		}
	},
	names: hfNames{layers: "layers.", names: llamaNames(nil), fix: permuteQK},
	build: (*builder).decoder,
}

// DeepSeek V2 and V3 (also R1, Moonlight and Kimi K2), and the dense Youtu: latent
// attention, and experts in groups. V2 chooses by a softmax, V3 by sigmoids and a
// bias.
var deepseek2 = architecture{
	name: "deepseek2", hf: []string{"deepseek_v2", "deepseek_v3", "kimi_k2", "glm4_moe_lite", "youtu"}, latent: true,
	describe: func(d *description, c *Config) {
		style := nn.RopeNorm
		if !d.bool("", "rope_interleave", true) {
			style = nn.RopeNeox
		}
		d.latent(c, style)
		d.with(d.bool("", "attention_bias", false), latentBias...)
		d.with(d.bool("", "mlp_bias", false), append(shexpBias, mlpBias...)...)
		if d.int("expert_count", "n_routed_experts", 0) == 0 {
			return // as in Youtu
		}
		x := ExpertConfig{GroupTop: 1}
		if d.int("expert_gating_func", "", 0) == 2 || d.hf && d.class.Type != "deepseek_v2" {
			x = ExpertConfig{Score: nn.ScoreSigmoid, GroupTop: 2}
		}
		d.smallExperts(c, x)
		if x.Score == nn.ScoreSigmoid {
			d.must("exp_probs_b.bias")
		}
		if d.hf && x.Score == nn.ScoreSoftmax {
			deepseekV2Router(d, c)
		}
	},
	names: hfNames{layers: "layers.", names: llamaNames(latentNames)},
	build: (*builder).latentDecoder,
}

// shexpBias are the biases of the MLP that all rows read.
var shexpBias = []string{"ffn_gate_shexp.bias", "ffn_up_shexp.bias", "ffn_down_shexp.bias"}

// smallExperts reads mixtures beside which there are experts that all rows read.
func (d *description) smallExperts(c *Config, x ExpertConfig) {
	c.Experts = d.experts(c, x)
	d.sharedExperts(&c.Experts)
	if !d.class.knows("first_k_dense_replace") {
		c.Experts.Layers = expertLayers(c.Layers, func(i int) bool { return i > 0 })
	}
	if types := d.strings("mlp_layer_types", c.Layers); types != nil {
		c.Experts.Layers = expertLayers(c.Layers, func(i int) bool { return types[i] == "sparse" })
		for _, t := range types {
			if t != "sparse" && t != "dense" {
				d.fail("mlp_layer_types", "dense or sparse", t)
			}
		}
	}
}

// deepseekV2Router reads how V2 chooses experts: from all of them, or from the
// groups that have the best one.
func deepseekV2Router(d *description, c *Config) {
	x := &c.Experts
	switch method := d.str("", "topk_method", "greedy"); method {
	case "greedy":
		x.Groups, x.TopGroups = 1, 1
	case "group_limited_greedy":
	default:
		d.fail("topk_method", "greedy or group_limited_greedy", method)
	}
	if x.Normalize {
		d.fail("norm_topk_prob", "false", true) // the class does not look at it
	}
}
