package model

import "ridge/nn"

// Jamba: attention without positions in one of some layers, selective state-space
// mixers in the others, and experts in every second one.
var jamba = architecture{
	name: "jamba", hf: []string{"jamba"},
	describe: func(d *description, c *Config) {
		c.Norm, c.Act, c.Gated, c.RopeStyle = nn.NormRMS, nn.SiLU, true, nn.RopeNone
		c.defaults()
		d.stateLayers(c, d.every("attn_layer_period", "attn_layer_offset", 8, 4))
		x := &c.State
		x.Inner = d.int("ssm.inner_size", "", 0)
		if d.hf {
			x.Inner = d.int("", "mamba_expand", 2) * c.Hidden
		}
		x.States = d.int("ssm.state_size", "mamba_d_state", 16)
		x.Taps = d.int("ssm.conv_kernel", "mamba_d_conv", 4)
		x.Rank = d.rank("ssm.time_step_rank", "mamba_dt_rank", c.Hidden)
		x.NormRanks, x.NormEps = true, d.float32("attention.layer_norm_rms_epsilon", "rms_norm_eps", 1e-6)
		d.must("ssm_dt.bias", "ssm_dt_norm.weight", "ssm_b_norm.weight", "ssm_c_norm.weight")
		d.with(d.bool("", "mamba_conv_bias", true), "ssm_conv1d.bias")
		d.with(d.bool("", "mamba_proj_bias", false), "ssm_in.bias", "ssm_out.bias")
		c.Experts = d.experts(c, ExpertConfig{})
		if has := d.every("expert_layer_period", "expert_layer_offset", 2, 1); c.Experts.Count > 1 {
			c.Experts.Layers = expertLayers(c.Layers, has)
		} else {
			c.Experts = ExpertConfig{}
		}
	},
	names: hfNames{layers: "layers.", names: llamaNames(mambaNames("mamba.", map[string]string{
		"output_norm": "final_layernorm", "ffn_norm": "pre_ff_layernorm",
		"ssm_dt_norm": "mamba.dt_layernorm", "ssm_b_norm": "mamba.b_layernorm", "ssm_c_norm": "mamba.c_layernorm",
		"ffn_gate": "feed_forward.gate_proj", "ffn_up": "feed_forward.up_proj", "ffn_down": "feed_forward.down_proj",
		"ffn_gate_inp": "feed_forward.router", "ffn_gate_exps.#": "feed_forward.experts.#.gate_proj",
		"ffn_up_exps.#": "feed_forward.experts.#.up_proj", "ffn_down_exps.#": "feed_forward.experts.#.down_proj",
	})), fix: stateFixes},
	build: func(b *builder) *Net {
		return b.stack(func(i int, at func(string) string) nn.Mixer {
			if b.c.State.Layers[i] {
				return b.selective(at)
			}
			return b.attention(i, at)
		}, jambaFFN)
	},
}

// jambaFFN builds the FFN of a layer. A GGUF file does not say which layers have
// experts.
func jambaFFN(b *builder, l *Layer, at func(string) string) {
	x, layer := b.c.Experts.Layers, at("")
	i, _, _ := splitName(layer)
	if b.gguf && (b.has(at("ffn_gate_inp.weight")) || b.has(at("ffn_gate_exps.weight"))) || !b.gguf && x != nil && x[i] {
		l.FFN = b.moe(at)
		return
	}
	l.FFN = b.mlp(i, at)
}
