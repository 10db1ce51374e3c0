package model

import "ridge/nn"

// Mamba 2: layers of a state-space mixer alone whose heads share rates of decay.
var mamba2 = architecture{
	name: "mamba2", hf: []string{"mamba2"},
	stateOnly: true,
	describe: func(d *description, c *Config) {
		stateAlone(c)
		x := &c.State
		x.NormGroups = true
		x.Inner = d.int("ssm.inner_size", "", 0)
		x.States = d.int("ssm.state_size", "state_size", 128)
		x.Taps = d.int("ssm.conv_kernel", "conv_kernel", 4)
		x.Heads = d.int("ssm.time_step_rank", "num_heads", required)
		x.Groups = d.int("ssm.group_count", "n_groups", 1)
		if d.hf {
			c.Context = mambaContext
			x.Inner = int(d.float("", "expand", 2) * float64(c.Hidden))
			if dim := d.int("", "head_dim", 64); dim*x.Heads != x.Inner {
				d.fail("head_dim", "expand · hidden_size / num_heads", dim)
			}
			d.timeSteps(x, "time_step_limit")
		}
		c.FFN = x.Inner
		d.with(d.bool("", "use_conv_bias", true), "ssm_conv1d.bias")
		d.with(d.bool("", "use_bias", false), "ssm_in.bias", "ssm_out.bias")
	},
	names: hfNames{layers: "layers.", names: mambaNames("mixer.", map[string]string{
		"token_embd": "embeddings", "output_norm": "norm_f", "output": "lm_head", "attn_norm": "norm", "ssm_dt.bias": "mixer.dt_bias",
	}), fix: stateFixes},
	build: func(b *builder) *Net {
		return b.stack(func(_ int, at func(string) string) nn.Mixer { return b.ssd(at, true) })
	},
}
