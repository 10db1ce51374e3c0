package model

import "ridge/nn"

// Granite 3 and 4 (dense): Llama with multipliers of the embedding, of what
// layers add, of scores and of logits.
var granite = architecture{
	name: "granite", hf: []string{"granite"},
	describe: graniteDescribe,
	names:    hfNames{layers: "layers.", names: llamaNames(nil), fix: permuteQK},
	build:    (*builder).decoder,
}

// Granite 3 with experts, and in some an MLP beside them.
var granitemoe = architecture{
	name: "granitemoe", readOnly: "gate and up of its experts lie in one tensor there", hf: []string{"granitemoe", "granitemoeshared"},
	describe: func(d *description, c *Config) {
		graniteDescribe(d, c)
		c.Experts = d.experts(c, ExpertConfig{Score: nn.ScoreChosen})
		c.Experts.SharedFFN = d.int("expert_shared_feed_forward_length", "shared_intermediate_size", 0)
	},
	names: hfNames{layers: "layers.", names: llamaNames(map[string]string{
		"ffn_gate_inp": "block_sparse_moe.router.layer", "ffn_gate_up_exps": "block_sparse_moe.input_linear",
		"ffn_down_exps": "block_sparse_moe.output_linear",
		"ffn_up_shexp":  "shared_mlp.input_linear", "ffn_down_shexp": "shared_mlp.output_linear",
	}), fix: permuteQK},
	build: (*builder).decoder,
}

func graniteDescribe(d *description, c *Config) {
	llamaLike(c, nn.RopeNorm)
	llamaBiases(d)
	scores, logits := 0.0, requiredFloat // 0: as others scale them
	if d.hf {
		scores, logits = 1, 1
	}
	c.EmbScale = d.float32("embedding_scale", "embedding_multiplier", 1)
	c.ResidScale = d.float32("residual_scale", "residual_multiplier", 1)
	c.AttnScale = d.float32("attention.scale", "attention_multiplier", scores)
	c.LogitScale = 1 / d.float32("logit_scale", "logits_scaling", logits)
}
