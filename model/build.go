package model

import (
	"bytes"
	"fmt"
	"math"

	"ridge/kernel"
	"ridge/nn"
	"ridge/weights/tensor"
)

// decoder builds the network of a decoder: layers of attention and an MLP, or a
// mixture of experts.
func (b *builder) decoder() *Net {
	return b.stack(func(i int, at func(string) string) nn.Mixer { return b.attention(i, at) })
}

// stack builds a network of layers whose mixers mix builds: it is given the number
// of a layer, and what gives the names of the layer's parts, and gives nil for a
// layer that is an FFN alone. feed, if it is given,
// builds the rest of a layer in place of an MLP or experts.
func (b *builder) stack(mix func(i int, at func(string) string) nn.Mixer, feed ...func(b *builder, l *Layer, at func(string) string)) *Net {
	net := &Net{}
	if b.first > 0 {
		b.positions()
	} else {
		net = b.frame()
	}
	for i := b.first; i < b.c.Layers; i++ {
		if b.err != nil {
			break
		}
		at := func(part string) string { return fmt.Sprintf("blk.%d.%s", i, part) }
		l := Layer{NormResid: b.c.NormResid, Scale: b.c.ResidScale}
		b.norms(&l, at)
		l.Mix = mix(i, at)
		switch x := b.c.Experts.Layers; {
		case len(feed) > 0:
			feed[0](b, &l, at)
		case b.c.NoFFN:
		case x != nil && x[i]:
			l.FFN = b.moe(at)
		default:
			l.FFN = b.mlp(i, at)
		}
		if b.more != nil {
			b.more(&l, at)
		}
		net.Layers = append(net.Layers, l)
		b.place(&l)
	}
	b.checkBoth(net)
	return net
}

// frame builds what is around the layers: embedding, last norm, output matrix,
// and the positions that layers share.
func (b *builder) frame() *Net {
	c, net := b.c, &Net{}
	e, width := &net.Embed, b.c.Hidden
	if c.Embedding > 0 {
		width = c.Embedding
	}
	var ok bool
	if e.Tokens, ok = b.find("token_embd.weight", c.Vocab, width); !ok {
		b.missing(c.Vocab, width, "token_embd.weight")
	}
	if c.Embedding > 0 {
		e.In, net.Head.In = b.linear("embd_in", c.Hidden, width), b.linear("embd_out", width, c.Hidden)
	}
	if m, ok := b.optional("position_embd.weight", 0, 0); ok {
		if m.Cols != c.Hidden || m.Rows < c.Context {
			b.fail("tensor %q: expected at least %d x %d, found %d x %d", b.spelling("position_embd.weight"), c.Context, c.Hidden, m.Rows, m.Cols)
		}
		e.Positions = m
	}
	e.Scale = c.EmbScale
	e.Norm = b.optionalNorm("token_embd_norm", c.Hidden)
	if !c.NoFinalNorm {
		net.Norm = b.norm("output_norm", c.Hidden)
	}
	if types := c.Encoder.Types; types > 0 {
		e.Types, _ = b.optional("token_types.weight", types, c.Hidden)
	}
	b.classifier(net)
	b.buildDense(net)
	if !c.Encoder.Both && net.Classes == nil {
		net.Head.Out, net.Head.Scale, net.Head.Softcap = b.output(e.Tokens), c.LogitScale, c.FinalSoftcap
	}
	b.positions()
	return net
}

// output builds the output matrix: one of its own, wherever a file has it, or
// the embedding. A checkpoint that is said to share it may have a copy.
func (b *builder) output(tokens tensor.Mat) nn.Linear {
	c := b.c
	m, own := b.find("output.weight", c.Vocab, tokens.Cols)
	if own && c.Tied {
		own = !b.same(m, tokens)
	} else if !own && b.present["output.weight"] == must {
		b.missing(c.Vocab, tokens.Cols, "output.weight")
	}
	name := "output"
	if c.Tied = !own; c.Tied {
		name, m = "token_embd", tokens
	}
	return nn.Linear{W: b.pack(name, m), Bias: b.bias("output.bias", c.Vocab)}
}

// same reports whether the output matrix has the weights of the embedding.
func (b *builder) same(output, tokens tensor.Mat) bool {
	if b.kept != nil { // they are packed once only if so
		_, apart, _ := b.kept.mat("output.weight")
		return !apart
	}
	defer b.src.release(output.Data)
	defer b.src.release(tokens.Data)
	return output.Type == tokens.Type && bytes.Equal(output.Data, tokens.Data)
}

// positions prepares rotary frequencies and ALiBi slopes.
func (b *builder) positions() {
	c := b.c
	if c.AlibiBias > 0 {
		b.slopes = kernel.AlibiSlopes(c.Heads, c.AlibiBias)
		if c.AlibiScale != 0 {
			kernel.Scale(b.slopes, c.AlibiScale)
		}
	}
	b.distances()
	if c.RopeStyle == nn.RopeNone {
		return
	}
	half := c.ropeDim(0) / 2
	factors := b.vector("rope_freqs.weight", half)
	s := &c.Rope[0].Scaling
	short, long := b.vector("rope_factors_short.weight", half), b.vector("rope_factors_long.weight", half)
	if (short == nil) != (long == nil) {
		b.missing(1, half, "rope_factors_short.weight", "rope_factors_long.weight")
		return
	}
	if short != nil {
		s.Kind, s.Short, s.Long = longRope, short, long
		if s.Factor == 1 && s.Original > 0 {
			s.Factor = float64(c.Context) / float64(s.Original)
		}
	}
	if s.Kind == longRope && (len(s.Short) != half || len(s.Long) != half) {
		b.fail("longrope factors: expected %d short and long ones, found %d and %d", half, len(s.Short), len(s.Long))
		return
	}
	for i := range c.Rope {
		b.ropes = append(b.ropes, c.Rope[i].rotation(c.RopeStyle, c.ropeDim(i), factors))
		factors = nil // they are the first set's
	}
}

// norms reads the norms of a layer and how its parts are wired.
func (b *builder) norms(l *Layer, at func(string) string) {
	c := b.c
	if l.Summed = c.SumNorms; l.Summed {
		l.Post, l.PostFFN = b.norm(at("attn_norm"), c.Hidden), b.norm(at("ffn_norm"), c.Hidden)
		return
	}
	if c.PostNorms {
		l.Pre = b.optionalNorm(at("attn_norm"), c.Hidden)
		l.PreFFN = b.optionalNorm(at("ffn_norm"), c.Hidden)
		l.Post = b.norm(at("post_attention_norm"), c.Hidden)
		l.PostFFN = b.norm(at("post_ffw_norm"), c.Hidden)
		return
	}
	if !c.Encoder.FirstPlain || len(b.attentions) > 0 {
		l.Pre = b.norm(at("attn_norm"), c.Hidden)
	}
	if c.NoFFN {
		return
	}
	if !c.Parallel {
		l.PreFFN = b.norm(at("ffn_norm"), c.Hidden)
		return
	}
	// Side by side: a norm of the FFN's own, or Falcon's second one for
	// attention, or one for both.
	l.Wiring = Parallel
	second := b.optionalNorm(at("attn_norm_2"), c.Hidden)
	l.PreFFN = b.optionalNorm(at("ffn_norm"), c.Hidden)
	switch {
	case second.W != nil:
		l.Pre, l.PreFFN = second, l.Pre
	case l.PreFFN.W == nil:
		l.Wiring = ParallelShared
	}
}

// attention builds the attention of layer i.
func (b *builder) attention(i int, at func(string) string) *nn.Attention {
	c, dim := b.c, b.c.dim(i)
	a := &nn.Attention{
		Heads: c.Heads, KVHeads: c.KVHeads[i], HeadDim: dim, Clip: c.ClipQKV,
		Scale: c.AttnScale, Softcap: c.AttnSoftcap, Window: c.Window[i], Slopes: b.slopes, Temper: c.Temper,
		NormRotated: c.NormRotated,
	}
	b.bothWays(a, i)
	if c.Chunk != nil {
		a.Chunk = c.Chunk[i]
	}
	if c.ScaleByLayer {
		a.Scale /= float32(i + 1)
	}
	if set := c.LayerRope[i]; set >= 0 && set < len(b.ropes) {
		a.Rope = b.ropes[set]
	}
	q, kv := c.Heads*dim, c.KVHeads[i]*dim
	if c.KeysFrom != nil && c.KeysFrom[i] != i {
		a.Q = b.linear(at("attn_q"), q, c.Hidden)
		a.KeysOf, a.KeysLayer = b.attentions[c.KeysFrom[i]], c.KeysFrom[i]
		b.passKeys(at)
	} else if parts := b.fused(at("attn_qkv"), c.Hidden, q, kv, kv); parts != nil {
		a.Q, a.K, a.V = parts[0], parts[1], parts[2]
	} else if !b.has(at("attn_q.weight")) {
		b.missing(0, 0, at("attn_qkv.weight"), at("attn_q.weight"))
	} else {
		a.Q = b.linear(at("attn_q"), q, c.Hidden)
		a.K = b.linear(at("attn_k"), kv, c.Hidden)
		if a.KeyIsValue = b.keyIsValue(i, at); !a.KeyIsValue {
			a.V = b.linear(at("attn_v"), kv, c.Hidden)
		}
	}
	a.Out = b.linear(at("attn_output"), c.Hidden, q)
	a.QNorm = b.headNorm(at("attn_q_norm"), c.Heads, dim)
	if a.KeysOf == nil {
		a.KNorm = b.headNorm(at("attn_k_norm"), c.KVHeads[i], dim)
		if c.PlainVNorm {
			a.VNorm = nn.Norm{Kind: c.Norm, Eps: c.NormEps, W: ones(dim)}
		}
	}
	if c.UnitQK && a.Rope != nil {
		a.QNorm = nn.Norm{Kind: c.Norm, Eps: c.NormEps, W: ones(dim)}
		a.KNorm = a.QNorm
	}
	if b.present["attn_gate.weight"] == must {
		a.Gate = b.linear(at("attn_gate"), q, c.Hidden)
	}
	a.Sinks = b.bias(at("attn_sinks.weight"), c.Heads)
	a.Balance()
	b.attentions = append(b.attentions, a)
	return a
}

// headNorm reads the norm of queries or keys: the same weights for each head,
// weights for each head, or one norm over all heads.
func (b *builder) headNorm(name string, heads, dim int) nn.Norm {
	m, ok := b.optional(name+".weight", 0, 0)
	if !ok {
		return nn.Norm{}
	}
	b.w.params -= int64(m.Rows) * int64(m.Cols)
	if m.Rows == heads && m.Cols == dim && heads > 1 {
		norm := nn.Norm{Kind: b.c.Norm, Eps: b.c.NormEps, Group: dim, W: make([]float32, heads*dim)}
		for i := range heads {
			m.DecodeRow(norm.W[i*dim:(i+1)*dim], i)
		}
		b.src.release(m.Data)
		return norm
	}
	if m.Cols != dim {
		dim *= heads
	}
	return b.norm(name, dim)
}

// mlp builds the MLP of layer i.
func (b *builder) mlp(i int, at func(string) string) *nn.MLP {
	m := b.mlpOf(at, "", b.c.ffn(i))
	if b.c.Cutoffs != nil {
		m.Cutoff = b.c.Cutoffs[i]
		m.Sparse = !math.IsInf(float64(m.Cutoff), -1)
	}
	return m
}

// mlpOf builds an MLP of a layer; its tensors' names end in end.
func (b *builder) mlpOf(at func(string) string, end string, width int) *nn.MLP {
	c, gate, up := b.c, at("ffn_gate"+end), at("ffn_up"+end)
	m := &nn.MLP{Act: c.Act, Gated: c.Gated, Down: b.linear(at("ffn_down"+end), c.Hidden, width)}
	if !c.Gated {
		m.Up = b.linear(up, width, c.Hidden)
		return m
	}
	// Phi-3 keeps gate and up in one matrix.
	both, ok, _ := b.kept.mat(up + ".weight")
	if !ok {
		both, ok, _ = b.src.mat(up + ".weight")
	}
	if !ok {
		b.missing(0, 0, up+".weight")
		return m
	} else if both.Rows == 2*width {
		if parts := b.fused(up, c.Hidden, width, width); parts != nil {
			m.Gate, m.Up = parts[0], parts[1]
		}
		return m
	}
	m.Gate = b.linear(gate, width, c.Hidden)
	m.Up = b.linear(up, width, c.Hidden)
	return m
}
