package model

import "ridge/nn"

// EXAONE 3 and 3.5: Llama under GPT-2's names.
var exaone = architecture{
	name: "exaone", hf: []string{"exaone"},
	describe: func(d *description, c *Config) {
		llamaLike(c, nn.RopeNeox)
		llamaBiases(d)
	},
	names: hfNames{layers: "h.", home: "transformer.", names: map[string]string{
		"token_embd": "wte", "output_norm": "ln_f", "output": "lm_head", "attn_norm": "ln_1", "ffn_norm": "ln_2",
		"attn_q": "attn.attention.q_proj", "attn_k": "attn.attention.k_proj", "attn_v": "attn.attention.v_proj",
		"attn_output": "attn.attention.out_proj", "ffn_gate": "mlp.c_fc_0", "ffn_up": "mlp.c_fc_1", "ffn_down": "mlp.c_proj",
	}},
	build: (*builder).decoder,
}
