package model

import (
	"strconv"

	"ridge/nn"
	"ridge/weights/tensor"
)

// Jais: GPT-2 with ALiBi, a gated MLP and muP's scales. A GGUF file has its
// embedding and output matrix multiplied already.
var jais = architecture{
	name: "jais", hf: []string{"jais"}, head: true,
	describe: func(d *description, c *Config) {
		gptLike(c, nn.SiLU)
		c.Gated = true
		d.must(linearBias...)
		d.must(normBias...)
		if c.AlibiBias = d.float32("attention.max_alibi_bias", "", 0); d.hf {
			c.AlibiBias = 8
		}
		if !d.hf || d.bool("", "mup_scale_qk_dot_by_d|scale_qk_dot_by_d", false) {
			c.AttnScale = 1 / float32(max(c.HeadDim, c.Hidden/max(c.Heads, 1)))
		}
		c.EmbScale = d.float32("", "mup_embeddings_scale|embeddings_scale", 1)
		c.LogitScale = d.float32("", "width_scale", 1)
		if d.has("", "mup_output_alpha") {
			c.LogitScale = d.float32("", "mup_output_alpha", 1) * d.float32("", "mup_width_scale", 1)
		}
		if kind := d.str("", "position_embedding_type", "alibi"); kind != "alibi" {
			d.fail("position_embedding_type", "alibi", strconv.Quote(kind))
		}
	},
	acts: map[string]nn.Activation{"swiglu": nn.SiLU},
	names: hfNames{layers: "h.", home: "transformer.", names: map[string]string{
		"token_embd": "wte", "output_norm": "ln_f", "output": "lm_head",
		"attn_norm": "ln_1", "attn_qkv": "attn.c_attn", "attn_output": "attn.c_proj",
		"ffn_norm": "ln_2", "ffn_up": "mlp.c_fc", "ffn_gate": "mlp.c_fc2", "ffn_down": "mlp.c_proj",
	}, fix: func(c *Config, layer int, part string, bias bool) func(tensor.Mat) (tensor.Mat, error) {
		switch part {
		case "attn_qkv", "attn_output", "ffn_up", "ffn_gate", "ffn_down":
			if !bias {
				return transpose
			}
		}
		return nil
	}},
	build:  (*builder).decoder,
	unused: append([]string{"*relative_pe.slopes"}, gpt2Masks...),
}
