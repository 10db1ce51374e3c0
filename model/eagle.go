package model

import (
	"fmt"
	"slices"

	"ridge/nn"
)

// EAGLE (Li et al., 2024, arXiv 2401.15077; EAGLE-2 has the same heads): a layer of Llama's
// without a norm at its start reads the product of a matrix with an embedding and a state
// side by side, and gives the state behind the model's last norm one place on.
var eagleKind = headKind{
	name:  "eagle",
	is:    func(has func(name string) bool) bool { return has("fc.weight") || has("model.fc.weight") },
	names: eagleNames,
	build: func(b *headBuilder, h *DraftHead) {
		if b.eagleConfig(h) == nil {
			return
		}
		b.behindNorm(h)
		hidden := b.m.cfg.Hidden
		if b.c.Hidden != hidden {
			b.fail("hidden_size: expected %d as in the model, found %d", hidden, b.c.Hidden)
		}
		h.join = b.linear("fc", hidden, 2*hidden)
		for i := range h.net.Layers {
			l := &h.net.Layers[i]
			at := func(part string) string { return fmt.Sprintf("blk.%d.%s", i, part) }
			l.Mix = b.attention(i, at)
			if i > 0 {
				l.Pre = b.norm(at("attn_norm"), hidden)
			}
			l.PreFFN, l.FFN = b.norm(at("ffn_norm"), hidden), b.mlp(i, at)
		}
		h.net.Head = b.m.net.Head
		if m, ok := b.find("output.weight", b.m.cfg.Vocab, hidden); ok {
			h.net.Head.Out = nn.Linear{W: b.pack("output", m)}
		}
	},
}

// EAGLE-3 (Li et al., 2025, arXiv 2503.01840): the states of three layers of the model are
// fused, the layer's attention reads embedding and state side by side, and the head has an
// output matrix of its own, for some tokens of the vocabulary.
var eagle3Kind = headKind{
	name: "eagle3",
	is: func(has func(name string) bool) bool {
		return has("d2t") || has("midlayer.hidden_norm.weight") || has("layers.0.hidden_norm.weight")
	},
	names: eagleNames,
	build: (*headBuilder).eagle3,
}

var eagleParts = llamaNames(map[string]string{"hidden_norm": "hidden_norm"})

// eagleNames returns what files call a weight of a layer, whose only one some call
// "midlayer", or of what is around it.
func eagleNames(name string) (names []string) {
	layer, part, suffix := splitName(name)
	hf := part
	if as, ok := eagleParts[part]; ok {
		hf = as
	}
	for _, root := range []string{"", "model."} {
		switch {
		case layer < 0:
			names = append(names, root+hf+suffix)
		case layer == 0:
			names = append(names, root+"midlayer."+hf+suffix, root+"layers.0."+hf+suffix)
		default:
			names = append(names, fmt.Sprint(root, "layers.", layer, ".", hf, suffix))
		}
	}
	if layer < 0 && suffix == "" {
		return []string{name}
	}
	return names
}

// eagleConfig reads the config.json of a head, which is Llama's, and makes the frame of
// its network.
func (b *headBuilder) eagleConfig(h *DraftHead) *description {
	d, err := hfDescription(b.dir)
	if err != nil {
		b.err = err
		return nil
	}
	c := Config{}
	if err := llama.read(d, &c); err != nil {
		b.err = err
		return nil
	}
	d.class = nil             // from here on, keys are those of a head
	c.RopeStyle = nn.RopeNeox // rows of queries and keys are as they are in the file
	if c.defaults(); c.Experts.Count > 0 {
		d.fail("num_local_experts", "none", c.Experts.Count)
	}
	if *d.err == nil {
		if err := c.Validate(); err != nil {
			*d.err = fmt.Errorf("model: %s: %w", d.file, err)
		}
	}
	if b.err = *d.err; b.err != nil {
		return nil
	}
	const most = 16
	if c.Layers > most {
		b.fail("num_hidden_layers: expected at most %d in a draft head, found %d", most, c.Layers)
		return nil
	}
	*b.c = c
	for _, n := range slices.Concat(linearBias, []string{"fc.bias"}) {
		b.present[n] = may
	}
	b.positions()
	h.net = &Net{Layers: make([]Layer, c.Layers)}
	for i := range h.net.Layers {
		h.net.Layers[i].Scale = 1
	}
	if m, ok := b.find("token_embd.weight", 0, 0); ok {
		switch {
		case m.Cols != c.Hidden || m.Rows < b.m.cfg.Vocab:
			b.fail("tensor %q: expected at least %d x %d, found %d x %d", b.spelling("token_embd.weight"), b.m.cfg.Vocab, c.Hidden, m.Rows, m.Cols)
		default:
			h.embed = Embedding{Tokens: m, Scale: 1, read: b.src.read}
		}
	} else if c.Hidden != b.m.cfg.Hidden {
		b.missing(b.m.cfg.Vocab, c.Hidden, "token_embd.weight")
	}
	return d
}

// eagle3 builds a head of EAGLE-3.
func (b *headBuilder) eagle3(h *DraftHead) {
	d := b.eagleConfig(h)
	if d == nil {
		return
	}
	b.taps(h, "eagle_aux_hidden_state_layer_ids", d.eagleTaps(b.m.cfg.Layers))
	c, hidden := b.c, b.c.Hidden
	at := func(part string) string { return "blk.0." + part }
	if c.Layers != 1 {
		b.fail("num_hidden_layers: expected 1 in a head of EAGLE-3, found %d", c.Layers)
		return
	}
	h.fuse = b.linear("fc", hidden, h.Width())
	h.embNorm = b.norm(at("attn_norm"), hidden)
	q, kv := c.Heads*c.HeadDim, c.KVHeads[0]*c.HeadDim
	a := &nn.Attention{
		Heads: c.Heads, KVHeads: c.KVHeads[0], HeadDim: c.HeadDim, Scale: c.AttnScale, Window: c.Window[0], Rope: b.ropes[0],
		Q: b.linear(at("attn_q"), q, 2*hidden), K: b.linear(at("attn_k"), kv, 2*hidden), V: b.linear(at("attn_v"), kv, 2*hidden),
		Out: b.linear(at("attn_output"), hidden, q),
	}
	a.Balance()
	h.beside = &besideMixer{Attention: a}
	l := &h.net.Layers[0]
	l.Pre, l.Mix = b.norm(at("hidden_norm"), hidden), h.beside
	if d.bool("", "norm_before_residual", false) {
		l.Pre, h.stateNorm = nn.Norm{}, l.Pre
	}
	l.PreFFN, l.FFN = b.norm(at("ffn_norm"), hidden), b.mlp(0, at)
	h.net.Norm = b.norm("output_norm", hidden)
	tokens := d.int("", "draft_vocab_size", b.m.cfg.Vocab)
	if h.ids = b.tokenIDs("d2t", tokens, true); h.ids == nil && tokens != b.m.cfg.Vocab {
		b.missing(1, tokens, "d2t")
	}
	h.net.Head = Head{Scale: 1}
	if m, ok := b.find("output.weight", tokens, hidden); ok {
		h.net.Head.Out = nn.Linear{W: b.pack("output", m)}
	} else if tokens == b.m.cfg.Vocab && hidden == b.m.cfg.Hidden {
		h.net.Head = b.m.net.Head
	} else {
		b.missing(tokens, hidden, "output.weight")
	}
	if b.err == nil {
		b.err = *d.err
	}
}

// eagleTaps returns the layers of the model whose input a head of EAGLE-3 reads: the third
// one, that in the middle and the third from the end, unless the file names others. SGLang
// names the layers before them, in an object.
func (d *description) eagleTaps(layers int) []int {
	const key = "eagle_aux_hidden_state_layer_ids"
	if taps := d.intList(key); taps != nil {
		return taps
	}
	if o := d.object("eagle_config"); o != nil {
		if taps := o.intList(key); taps != nil {
			for i := range taps {
				taps[i]++
			}
			return taps
		}
	}
	return []int{2, layers / 2, layers - 3}
}
