package model

import (
	"fmt"

	"ridge/nn"
	"ridge/weights/tensor"
)

// GPT-J: attention and MLP side by side behind one LayerNorm, neighbours rotated in
// a part of each head, biases of the MLP and of the output matrix.
var gptj = architecture{
	name: "gptj", hf: []string{"gptj"}, describe: gptjDescribe,
	names: hfNames{layers: "h.", home: "transformer.", names: gptjNames(map[string]string{
		"attn_q": "attn.q_proj", "attn_k": "attn.k_proj", "attn_v": "attn.v_proj",
	})},
	build:  (*builder).decoder,
	unused: gpt2Masks,
}

// CodeGen: GPT-J whose projections lie in one matrix, in four parts of queries,
// values and keys each.
var codegen = architecture{
	name: "codegen", hf: []string{"codegen"}, describe: gptjDescribe,
	names:  hfNames{layers: "h.", home: "transformer.", names: gptjNames(map[string]string{"attn_qkv": "attn.qkv_proj"}), fix: codegenParts},
	build:  (*builder).decoder,
	unused: append([]string{"*h.*.attn.causal_mask"}, gpt2Masks...),
}

func gptjDescribe(d *description, c *Config) {
	c.Norm, c.Act, c.Parallel, c.RopeStyle = nn.NormLayer, nn.GELUTanh, true, nn.RopeNorm
	c.RopeDim = d.int("rope.dimension_count", "rotary_dim", 0)
	if c.RopeDim == 0 {
		d.fail("rotary_dim", "a number", "nothing")
	}
	d.must(normBias...)
	d.must(mlpBias...)
	d.must("output.bias")
}

func gptjNames(attention map[string]string) map[string]string {
	names := map[string]string{
		"token_embd": "wte", "output_norm": "ln_f", "output": "lm_head", "attn_norm": "ln_1",
		"attn_output": "attn.out_proj", "ffn_up": "mlp.fc_in", "ffn_down": "mlp.fc_out",
	}
	for k, v := range attention {
		names[k] = v
	}
	return names
}

// codegenParts brings the rows of the fused matrix into the order of all others.
func codegenParts(c *Config, layer int, part string, bias bool) func(tensor.Mat) (tensor.Mat, error) {
	if part != "attn_qkv" {
		return nil
	}
	return func(m tensor.Mat) (tensor.Mat, error) {
		const parts = 4
		n := m.Rows / (3 * parts)
		if n == 0 || m.Rows != 3*parts*n {
			return m, fmt.Errorf("rows: expected a multiple of %d, found %d", 3*parts, m.Rows)
		}
		place := [3]int{0, 2, 1} // of queries, keys and values in a part
		return reorderRows(m, func(i int) int {
			kind, i := i/(parts*n), i%(parts*n)
			return (i/n*3+place[kind])*n + i%n
		}), nil
	}
}
