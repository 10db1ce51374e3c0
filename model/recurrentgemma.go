package model

import (
	"fmt"
	"math"

	"ridge/kernel"
	"ridge/nn"
	"ridge/weights/tensor"
)

// RecurrentGemma (Griffin): two recurrent blocks, then attention with a window, over
// and over; MLPs as Gemma's with biases. GGUF has no such architecture.
var recurrentGemma = architecture{
	name: "recurrentgemma", hf: []string{"recurrent_gemma"}, eps: 1e-6,
	describe: func(d *description, c *Config) {
		if !d.hf {
			d.fail("general.architecture", "an architecture that llama.cpp has", "recurrentgemma")
			return
		}
		gemmaLike(d, c)
		d.with(d.bool("", "attention_bias", false), qkvBias...)
		d.must(append([]string{"attn_output.bias", "rglru_x.bias", "rglru_y.bias", "rglru_conv.bias", "rglru_out.bias"}, mlpBias...)...)
		c.FFN /= 2
		c.EmbScale = tensor.BF16ToF32(tensor.F32ToBF16(c.EmbScale))
		c.FinalSoftcap = d.float32("", "logits_soft_cap", 30)
		c.Window = everyLayer(c.Layers, d.int("", "attention_window_size", 2048))
		x := &c.State
		x.States = 1
		x.Inner = d.int("", "lru_width", c.Hidden)
		x.Taps = d.int("", "conv1d_width", 4)
		if w := kernel.Lanes * max(c.Heads, 1); x.Inner%w != 0 {
			d.fail("lru_width", fmt.Sprintf("a multiple of %d for each of num_attention_heads, %d", kernel.Lanes, c.Heads), x.Inner)
		}
		types := d.blockTypes()
		d.stateLayers(c, func(layer int) bool { return len(types) > 0 && types[layer%len(types)] })
	},
	names: hfNames{layers: "layers.", names: llamaNames(map[string]string{
		"output_norm": "final_norm", "attn_norm": "temporal_pre_norm", "ffn_norm": "channel_pre_norm",
		"attn_q": "temporal_block.q_proj", "attn_k": "temporal_block.k_proj", "attn_v": "temporal_block.v_proj",
		"attn_output": "temporal_block.o_proj", "ffn_gate": "mlp_block.gate_proj", "ffn_up": "mlp_block.up_proj",
		"ffn_down": "mlp_block.down_proj", "rglru_x": "temporal_block.linear_x", "rglru_y": "temporal_block.linear_y",
		"rglru_out": "temporal_block.linear_out", "rglru_conv": "temporal_block.conv_1d", "rglru_rate": "temporal_block.rg_lru.recurrent_param",
		"rglru_in.weight": "temporal_block.rg_lru.input_gate_weight", "rglru_in.bias": "temporal_block.rg_lru.input_gate_bias",
		"rglru_stay.weight": "temporal_block.rg_lru.recurrent_gate_weight", "rglru_stay.bias": "temporal_block.rg_lru.recurrent_gate_bias",
	}), fix: recurrentGemmaFix},
	build: func(b *builder) *Net {
		return b.stack(func(i int, at func(string) string) nn.Mixer {
			if b.c.State.Layers[i] {
				return b.rglru(at)
			}
			return b.attention(i, at)
		})
	},
}

// blockTypes says which layers of a period have attention.
func (d *description) blockTypes() []bool {
	key, v, ok := d.find("", "block_types", "strings")
	if !ok {
		return nil
	}
	list, _ := v.([]any)
	var attends []bool
	for _, x := range list {
		if x == "attention" || x == "recurrent" {
			attends = append(attends, x == "attention")
		}
	}
	if len(attends) == 0 || len(attends) != len(list) {
		d.fail(key, "a list of recurrent or attention", describe(v))
	}
	return attends
}

func recurrentGemmaFix(c *Config, layer int, part string, bias bool) func(tensor.Mat) (tensor.Mat, error) {
	switch {
	case part == "rglru_rate":
		return func(m tensor.Mat) (tensor.Mat, error) {
			return mapped(m, func(x float32) float32 { return float32(-8 * math.Log1p(math.Exp(float64(x)))) })
		}
	case (part == "rglru_in" || part == "rglru_stay") && !bias:
		return transposedHeads
	}
	return gemmaNorms(c, layer, part, bias)
}

// transposedHeads turns square matrices around that lie below each other.
func transposedHeads(m tensor.Mat) (tensor.Mat, error) {
	n := m.Cols
	if n == 0 || m.Rows%n != 0 {
		return m, fmt.Errorf("rows: expected a multiple of %d columns, found %d", n, m.Rows)
	}
	in, out := make([]float32, n*n), make([]float32, m.Rows*n)
	for h := 0; h < m.Rows; h += n {
		for i := range n {
			m.DecodeRow(in[i*n:][:n], h+i)
		}
		for i := range n {
			for j := range n {
				out[(h+j)*n+i] = in[i*n+j]
			}
		}
	}
	t := tensor.Mat{Type: tensor.F32, Rows: m.Rows, Cols: n, Data: make([]byte, 4*len(out))}
	return t, tensor.F32.Encode(t.Data, out)
}

// rglru builds the recurrent block of a layer.
func (b *builder) rglru(at func(string) string) *nn.RGLRU {
	width, hidden := b.c.State.Inner, b.c.Hidden
	gate := func(name string) (l nn.Linear) {
		m, ok := b.find(name+".weight", width, width/b.c.Heads)
		if !ok {
			b.missing(width, width/b.c.Heads, name+".weight")
			return l
		}
		return nn.Linear{W: b.pack(name, m), Bias: b.numbers(name+".bias", width)}
	}
	m := &nn.RGLRU{
		X: b.linear(at("rglru_x"), width, hidden), Y: b.linear(at("rglru_y"), width, hidden), Conv: b.conv(at("rglru_conv"), width),
		Heads: b.c.Heads, In: gate(at("rglru_in")), Stay: gate(at("rglru_stay")), Rate: b.numbers(at("rglru_rate"), width),
		Out: b.linear(at("rglru_out"), hidden, width),
	}
	m.Conv.Plain = true
	return m
}
