package model

import (
	"ridge/kernel"
	"ridge/nn"
	"ridge/weights/tensor"
)

// RWKV-4: columns are means of the values before, weighted by keys that fade. GGUF has no
// such architecture.
var rwkv4 = architecture{
	name: "rwkv4", hf: []string{"rwkv"},
	stateOnly: true,
	readOnly:  "the decays of its checkpoints have other names than GGUF's",
	describe: func(d *description, c *Config) {
		if !d.hf {
			d.fail("general.architecture", "an architecture that llama.cpp has", "rwkv4")
			return
		}
		rwkvSizes(d, c, 4)
		c.State.States = rwkv4States
		if w := kernel.StateColumns; c.Hidden%w != 0 {
			d.fail("hidden_size", "a multiple of 16", c.Hidden)
		}
	},
	names: hfNames{layers: "blocks.", names: rwkvNames(map[string]string{
		"time_mix_first.weight":  "attention.time_first",
		"time_mix_lerp_k.weight": "attention.time_mix_key", "time_mix_lerp_v.weight": "attention.time_mix_value",
		"time_mix_lerp_r.weight":    "attention.time_mix_receptance",
		"channel_mix_lerp_k.weight": "feed_forward.time_mix_key", "channel_mix_lerp_r.weight": "feed_forward.time_mix_receptance",
	}), fix: func(c *Config, layer int, part string, bias bool) func(tensor.Mat) (tensor.Mat, error) {
		if part == "time_mix_decay" {
			return negativeExp
		}
		return rwkvOldFix(c, layer, part, bias)
	}},
	build: func(b *builder) *Net {
		return b.rwkv(func(_ int, at func(string) string) nn.Mixer {
			n := b.c.Hidden
			m := &nn.RWKV4{
				R: b.linear(at("time_mix_receptance"), n, n), K: b.linear(at("time_mix_key"), n, n), V: b.linear(at("time_mix_value"), n, n),
				Out: b.linear(at("time_mix_output"), n, n), Rate: b.numbers(at("time_mix_decay.weight"), n), First: b.numbers(at("time_mix_first.weight"), n),
			}
			b.lerps(at, m.Lerp[:], "kvr")
			return m
		})
	},
}

// rwkv4States is how many numbers a column keeps of what came before.
const rwkv4States = 3
