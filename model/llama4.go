package model

import (
	"ridge/nn"
	"ridge/weights/tensor"
)

// Llama 4 (text): most layers see chunks of positions; every fourth is not rotated,
// sees all, and its queries grow with their position. Experts read rows that the
// router has weighed, beside an MLP that all rows read.
var llama4 = architecture{
	name: "llama4", hf: []string{"llama4_text", "llama4"},
	describe: func(d *description, c *Config) {
		llamaLike(c, nn.RopeNorm)
		d.with(d.bool("", "attention_bias", false), attnBias...)
		c.Experts = d.experts(c, ExpertConfig{Score: nn.ScoreSigmoid, WeighInput: true})
		c.Experts.SharedFFN = c.Experts.FFN
		c.FFN = d.int("", "intermediate_size_mlp", c.FFN)
		llama4Layers(d, c)
		llama4Attention(d, c)
	},
	names: hfNames{layers: "layers.", names: llamaNames(map[string]string{
		"ffn_gate": "feed_forward.gate_proj", "ffn_up": "feed_forward.up_proj", "ffn_down": "feed_forward.down_proj",
		"ffn_gate_inp":         "feed_forward.router",
		"ffn_gate_exps.weight": "feed_forward.experts.gate_up_proj", "ffn_up_exps.weight": "feed_forward.experts.gate_up_proj",
		"ffn_down_exps.weight": "feed_forward.experts.down_proj", "ffn_gate_shexp": "feed_forward.shared_expert.gate_proj",
		"ffn_up_shexp": "feed_forward.shared_expert.up_proj", "ffn_down_shexp": "feed_forward.shared_expert.down_proj",
	}), fix: llama4Experts},
	unused: visionParts,
	build: func(b *builder) *Net {
		return b.stack(func(i int, at func(string) string) nn.Mixer {
			a := b.attention(i, at)
			if a.Rope != nil {
				a.Temper = nn.Temper{}
			}
			return a
		})
	},
}

// llama4Layers reads which layers have experts, which are rotated, and which see
// chunks.
func llama4Layers(d *description, c *Config) {
	step := max(d.int("interleave_moe_layer_step", "interleave_moe_layer_step", 1), 1)
	c.Experts.Layers = expertLayers(c.Layers, func(i int) bool { return (i+1)%step == 0 })
	if listed := d.intList("moe_layers"); listed != nil {
		clear(c.Experts.Layers)
		for _, i := range listed {
			if i < 0 || i >= len(c.Experts.Layers) {
				d.fail("moe_layers", "numbers of layers", i)
				return
			}
			c.Experts.Layers[i] = true
		}
	}
	// A GGUF file without a window is of a model whose layers are all alike.
	size := d.int("attention.chunk_size|attention.sliding_window", "attention_chunk_size", 8192)
	every := d.int("", "no_rope_layer_interval", 4)
	if !d.hf && size == 0 {
		every = 0
	}
	c.LayerRope = ropeBut(c.Layers, every)
	if len(d.intList("no_rope_layers")) > 0 {
		for i, on := range d.ints("no_rope_layers", c.Layers) {
			c.LayerRope[i] = min(on, 1) - 1
		}
	}
	c.Chunk = everyLayer(c.Layers, 0)
	types := d.strings("layer_types", c.Layers)
	for i := range c.Chunk {
		chunked := c.LayerRope[i] >= 0
		if types != nil {
			if chunked = types[i] == "chunked_attention"; !chunked && types[i] != "full_attention" {
				d.fail("layer_types", "full_attention or chunked_attention", types[i])
			}
		}
		if chunked {
			c.Chunk[i] = size
		}
	}
}

// llama4Attention reads how queries and keys are normalized and scaled.
func llama4Attention(d *description, c *Config) {
	c.UnitQK = d.bool("", "use_qk_norm", c.Experts.Count != 128) // of the released models that with 128 experts has none
	c.NormRotated = c.UnitQK
	c.Temper = nn.Temper{Shift: 1, Period: d.int("attention.temperature_length", "floor_scale", 8192), Beta: d.float32("attention.temperature_scale", "attn_scale", 0.1)}
	// Early files have a number that is not 0 for true.
	if _, v, ok := d.find("", "attn_temperature_tuning", ""); ok && v != true && v != 4.0 {
		if c.Temper = (nn.Temper{}); v != false && v != 0.0 {
			d.fail("attn_temperature_tuning", "true or false", describe(v))
		}
	}
}

// llama4Experts takes gate and up apart, which lie side by side, and turns the
// [in][out] matrices of experts around.
func llama4Experts(c *Config, layer int, part string, bias bool) func(tensor.Mat) (tensor.Mat, error) {
	n := c.Experts.Count
	switch part {
	case "ffn_gate_exps":
		return turnExperts(n, 2, false, func(out, o int) int { return o })
	case "ffn_up_exps":
		return turnExperts(n, 2, false, func(out, o int) int { return out + o })
	case "ffn_down_exps":
		return turnExperts(n, 1, false, func(out, o int) int { return o })
	}
	return nil
}
