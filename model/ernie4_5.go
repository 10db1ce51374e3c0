package model

import "ridge/nn"

// ERNIE 4.5: Llama with neighbours rotated as they lie.
var ernie4_5 = architecture{
	name: "ernie4_5", hf: []string{"ernie4_5"},
	describe: func(d *description, c *Config) {
		llamaLike(c, nn.RopeNorm)
		d.with(d.bool("", "use_bias", false), linearBias...)
	},
	names: hfNames{layers: "layers.", names: llamaNames(nil)},
	build: (*builder).decoder,
}

// ERNIE 4.5 with experts in every so many layers of some, whose choice a bias
// balances.
var ernie4_5moe = architecture{
	name: "ernie4_5-moe", hf: []string{"ernie4_5_moe"},
	describe: func(d *description, c *Config) {
		llamaLike(c, nn.RopeNorm)
		d.with(d.bool("", "use_bias", false), linearBias...)
		d.with(d.bool("", "use_bias", false), "output.bias", "ffn_gate_shexp.bias", "ffn_up_shexp.bias", "ffn_down_shexp.bias")
		d.must("exp_probs_b.bias")
		c.Experts = d.experts(c, ExpertConfig{Normalize: true})
		d.sharedExperts(&c.Experts)
		first := d.int("leading_dense_block_count", "moe_layer_start_index", 0)
		last := d.int("", "moe_layer_end_index", c.Layers-1)
		step := max(d.int("interleave_moe_layer_step", "moe_layer_interval", 1), 1)
		if last == 0 {
			last = c.Layers - 1 // -1 says so
		}
		c.Experts.Layers = expertLayers(c.Layers, func(i int) bool { return (i+1)%step == 0 && first <= i && i <= last })
	},
	names: hfNames{layers: "layers.", names: llamaNames(map[string]string{
		"exp_probs_b.bias": "mlp.moe_statics.e_score_correction_bias",
	})},
	unused: []string{"model.mtp_*"},
	build:  (*builder).decoder,
}
