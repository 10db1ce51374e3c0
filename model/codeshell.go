package model

import (
	"strconv"

	"ridge/nn"
)

// CodeShell: GPT-2 with rotary positions and few heads of keys.
var codeshell = architecture{
	name: "codeshell", hf: []string{"codeshell"}, head: true,
	describe: func(d *description, c *Config) {
		gptLike(c, nn.GELUTanh)
		c.RopeStyle = nn.RopeNeox
		d.must(linearBias...)
		d.must(normBias...)
		if !d.hf {
			return
		}
		if kind := d.str("", "position_embedding_type", ""); kind != "rope" {
			d.fail("position_embedding_type", "rope", strconv.Quote(kind))
		}
		if groups := d.int("", "num_query_groups", 1); d.bool("", "group_query_attention", true) {
			c.KVHeads = everyLayer(c.Layers, groups)
		}
	},
	names:  hfNames{layers: "h.", home: "transformer.", names: gpt2Names},
	build:  (*builder).decoder,
	unused: append([]string{"*h.*.attn.rotary_emb.inv_freq"}, gpt2Masks...),
}
