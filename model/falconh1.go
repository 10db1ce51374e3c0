package model

import (
	"fmt"
	"math"

	"ridge/kernel"
	"ridge/nn"
)

// Falcon-H1: attention and a state-space mixer side by side in each layer, then an
// MLP. Multipliers scale what goes into matrices and what comes out; a GGUF file has
// them in its weights.
var falconH1 = architecture{
	name: "falcon-h1", hf: []string{"falcon_h1"},
	readOnly: "multipliers are in its weights",
	describe: func(d *description, c *Config) {
		llamaLike(c, nn.RopeNeox)
		llamaBiases(d)
		x := &c.State
		x.Beside = true
		x.Layers = make([]bool, len(c.KVHeads))
		for i := range x.Layers {
			x.Layers[i] = true
		}
		d.ssdSizes(c)
		d.with(d.bool("", "projectors_bias", false), "ssm_out.bias")
		norm := d.bool("", "mamba_rms_norm", false)
		d.with(norm, "ssm_norm.weight")
		x.NormFirst = d.bool("", "mamba_norm_before_gate", d.hf) && norm
		d.multipliers(c)
	},
	names: hfNames{layers: "layers.", names: llamaNames(mambaNames("mamba.", map[string]string{
		"ssm_dt.bias": "mamba.dt_bias", "output_norm": "final_layernorm", "ffn_norm": "pre_ff_layernorm",
		"ffn_gate": "feed_forward.gate_proj", "ffn_up": "feed_forward.up_proj", "ffn_down": "feed_forward.down_proj",
	})), fix: stateFixes},
	aliases: map[string]string{"ffn_norm.weight": "ffn_norm"},
	build: func(b *builder) *Net {
		return b.stack(func(i int, at func(string) string) nn.Mixer { return b.joint(i, at) }, scaledMLP)
	},
}

// jointConfig is multipliers of the parts of layers, 1 for none.
type jointConfig struct {
	AttnIn, AttnOut   float32 // of what attention reads, and of what it adds
	StateIn, StateOut float32 // of the state-space mixer
	Gate, Down        float32 // of what the gate of an MLP gives, and of what the MLP adds
}

func (x *jointConfig) describe(d *nameList) {
	d.add("joint.attn_in", x.AttnIn)
	d.add("joint.attn_out", x.AttnOut)
	d.add("joint.state_in", x.StateIn)
	d.add("joint.state_out", x.StateOut)
	d.add("joint.gate", x.Gate)
	d.add("joint.down", x.Down)
}

// multipliers reads the multipliers of a config.json.
func (d *description) multipliers(c *Config) {
	x := &c.Joint
	var key float32
	for _, f := range []struct {
		key string
		v   *float32
	}{
		{"embedding_multiplier", &c.EmbScale}, {"lm_head_multiplier", &c.LogitScale}, {"key_multiplier", &key},
		{"attention_in_multiplier", &x.AttnIn}, {"attention_out_multiplier", &x.AttnOut},
		{"ssm_in_multiplier", &x.StateIn}, {"ssm_out_multiplier", &x.StateOut},
	} {
		if *f.v = d.float32("", f.key, 1); !scales(*f.v) {
			d.fail(f.key, "a number other than 0", *f.v)
		}
	}
	x.Gate, x.Down = 1, 1
	if two := d.multiplierList("mlp_multipliers", 2); two != nil {
		x.Gate, x.Down = two[0], two[1]
	}
	c.State.Mult = d.multiplierList("ssm_multipliers", 5)
	if f := float64(x.AttnIn) * float64(x.AttnIn) * float64(key); f != 1 { // of queries, and of keys
		c.AttnScale = float32(f / math.Sqrt(float64(max(c.HeadDim, 1))))
	}
}

// scales reports whether something can be multiplied with v, and what is added to
// it divided.
func scales(v float32) bool { return v != 0 && !math.IsNaN(float64(v)) && !math.IsInf(float64(v), 0) }

// multiplierList reads n multipliers of a config.json, nil for none.
func (d *description) multiplierList(key string, n int) []float32 {
	if !d.has("", key) {
		return nil
	}
	list := d.floats(key)
	if len(list) != n {
		d.fail(key, fmt.Sprintf("%d numbers", n), list)
		return nil
	}
	for _, v := range list {
		if !scales(v) {
			d.fail(key, "numbers other than 0", list)
		}
	}
	return list
}

// joint builds the mixer of a layer. Multipliers of inputs become multipliers of
// what comes out: biases, which are added between, are divided by them.
func (b *builder) joint(i int, at func(string) string) *nn.Joint {
	x := &b.c.Joint
	_, norm := b.optional(at("ssm_norm.weight"), 0, 0)
	m := &nn.Joint{Attention: b.attention(i, at), SSD: b.ssd(at, norm), AttnScale: x.AttnIn * x.AttnOut, SSDScale: x.StateOut}
	a := m.Attention
	for _, l := range []*nn.Linear{&a.Q, &a.K, &a.V, &a.Out} {
		divideBy(l.Bias, x.AttnIn)
	}
	divideBy(m.SSD.In.Bias, x.StateIn)
	if x.StateIn != 1 && m.SSD.Mult == nil {
		m.SSD.Mult = make([]float32, m.SSD.In.W.Rows)
		for i := range m.SSD.Mult {
			m.SSD.Mult[i] = 1
		}
	}
	kernel.Scale(m.SSD.Mult, x.StateIn)
	return m
}

// scaledMLP builds the MLP of a layer, what it adds being scaled before its last
// matrix.
func scaledMLP(b *builder, l *Layer, at func(string) string) {
	x := &b.c.Joint
	m := b.mlpOf(at, "", b.c.FFN)
	if l.FFN = m; x.Gate != 1 || x.Down != 1 {
		m.GateScale, m.UpScale = x.Gate, x.Down
		divideBy(m.Down.Bias, 1/x.Down)
	}
}

func divideBy(x []float32, by float32) {
	for i := range x {
		x[i] /= by
	}
}
