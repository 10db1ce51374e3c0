package model

import (
	"ridge/nn"
)

// Qwen 2 and 2.5, and MiMo, which has a layer that predicts further tokens: biases on
// queries, keys and values.
var qwen2 = architecture{
	name: "qwen2", hf: []string{"qwen2", "mimo"},
	describe: func(d *description, c *Config) {
		qwenDescribe(d, c)
		d.must(qkvBias...)
		d.with(false, "output.bias")
	},
	names:  hfNames{layers: "layers.", names: llamaNames(nil)},
	build:  (*builder).decoder,
	unused: []string{"model.mtp_layers.*"},
}

// Qwen 3: queries and keys are normalized per head.
var qwen3 = architecture{
	name: "qwen3", hf: []string{"qwen3"},
	describe: func(d *description, c *Config) {
		qwenDescribe(d, c)
		d.with(d.bool("", "attention_bias", false), attnBias...)
		d.must(qkNorms...)
	},
	names: hfNames{layers: "layers.", names: llamaNames(nil)},
	build: (*builder).decoder,
}

// Qwen 1.5 and 2 with experts, and an MLP beside them that a gate weighs.
var qwen2moe = architecture{
	name: "qwen2moe", hf: []string{"qwen2_moe"},
	describe: func(d *description, c *Config) {
		qwenDescribe(d, c)
		d.with(d.bool("", "qkv_bias", true), qkvBias...)
		if last := d.int("", "max_window_layers", 0); d.bool("", "use_sliding_window", false) {
			c.Window = d.windows(c.Layers, func(i int) bool { return i%2 == 0 && i < last })
		}
		d.must("ffn_gate_inp_shexp.weight")
		c.Experts = d.experts(c, ExpertConfig{})
		c.Experts.SharedFFN = d.int("expert_shared_feed_forward_length", "shared_expert_intermediate_size", c.FFN)
		qwenSparse(d, c)
	},
	names: hfNames{layers: "layers.", names: llamaNames(map[string]string{
		"ffn_gate_shexp": "mlp.shared_expert.gate_proj", "ffn_up_shexp": "mlp.shared_expert.up_proj",
		"ffn_down_shexp": "mlp.shared_expert.down_proj", "ffn_gate_inp_shexp": "mlp.shared_expert_gate",
	})},
	build: (*builder).decoder,
}

// Qwen 3 with experts.
var qwen3moe = architecture{
	name: "qwen3moe", hf: []string{"qwen3_moe"},
	describe: func(d *description, c *Config) {
		qwenDescribe(d, c)
		d.with(d.bool("", "attention_bias", false), attnBias...)
		d.must(qkNorms...)
		c.Experts = d.experts(c, ExpertConfig{Normalize: !d.hf})
		qwenSparse(d, c)
	},
	names: hfNames{layers: "layers.", names: llamaNames(nil)},
	build: (*builder).decoder,
}

// qwenSparse reads which layers have experts.
func qwenSparse(d *description, c *Config) {
	step := max(d.int("", "decoder_sparse_step", 1), 1)
	dense := map[int]bool{}
	for _, i := range d.intList("mlp_only_layers") {
		dense[i] = true
	}
	first := c.Experts.Layers
	c.Experts.Layers = expertLayers(c.Layers, func(i int) bool { return first[i] && (i+1)%step == 0 && !dense[i] })
}

func qwenDescribe(d *description, c *Config) {
	llamaLike(c, nn.RopeNeox)
	c.Window = d.windows(c.Layers, from(d.int("", "max_window_layers", 0)))
	if !d.bool("", "use_sliding_window", !d.hf) {
		c.Window = everyLayer(c.Layers, 0)
	}
}
