package model

import (
	"fmt"
	"math"

	"ridge/nn"
	"ridge/weights/tensor"
)

// RWKV-6: linear attention whose decays, and whose mixing of each row with the one before
// it, depend on the row.
var rwkv6 = architecture{
	name: "rwkv6", hf: []string{"rwkv6"},
	stateOnly: true,
	readOnly:  "the numbers that mix rows lie in one tensor or in five",
	describe: func(d *description, c *Config) {
		rwkv56(d, c)
		c.State.HalfEvery = d.int("rescale_every_n_layers", "", 0)
	},
	names: hfNames{layers: "blocks.", names: rwkvNames(map[string]string{
		"time_mix_lerp_x.weight": "attention.time_maa_x", "time_mix_lerp_w.weight": "attention.time_maa_w", "time_mix_lerp_k.weight": "attention.time_maa_k",
		"time_mix_lerp_v.weight": "attention.time_maa_v", "time_mix_lerp_r.weight": "attention.time_maa_r", "time_mix_lerp_g.weight": "attention.time_maa_g",
		"time_mix_w1.weight": "attention.time_maa_w1", "time_mix_w2.weight": "attention.time_maa_w2",
		"time_mix_decay_w1.weight": "attention.time_decay_w1", "time_mix_decay_w2.weight": "attention.time_decay_w2",
		"channel_mix_lerp_k.weight": "feed_forward.time_maa_k", "channel_mix_lerp_r.weight": "feed_forward.time_maa_r",
	}), fix: func(_ *Config, _ int, part string, _ bool) func(tensor.Mat) (tensor.Mat, error) {
		switch part {
		case "time_mix_w1", "time_mix_decay_w1", "time_mix_decay_w2":
			return transpose
		case "time_mix_w2":
			return turnExperts(rwkv6Lerps, 1, false, func(_, o int) int { return o })
		}
		return nil
	}},
	build: func(b *builder) *Net {
		return b.rwkv(func(_ int, at func(string) string) nn.Mixer {
			m := b.linearTimeMix(at)
			b.lerps(at, m.Lerp[:], "wkvrg")
			b.lerpsOfRows(at, m)
			m.Decay = b.lowRankMLP(at("time_mix_decay_w1"), at("time_mix_decay_w2"))
			m.Decay.Base = b.numbers(at("time_mix_decay.weight"), b.c.Hidden)
			return m
		})
	},
}

// RWKV-5: RWKV-6 whose decays and mixing are the same for all rows. GGUF has no such
// architecture.
var rwkv5 = architecture{
	name: "rwkv5", hf: []string{"rwkv5"},
	stateOnly: true,
	readOnly:  "the decays of its checkpoints have other names than GGUF's",
	describe: func(d *description, c *Config) {
		if !d.hf {
			d.fail("general.architecture", "an architecture that llama.cpp has", "rwkv5")
			return
		}
		rwkv56(d, c)
	},
	names: hfNames{layers: "blocks.", names: rwkvNames(map[string]string{
		"time_mix_lerp_k.weight": "attention.time_mix_key", "time_mix_lerp_v.weight": "attention.time_mix_value",
		"time_mix_lerp_r.weight": "attention.time_mix_receptance", "time_mix_lerp_g.weight": "attention.time_mix_gate",
		"channel_mix_lerp_k.weight": "feed_forward.time_mix_key", "channel_mix_lerp_r.weight": "feed_forward.time_mix_receptance",
	}), fix: rwkvOldFix},
	build: func(b *builder) *Net {
		return b.rwkv(func(_ int, at func(string) string) nn.Mixer {
			m := b.linearTimeMix(at)
			b.lerps(at, m.Lerp[1:], "kvrg")
			m.Decay.Base = b.numbers(at("time_mix_decay.weight"), b.c.Hidden)
			return m
		})
	},
}

// rwkv6Lerps is how many inputs are mixed with rows before.
const rwkv6Lerps = 5

// rwkvNames are the names that checkpoints of RWKV up to version 6 have, and those of more.
func rwkvNames(more map[string]string) map[string]string {
	names := map[string]string{
		"token_embd": "embeddings", "token_embd_norm": "blocks.0.pre_ln", "output_norm": "ln_out", "output": "head",
		"attn_norm": "ln1", "attn_norm_2": "ln2", "time_mix_first.weight": "attention.time_faaaa", "time_mix_decay.weight": "attention.time_decay",
		"time_mix_key": "attention.key", "time_mix_value": "attention.value", "time_mix_receptance": "attention.receptance",
		"time_mix_gate": "attention.gate", "time_mix_ln": "attention.ln_x", "time_mix_output": "attention.output",
		"channel_mix_key": "feed_forward.key", "channel_mix_value": "feed_forward.value", "channel_mix_receptance": "feed_forward.receptance",
	}
	for k, v := range more {
		names[k] = v
	}
	return names
}

// rwkvOldFix turns shares of a row into shares of the one before it: checkpoints before
// version 6 have the former.
func rwkvOldFix(_ *Config, _ int, part string, _ bool) func(tensor.Mat) (tensor.Mat, error) {
	if part[:len(part)-1] == "time_mix_lerp_" || part[:len(part)-1] == "channel_mix_lerp_" {
		return func(m tensor.Mat) (tensor.Mat, error) { return mapped(m, func(x float32) float32 { return 1 - x }) }
	}
	return nil
}

// rwkvSizes reads what all versions before 7 have.
func rwkvSizes(d *description, c *Config, ratio float64) {
	stateAlone(c)
	c.Norm, c.NoFFN = nn.NormLayer, true
	c.State.Inner, c.State.Taps = c.Hidden, 1
	if c.FFN = d.int("feed_forward_length", "intermediate_size", 0); c.FFN == 0 && d.hf {
		c.FFN = int(math.Floor(ratio*float64(c.Hidden)/32)) * 32
	}
	if d.hf {
		c.Context = mambaContext // no layer asks for one
		if n := d.int("", "attention_hidden_size", c.Hidden); n != c.Hidden {
			d.fail("attention_hidden_size", fmt.Sprint(c.Hidden, ", as hidden_size"), n)
		}
	}
	d.must("token_embd_norm.weight", "output.weight", "channel_mix_receptance.weight")
	d.must(normBias...)
}

// rwkv56 reads what versions 5 and 6 have.
func rwkv56(d *description, c *Config) {
	rwkvSizes(d, c, 3.5)
	x := &c.State
	if x.States = d.int("wkv.head_size", "head_size", 64); x.States > 0 {
		x.Heads = c.Hidden / x.States
	}
	x.Groups = x.Heads
	x.NormEps = 64e-5 // of heads
	if d.hf {
		by := d.float("", "head_size_divisor", 8)
		x.NormEps = float32(1e-5 * by * by)
	}
}

// linearTimeMix builds what the time mixing of versions 5 and 6 has.
func (b *builder) linearTimeMix(at func(string) string) *nn.RWKV6 {
	c := b.c
	n := c.Hidden
	return &nn.RWKV6{
		Heads: c.State.Heads, KVHeads: c.State.Heads, Dim: c.State.States,
		R: b.linear(at("time_mix_receptance"), n, n), K: b.linear(at("time_mix_key"), n, n), V: b.linear(at("time_mix_value"), n, n),
		Gate: b.linear(at("time_mix_gate"), n, n), Out: b.linear(at("time_mix_output"), n, n),
		Bonus: b.numbers(at("time_mix_first.weight"), n),
		Norm:  nn.Norm{Kind: nn.NormLayer, Eps: c.State.NormEps, W: b.numbers(at("time_mix_ln.weight"), n), B: b.numbers(at("time_mix_ln.bias"), n)},
	}
}

// lerpsOfRows builds what makes the mixing of rows depend on them.
func (b *builder) lerpsOfRows(at func(string) string, m *nn.RWKV6) {
	n, name := b.c.Hidden, at("time_mix_w1")
	m.LerpFirst = b.numbers(at("time_mix_lerp_x.weight"), n)
	down, ok := b.find(name+".weight", 0, 0)
	if !ok {
		b.missing(0, 0, name+".weight")
		return
	}
	if down.Rows%rwkv6Lerps != 0 {
		b.fail("tensor %q: expected a multiple of %d rows, found %d", b.spelling(name+".weight"), rwkv6Lerps, down.Rows)
		return
	}
	m.LerpDown = b.linear(name, down.Rows, n)
	parts := b.fused(at("time_mix_w2"), down.Rows/rwkv6Lerps, n, n, n, n, n)
	if parts == nil {
		b.missing(rwkv6Lerps*n, down.Rows/rwkv6Lerps, at("time_mix_w2.weight"))
		return
	}
	for i := range parts {
		m.LerpUp[i] = &parts[i]
	}
}
