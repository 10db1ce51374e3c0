package model

import (
	"cmp"
	"fmt"
	"math"

	"ridge/nn"
	"ridge/weights/tensor"
)

// ExpertConfig says what the mixtures of experts of a model look like, and how
// their experts are chosen.
type ExpertConfig struct {
	Count, TopK int
	FFN         int // width of an expert
	SharedFFN   int // width of the MLP that all rows read, 0 for none
	// Layers says for each layer whether its FFN is a mixture.
	Layers []bool

	Score             nn.RouterScore
	Groups, TopGroups int // 0 or 1: one group
	GroupTop          int // experts that a group is judged by
	Normalize         bool
	Scale             float32
	Near              float32 // of nn.ScoreSparseMixer
	Early             bool    // routers read a layer's rows before its mixer
	WeighInput        bool
}

// validate checks that the numbers fit together.
func (x *ExpertConfig) validate(layers int) error {
	if x.Count == 0 {
		return nil
	}
	for _, f := range []struct {
		field       string
		v, min, max int
	}{
		{"expert count", x.Count, 1, 1 << 12}, {"experts of a token", x.TopK, 1, x.Count},
		{"expert feed-forward size", x.FFN, 1, 1 << 22}, {"shared experts' feed-forward size", x.SharedFFN, 0, 1 << 22},
		{"expert groups", x.Groups, 0, nn.MaxGroups}, {"expert groups of a token", x.TopGroups, 0, max(x.Groups, 1)},
		{"layers that have experts or not", len(x.Layers), layers, layers},
	} {
		if f.v < f.min || f.v > f.max {
			return fmt.Errorf("%s: expected %d to %d, found %d", f.field, f.min, f.max, f.v)
		}
	}
	if x.Groups > 1 {
		switch size := x.Count / x.Groups; {
		case x.Count%x.Groups != 0:
			return fmt.Errorf("expert groups: expected a divisor of %d experts, found %d", x.Count, x.Groups)
		case x.TopGroups*size < x.TopK:
			return fmt.Errorf("expert groups of a token: expected enough for %d experts, found %d of %d experts each", x.TopK, x.TopGroups, size)
		}
	}
	for _, f := range [2]float32{x.Scale, x.Near} {
		if v := float64(f); math.IsInf(v, 0) || math.IsNaN(v) {
			return fmt.Errorf("expert weights' scale: expected a finite number, found %v", v)
		}
	}
	return nil
}

// experts reads what all architectures with experts keep under the same keys. x
// has what a file means that does not say it. Every layer from the first mixture
// on is one.
func (d *description) experts(c *Config, x ExpertConfig) ExpertConfig {
	x.Count = d.int("expert_count", "num_local_experts|num_experts|n_routed_experts|moe_num_experts|moe_num_primary_experts", required)
	x.TopK = d.int("expert_used_count", "num_experts_per_tok|num_experts_per_token|top_k_experts|moe_k|moe_topk|moe_num_active_primary_experts", required)
	// llama.cpp writes 0 and false for what it takes from the architecture.
	x.FFN = cmp.Or(d.int("expert_feed_forward_length", "moe_intermediate_size|expert_ffn_hidden_size", 0), c.FFN)
	x.Groups = d.int("expert_group_count", "n_group", 1)
	if x.Groups > 1 && x.GroupTop == 0 {
		d.fail("expert_group_count", "one group, as this architecture has", x.Groups)
	}
	x.TopGroups = d.int("expert_group_used_count", "topk_group", x.Groups)
	x.Normalize = d.bool("expert_weights_norm", "norm_topk_prob", x.Normalize) || x.Normalize && !d.hf
	if x.Scale == 0 {
		x.Scale = 1
	}
	// Some converters write 0 where nothing is scaled.
	if x.Scale = d.float32("expert_weights_scale", "routed_scaling_factor", float64(x.Scale)); x.Scale == 0 {
		x.Scale = 1
	}
	switch f := d.int("expert_gating_func", "", 0); f {
	case 0: // as the architecture has it
	case 1:
		x.Score = nn.ScoreSoftmax
	case 2:
		x.Score = nn.ScoreSigmoid
	case 3:
		x.Score = nn.ScoreChosen
	default:
		d.fail("expert_gating_func", "1 (softmax), 2 (sigmoid) or 3 (softmax of the chosen)", f)
	}
	first := d.int("leading_dense_block_count", "first_k_dense_replace|num_dense_layers", 0)
	x.Layers = expertLayers(c.Layers, func(i int) bool { return i >= first })
	return x
}

// sharedExperts reads how wide the MLP is that all rows read: so many experts.
func (d *description) sharedExperts(x *ExpertConfig) {
	n := d.int("expert_shared_count", "n_shared_experts|num_shared_experts|moe_num_shared_experts", 0)
	x.SharedFFN = max(min(n, 1<<12), 0) * x.FFN
	if n == 0 { // llama.cpp saves no number of those whose width alone it reads
		x.SharedFFN = d.int("expert_shared_feed_forward_length", "", 0)
	}
}

// expertLayers returns for each layer whether it has experts.
func expertLayers(layers int, has func(layer int) bool) []bool {
	out := make([]bool, max(min(layers, 1<<12), 0))
	for i := range out {
		out[i] = has(i)
	}
	return out
}

// moe builds the mixture of a layer.
func (b *builder) moe(at func(string) string) nn.FFN {
	m := b.mixture(at)
	if b.c.Experts.Early {
		return &nn.EarlyMoE{MoE: *m}
	}
	return m
}

func (b *builder) mixture(at func(string) string) *nn.MoE {
	c, x := b.c, &b.c.Experts
	m := &nn.MoE{Router: nn.Router{
		Logits: b.linear(at("ffn_gate_inp"), x.Count, c.Hidden), Prefer: b.bias(at("exp_probs_b.bias"), x.Count),
		Score: x.Score, Groups: x.Groups, TopGroups: x.TopGroups, GroupTop: x.GroupTop, TopK: x.TopK,
		Normalize: x.Normalize, Scale: x.Scale, Near: x.Near, WeighInput: x.WeighInput,
	}}
	m.Experts = make([]nn.MLP, x.Count)
	for i := range m.Experts {
		m.Experts[i] = nn.MLP{Act: c.Act, Gated: c.Gated}
	}
	gate := func(e *nn.MLP) *nn.Linear { return &e.Gate }
	up := func(e *nn.MLP) *nn.Linear { return &e.Up }
	switch {
	case c.Gated && b.has(at("ffn_gate_up_exps.weight")):
		b.experts(at("ffn_gate_up_exps"), x.FFN, c.Hidden, m.Experts, gate, up)
	case c.Gated && !b.has(at("ffn_gate_exps.weight")) && !b.has(at("ffn_gate_exps.0.weight")):
		b.missing(0, 0, at("ffn_gate_exps.weight"), at("ffn_gate_exps.0.weight"), at("ffn_gate_up_exps.weight"))
		return m
	case c.Gated:
		b.experts(at("ffn_gate_exps"), x.FFN, c.Hidden, m.Experts, gate)
		fallthrough
	default:
		b.experts(at("ffn_up_exps"), x.FFN, c.Hidden, m.Experts, up)
	}
	b.experts(at("ffn_down_exps"), c.Hidden, x.FFN, m.Experts, func(e *nn.MLP) *nn.Linear { return &e.Down })
	m.Bias = b.bias(at("ffn_exps.bias"), c.Hidden)
	if x.SharedFFN > 0 {
		m.Shared = b.mlpOf(at, "_shexp", x.SharedFFN)
		if b.present["ffn_gate_inp_shexp.weight"] == must {
			m.SharedGate = b.linear(at("ffn_gate_inp_shexp"), 1, c.Hidden)
		}
	}
	return m
}

// experts reads the parts of each expert, of so many rows: from one tensor, in
// which an expert's parts follow each other, or one part from tensors that are
// numbered.
func (b *builder) experts(name string, rows, cols int, experts []nn.MLP, parts ...func(*nn.MLP) *nn.Linear) {
	n := len(experts) * len(parts)
	part := func(i int) *nn.Linear { return parts[i%len(parts)](&experts[i/len(parts)]) }
	if all, ok := b.find(name+".weight", n*rows, cols); ok {
		size := all.Type.RowBytes(cols)
		for i := range n {
			m := tensor.Mat{Type: all.Type, Rows: rows, Cols: cols}
			if b.kept == nil && !b.shapes {
				m.Data = all.Data[i*rows*size : (i+1)*rows*size]
			}
			part(i).W = b.pack(name, m)
		}
	} else if !b.has(name + ".0.weight") {
		b.missing(0, 0, name+".weight", name+".0.weight")
	} else {
		for i := 0; i < n && b.err == nil; i++ {
			*part(i) = b.linear(fmt.Sprintf("%s.%d", name, i), rows, cols)
		}
	}
	bias, ok := b.optional(name+".bias", n, rows)
	if !ok {
		return
	}
	for i := range n {
		v := make([]float32, rows)
		bias.DecodeRow(v, i)
		part(i).Bias = v
	}
	b.src.release(bias.Data)
}
