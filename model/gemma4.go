package model

import (
	"math"
	"slices"
	"strconv"

	"ridge/nn"
)

// Gemma 4 (text): heads of layers that see all are wider than those of layers with
// a window, and rotate in part; values are normalized, or are the keys; the last
// layers read the keys and values of earlier ones; small ones give each layer an
// input of its own for each token. The largest has experts beside its MLPs.
var gemma4 = architecture{
	name: "gemma4", hf: []string{"gemma4_text", "gemma4"}, eps: 1e-6,
	describe: func(d *description, c *Config) {
		gemmaLike(d, c)
		c.PostNorms, c.PlainVNorm, c.AttnScale = true, true, 1
		d.must("attn_norm.weight", "ffn_norm.weight")
		d.must(qkNorms...)
		d.with(true, "layer_output_scale.weight")
		c.FinalSoftcap = d.float32("final_logit_softcapping", "final_logit_softcapping", 0)
		c.Window = d.windows(c.Layers, everyButNth(6))
		if n := len(c.Window); n > 0 && d.hf {
			c.Window[n-1] = 0 // whatever its type
		}
		if s := d.str("", "use_bidirectional_attention", ""); s != "" && s != "vision" { // of images
			d.fail("use_bidirectional_attention", "null or vision", strconv.Quote(s))
		}
		gemma4Heads(d, c)
		shared := d.int("attention.shared_kv_layers", "num_kv_shared_layers", 0)
		c.shareKeys(d, "num_kv_shared_layers", shared)
		if d.bool("", "use_double_wide_mlp", false) && shared > 0 {
			c.FFNs = everyLayer(c.Layers, c.FFN)
			for i := max(len(c.FFNs)-shared, 0); i < len(c.FFNs); i++ {
				c.FFNs[i] = 2 * c.FFN
			}
			c.FFN *= 2
		}
		c.PerLayer = d.int("embedding_length_per_layer_input", "hidden_size_per_layer_input", 0)
		d.int("", "vocab_size_per_layer_input", 0) // the table has it
		moe := d.bool("", "enable_moe_block", false)
		if d.hf && moe != d.has("", "num_experts") {
			d.fail("enable_moe_block", "true where there is num_experts, and only there", moe)
		}
		if moe || d.int("expert_count", "", 0) > 0 {
			c.Experts = d.experts(c, ExpertConfig{Normalize: true})
			d.must("ffn_gate_inp.scale", "ffn_down_exps.scale")
		}
	},
	names: hfNames{layers: "layers.", names: perLayerNames(map[string]string{
		"layer_output_scale.weight": "layer_scalar",
		"ffn_gate_inp":              "router.proj", "ffn_gate_inp.scale": "router.scale", "ffn_down_exps.scale": "router.per_expert_scale",
		"ffn_gate_up_exps.weight": "experts.gate_up_proj", "ffn_down_exps.weight": "experts.down_proj",
		"pre_ffw_norm_2": "pre_feedforward_layernorm_2", "post_ffw_norm_1": "post_feedforward_layernorm_1", "post_ffw_norm_2": "post_feedforward_layernorm_2",
	})},
	build: func(b *builder) *Net {
		b.more = func(l *Layer, at func(string) string) {
			if b.c.PerLayer > 0 {
				l.PerLayer = b.perLayer(at)
			}
			if s := b.bias(at("layer_output_scale.weight"), 1); s != nil {
				l.OutScale = s[0]
			}
		}
		if b.gguf && !b.has("rope_freqs.weight") && slices.Contains(b.c.LayerRope, 0) {
			b.missing(0, 0, "rope_freqs.weight")
		}
		var net *Net
		if b.c.Experts.Count > 0 {
			net = b.stack(func(i int, at func(string) string) nn.Mixer { return b.attention(i, at) }, (*builder).gemma4Experts)
		} else {
			net = b.decoder()
		}
		if b.c.PerLayer > 0 {
			net.Embed.PerLayer = b.perLayerEmbedding()
		}
		return net
	},
	unused: slices.Concat(visionParts, soundParts),
}

// gemma4Experts builds the MLP of a layer, and the experts that lie beside it.
func (b *builder) gemma4Experts(l *Layer, at func(string) string) {
	c := b.c
	i, _, _ := splitName(at("ffn_up"))
	norm := func(part string) nn.Norm { return b.norm(at(part), c.Hidden) }
	d := &nn.Dual{
		MLP: b.mlp(i, at), PreMLP: l.PreFFN, PostMLP: norm("post_ffw_norm_1"),
		Mixture: nn.EarlyMoE{MoE: *b.mixture(at)}, PreMoE: norm("pre_ffw_norm_2"), PostMoE: norm("post_ffw_norm_2"),
	}
	d.Mixture.Router.PerExpert = b.bias(at("ffn_down_exps.scale"), c.Experts.Count)
	scale := b.bias(at("ffn_gate_inp.scale"), c.Hidden)
	d.PreRouter = nn.Norm{Kind: c.Norm, Eps: c.NormEps, W: make([]float32, c.Hidden)}
	for i, s := range scale {
		d.PreRouter.W[i] = s / float32(math.Sqrt(float64(c.Hidden)))
	}
	l.PreFFN, l.FFN = nn.Norm{}, d
}

// gemma4Heads reads the heads of both types of layers, and how they rotate.
func gemma4Heads(d *description, c *Config) {
	full := c.HeadDim // of GGUF
	local := d.int("attention.key_length_swa", "head_dim", full)
	if v := d.int("attention.value_length_swa", "", local); v != local {
		d.fail("attention.value_length_swa", strconv.Itoa(local)+" as the key length", v)
	}
	if d.hf {
		full = d.int("", "global_head_dim", 512)
	}
	fullKV := d.int("", "num_global_key_value_heads", 0)
	if p := d.object("per_layer_config"); p != nil { // in place of the two keys
		full, fullKV = local, 0
		for i, w := range c.Window {
			if o := p.object(strconv.Itoa(i)); o != nil && w == 0 {
				full, fullKV = o.int("", "head_dim", local), o.int("", "num_key_value_heads", 0)
			}
		}
	}
	same := d.bool("", "attention_k_eq_v", false)
	for i, w := range c.Window {
		if w == 0 && fullKV > 0 && same {
			c.KVHeads[i] = fullKV
		}
	}
	d.with(!same, "attn_v.weight")
	c.readDims(full, local)
	c.Rope = append(c.Rope, d.ropePerType(c, RopeConfig{Base: d.float("rope.freq_base_swa", "", 10000)}))
	c.Rope[0].Dim, c.Rope[1].Dim, c.RopeDim = full, d.int("rope.dimension_count_swa", "", local), full
	c.localRope()
}
