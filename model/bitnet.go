package model

import "ridge/nn"

// BitNet b1.58: Llama with norms before the output matrices of attention and MLP,
// so that its weights can be -1, 0 and 1 times a scale (Ma et al. 2024, arXiv
// 2402.17764).
var bitnet = architecture{
	name: "bitnet", hf: []string{"bitnet"},
	describe: func(d *description, c *Config) {
		llamaLike(c, nn.RopeNeox) // those of GGUF have SiLU, whatever the checkpoint said
		d.with(d.bool("", "attention_bias", false), attnBias...)
		d.must("attn_sub_norm.weight", "ffn_sub_norm.weight")
	},
	names: hfNames{layers: "layers.", names: llamaNames(map[string]string{
		"attn_sub_norm": "self_attn.attn_sub_norm", "ffn_sub_norm": "mlp.ffn_sub_norm",
	})},
	build: func(b *builder) *Net {
		b.more = func(l *Layer, at func(string) string) {
			if a, ok := l.Mix.(*nn.Attention); ok {
				a.Sub = b.norm(at("attn_sub_norm"), b.c.Heads*b.c.HeadDim)
			}
			if m, ok := l.FFN.(*nn.MLP); ok {
				m.Sub = b.norm(at("ffn_sub_norm"), b.c.FFN)
			}
		}
		return b.decoder()
	},
}
