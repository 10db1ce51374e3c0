package model

import (
	"math"
	"slices"

	"ridge/kernel"
	"ridge/nn"
)

// Gemma 3n (text): four residual streams (AltUp), a low-rank residual beside
// attention (LAuReL), an input of each layer for each token, sparse gates in the
// first layers, and last layers that read the keys and values of earlier ones.
var gemma3n = architecture{
	name: "gemma3n", hf: []string{"gemma3n_text", "gemma3n"}, eps: 1e-6,
	describe: func(d *description, c *Config) {
		gemmaLike(d, c)
		c.PostNorms, c.PlainVNorm, c.AttnScale = true, true, 1
		d.must("attn_norm.weight", "ffn_norm.weight", "altup_correct_scale.weight")
		d.must(qkNorms...)
		c.FinalSoftcap = d.float32("final_logit_softcapping", "final_logit_softcapping", d.inGGUF(30))
		c.Window = d.windows(c.Layers, everyButNth(5))
		if !d.hf && !d.has("rope.freq_base", "") {
			c.Rope[0].Base = 1e6
		}
		local := RopeConfig{Base: d.float("rope.freq_base_swa", "rope_local_base_freq", 10000)}
		c.Rope = append(c.Rope, d.ropePerType(c, local))
		c.localRope()
		c.shareKeys(d, "num_kv_shared_layers", d.int("attention.shared_kv_layers", "num_kv_shared_layers", c.Layers-20))
		c.PerLayer = d.int("embedding_length_per_layer_input", "hidden_size_per_layer_input", required)
		d.int("", "vocab_size_per_layer_input", 0) // the table has it
		c.Streams = d.int("altup.num_inputs", "altup_num_inputs", required)
		c.Active = d.int("altup.active_idx", "altup_active_idx", 0)
		if !d.bool("", "altup_correct_scale", true) {
			d.fail("altup_correct_scale", "true", false)
		}
		c.Laurel = d.int("", "laurel_rank", 0)
		gemma3nCutoffs(d, c)
	},
	names: hfNames{layers: "layers.", names: perLayerNames(map[string]string{
		"altup_proj.#": "altup_projections.#", "altup_unembd_proj.#": "altup_unembed_projections.#",
		"altup_router": "altup.modality_router", "altup_router_norm": "altup.router_norm",
		"altup_predict_coef": "altup.prediction_coefs", "altup_correct_coef": "altup.correction_coefs",
		"altup_correct_scale.weight": "altup.correct_output_scale",
		"laurel_l":                   "laurel.linear_left", "laurel_r": "laurel.linear_right", "laurel_post_norm": "laurel.post_laurel_norm",
	})},
	build: func(b *builder) *Net {
		b.more = b.gemma3nLayer
		net, n := b.decoder(), b.c.Streams-1
		net.Embed.PerLayer = b.perLayerEmbedding()
		net.Embed.Streams = &nn.Streams{In: b.numbered("altup_proj", n), Out: b.numbered("altup_unembd_proj", n)}
		return net
	},
	unused: slices.Concat(visionParts, soundParts),
}

// gemma3nCutoffs reads how sparse the gates are: config.json has the part that
// becomes 0, GGUF the number of standard deviations that follows, -Inf for none.
func gemma3nCutoffs(d *description, c *Config) {
	none := float32(math.Inf(-1))
	if !d.hf {
		if d.has("activation_sparsity_scale", "") {
			c.Cutoffs = d.layerFloats("activation_sparsity_scale", c.Layers)
		}
		return
	}
	c.Cutoffs = slices.Repeat([]float32{none}, max(min(c.Layers, 1<<12), 0))
	parts := d.floats("activation_sparsity_pattern")
	if parts == nil && c.Layers > 10 {
		parts = slices.Concat(slices.Repeat([]float32{0.95}, 10), make([]float32, len(c.Cutoffs)-10))
	}
	if parts == nil {
		return
	}
	if len(parts) != len(c.Cutoffs) {
		d.fail("activation_sparsity_pattern", "a number for each layer", len(parts))
		return
	}
	for i, p := range parts {
		if p > 0 {
			c.Cutoffs[i] = float32(math.Erfinv(float64(2*p-1))) * math.Sqrt2
		}
	}
}

// gemma3nLayer builds what is around a layer's attention and MLP.
func (b *builder) gemma3nLayer(l *Layer, at func(string) string) {
	c := b.c
	n := c.Streams
	a := &nn.AltUp{
		Active: c.Active, Router: b.linear(at("altup_router"), n, c.Hidden), RouterNorm: b.norm(at("altup_router_norm"), c.Hidden),
		Predictor: b.rows(at("altup_predict_coef.weight"), n*n, n), Corrector: b.rows(at("altup_correct_coef.weight"), n, n),
		Scale: b.bias(at("altup_correct_scale.weight"), c.Hidden),
	}
	kernel.Scale(a.RouterNorm.W, 1/float32(max(c.Hidden, 1)))
	left, ok := b.find(at("laurel_l.weight"), 0, 0)
	if !ok {
		b.missing(0, 0, at("laurel_l.weight"))
		return
	}
	rank := left.Rows
	b.w.params -= int64(left.Rows) * int64(left.Cols)
	if c.Laurel > 0 && rank != c.Laurel {
		rank = c.Laurel // the file is another's, and refused
	}
	l.Laurel = &nn.Laurel{
		Left: b.linear(at("laurel_l"), rank, c.Hidden), Right: b.linear(at("laurel_r"), c.Hidden, rank),
		Post: b.norm(at("laurel_post_norm"), c.Hidden),
	}
	l.AltUp, l.PerLayer = a, b.perLayer(at)
}

// numbered returns n square matrices: the parts of one tensor, or numbered ones.
func (b *builder) numbered(name string, n int) (all []nn.Linear) {
	hidden := b.c.Hidden
	if parts := b.fused(name, hidden, everyLayer(n, hidden)...); parts != nil {
		return parts
	}
	if !b.has(name + ".0.weight") {
		b.missing(0, 0, name+".weight", name+".0.weight")
		return nil
	}
	for i := 0; i < n && b.err == nil; i++ {
		all = append(all, b.linear(name+"."+string(rune('0'+i)), hidden, hidden))
	}
	return all
}

// rows returns a small matrix as float32.
func (b *builder) rows(name string, rows, cols int) (out [][]float32) {
	m, ok := b.find(name, rows, cols)
	if !ok {
		b.missing(rows, cols, name)
		return nil
	}
	for i := range m.Rows {
		row := make([]float32, m.Cols)
		if len(m.Data) > 0 {
			m.DecodeRow(row, i)
		}
		out = append(out, row)
	}
	b.src.release(m.Data)
	return out
}
