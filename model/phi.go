package model

import (
	"slices"

	"ridge/nn"
)

// Phi-3 and 4: fused projections, LongRoPE.
var phi3 = architecture{
	name: "phi3", hf: []string{"phi3"},
	describe: func(d *description, c *Config) {
		llamaLike(c, nn.RopeNeox)
		c.Window = everyLayer(c.Layers, d.int("attention.sliding_window", "sliding_window", 0))
		if s := &c.Rope[0].Scaling; d.hf && s.Kind == "yarn" {
			s.Kind = "longrope" // the first Phi-3 checkpoints called it so
		}
		d.with(false, qkvBias...)
	},
	names: hfNames{layers: "layers.", names: llamaNames(map[string]string{
		"attn_q": "", "attn_k": "", "attn_v": "", "attn_qkv": "self_attn.qkv_proj",
		"ffn_gate": "", "ffn_up": "mlp.gate_up_proj",
	})},
	build: (*builder).decoder,
}

// Phi 1 to 2: attention and MLP side by side behind one LayerNorm, everything
// biased.
var phi2 = architecture{
	name: "phi2", hf: []string{"phi"}, head: true,
	describe: func(d *description, c *Config) {
		c.Norm, c.Act, c.Parallel, c.RopeStyle = nn.NormLayer, nn.GELUTanh, true, nn.RopeNeox
		d.must(linearBias...)
		d.must(normBias...)
		d.must("output.bias")
		d.with(d.bool("", "qk_layernorm", false), slices.Concat(qkNorms, qkNormsBias)...)
	},
	names: hfNames{layers: "layers.", names: llamaNames(map[string]string{
		"output_norm": "final_layernorm", "ffn_norm": "", "ffn_gate": "",
		"attn_output": "self_attn.dense", "ffn_up": "mlp.fc1", "ffn_down": "mlp.fc2",
		"attn_q_norm": "self_attn.q_layernorm", "attn_k_norm": "self_attn.k_layernorm",
	})},
	build: (*builder).decoder,
}
