package model

import (
	"math"

	"ridge/nn"
)

// MiniCPM 3: latent attention whose keys are rotated by halves, scaled embeddings,
// residuals and logits. A GGUF file does not have the scales, which are those of
// the one model that there is.
var minicpm3 = architecture{
	name: "minicpm3", hf: []string{"minicpm3"}, joinedKV: true, latent: true,
	describe: func(d *description, c *Config) {
		d.latent(c, nn.RopeNeox)
		d.with(d.bool("", "attention_bias", false), latentBias...)
		d.with(d.bool("", "mlp_bias", false), mlpBias...)
		c.EmbScale = d.float32("", "scale_emb", 12)
		// null is for scales that change nothing.
		depth, base := math.Sqrt(float64(c.Layers)), c.Hidden
		if !d.hf {
			depth, base = 1.4, 256
		}
		c.ResidScale = float32(d.float("", "scale_depth", depth) / math.Sqrt(float64(c.Layers)))
		c.LogitScale = float32(d.int("", "dim_model_base", base)) / float32(max(c.Hidden, 1))
	},
	names: hfNames{layers: "layers.", names: llamaNames(latentNames)},
	build: (*builder).latentDecoder,
}
