package model

import (
	"math"

	"ridge/nn"
)

// Hunyuan (dense): queries and keys are normalized after the rotation.
var hunyuanDense = architecture{
	name: "hunyuan-dense", hf: []string{"hunyuan_v1_dense"},
	describe: hunyuanDescribe,
	names:    hunyuanNames,
	build:    (*builder).decoder,
}

// Hunyuan with experts, beside an MLP that all rows read.
var hunyuanMoE = architecture{
	name: "hunyuan-moe", hf: []string{"hunyuan_v1_moe"},
	describe: func(d *description, c *Config) {
		hunyuanDescribe(d, c)
		c.Experts = d.experts(c, ExpertConfig{Normalize: true})
		c.Experts.SharedFFN = d.int("expert_shared_feed_forward_length", "", c.FFN)
	},
	names: hunyuanNames,
	build: (*builder).decoder,
}

var hunyuanNames = hfNames{layers: "layers.", names: llamaNames(map[string]string{
	"attn_q_norm": "self_attn.query_layernorm", "attn_k_norm": "self_attn.key_layernorm",
	"ffn_gate_inp": "mlp.gate.wg", "ffn_gate_shexp": "mlp.shared_mlp.gate_proj",
	"ffn_up_shexp": "mlp.shared_mlp.up_proj", "ffn_down_shexp": "mlp.shared_mlp.down_proj",
})}

func hunyuanDescribe(d *description, c *Config) {
	llamaLike(c, nn.RopeNeox)
	c.NormRotated = true
	d.must(qkNorms...)
	d.with(d.bool("", "attention_bias", false), attnBias...)
	// Dynamic scaling with an alpha is a larger base, whatever the length.
	s := &c.Rope[0]
	for _, key := range []string{"rope_scaling", "rope_parameters"} {
		p := d.object(key)
		if p == nil || s.Scaling.Kind != dynamic {
			continue
		}
		if alpha := p.float("", "alpha", 0); alpha > 0 {
			dim := float64(c.HeadDim)
			s.Base *= math.Pow(alpha, dim/(dim-2))
			s.Scaling = RopeScaling{}
		}
	}
}
