package model

import (
	"strings"

	"ridge/nn"
)

// Nemotron-H: each layer is one thing alone, a state-space mixer, attention without
// positions, an MLP without a gate, or experts of such MLPs. Time steps have the
// limits of time_step_limit, as the authors and llama.cpp have them; transformers
// takes them to be time_step_min at least.
var nemotronH = architecture{
	name: "nemotron_h", hf: []string{"nemotron_h"},
	layers:   func(d *description) int { return len(d.layerKinds()) },
	describe: nemotronHDescribe,
	names:    hfNames{layers: "layers.", names: mambaNames("mixer.", nemotronHNames), fix: hybridFix},
	build:    (*builder).nemotronH,
	unused:   []string{"mtp.*"},
}

const nemotronMoE = "nemotron_h_moe"

// nemotronHMoE is what GGUF files call those with experts.
var nemotronHMoE = architecture{
	name:     nemotronMoE,
	readOnly: "the number of its layers that predict further tokens is not written",
	describe: nemotronHDescribe,
	names:    nemotronH.names,
	build:    (*builder).nemotronH,
}

var nemotronHNames = map[string]string{
	"token_embd": "embeddings", "output_norm": "norm_f", "output": "lm_head", "attn_norm": "norm", "ssm_dt.bias": "mixer.dt_bias",
	"attn_q": "mixer.q_proj", "attn_k": "mixer.k_proj", "attn_v": "mixer.v_proj", "attn_output": "mixer.o_proj",
	"ffn_up": "mixer.up_proj", "ffn_down": "mixer.down_proj", "ffn_gate_inp": "mixer.gate",
	"exp_probs_b.bias": "mixer.gate.e_score_correction_bias",
	"ffn_up_exps.#":    "mixer.experts.#.up_proj", "ffn_down_exps.#": "mixer.experts.#.down_proj",
	"ffn_up_shexp": "mixer.shared_experts.up_proj", "ffn_down_shexp": "mixer.shared_experts.down_proj",
}

// Kinds of layers, as hybrid_override_pattern writes them.
const (
	kindState     = 'M'
	kindAttention = '*'
	kindMLP       = '-'
	kindExperts   = 'E'
)

func nemotronHDescribe(d *description, c *Config) {
	c.Norm, c.Act, c.RopeStyle, c.NoFFN, c.Context = nn.NormRMS, nn.ReLU2, nn.RopeNone, true, mambaContext
	kinds := d.layerKindsOf(c)
	c.defaults()
	x := &c.State
	x.NormGroups = true
	x.Inner = d.int("ssm.inner_size", "", 0)
	x.States = d.int("ssm.state_size", "ssm_state_size", 128)
	x.Taps = d.int("ssm.conv_kernel", "mamba_d_conv", d.int("", "conv_kernel", 4))
	x.Heads = d.int("ssm.time_step_rank", "mamba_num_heads", required)
	x.Groups = d.int("ssm.group_count", "mamba_n_groups", d.int("", "n_groups", 1))
	if d.hf {
		x.Inner = d.int("", "mamba_head_dim", 64) * x.Heads
		d.timeSteps(x, "mamba_dt_limit|time_step_limit")
	}
	d.int("", "mamba_expand|expand", 2) // heads say how wide it is
	d.with(d.bool("", "mamba_conv_bias", d.bool("", "use_conv_bias", true)), "ssm_conv1d.bias")
	d.with(d.bool("", "use_bias", false), "ssm_in.bias", "ssm_out.bias")
	d.with(d.bool("", "attention_bias", false), attnBias...)
	d.with(d.bool("", "mlp_bias", false), "ffn_up.bias", "ffn_down.bias", "ffn_up_shexp.bias", "ffn_down_shexp.bias")
	if strings.ContainsRune(kinds, kindExperts) {
		d.must("exp_probs_b.bias")
		c.Experts = d.experts(c, ExpertConfig{Score: nn.ScoreSigmoid, GroupTop: 2, Normalize: !d.hf})
		c.Experts.SharedFFN = d.int("expert_shared_feed_forward_length", "moe_shared_expert_intermediate_size", 0)
		c.Experts.Layers = expertLayers(len(kinds), func(i int) bool { return kinds[i] == kindExperts })
	}
}

// layerKinds reads the kinds of the layers of a config.json: from a list, or else
// from a text with a character for each.
func (d *description) layerKinds() string {
	key, v, ok := d.find("", "layers_block_type", "strings")
	if !ok {
		return d.str("", "hybrid_override_pattern", "ME*-")
	}
	kinds := map[string]rune{
		"linear_attention": kindState, "mamba": kindState, "full_attention": kindAttention, "attention": kindAttention,
		"mlp": kindMLP, "moe": kindExperts,
	}
	list, _ := v.([]any)
	var b strings.Builder
	for _, x := range list {
		name, _ := x.(string)
		if kind, ok := kinds[name]; ok {
			b.WriteRune(kind)
		}
	}
	if b.Len() != len(list) || len(list) == 0 {
		d.fail(key, "linear_attention, full_attention, mlp or moe for each layer", describe(v))
		return ""
	}
	return b.String()
}

// layerKindsOf says which layers have a state, and which are an FFN alone. A GGUF
// file tells it by the numbers of heads and the widths of FFNs, 0 for none.
func (d *description) layerKindsOf(c *Config) string {
	n := len(c.KVHeads)
	kinds := ""
	if d.hf {
		kinds = d.layerKinds()
	} else if c.FFNs == nil {
		d.fail("feed_forward_length", "one number for each layer", c.FFN)
	} else {
		feeds := byte(kindMLP)
		if c.Arch == nemotronMoE {
			feeds = kindExperts
		}
		all := make([]byte, n)
		for i, heads := range c.KVHeads {
			switch all[i] = kindState; {
			case i < len(c.FFNs) && c.FFNs[i] > 0:
				all[i] = feeds
			case heads > 0:
				all[i] = kindAttention
			}
		}
		kinds = string(all)
	}
	if len(kinds) != n || strings.Trim(kinds, "ME*-") != "" {
		d.fail("hybrid_override_pattern", "M, E, * or - for each layer", kinds)
		kinds = strings.Repeat("M", n)
	}
	c.FFNs, c.State.Layers, c.FFNAlone = nil, make([]bool, n), make([]bool, n)
	for i, kind := range kinds {
		c.State.Layers[i] = kind == kindState
		c.FFNAlone[i] = kind == kindMLP || kind == kindExperts
		if kind != kindAttention {
			c.KVHeads[i] = max(c.Heads, 1)
		}
	}
	return kinds
}

// nemotronH builds layers of one part each.
func (b *builder) nemotronH() *Net {
	return b.stack(func(i int, at func(string) string) nn.Mixer {
		switch {
		case b.c.State.Layers[i]:
			return b.ssd(at, true)
		case b.c.FFNAlone[i]:
			return nil
		}
		return b.attention(i, at)
	}, func(b *builder, l *Layer, at func(string) string) {
		if l.Mix != nil {
			return
		}
		l.PreFFN, l.Pre = l.Pre, nn.Norm{}
		i, _, _ := splitName(at(""))
		if x := b.c.Experts.Layers; x != nil && x[i] {
			l.FFN = b.moe(at)
		} else {
			l.FFN = b.mlp(i, at)
		}
	})
}
