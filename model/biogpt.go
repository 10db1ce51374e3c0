package model

import (
	"math"

	"ridge/nn"
	"ridge/weights/tensor"
)

// BioGPT: OPT with GELU and a scaled embedding. Its norms add 1e-5 to the variance,
// whatever its configuration says.
var biogpt = architecture{
	name: "biogpt", hf: []string{"biogpt"},
	describe: func(d *description, c *Config) {
		gptLike(c, nn.GELUErf)
		gptWeights(d)
		if d.bool("", "scale_embedding", true) {
			c.EmbScale = float32(math.Sqrt(float64(c.Hidden)))
		}
	},
	names: hfNames{layers: "biogpt.layers.", names: map[string]string{
		"token_embd": "biogpt.embed_tokens", "position_embd": "biogpt.embed_positions", "output_norm": "biogpt.layer_norm",
		"output": "output_projection", "attn_norm": "self_attn_layer_norm", "ffn_norm": "final_layer_norm",
		"attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj", "attn_output": "self_attn.out_proj",
		"ffn_up": "fc1", "ffn_down": "fc2",
	}, fix: func(c *Config, layer int, part string, bias bool) func(tensor.Mat) (tensor.Mat, error) {
		if part == "position_embd" {
			return withoutFirstRows
		}
		return nil
	}},
	build: (*builder).decoder,
}
