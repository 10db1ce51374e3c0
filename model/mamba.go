package model

import "ridge/nn"

// Mamba: layers of a selective state-space mixer alone. Falcon Mamba normalizes
// what makes its time steps, and what it writes and reads.
var mamba = architecture{
	name: "mamba", hf: []string{"mamba", "falcon_mamba"},
	stateOnly: true,
	describe: func(d *description, c *Config) {
		stateAlone(c)
		mambaState(d, c)
		if d.hf {
			c.Context = mambaContext
			c.State.NormRanks = d.str("", "model_type", "") == "falcon_mamba"
			c.State.NormEps = d.float32("", "mixer_rms_eps", 0)
		} else if c.State.NormRanks = d.bool("ssm.dt_b_c_rms", "", false); c.State.NormRanks {
			c.State.NormEps = d.float32("attention.layer_norm_rms_epsilon", "", 1e-6)
		}
		d.with(d.bool("", "use_bias", false), "ssm_in.bias", "ssm_out.bias")
	},
	names: hfNames{layers: "layers.", names: mambaNames("mixer.", map[string]string{
		"token_embd": "embeddings", "output_norm": "norm_f", "output": "lm_head", "attn_norm": "norm",
	}), fix: stateFixes},
	build: func(b *builder) *Net {
		return b.stack(func(_ int, at func(string) string) nn.Mixer { return b.selective(at) })
	},
}

// mambaContext is the context length of models whose files do not say one, and
// whose layers do not ask for one: as llama.cpp's converter has it.
const mambaContext = 1 << 20

// mambaNames are the names of the parts of a selective mixer under a prefix, and
// those of more.
func mambaNames(prefix string, more map[string]string) map[string]string {
	names := map[string]string{
		"ssm_in": prefix + "in_proj", "ssm_conv1d": prefix + "conv1d", "ssm_x": prefix + "x_proj", "ssm_dt": prefix + "dt_proj",
		"ssm_a": prefix + "A_log", "ssm_d": prefix + "D", "ssm_out": prefix + "out_proj", "ssm_norm": prefix + "norm",
	}
	for k, v := range more {
		names[k] = v
	}
	return names
}

// stateAlone fills in what a model without attention has in place of heads.
func stateAlone(c *Config) {
	c.Norm, c.RopeStyle, c.Heads, c.HeadDim, c.NoFFN = nn.NormRMS, nn.RopeNone, 1, 1, true
	c.KVHeads = everyLayer(c.Layers, 1) // files say 0, or nothing
	c.defaults()
	c.State.Layers = make([]bool, max(min(c.Layers, 1<<12), 0))
	for i := range c.State.Layers {
		c.State.Layers[i] = true
	}
}

// mambaState reads the sizes of a selective mixer.
func mambaState(d *description, c *Config) {
	d.must("ssm_dt.bias")
	x := &c.State
	x.Inner = d.int("ssm.inner_size", "", 0)
	if d.hf {
		x.Inner = int(d.float("", "expand", 2) * float64(c.Hidden))
	}
	x.States = d.int("ssm.state_size", "state_size", 16)
	x.Taps = d.int("ssm.conv_kernel", "conv_kernel", 4)
	x.Rank = d.rank("ssm.time_step_rank", "time_step_rank", c.Hidden)
	d.with(d.bool("", "use_conv_bias", true), "ssm_conv1d.bias")
	c.FFN = x.Inner
}

// rank reads the rank of time steps, which may be left to the width of a model.
func (d *description) rank(ggufKey, hfKey string, hidden int) int {
	if _, v, ok := d.find("", hfKey, "an integer"); ok && v == "auto" {
		return (hidden + 15) / 16
	}
	return d.int(ggufKey, hfKey, required)
}
