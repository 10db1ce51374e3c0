package model

import (
	"fmt"

	"ridge/nn"
)

// RWKV-7: linear attention of the generalized delta rule and an MLP, which both mix each
// row with the one before it. Each is a layer of the network of its own: the MLP has a
// state too.
var rwkv7 = architecture{
	name: "rwkv7", hf: []string{"rwkv7"},
	stateOnly: true,
	readOnly:  "the numbers that mix rows lie in one tensor or in six",
	acts:      map[string]nn.Activation{"sqrelu": nn.ReLU2},
	describe: func(d *description, c *Config) {
		stateAlone(c)
		c.Norm, c.NoFFN = nn.NormLayer, true
		x := &c.State
		x.States = d.int("wkv.head_size", "head_dim", 64)
		x.Inner, x.Taps = c.Hidden, 1
		if x.States > 0 {
			x.Heads = c.Hidden / x.States
		}
		x.Groups = x.Heads
		if c.FFN = d.int("feed_forward_length", "intermediate_size", 0); c.FFN == 0 && d.hf {
			c.FFN = int(d.float("", "hidden_ratio", 4) * float64(c.Hidden))
		}
		if d.hf {
			c.Context = mambaContext // the file has that of training; no layer asks for one
			for _, key := range []string{"norm_first", "norm_bias"} {
				if !d.bool("", key, true) {
					d.fail(key, "true", false)
				}
			}
		}
		d.must("token_embd_norm.weight", "output.weight")
		d.must(normBias...)
	},
	names: hfNames{layers: "layers.", names: map[string]string{
		"token_embd": "embeddings", "token_embd_norm": "layers.0.pre_norm", "output_norm": "norm", "output": "lm_head",
		"attn_norm": "attn_norm", "attn_norm_2": "ffn_norm",
		"time_mix_lerp_0.weight": "attn.x_r", "time_mix_lerp_1.weight": "attn.x_w", "time_mix_lerp_2.weight": "attn.x_k",
		"time_mix_lerp_3.weight": "attn.x_v", "time_mix_lerp_4.weight": "attn.x_a", "time_mix_lerp_5.weight": "attn.x_g",
		"time_mix_receptance": "attn.r_proj", "time_mix_key": "attn.k_proj", "time_mix_value": "attn.v_proj", "time_mix_output": "attn.o_proj",
		"time_mix_w0.weight": "attn.w_lora.lora.2.bias", "time_mix_w1": "attn.w_lora.lora.0", "time_mix_w2": "attn.w_lora.lora.2",
		"time_mix_a0.weight": "attn.a_lora.lora.2.bias", "time_mix_a1": "attn.a_lora.lora.0", "time_mix_a2": "attn.a_lora.lora.2",
		"time_mix_v0.weight": "attn.v_lora.lora.2.bias", "time_mix_v1": "attn.v_lora.lora.0", "time_mix_v2": "attn.v_lora.lora.2",
		"time_mix_g1": "attn.g_lora.lora.0", "time_mix_g2": "attn.g_lora.lora.2",
		"time_mix_k_k.weight": "attn.k_k", "time_mix_k_a.weight": "attn.k_a", "time_mix_r_k.weight": "attn.r_k", "time_mix_ln": "attn.g_norm",
		"channel_mix_lerp_k.weight": "ffn.x_k", "channel_mix_key": "ffn.key", "channel_mix_value": "ffn.value",
	}},
	build: (*builder).rwkv7,
	// Of the first layer, whose values are the first: files have them all the same.
	unused: []string{"blk.0.time_mix_v[0-2].weight"},
}

// rwkv7 builds two layers of the network for each of the model.
func (b *builder) rwkv7() *Net {
	return b.rwkv(func(i int, at func(string) string) nn.Mixer { return b.timeMix(i, at) })
}

// rwkv builds two layers of the network for each of the model: time mixing, which mix
// builds, and channel mixing.
func (b *builder) rwkv(mix func(i int, at func(string) string) nn.Mixer) *Net {
	net, c := b.frame(), b.c
	for i := range c.Layers {
		if b.err != nil {
			break
		}
		at := func(part string) string { return fmt.Sprintf("blk.%d.%s", i, part) }
		channel := &nn.ChannelMix{
			Lerp: b.numbers(at("channel_mix_lerp_k.weight"), c.Hidden),
			Key:  b.linear(at("channel_mix_key"), c.FFN, c.Hidden),
			Out:  b.linear(at("channel_mix_value"), c.Hidden, c.FFN),
		}
		if b.present["channel_mix_receptance.weight"] == must {
			channel.GateLerp, channel.Gate = b.numbers(at("channel_mix_lerp_r.weight"), c.Hidden), b.linear(at("channel_mix_receptance"), c.Hidden, c.Hidden)
		}
		for _, l := range []Layer{
			{Pre: b.norm(at("attn_norm"), c.Hidden), Mix: mix(i, at)},
			{Pre: b.norm(at("attn_norm_2"), c.Hidden), Mix: channel},
		} {
			if l.Scale = c.ResidScale; l.Mix == channel && c.State.HalfEvery > 0 && (i+1)%c.State.HalfEvery == 0 {
				l.OutScale = 0.5
			}
			net.Layers = append(net.Layers, l)
			b.place(&l)
		}
	}
	return net
}

// timeMix builds the time mixing of layer i.
func (b *builder) timeMix(i int, at func(string) string) *nn.RWKV7 {
	c := b.c
	n := c.Hidden
	m := &nn.RWKV7{
		Heads: c.State.Heads, Dim: c.State.States, IsFirst: i == 0,
		R: b.linear(at("time_mix_receptance"), n, n), K: b.linear(at("time_mix_key"), n, n), V: b.linear(at("time_mix_value"), n, n),
		Out: b.linear(at("time_mix_output"), n, n), Gate: b.loRA(at, "g", false),
		Decay: b.loRA(at, "w", true), Write: b.loRA(at, "a", true),
		KeyUnit: b.numbers(at("time_mix_k_k.weight"), n), KeyWrite: b.numbers(at("time_mix_k_a.weight"), n), Bonus: b.numbers(at("time_mix_r_k.weight"), n),
		// fla adds norm_eps for each column of a head, which is the same in released models.
		Norm: nn.Norm{Kind: nn.NormLayer, Eps: 64e-5, W: b.numbers(at("time_mix_ln.weight"), n), B: b.numbers(at("time_mix_ln.bias"), n)},
	}
	if !m.IsFirst {
		m.First = b.loRA(at, "v", true)
	}
	b.lerps(at, m.Lerp[:], "012345")
	return m
}

// lerps reads how rows are mixed with those before them, of the inputs that letters name:
// from one tensor or from one for each.
func (b *builder) lerps(at func(string) string, lerps [][]float32, letters string) {
	n, fused := b.c.Hidden, at("time_mix_lerp_fused.weight")
	apart := func(k int) string { return at("time_mix_lerp_" + letters[k:k+1] + ".weight") }
	if !b.has(fused) && !b.has(apart(len(lerps)-1)) {
		b.missing(len(lerps), n, fused, apart(len(lerps)-1))
	} else if !b.has(fused) {
		for k := range lerps {
			lerps[k] = b.numbers(apart(k), n)
		}
	} else if all := b.numbers(fused, len(lerps)*n); all != nil {
		for k := range lerps {
			lerps[k] = all[k*n:][:n]
		}
	}
}

// loRA builds one of the pairs of matrices of RWKV-7.
func (b *builder) loRA(at func(string) string, part string, base bool) nn.LowRankMLP {
	m := b.lowRankMLP(at("time_mix_"+part+"1"), at("time_mix_"+part+"2"))
	if base {
		m.Base = b.numbers(at("time_mix_"+part+"0.weight"), b.c.Hidden)
	}
	return m
}

// lowRankMLP builds a pair of matrices, whose rank they have themselves.
func (b *builder) lowRankMLP(down, up string) (m nn.LowRankMLP) {
	n := b.c.Hidden
	first, ok := b.find(down+".weight", 0, 0)
	if !ok {
		b.missing(0, 0, down+".weight")
		return m
	}
	m.Down, m.Up = b.linear(down, first.Rows, n), b.linear(up, n, first.Rows)
	return m
}
