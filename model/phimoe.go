package model

import "ridge/nn"

// Phi 3.5 MoE: LayerNorm with biases, and experts that SparseMixer chooses.
var phimoe = architecture{
	name: "phimoe", hf: []string{"phimoe"},
	describe: func(d *description, c *Config) {
		llamaLike(c, nn.RopeNeox)
		c.Norm = nn.NormLayer
		d.must(normBias...)
		c.Window = everyLayer(c.Layers, d.int("attention.sliding_window", "sliding_window", 0))
		d.with(d.bool("", "attention_bias", false), attnBias...)
		d.with(d.bool("", "lm_head_bias", false), "output.bias")
		if !d.hf { // all files have it
			d.must("output.bias")
		}
		c.Experts = d.experts(c, ExpertConfig{Score: nn.ScoreSparseMixer, Near: d.float32("", "router_jitter_noise", 0.01)})
		for _, key := range []string{"rope_scaling", "rope_parameters"} {
			p := d.object(key)
			if p == nil || !p.has("", "short_mscale") {
				continue
			}
			short, long := p.float("", "short_mscale", 0), p.float("", "long_mscale", 0)
			if short != long {
				p.fail("long_mscale", "as short_mscale", long)
			}
			c.Rope[0].Scaling.AttnFactor = short
		}
	},
	names: hfNames{layers: "layers.", names: llamaNames(map[string]string{
		"ffn_gate_inp": "block_sparse_moe.gate", "ffn_gate_exps.#": "block_sparse_moe.experts.#.w1",
		"ffn_up_exps.#": "block_sparse_moe.experts.#.w3", "ffn_down_exps.#": "block_sparse_moe.experts.#.w2",
	})},
	build: (*builder).decoder,
}
