package model

import (
	"fmt"

	"ridge/nn"
	"ridge/weights/tensor"
)

// OPT: GPT-2 with ReLU and apart projections, positions that are kept behind two
// rows without meaning. One of 350M has its norms behind the sums, and an embedding
// that is narrower than its layers.
var opt = architecture{
	name: "opt", hf: []string{"opt"},
	describe: func(d *description, c *Config) {
		gptLike(c, nn.ReLU)
		c.FFN = d.int("", "ffn_dim", required)
		d.must("position_embd.weight")
		d.must(normBias...)
		d.with(d.bool("", "enable_bias", true), linearBias...)
		if !d.bool("", "layer_norm_elementwise_affine", true) {
			d.fail("layer_norm_elementwise_affine", "true", false)
		}
		c.SumNorms = !d.bool("", "do_layer_norm_before", true)
		c.NoFinalNorm = d.bool("", "_remove_final_layer_norm", false) || c.SumNorms
		if n := d.int("", "word_embed_proj_dim", c.Hidden); n != c.Hidden {
			c.Embedding = n
		}
	},
	names: hfNames{layers: "decoder.layers.", names: map[string]string{
		"token_embd": "decoder.embed_tokens", "position_embd": "decoder.embed_positions", "output_norm": "decoder.final_layer_norm",
		"output": "lm_head", "embd_in": "decoder.project_in", "embd_out": "decoder.project_out",
		"attn_norm": "self_attn_layer_norm", "ffn_norm": "final_layer_norm",
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

// withoutFirstRows leaves out the two rows of positions that no token has.
func withoutFirstRows(m tensor.Mat) (tensor.Mat, error) {
	const first = 2
	if m.Rows <= first {
		return m, fmt.Errorf("rows: expected more than %d, found %d", first, m.Rows)
	}
	size := m.Type.RowBytes(m.Cols)
	m.Rows -= first
	m.Data = append([]byte(nil), m.Data[first*size:]...)
	return m, nil
}
