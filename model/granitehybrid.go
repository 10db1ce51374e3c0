package model

import (
	"fmt"
	"slices"
	"strconv"

	"ridge/nn"
	"ridge/weights/tensor"
)

// Granite 4 hybrid: state-space mixers in most layers, attention without positions
// in the others, and an MLP beside the experts, or without any.
var graniteHybrid = architecture{
	name: "granitehybrid", hf: []string{"granitemoehybrid"},
	describe: func(d *description, c *Config) {
		graniteDescribe(d, c)
		kind := d.str("", "position_embedding_type", "nope")
		if kind != "rope" && kind != "nope" {
			d.fail("position_embedding_type", "rope or nope", strconv.Quote(kind))
		}
		if kind != "rope" && d.hf || !d.hf && !d.bool("rope.scaling.finetuned", "", false) {
			c.RopeStyle, c.Context = nn.RopeNone, mambaContext
			for i := range c.LayerRope {
				c.LayerRope[i] = -1
			}
		}
		d.typedLayers(c)
		d.ssdSizes(c)
		c.FFN = d.int("expert_shared_feed_forward_length", "shared_intermediate_size", c.FFN)
		if d.int("expert_count", "num_local_experts", 0) == 0 {
			d.int("", "num_experts_per_tok", 0) // of none
			return
		}
		width := c.FFN
		if c.Experts = d.experts(c, ExpertConfig{Score: nn.ScoreChosen}); d.hf {
			c.Experts.FFN = d.int("", "intermediate_size", c.FFN)
		}
		c.Experts.SharedFFN = d.int("expert_shared_feed_forward_length", "shared_intermediate_size", width)
	},
	names: hfNames{layers: "layers.", names: llamaNames(mambaNames("mamba.", map[string]string{
		"ssm_dt.bias": "mamba.dt_bias", "ffn_gate_inp": "block_sparse_moe.router.layer", "ffn_gate_up_exps": "block_sparse_moe.input_linear",
		"ffn_down_exps": "block_sparse_moe.output_linear", "ffn_up": "shared_mlp.input_linear", "ffn_down": "shared_mlp.output_linear",
		"ffn_up_shexp": "shared_mlp.input_linear", "ffn_down_shexp": "shared_mlp.output_linear",
	})), fix: hybridFix},
	build: (*builder).hybrid,
}

// hybridFix brings rates of decay, and rows of queries and keys, into the order of
// GGUF, with positions and without.
func hybridFix(c *Config, layer int, part string, bias bool) func(tensor.Mat) (tensor.Mat, error) {
	if part == "ssm_a" {
		return negativeExp
	}
	return permuteQK(c, layer, part, bias)
}

// Bamba: the same with an MLP, and with positions of which half of a head is
// rotated. The layers with attention are numbered.
var bamba = architecture{
	name: "granitehybrid", hf: []string{"bamba"},
	describe: func(d *description, c *Config) {
		llamaLike(c, nn.RopeNeox)
		c.RopeDim = c.HeadDim / 2
		c.LayerRope = nil
		c.Rope = []RopeConfig{d.rope(c)}
		c.defaults()
		attends := d.intList("attn_layer_indices")
		d.stateLayers(c, func(layer int) bool { return slices.Contains(attends, layer) })
		d.ssdSizes(c)
		d.with(d.bool("", "attention_bias", false), attnBias...)
		d.with(d.bool("", "mlp_bias", false), mlpBias...)
	},
	names: hfNames{layers: "layers.", names: llamaNames(mambaNames("mamba.", map[string]string{
		"ssm_dt.bias": "mamba.dt_bias", "output_norm": "final_layernorm", "ffn_norm": "pre_ff_layernorm",
		"ffn_gate": "feed_forward.gate_proj", "ffn_up": "feed_forward.up_proj", "ffn_down": "feed_forward.down_proj",
	})), fix: stateFixes},
	build: (*builder).hybrid,
}

// hybrid builds layers with the mixer of a state or with attention.
func (b *builder) hybrid() *Net {
	return b.stack(func(i int, at func(string) string) nn.Mixer {
		if b.c.State.Layers[i] {
			return b.ssd(at, true)
		}
		return b.attention(i, at)
	})
}

// typedLayers says which layers have a state: those without key-value heads of a
// GGUF file, those that a config.json calls so.
func (d *description) typedLayers(c *Config) {
	types := d.strings("layer_types|layers_block_type", c.Layers)
	for _, t := range types {
		switch t {
		case "mamba", "linear_attention", "attention", "full_attention":
		default:
			d.fail("layer_types", "mamba or attention", strconv.Quote(t))
		}
	}
	d.stateLayers(c, func(layer int) bool {
		return types != nil && (types[layer] == "attention" || types[layer] == "full_attention")
	})
}

// ssdSizes reads the sizes of state-space mixers beside attention.
func (d *description) ssdSizes(c *Config) {
	x := &c.State
	x.NormGroups = true
	x.Inner = d.int("ssm.inner_size", "", 0)
	x.States = d.int("ssm.state_size", "mamba_d_state", 256)
	x.Taps = d.int("ssm.conv_kernel", "mamba_d_conv", 4)
	x.Heads = d.int("ssm.time_step_rank", "mamba_n_heads", required)
	x.Groups = d.int("ssm.group_count", "mamba_n_groups", 1)
	if d.hf {
		x.Inner = d.int("", "mamba_d_ssm", d.int("", "mamba_expand", 2)*c.Hidden)
		d.timeSteps(x, "time_step_limit")
		if key, v, ok := d.find("", "mamba_d_head", "an integer"); ok && v != "auto" {
			if n, isInt := asInt(v); !isInt || n*x.Heads != x.Inner {
				d.fail(key, fmt.Sprintf("%d / mamba_n_heads, as hidden_size and mamba_expand, or mamba_d_ssm, say", x.Inner), describe(v))
			}
		}
	}
	d.with(d.bool("", "mamba_conv_bias", true), "ssm_conv1d.bias")
	d.with(d.bool("", "mamba_proj_bias", false), "ssm_in.bias", "ssm_out.bias")
}
