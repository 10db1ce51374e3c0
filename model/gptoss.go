package model

import (
	"fmt"

	"ridge/nn"
	"ridge/weights/tensor"
)

// gpt-oss: every second layer has a window, heads have sinks, and all MLPs are
// mixtures whose gates are clamped.
var gptoss = architecture{
	name: "gpt-oss", hf: []string{"gpt_oss"}, acts: map[string]nn.Activation{"silu": nn.ClampedSwiGLU},
	describe: func(d *description, c *Config) {
		llamaLike(c, nn.RopeNeox)
		c.Act = nn.ClampedSwiGLU
		if alpha, limit := d.float("", "swiglu_alpha", 1.702), d.float("", "swiglu_limit", 7); alpha != 1.702 || limit != 7 {
			d.fail("swiglu_alpha, swiglu_limit", "1.702 and 7", fmt.Sprint(alpha, " and ", limit))
		}
		c.Window = d.windows(c.Layers, everyButNth(2))
		c.Experts = d.experts(c, ExpertConfig{Score: nn.ScoreChosen})
		c.Rope[0].Scaling.NoTruncate = true
		d.must("attn_sinks.weight", "ffn_gate_inp.bias", "ffn_gate_exps.bias", "ffn_up_exps.bias", "ffn_down_exps.bias")
		d.with(d.bool("", "attention_bias", true), attnBias...)
	},
	names: hfNames{layers: "layers.", names: llamaNames(map[string]string{
		"attn_sinks.weight": "self_attn.sinks", "ffn_gate_inp": "mlp.router",
		"ffn_gate_exps.weight": "mlp.experts.gate_up_proj", "ffn_gate_exps.bias": "mlp.experts.gate_up_proj_bias",
		"ffn_up_exps.weight": "mlp.experts.gate_up_proj", "ffn_up_exps.bias": "mlp.experts.gate_up_proj_bias",
		"ffn_down_exps.weight": "mlp.experts.down_proj", "ffn_down_exps.bias": "mlp.experts.down_proj_bias",
	}), fix: gptossExperts},
	aliases: map[string]string{"ffn_norm": "post_attention_norm"},
	build:   (*builder).decoder,
}

// gptossExperts takes gate and up apart, which lie in turns, and turns the
// [in][out] matrices of experts around.
func gptossExperts(c *Config, layer int, part string, bias bool) func(tensor.Mat) (tensor.Mat, error) {
	n := c.Experts.Count
	switch part {
	case "ffn_gate_exps":
		return turnExperts(n, 2, bias, func(out, o int) int { return 2 * o })
	case "ffn_up_exps":
		return turnExperts(n, 2, bias, func(out, o int) int { return 2*o + 1 })
	case "ffn_down_exps":
		return turnExperts(n, 1, bias, func(out, o int) int { return o })
	}
	return nil
}
