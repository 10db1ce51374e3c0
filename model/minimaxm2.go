package model

import "ridge/nn"

// MiniMax M2: queries and keys normalized over all heads, part of a head rotated,
// experts in all layers.
var minimaxM2 = architecture{
	name: "minimax-m2", head: true, hf: []string{"minimax_m2"},
	describe: func(d *description, c *Config) {
		llamaLike(c, nn.RopeNeox)
		if n := d.int("", "rotary_dim", 0); n > 0 {
			c.RopeDim = n
		}
		d.must(qkNorms...)
		d.must("exp_probs_b.bias")
		c.Experts = d.experts(c, ExpertConfig{Score: nn.ScoreSigmoid, Normalize: true})
	},
	names: hfNames{layers: "layers.", names: llamaNames(map[string]string{
		"ffn_gate_inp": "block_sparse_moe.gate", "exp_probs_b.bias": "block_sparse_moe.e_score_correction_bias",
		"ffn_gate_exps.#": "block_sparse_moe.experts.#.w1", "ffn_up_exps.#": "block_sparse_moe.experts.#.w3",
		"ffn_down_exps.#": "block_sparse_moe.experts.#.w2",
	})},
	build: (*builder).decoder,
}
