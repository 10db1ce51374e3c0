package model

import (
	"fmt"

	"ridge/nn"
	"ridge/weights/tensor"
)

// Ling 1 (Bailing): Llama's attention from one matrix, experts beside some that all
// rows read.
var bailing = architecture{
	name: "bailingmoe", hf: []string{"bailing_moe/BailingMoeForCausalLM"}, head: true,
	describe: func(d *description, c *Config) {
		llamaLike(c, nn.RopeNorm)
		bailingDescribe(d, c)
		c.Experts = d.experts(c, ExpertConfig{})
		d.sharedExperts(&c.Experts)
	},
	names: bailingNames(func(c *Config, layer int, part string, bias bool) func(tensor.Mat) (tensor.Mat, error) {
		if part != "attn_qkv" {
			return nil
		}
		return permuteFused(c.Heads+c.KVHeads[layer], c.HeadDim)
	}),
	build: (*builder).decoder,
}

// Ling 2, Ring 2, and Sarvam, whose checkpoints are alike: part of a head rotated, norms of queries and keys, DeepSeek V3's
// router, dense layers first.
var bailing2 = architecture{
	name: "bailingmoe2", hf: []string{"bailing_moe/BailingMoeV2ForCausalLM", "bailing_moe_v2", "sarvam_moe"}, head: true,
	describe: func(d *description, c *Config) {
		llamaLike(c, nn.RopeNeox)
		bailingDescribe(d, c)
		d.must(qkNorms...)
		d.must("exp_probs_b.bias")
		if !d.bool("", "use_qk_norm", true) || !d.bool("", "moe_router_enable_expert_bias", true) {
			d.fail("use_qk_norm, moe_router_enable_expert_bias", "true", false)
		}
		c.Experts = d.experts(c, ExpertConfig{Score: nn.ScoreSigmoid, GroupTop: 2, Normalize: true})
		d.sharedExperts(&c.Experts)
	},
	names: bailingNames(nil),
	build: (*builder).decoder,
}

func bailingDescribe(d *description, c *Config) {
	d.with(d.bool("", "use_qkv_bias|attention_bias", false), qkvBias...)
	for _, key := range []string{"use_bias", "norm_head", "use_sliding_window"} {
		if d.bool("", key, false) { // no released model has it
			d.fail(key, "false", true)
		}
	}
}

func bailingNames(fix func(c *Config, layer int, part string, bias bool) func(tensor.Mat) (tensor.Mat, error)) hfNames {
	return hfNames{layers: "layers.", names: llamaNames(map[string]string{
		"token_embd": "word_embeddings", "attn_q": "", "attn_k": "", "attn_v": "",
		"attn_qkv": "attention.query_key_value", "attn_output": "attention.dense",
		"attn_q_norm": "attention.query_layernorm", "attn_k_norm": "attention.key_layernorm",
		"exp_probs_b.bias": "mlp.gate.expert_bias",
	}), fix: fix}
}

// permuteFused is permuteRope for the first heads of a matrix.
func permuteFused(heads, dim int) func(tensor.Mat) (tensor.Mat, error) {
	return func(m tensor.Mat) (tensor.Mat, error) {
		if rows := max(m.Rows, m.Cols*(2-min(m.Rows, 2))); rows < heads*dim {
			return m, fmt.Errorf("rows: expected at least %d, found %d", heads*dim, rows)
		}
		return reorderRows(m, func(i int) int {
			if i >= heads*dim {
				return i
			}
			head, j := i/dim, i%dim
			return head*dim + j%2*(dim/2) + j/2
		}), nil
	}
}
