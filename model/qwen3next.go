package model

import (
	"strings"

	"ridge/nn"
	"ridge/weights/tensor"
)

// Qwen 3 Next: the gated delta rule in most layers, attention with a gate in every
// fourth, and experts beside an MLP that a gate weighs.
var qwen3next = architecture{
	name: "qwen3next", hf: []string{"qwen3_next"},
	describe: func(d *description, c *Config) {
		deltaDescribe(d, c)
		d.must("ffn_gate_inp_shexp.weight")
		c.Experts = d.experts(c, ExpertConfig{Normalize: true})
		c.Experts.SharedFFN = d.int("expert_shared_feed_forward_length", "shared_expert_intermediate_size", c.FFN)
		qwenSparse(d, c)
	},
	names: hfNames{layers: "layers.", names: llamaNames(deltaNames(map[string]string{
		"attn_qkv": "linear_attn.in_proj_qkvz", "attn_gate": "linear_attn.in_proj_qkvz", "ssm_ba": "linear_attn.in_proj_ba",
		"ffn_gate_shexp": "mlp.shared_expert.gate_proj", "ffn_up_shexp": "mlp.shared_expert.up_proj",
		"ffn_down_shexp": "mlp.shared_expert.down_proj", "ffn_gate_inp_shexp": "mlp.shared_expert_gate",
	})), fix: deltaFix},
	aliases: map[string]string{"ffn_norm": "post_attention_norm"},
	build:   (*builder).deltaHybrid,
	unused:  []string{"mtp.*"},
}

// Qwen 3.5: the same without experts.
var qwen35 = architecture{
	name: "qwen35", hf: []string{"qwen3_5_text"},
	describe: tiledDescribe,
	names: hfNames{layers: "layers.", names: llamaNames(deltaNames(map[string]string{
		"attn_qkv": "linear_attn.in_proj_qkv", "attn_gate": "linear_attn.in_proj_z",
		"ssm_beta": "linear_attn.in_proj_b", "ssm_alpha": "linear_attn.in_proj_a",
	})), fix: deltaFix},
	aliases: map[string]string{"ffn_norm": "post_attention_norm"},
	build:   (*builder).deltaHybrid,
	unused:  []string{"mtp.*"},
}

// Qwen 3.5 with experts beside an MLP that a gate weighs, in every layer.
var qwen35moe = architecture{
	name: "qwen35moe", hf: []string{"qwen3_5_moe_text"},
	describe: func(d *description, c *Config) {
		tiledDescribe(d, c)
		d.must("ffn_gate_inp_shexp.weight")
		c.Experts = d.experts(c, ExpertConfig{Normalize: true})
		c.Experts.Normalize, c.FFN = true, c.Experts.FFN
		c.Experts.SharedFFN = d.int("expert_shared_feed_forward_length", "shared_expert_intermediate_size", c.FFN)
	},
	names: hfNames{layers: "layers.", names: llamaNames(deltaNames(map[string]string{
		"attn_qkv": "linear_attn.in_proj_qkv", "attn_gate": "linear_attn.in_proj_z",
		"ssm_beta": "linear_attn.in_proj_b", "ssm_alpha": "linear_attn.in_proj_a",
		"ffn_gate_shexp": "mlp.shared_expert.gate_proj", "ffn_up_shexp": "mlp.shared_expert.up_proj",
		"ffn_down_shexp": "mlp.shared_expert.down_proj", "ffn_gate_inp_shexp": "mlp.shared_expert_gate",
	})), fix: deltaFix},
	aliases: map[string]string{"ffn_norm": "post_attention_norm"},
	build:   (*builder).deltaHybrid,
	unused:  []string{"mtp.*"},
}

// deltaNames are the names that the parts of such mixers share, and those of more.
func deltaNames(more map[string]string) map[string]string {
	names := map[string]string{
		"ssm_conv1d": "linear_attn.conv1d", "ssm_dt.bias": "linear_attn.dt_bias", "ssm_a": "linear_attn.A_log",
		"ssm_norm": "linear_attn.norm", "ssm_out": "linear_attn.out_proj",
	}
	for k, v := range more {
		names[k] = v
	}
	return names
}

// deltaDescribe reads what such models share.
func deltaDescribe(d *description, c *Config) {
	llamaLike(c, nn.RopeNeox)
	d.must(qkNorms...)
	d.with(d.bool("", "attention_bias", false), "attn_q.bias", "attn_k.bias", "attn_v.bias", "attn_output.bias")
	x := &c.State
	x.Taps = d.int("ssm.conv_kernel", "linear_conv_kernel_dim", 4)
	x.States = d.int("ssm.state_size", "linear_key_head_dim", 128)
	x.Groups = d.int("ssm.group_count", "linear_num_key_heads", 16)
	x.Heads = d.int("ssm.time_step_rank", "linear_num_value_heads", 32)
	if x.Inner = d.int("ssm.inner_size", "", 0); d.hf {
		x.Inner = d.int("", "linear_value_head_dim", 128) * x.Heads
	}
	types := d.strings("layer_types", c.Layers)
	for _, t := range types {
		if t != "linear_attention" && t != "full_attention" {
			d.fail("layer_types", "linear_attention or full_attention", t)
		}
	}
	interval := max(d.int("full_attention_interval", "full_attention_interval", 4), 1)
	x.Layers = make([]bool, len(c.KVHeads))
	for i := range x.Layers {
		x.Layers[i] = (i+1)%interval != 0
		if types != nil {
			x.Layers[i] = types[i] == "linear_attention"
		}
	}
	if _, v, ok := d.find("attention.recurrent_layers", "", "a list"); ok {
		if list, isList := asBools(v); isList && len(list) >= len(x.Layers) {
			copy(x.Layers, list)
		} else {
			d.fail("attention.recurrent_layers", "one boolean for each layer", describe(v))
		}
	}
}

// tiledDescribe is deltaDescribe for Qwen 3.5, whose GGUF files have heads of values
// in tiles.
func tiledDescribe(d *description, c *Config) {
	deltaDescribe(d, c)
	c.State.Tiled = c.State.Heads != c.State.Groups
}

// deltaFix brings the weights of a checkpoint into the order of GGUF: norms have 1
// added, and queries, keys, values and gates lie apart and not head by head.
func deltaFix(c *Config, _ int, part string, _ bool) func(tensor.Mat) (tensor.Mat, error) {
	x := &c.State
	keys, values := x.Groups*x.States, x.Inner
	head := 0
	if x.Groups > 0 {
		head = 2*x.States + 2*values/x.Groups
	}
	both := c.Arch == qwen3nextName
	switch {
	case part == "ssm_a" && both:
		return negativeExp
	case part == "ssm_a":
		tile := tiledHeads(x, part)
		return func(m tensor.Mat) (tensor.Mat, error) {
			m, err := negativeExp(m)
			if err == nil && tile != nil {
				m, err = tile(m)
			}
			return m, err
		}
	case strings.HasPrefix(part, "nextn.") && strings.HasSuffix(part, "norm"), part == "attn_norm", part == "ffn_norm", part == "output_norm", part == "attn_q_norm", part == "attn_k_norm":
		return addOne
	case part == "attn_qkv" && both:
		return takeRows(x.Groups*head, 2*keys+values, func(i int) int {
			switch {
			case i < keys:
				return i/x.States*head + i%x.States
			case i < 2*keys:
				return (i-keys)/x.States*head + x.States + (i-keys)%x.States
			}
			i, width := i-2*keys, values/x.Groups
			return i/width*head + 2*x.States + i%width
		})
	case part == "attn_gate" && both:
		return takeRows(x.Groups*head, values, func(i int) int {
			width := values / x.Groups
			return i/width*head + 2*x.States + width + i%width
		})
	case !both:
		return tiledHeads(x, part)
	}
	return nil
}

// tiledHeads brings what belongs to heads of values into the order of GGUF: those
// of one head of keys do not lie side by side there, but one in each tile.
func tiledHeads(x *stateConfig, part string) func(tensor.Mat) (tensor.Mat, error) {
	if !x.Tiled || x.Groups < 1 || x.Heads < 1 || x.Heads%x.Groups != 0 || x.Inner%x.Heads != 0 {
		return nil
	}
	each := x.Heads / x.Groups
	order := func(width int) func(i int) int {
		return func(i int) int {
			head := i / width
			return (head%x.Groups*each+head/x.Groups)*width + i%width
		}
	}
	switch keys, dim := 2*x.Groups*x.States, x.Inner/x.Heads; part {
	case "ssm_a", "ssm_dt", "ssm_beta", "ssm_alpha":
		return takeRows(x.Heads, x.Heads, order(1))
	case "attn_gate":
		return takeRows(x.Inner, x.Inner, order(dim))
	case "attn_qkv", "ssm_conv1d":
		return takeRows(keys+x.Inner, keys+x.Inner, func(i int) int {
			if i < keys {
				return i
			}
			return keys + order(dim)(i-keys)
		})
	case "ssm_out":
		return takeColumns(x.Heads, order(1))
	}
	return nil
}

const qwen3nextName = "qwen3next"

// deltaRule reports whether the layers with a state have the gated delta rule.
func (c *Config) deltaRule() bool {
	return c.Arch == qwen3nextName || c.Arch == "qwen35" || c.Arch == "qwen35moe"
}

// deltaHybrid builds layers of the gated delta rule, and of attention with a gate.
func (b *builder) deltaHybrid() *Net {
	return b.stack(func(i int, at func(string) string) nn.Mixer {
		if b.c.State.Layers[i] {
			return b.delta(at)
		}
		return b.gatedAttention(i, at)
	})
}

// delta builds the mixer of the gated delta rule of a layer.
func (b *builder) delta(at func(string) string) *nn.Delta {
	x, hidden := &b.c.State, b.c.Hidden
	columns := 2*x.Groups*x.States + x.Inner
	m := &nn.Delta{
		Heads: x.Heads, Dim: x.Inner / x.Heads, KeyHeads: x.Groups, KeyDim: x.States,
		QKV: b.linear(at("attn_qkv"), columns, hidden), Z: b.linear(at("attn_gate"), x.Inner, hidden),
		Conv:   b.conv(at("ssm_conv1d"), columns),
		DtBias: b.numbers(at("ssm_dt.bias"), x.Heads), Rate: b.numbers(at("ssm_a"), x.Heads),
		Norm: b.norm(at("ssm_norm"), x.Inner/x.Heads),
		Out:  b.linear(at("ssm_out"), hidden, x.Inner), Tiled: x.Tiled,
	}
	if b.c.Arch == qwen3nextName {
		m.B, m.A = b.alternating(at("ssm_ba"), hidden, x.Groups, x.Heads/x.Groups)
	} else {
		m.B, m.A = b.linear(at("ssm_beta"), x.Heads, hidden), b.linear(at("ssm_alpha"), x.Heads, hidden)
	}
	return m
}

// gatedAttention builds the attention of a layer whose queries lie head by head
// with gates.
func (b *builder) gatedAttention(i int, at func(string) string) *nn.Attention {
	c, dim := b.c, b.c.HeadDim
	a := &nn.Attention{Heads: c.Heads, KVHeads: c.KVHeads[i], HeadDim: dim, Scale: c.AttnScale}
	if set := c.LayerRope[i]; set >= 0 && set < len(b.ropes) {
		a.Rope = b.ropes[set]
	}
	a.Q, a.Gate = b.alternating(at("attn_q"), c.Hidden, c.Heads, dim)
	a.K, a.V = b.linear(at("attn_k"), a.KVHeads*dim, c.Hidden), b.linear(at("attn_v"), a.KVHeads*dim, c.Hidden)
	a.Out = b.linear(at("attn_output"), c.Hidden, c.Heads*dim)
	a.QNorm, a.KNorm = b.headNorm(at("attn_q_norm"), c.Heads, dim), b.headNorm(at("attn_k_norm"), a.KVHeads, dim)
	a.Balance()
	b.attentions = append(b.attentions, a)
	return a
}

// alternating returns two matrices whose rows alternate in one, n of the one and n
// of the other for each of so many heads.
func (b *builder) alternating(name string, cols, heads, n int) (first, second nn.Linear) {
	m, ok := b.find(name+".weight", 2*heads*n, cols)
	if !ok {
		b.missing(2*heads*n, cols, name+".weight")
		return first, second
	}
	bias := b.bias(name+".bias", 2*heads*n)
	for i, l := range [2]*nn.Linear{&first, &second} {
		from := func(row int) int { return row/n*2*n + i*n + row%n }
		part := m
		if part.Rows = heads * n; b.kept == nil && !b.shapes {
			part, _ = takeRows(2*heads*n, heads*n, from)(m)
			b.copies += int64(len(part.Data))
		}
		l.W = b.pack(name, part)
		for row := 0; bias != nil && row < heads*n; row++ {
			l.Bias = append(l.Bias, bias[from(row)])
		}
	}
	if b.kept == nil && !b.shapes {
		b.src.release(m.Data)
	}
	return first, second
}
