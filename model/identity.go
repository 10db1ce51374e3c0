package model

import (
	"fmt"
	"strings"
)

// identity returns c in a form that identifies it in files that outlive this
// program: sessions and packed weights are kept under it. It names what differs
// from the zero value and nothing else, so a field that is added later leaves the
// files of models without it valid. A name must never get another meaning.
func (c *Config) identity() string {
	var d nameList
	d.add("arch", c.Arch)
	d.add("vocab", c.Vocab)
	d.add("hidden", c.Hidden)
	d.add("layers", c.Layers)
	d.add("heads", c.Heads)
	d.add("kv_heads", c.KVHeads)
	d.add("head_dim", c.HeadDim)
	d.add("dims", c.Dims)
	d.add("ffn", c.FFN)
	d.add("ffns", c.FFNs)
	d.add("context", c.Context)
	d.add("ahead", c.Ahead)
	d.add("norm", int(c.Norm))
	d.add("norm_eps", c.NormEps)
	d.add("plain_norms", c.PlainNorms)
	d.add("no_final_norm", c.NoFinalNorm)
	d.add("embedding", c.Embedding)
	d.add("sum_norms", c.SumNorms)
	d.add("parallel", c.Parallel)
	d.add("post_norms", c.PostNorms)
	d.add("norm_resid", c.NormResid)
	d.add("no_ffn", c.NoFFN)
	for i, alone := range c.FFNAlone {
		d.add(fmt.Sprintf("ffn_alone_%d", i), alone)
	}
	d.add("act", int(c.Act))
	d.add("cutoffs", c.Cutoffs)
	for i, x := range c.XIELU {
		d.add(fmt.Sprintf("xielu_%d", i), x)
	}
	d.add("gated", c.Gated)
	c.Experts.describe(&d)
	c.Encoder.describe(&d)
	d.add("conv.taps", c.Conv.Taps)
	for i, has := range c.Conv.Layers {
		d.add(fmt.Sprintf("conv.layer_%d", i), has)
	}
	c.State.describe(&d)
	c.Joint.describe(&d)
	c.Latent.describe(&d)
	d.add("rope_style", int(c.RopeStyle))
	d.add("rope_dim", c.RopeDim)
	for i, r := range c.Rope {
		r.describe(&d, fmt.Sprintf("rope_%d.", i))
	}
	d.add("layer_rope", c.LayerRope)
	d.add("keys_from", c.KeysFrom)
	d.add("alibi_bias", c.AlibiBias)
	d.add("alibi_scale", c.AlibiScale)
	d.add("window", c.Window)
	d.add("chunk", c.Chunk)
	d.add("norm_rotated", c.NormRotated)
	d.add("unit_qk", c.UnitQK)
	d.add("attn_scale", c.AttnScale)
	d.add("temper_beta", c.Temper.Beta)
	d.add("temper_period", c.Temper.Period)
	d.add("temper_shift", c.Temper.Shift)
	d.add("scale_by_layer", c.ScaleByLayer)
	d.add("attn_softcap", c.AttnSoftcap)
	d.add("final_softcap", c.FinalSoftcap)
	d.add("clip_qkv", c.ClipQKV)
	d.add("plain_v_norm", c.PlainVNorm)
	d.add("per_layer", c.PerLayer)
	d.add("streams", c.Streams)
	d.add("active", c.Active)
	d.add("laurel", c.Laurel)
	d.add("emb_scale", c.EmbScale)
	d.add("resid_scale", c.ResidScale)
	d.add("logit_scale", c.LogitScale)
	d.add("tied", c.Tied)
	d.add("unit_output", c.UnitOutput)
	d.add("quantized", c.Quantized)
	return "model 1\n" + d.b.String()
}

func (x *ExpertConfig) describe(d *nameList) {
	d.add("experts", x.Count)
	d.add("experts.top_k", x.TopK)
	d.add("experts.ffn", x.FFN)
	d.add("experts.shared_ffn", x.SharedFFN)
	for i, has := range x.Layers {
		d.add(fmt.Sprintf("experts.layer_%d", i), has)
	}
	d.add("experts.score", int(x.Score))
	d.add("experts.groups", x.Groups)
	d.add("experts.top_groups", x.TopGroups)
	d.add("experts.group_top", x.GroupTop)
	d.add("experts.normalize", x.Normalize)
	d.add("experts.scale", x.Scale)
	d.add("experts.weigh_input", x.WeighInput)
	d.add("experts.near", x.Near)
	d.add("experts.early", x.Early)
}

func (r *RopeConfig) describe(d *nameList, in string) {
	s := &r.Scaling
	d.add(in+"base", r.Base)
	d.add(in+"dim", r.Dim)
	d.add(in+"kind", s.Kind)
	d.add(in+"factor", s.Factor)
	d.add(in+"original", s.Original)
	d.add(in+"low_freq", s.LowFreq)
	d.add(in+"high_freq", s.HighFreq)
	d.add(in+"beta_fast", s.BetaFast)
	d.add(in+"beta_slow", s.BetaSlow)
	d.add(in+"attn_factor", s.AttnFactor)
	d.add(in+"mscale", s.MScale)
	d.add(in+"mscale_all", s.MScaleAll)
	d.add(in+"part", s.Part)
	d.add(in+"no_truncate", s.NoTruncate)
	d.add(in+"short", s.Short)
	d.add(in+"long", s.Long)
}

// nameList is a list of names and values.
type nameList struct{ b strings.Builder }

// add adds a value, unless it is its type's zero value.
func (d *nameList) add(name string, v any) {
	zero := false
	switch x := v.(type) {
	case string:
		zero = x == ""
	case bool:
		zero = !x
	case int:
		zero = x == 0
	case float32:
		zero = x == 0
	case float64:
		zero = x == 0
	case []int:
		zero = len(x) == 0
	case []float32:
		zero = len(x) == 0
	default:
		panic(fmt.Sprintf("model: description: %s: a value of type %T", name, v))
	}
	if !zero {
		fmt.Fprintf(&d.b, "%s=%v\n", name, v)
	}
}
