package model

import (
	"math"

	"ridge/nn"
)

// AfMoE (Trinity): attention whose heads a gate opens; only layers with a window are
// rotated. Norms before and after the parts, experts behind the first layers.
var afmoe = architecture{
	name: "afmoe", hf: []string{"afmoe"},
	describe: func(d *description, c *Config) {
		llamaLike(c, nn.RopeNeox)
		c.PostNorms = true
		d.must("attn_norm.weight", "ffn_norm.weight", "attn_gate.weight", "exp_probs_b.bias")
		d.must(qkNorms...)
		d.with(d.bool("", "attention_bias", false), attnBias...)
		if d.bool("", "mup_enabled", true) { // a GGUF file is of such a model
			c.EmbScale = float32(math.Sqrt(float64(c.Hidden)))
		}
		every := d.int("", "global_attn_every_n_layers", 4)
		c.Window = d.windows(c.Layers, everyButNth(every))
		c.rotateWindows()
		c.Experts = d.experts(c, ExpertConfig{Score: nn.ScoreSigmoid, Normalize: true})
		c.Experts.Scale = d.float32("expert_weights_scale", "route_scale", 1)
		d.sharedExperts(&c.Experts)
	},
	names: hfNames{layers: "layers.", names: llamaNames(map[string]string{
		"ffn_norm": "pre_mlp_layernorm", "post_attention_norm": "post_attention_layernorm", "post_ffw_norm": "post_mlp_layernorm",
		"attn_gate": "self_attn.gate_proj", "ffn_gate_inp": "mlp.router.gate", "exp_probs_b.bias": "mlp.expert_bias",
	})},
	build: (*builder).decoder,
}
