package model

import (
	"fmt"
	"math"
	"slices"

	"ridge/nn"
)

// maxStreams bounds how many streams AltUp has.
const maxStreams = 8

// readFFN takes the widths of the MLPs of all layers, and of those ahead.
func (c *Config) readFFN(widths []int) {
	widths = widths[:min(len(widths), max(c.Layers, 0))]
	if len(widths) == 0 {
		return
	}
	if c.FFN = slices.Max(widths); slices.Min(widths) != c.FFN {
		c.FFNs = widths
	}
}

// readDims takes the dimensions of the heads of layers that see all, and of those
// with a window.
func (c *Config) readDims(full, local int) {
	c.HeadDim = max(full, local)
	if full == local || full <= 0 || local <= 0 {
		return
	}
	c.Dims = everyLayer(c.Layers, full)
	for i := range c.Dims {
		if c.Window[i] > 0 {
			c.Dims[i] = local
		}
	}
}

// shareKeys gives the last layers, so many of them, the keys and values of the last
// layer before them with a window or without, as theirs is.
func (c *Config) shareKeys(d *description, key string, layers int) {
	if layers <= 0 {
		return
	}
	c.KeysFrom = everyLayer(c.Layers, 0)
	first := c.Layers - layers
	for i := range c.KeysFrom {
		c.KeysFrom[i] = i
		if i < first {
			continue
		}
		j := first - 1
		for j >= 0 && (c.Window[j] > 0) != (c.Window[i] > 0) {
			j--
		}
		if c.KeysFrom[i] = j; j < 0 {
			d.fail(key, "a layer of each type before those that share keys and values", layers)
			return
		}
	}
}

// ropeDim returns how many elements of a head a rotary set rotates.
func (c *Config) ropeDim(set int) int {
	if set < len(c.Rope) && c.Rope[set].Dim > 0 {
		return c.Rope[set].Dim
	}
	return c.RopeDim
}

// validateLayers checks what differs between layers.
func (c *Config) validateLayers() error {
	for name, n := range map[string]int{
		"head dimensions": len(c.Dims), "feed-forward sizes": len(c.FFNs), "cutoffs": len(c.Cutoffs), "sources of keys": len(c.KeysFrom),
	} {
		if n != 0 && n != c.Layers {
			return fmt.Errorf("%s: expected %d, found %d", name, c.Layers, n)
		}
	}
	for i := range c.Layers {
		dim := c.dim(i)
		if dim <= 0 || dim > c.HeadDim || c.ffn(i) <= 0 {
			return fmt.Errorf("layer %d: expected a head dimension of 1 to %d and a feed-forward size, found %d and %d", i, c.HeadDim, dim, c.ffn(i))
		}
		if set := c.LayerRope[i]; c.RopeStyle != nn.RopeNone && set >= 0 && (c.ropeDim(set) > dim || c.ropeDim(set)%2 != 0) {
			return fmt.Errorf("layer %d: rotary dimension: expected an even number up to %d, found %d", i, dim, c.ropeDim(set))
		}
		if c.KeysFrom == nil || c.KeysFrom[i] == i {
			continue
		}
		if j := c.KeysFrom[i]; j < 0 || j > i || c.KeysFrom[j] != j || c.dim(j) != dim || c.KVHeads[j] != c.KVHeads[i] || c.Window[j] != c.Window[i] {
			return fmt.Errorf("layer %d: expected the keys of an earlier layer with %d heads of %d and a window of %d, found those of layer %d", i, c.KVHeads[i], dim, c.Window[i], j)
		}
	}
	if c.PerLayer < 0 || c.PerLayer > 1<<16 {
		return fmt.Errorf("width of the layers' inputs: expected 0 to %d, found %d", 1<<16, c.PerLayer)
	}
	if c.Streams < 0 || c.Streams > maxStreams || c.Streams > 0 && (c.Active < 0 || c.Active >= c.Streams) {
		return fmt.Errorf("streams: expected up to %d and an active one of them, found %d and %d", maxStreams, c.Streams, c.Active)
	}
	return nil
}

// keyIsValue reports whether layer i has no values of its own: it can only be a
// layer that sees all, and all of these or none are so.
func (b *builder) keyIsValue(i int, at func(string) string) bool {
	const name = "attn_v.weight"
	p, said := b.present[name]
	if !said || p == must || b.c.Window[i] > 0 {
		return false
	}
	has := p == may && b.has(at(name))
	n := b.asked[name]
	if n.layers++; has {
		n.found++
	} else if n.first == "" {
		n.first = at(name)
	}
	b.asked[name] = n
	return !has
}

// perLayerEmbedding builds the embedding of the layers' inputs.
func (b *builder) perLayerEmbedding() *nn.PerLayerEmbedding {
	c := b.c
	p := &nn.PerLayerEmbedding{Scale: float32(math.Sqrt(float64(c.PerLayer)))}
	total := c.Layers * c.PerLayer
	m, ok := b.find("per_layer_token_embd.weight", 0, 0)
	if !ok {
		b.missing(c.Vocab, total, "per_layer_token_embd.weight")
	} else if m.Cols != total || m.Rows <= 0 {
		b.fail("tensor %q: expected %d columns, found %d x %d", b.spelling("per_layer_token_embd.weight"), total, m.Rows, m.Cols)
	}
	p.Tokens = m
	p.Proj = b.linear("per_layer_model_proj", total, c.Hidden)
	p.Norm = b.norm("per_layer_proj_norm", c.PerLayer)
	return p
}

// perLayer builds what a layer does with its input.
func (b *builder) perLayer(at func(string) string) *nn.PerLayer {
	c := b.c
	return &nn.PerLayer{
		Gate: b.linear(at("inp_gate"), c.PerLayer, c.Hidden), Proj: b.linear(at("proj"), c.Hidden, c.PerLayer),
		Act: c.Act, Post: b.norm(at("post_norm"), c.Hidden),
	}
}

// perLayerNames are what checkpoints call these weights.
func perLayerNames(more map[string]string) map[string]string {
	names := map[string]string{
		"post_attention_norm": "post_attention_layernorm", "ffn_norm": "pre_feedforward_layernorm", "post_ffw_norm": "post_feedforward_layernorm",
		"per_layer_token_embd": "embed_tokens_per_layer", "per_layer_model_proj": "per_layer_model_projection",
		"per_layer_proj_norm": "per_layer_projection_norm", "inp_gate": "per_layer_input_gate", "proj": "per_layer_projection",
		"post_norm": "post_per_layer_input_norm",
	}
	for k, v := range more {
		names[k] = v
	}
	return llamaNames(names)
}

// passKeys passes over keys and values that a file has of a layer which reads those
// of another.
func (b *builder) passKeys(at func(string) string) {
	for _, part := range []string{"attn_k.weight", "attn_v.weight", "attn_k_norm.weight", "attn_k.bias", "attn_v.bias"} {
		for _, name := range b.src.names(at(part)) {
			b.used[name] = true
		}
	}
}
