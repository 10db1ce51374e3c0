package model

import (
	"cmp"
	"math"
	"strings"

	"ridge/nn"
	"ridge/weights/tensor"
)

// Gemma 1: scaled embeddings, tied output, GELU gate. Early files name the exact
// GELU, which the models were not trained with.
var gemma = architecture{
	name: "gemma", hf: []string{"gemma"}, acts: map[string]nn.Activation{"gelu": nn.GELUTanh},
	describe: func(d *description, c *Config) { gemmaLike(d, c) },
	names:    hfNames{layers: "layers.", names: llamaNames(nil), fix: gemmaNorms},
	build:    (*builder).decoder,
}

// Gemma 2 adds norms after attention and MLP, soft-capped scores and alternating
// sliding windows.
var gemma2 = architecture{
	name: "gemma2", hf: []string{"gemma2"},
	describe: func(d *description, c *Config) {
		gemma2Like(d, c, 46)
		// Early GGUF files leave these out.
		c.AttnSoftcap = d.float32("attn_logit_softcapping", "attn_logit_softcapping", d.inGGUF(50))
		c.FinalSoftcap = d.float32("final_logit_softcapping", "final_logit_softcapping", d.inGGUF(30))
		c.Window = d.windows(c.Layers, everyButNth(2))
		if !d.hf && !d.has("attention.sliding_window", "") {
			for i := range c.Window {
				c.Window[i] = 4096 * ((i + 1) % 2)
			}
		}
	},
	names: gemma2Names,
	build: (*builder).decoder,
}

// Gemma 3 normalizes queries and keys instead of capping, and rotates local and
// global layers differently.
var gemma3 = architecture{
	name: "gemma3", hf: []string{"gemma3_text", "gemma3"}, eps: 1e-6,
	describe: describeGemma3,
	names:    gemma2Names,
	build:    (*builder).decoder,
	unused:   visionParts,
}

// EmbeddingGemma: Gemma 3 in both directions (arXiv 2509.20354). In a config.json it
// is a Gemma 3.
var gemmaEmbedding = architecture{
	name: "gemma-embedding", eps: 1e-6, encoder: true,
	describe: func(d *description, c *Config) {
		describeGemma3(d, c)
		if d.hf {
			return
		}
		d.with(true, denseName(0)+".weight", denseName(1)+".weight")
	},
	names: gemma2Names,
	build: (*builder).decoder,
}

func describeGemma3(d *description, c *Config) {
	gemma2Like(d, c, 62)
	c.AttnSoftcap = d.float32("", "attn_logit_softcapping", 0)
	c.FinalSoftcap = d.float32("final_logit_softcapping", "final_logit_softcapping", 0)
	c.Window = d.windows(c.Layers, everyButNth(d.int("", "sliding_window_pattern", 6)))
	if !d.hf && !d.has("rope.freq_base|rope.global.freq_base", "") {
		c.Rope[0].Base = 1e6
	}
	local := RopeConfig{Base: d.float("rope.freq_base_swa|rope.local.freq_base", "rope_local_base_freq", 10000)}
	local = d.ropePerType(c, local)
	c.Rope = append(c.Rope, local)
	c.localRope()
	d.must(qkNorms...)
	if d.bool("", "use_bidirectional_attention", false) {
		c.Encoder.Both = true
	}
	if c.Encoder.Both { // the window is what lies on both sides
		c.Encoder.Reach, c.Window = c.Window, nil
		for i := range c.Encoder.Reach {
			c.Encoder.Reach[i] /= 2
		}
	}
}

var gemma2Names = hfNames{layers: "layers.", names: llamaNames(map[string]string{
	"post_attention_norm": "post_attention_layernorm",
	"ffn_norm":            "pre_feedforward_layernorm",
	"post_ffw_norm":       "post_feedforward_layernorm",
}), fix: gemmaNorms}

func gemmaLike(d *description, c *Config) {
	c.Norm, c.Act, c.Gated, c.RopeStyle = nn.NormRMS, nn.GELUTanh, true, nn.RopeNeox
	c.EmbScale = float32(math.Sqrt(float64(c.Hidden)))
	c.Tied = c.Tied || !d.hf // unless the file has a matrix
	d.with(d.bool("", "attention_bias", false), attnBias...)
}

// gemma2Like is what Gemma 2 and 3 share. Most sizes scale scores by the head
// dimension, the largest of each generation by the width divided by the heads: a
// GGUF file does not always say it, and is then known by its layers.
func gemma2Like(d *description, c *Config, largest int) {
	gemmaLike(d, c)
	c.PostNorms = true
	d.must("attn_norm.weight", "ffn_norm.weight")
	if d.hf {
		if s := d.float("", "query_pre_attn_scalar", 0); s > 0 {
			c.AttnScale = float32(1 / math.Sqrt(s))
		}
		return
	}
	scale := 1 / math.Sqrt(float64(max(c.HeadDim, 1)))
	if c.Layers == largest && c.Heads > 0 {
		scale = 1 / math.Sqrt(float64(c.Hidden)/float64(c.Heads))
	}
	c.AttnScale = float32(cmp.Or(d.float("attention.scale", "", 0), scale))
}

// localRope gives the layers with a window the second set of frequencies.
func (c *Config) localRope() {
	c.LayerRope = everyLayer(c.Layers, 0)
	for i := range c.LayerRope {
		if c.Window[i] > 0 {
			c.LayerRope[i] = 1
		}
	}
}

func gemmaNorms(c *Config, layer int, part string, bias bool) func(tensor.Mat) (tensor.Mat, error) {
	if strings.HasSuffix(part, "norm") {
		return addOne
	}
	return nil
}
