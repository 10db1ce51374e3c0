package model

import (
	"strconv"

	"ridge/nn"
)

// LFM2: short convolutions in most layers, attention with normalized queries and
// keys in the others.
var lfm2 = architecture{
	name: "lfm2", hf: []string{"lfm2"},
	describe: lfm2Describe,
	names:    lfm2Names,
	aliases:  lfm2Aliases,
	build:    (*builder).lfm2,
}

// LFM2 with experts behind the first layers.
var lfm2moe = architecture{
	name: "lfm2moe", hf: []string{"lfm2_moe"},
	describe: func(d *description, c *Config) {
		lfm2Describe(d, c)
		d.with(d.bool("", "use_expert_bias", true), "exp_probs_b.bias")
		c.Experts = d.experts(c, ExpertConfig{Score: nn.ScoreSigmoid, Normalize: true})
	},
	names:   lfm2Names,
	aliases: lfm2Aliases,
	build:   (*builder).lfm2,
}

var lfm2Names = hfNames{layers: "layers.", names: llamaNames(map[string]string{
	"output_norm": "embedding_norm", "attn_norm": "operator_norm", "ffn_norm": "ffn_norm",
	"attn_output": "self_attn.out_proj", "attn_q_norm": "self_attn.q_layernorm", "attn_k_norm": "self_attn.k_layernorm",
	"shortconv.conv": "conv.conv", "shortconv.in_proj": "conv.in_proj", "shortconv.out_proj": "conv.out_proj",
	"ffn_gate": "feed_forward.w1", "ffn_up": "feed_forward.w3", "ffn_down": "feed_forward.w2",
	"ffn_gate_inp": "feed_forward.gate", "exp_probs_b.bias": "feed_forward.expert_bias",
	"ffn_gate_exps.#": "feed_forward.experts.#.w1", "ffn_up_exps.#": "feed_forward.experts.#.w3",
	"ffn_down_exps.#": "feed_forward.experts.#.w2",
})}

// lfm2Aliases: the last norm has the name of an embedding's norm, which there is not.
var lfm2Aliases = map[string]string{"output_norm": "token_embd_norm", "token_embd_norm": "none"}

func lfm2Describe(d *description, c *Config) {
	llamaLike(c, nn.RopeNeox)
	d.must(qkNorms...)
	d.with(d.bool("", "conv_bias", false), "shortconv.conv.bias", "shortconv.in_proj.bias", "shortconv.out_proj.bias")
	c.Conv.Taps = d.int("shortconv.l_cache", "conv_L_cache", 3)
	c.Conv.Layers = make([]bool, len(c.KVHeads))
	for i, n := range c.KVHeads { // of a GGUF file
		c.Conv.Layers[i] = n == 0
		if n == 0 {
			c.KVHeads[i] = c.Heads
		}
	}
	if !d.hf {
		return
	}
	c.Tied = d.bool("", "tie_embedding", c.Tied)
	for i, t := range d.strings("layer_types", c.Layers) {
		if c.Conv.Layers[i] = t == "conv"; !c.Conv.Layers[i] && t != "full_attention" {
			d.fail("layer_types", "full_attention or conv", strconv.Quote(t))
		}
	}
	c.FFN = d.int("", "block_ff_dim", c.FFN)
	unit, times := max(d.int("", "block_multiple_of", 256), 1), d.float("", "block_ffn_dim_multiplier", 1)
	if d.bool("", "block_auto_adjust_ff_dim", c.Arch == "lfm2") {
		c.FFN = (int(times*float64(2*c.FFN/3)) + unit - 1) / unit * unit
	}
}

func (b *builder) lfm2() *Net {
	return b.stack(func(i int, at func(string) string) nn.Mixer {
		if b.c.Conv.Layers[i] {
			return b.shortConv(at)
		}
		return b.attention(i, at)
	})
}
