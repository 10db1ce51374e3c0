package model

import (
	"ridge/nn"
	"ridge/weights/tensor"
)

// Llama, and what is built like it: Mistral, SmolLM, TinyLlama, InternLM 3, and Mixtral, whose
// MLPs are mixtures of experts. RMSNorm before attention and before a gated SiLU
// MLP, rotary positions.
var llama = architecture{
	name: "llama", hf: []string{"llama", "mistral", "mixtral", "internlm3"},
	describe: func(d *description, c *Config) {
		llamaLike(c, nn.RopeNorm)
		c.Window = everyLayer(c.Layers, d.int("attention.sliding_window", "sliding_window", 0))
		llamaBiases(d)
		if d.int("expert_count", "num_local_experts", 0) > 0 { // llama.cpp writes 0 for none
			c.Experts = d.experts(c, ExpertConfig{Normalize: true})
		}
	},
	names: hfNames{layers: "layers.", names: llamaNames(map[string]string{
		"ffn_gate_inp":    "block_sparse_moe.gate",
		"ffn_gate_exps.#": "block_sparse_moe.experts.#.w1", "ffn_up_exps.#": "block_sparse_moe.experts.#.w3",
		"ffn_down_exps.#": "block_sparse_moe.experts.#.w2",
	}), fix: permuteQK},
	build: (*builder).decoder,
}

// SmolLM 3 leaves the positions out of every fourth layer.
var smollm3 = architecture{
	name: "smollm3", hf: []string{"smollm3"},
	describe: func(d *description, c *Config) {
		llamaLike(c, nn.RopeNorm)
		llamaBiases(d)
		c.LayerRope = ropeBut(c.Layers, d.int("", "no_rope_layer_interval", 4))
		for i, on := range d.ints("no_rope_layers", c.Layers) {
			c.LayerRope[i] = min(on, 1) - 1
		}
		c.Window = d.windows(c.Layers, func(layer int) bool { return c.LayerRope[layer] < 0 })
		if !d.bool("", "use_sliding_window", false) {
			c.Window = everyLayer(c.Layers, 0)
		}
	},
	names: hfNames{layers: "layers.", names: llamaNames(nil), fix: permuteQK},
	build: (*builder).decoder,
}

func llamaLike(c *Config, style nn.RopeStyle) {
	c.Norm, c.Act, c.Gated, c.RopeStyle = nn.NormRMS, nn.SiLU, true, style
}

// llamaBiases reads which projections have biases.
func llamaBiases(d *description) {
	d.with(d.bool("", "attention_bias", false), attnBias...)
	d.with(d.bool("", "mlp_bias", false), mlpBias...)
}

// permuteQK brings query and key rows into the order that GGUF keeps them in
// for these architectures.
func permuteQK(c *Config, layer int, part string, bias bool) func(tensor.Mat) (tensor.Mat, error) {
	switch part {
	case "attn_q":
		return permuteRope(c.Heads)
	case "attn_k":
		return permuteRope(c.KVHeads[layer])
	}
	return nil
}

// ropeBut returns the rotary set of each layer: the first one, and none for
// every n-th layer.
func ropeBut(layers, n int) []int {
	s := everyLayer(layers, 0)
	for i := range s {
		if n > 0 && (i+1)%n == 0 {
			s[i] = -1
		}
	}
	return s
}

// rotateWindows leaves positions to the layers with a window: others rotate
// nothing.
func (c *Config) rotateWindows() {
	c.LayerRope = everyLayer(c.Layers, 0)
	for i, w := range c.Window {
		if w == 0 {
			c.LayerRope[i] = -1
		}
	}
}
