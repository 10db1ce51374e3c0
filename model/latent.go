package model

import (
	"encoding/binary"
	"fmt"
	"math"

	"ridge/nn"
	"ridge/weights/tensor"
)

// LatentConfig says how wide the parts of latent attention are.
type LatentConfig struct {
	QueryRank int // of queries; 0: they are a product with the input itself
	Rank      int // of the latents that keys and values are made of; 0 for other attention
	PlainDim  int // of a head's queries and keys, the part that is not rotated
	RopeDim   int // and the part that is
	ValueDim  int
}

func (l *LatentConfig) validate() error {
	if l.Rank == 0 {
		return nil
	}
	for _, f := range []struct {
		field       string
		v, min, max int
		step        int
	}{
		{"rank of queries", l.QueryRank, 0, 1 << 16, 1}, {"rank of keys and values", l.Rank, 64, 1 << 14, 64},
		{"dimension of keys without rotation", l.PlainDim, 1, 1 << 12, 1}, {"rotated dimension of keys", l.RopeDim, 2, 1 << 12, 2},
		{"dimension of values", l.ValueDim, 16, 1 << 12, 16},
	} {
		if f.v < f.min || f.v > f.max || f.v%f.step != 0 {
			return fmt.Errorf("latent attention: %s: expected a multiple of %d from %d to %d, found %d", f.field, f.step, f.min, f.max, f.v)
		}
	}
	return nil
}

func (l *LatentConfig) describe(d *nameList) {
	d.add("latent.query_rank", l.QueryRank)
	d.add("latent.rank", l.Rank)
	d.add("latent.plain_dim", l.PlainDim)
	d.add("latent.rope_dim", l.RopeDim)
	d.add("latent.value_dim", l.ValueDim)
}

// latent reads the shape of latent attention, and how its scores are scaled.
// Files of GGUF have the sizes of heads twice: as their cache would have them,
// and with _mla those of queries; old files have these alone.
func (d *description) latent(c *Config, style nn.RopeStyle) {
	llamaLike(c, style)
	l := &c.Latent
	l.QueryRank = d.int("attention.q_lora_rank", "q_lora_rank", 0)
	l.Rank = d.int("attention.kv_lora_rank", "kv_lora_rank", required)
	l.RopeDim = d.int("rope.dimension_count", "qk_rope_head_dim", required)
	if d.hf {
		l.PlainDim = d.int("", "qk_nope_head_dim", required)
	} else {
		l.PlainDim = d.int("attention.key_length_mla|attention.key_length", "", required) - l.RopeDim
	}
	def := required
	if c.Heads > 0 {
		def = c.Hidden / c.Heads
	}
	l.ValueDim = d.int("attention.value_length_mla|attention.value_length", "v_head_dim", def)
	for _, n := range c.KVHeads {
		switch {
		case n == c.Heads:
		case d.hf:
			d.fail("num_key_value_heads", fmt.Sprintf("num_attention_heads, %d", c.Heads), n)
		case n != 1: // the shared key is called a head
			d.fail("attention.head_count_kv", fmt.Sprintf("1 or %d, as there are query heads", c.Heads), n)
		}
	}
	if part := d.rotaryPart(); part != 1 {
		d.fail("partial_rotary_factor", "1", part)
	}
	c.HeadDim, c.RopeDim = l.PlainDim+l.RopeDim, l.RopeDim
	c.KVHeads = everyLayer(c.Layers, c.Heads)
	s := &c.Rope[0].Scaling
	if all := d.float("rope.scaling.yarn_log_multiplier", "", 0); all != 0 { // a tenth of it, in these families
		s.MScale, s.MScaleAll = 10*all, 10*all
	}
	c.AttnScale = float32(1 / math.Sqrt(float64(c.HeadDim)))
	if s.Kind != "" && s.MScaleAll != 0 && s.Factor > 1 {
		m := 0.1*s.MScaleAll*math.Log(s.Factor) + 1
		c.AttnScale = float32(m * m / math.Sqrt(float64(c.HeadDim)))
	}
}

// latentNames are the names of what latent attention has of its own.
var latentNames = map[string]string{
	"attn_q_a": "self_attn.q_a_proj", "attn_q_a_norm": "self_attn.q_a_layernorm", "attn_q_b": "self_attn.q_b_proj",
	"attn_kv_a_mqa": "self_attn.kv_a_proj_with_mqa", "attn_kv_a_norm": "self_attn.kv_a_layernorm", "attn_kv_b": "self_attn.kv_b_proj",
}

// latentBias are the biases that attention_bias is about.
var latentBias = []string{"attn_q_a.bias", "attn_kv_a_mqa.bias", "attn_output.bias"}

// latentDecoder builds a decoder of layers of latent attention.
func (b *builder) latentDecoder() *Net {
	return b.stack(func(_ int, at func(string) string) nn.Mixer { return b.latent(at) })
}

// latent builds the latent attention of a layer.
func (b *builder) latent(at func(string) string) *nn.Latent {
	c, l := b.c, &b.c.Latent
	a := &nn.Latent{
		Heads: c.Heads, Rank: l.Rank, PlainDim: l.PlainDim, RopeDim: l.RopeDim, ValueDim: l.ValueDim, Rope: b.ropes[0], Scale: c.AttnScale,
	}
	q := c.Heads * (l.PlainDim + l.RopeDim)
	if l.QueryRank > 0 {
		a.QDown = b.linear(at("attn_q_a"), l.QueryRank, c.Hidden)
		a.QNorm = b.norm(at("attn_q_a_norm"), l.QueryRank)
		a.Q = b.linear(at("attn_q_b"), q, l.QueryRank)
	} else {
		a.Q = b.linear(at("attn_q"), q, c.Hidden)
	}
	a.KVDown = b.linear(at("attn_kv_a_mqa"), l.Rank+l.RopeDim, c.Hidden)
	a.KVNorm = b.norm(at("attn_kv_a_norm"), l.Rank)
	a.KeyUp, a.ValueUp = b.latentUps(at)
	a.Out = b.linear(at("attn_output"), c.Hidden, c.Heads*l.ValueDim)
	a.Ready()
	return a
}

// latentUps reads the matrices of each head that queries are multiplied with, and
// those that make values: from two tensors, or from one that makes keys and values.
func (b *builder) latentUps(at func(string) string) (keys, values []nn.Linear) {
	c, l := b.c, &b.c.Latent
	keyName, valueName, both := at("attn_k_b"), at("attn_v_b"), at("attn_kv_b")
	k, ok := b.find(keyName+".weight", c.Heads*l.Rank, l.PlainDim)
	if ok {
		v, ok := b.find(valueName+".weight", c.Heads*l.ValueDim, l.Rank)
		if !ok {
			b.missing(c.Heads*l.ValueDim, l.Rank, valueName+".weight")
		}
		for _, n := range b.src.names(both + ".weight") {
			b.used[n] = b.used[n] || b.kept != nil // it was taken apart when it was packed
		}
		return b.parts(keyName, k, c.Heads), b.parts(valueName, v, c.Heads)
	}
	m, ok := b.find(both+".weight", c.Heads*(l.PlainDim+l.ValueDim), l.Rank)
	if !ok {
		b.missing(0, 0, keyName+".weight", both+".weight")
		return nil, nil
	}
	heads := cutRows(m, c.Heads, b.shapes)
	for _, m := range heads {
		m.Rows = l.PlainDim
		keys = append(keys, nn.Linear{W: b.pack(keyName, b.turned(m))})
	}
	for _, m := range heads {
		if m.Rows = l.ValueDim; !b.shapes {
			m.Data = m.Data[l.PlainDim*m.Type.RowBytes(m.Cols):]
		}
		values = append(values, nn.Linear{W: b.pack(valueName, m)})
	}
	return keys, values
}

// parts packs n equal parts of a matrix, one after the other.
func (b *builder) parts(name string, m tensor.Mat, n int) (parts []nn.Linear) {
	for _, part := range cutRows(m, n, b.shapes || b.kept != nil) {
		parts = append(parts, nn.Linear{W: b.pack(name, part)})
	}
	return parts
}

// cutRows cuts a matrix in n equal parts, which have no data if shapes is set.
func cutRows(m tensor.Mat, n int, shapes bool) (parts []tensor.Mat) {
	rows, size := m.Rows/n, m.Type.RowBytes(m.Cols)
	for i := range n {
		part := tensor.Mat{Type: m.Type, Rows: rows, Cols: m.Cols}
		if !shapes && m.Rows > 0 {
			part.Data = m.Data[i*rows*size : (i+1)*rows*size]
		}
		parts = append(parts, part)
	}
	return parts
}

// turned returns the columns of m, of as many rows as it says, as rows: with the numbers as they are, or as
// float32 where they lie in blocks along the rows.
func (b *builder) turned(m tensor.Mat) tensor.Mat {
	out := tensor.Mat{Type: m.Type, Rows: m.Cols, Cols: m.Rows}
	if m.Type.BlockSize() != 1 {
		out.Type = tensor.F32
	}
	if b.shapes || b.err != nil {
		return out
	}
	m.Data = m.Data[:m.Rows*m.Type.RowBytes(m.Cols)]
	if m.Type.BlockSize() == 1 {
		t, err := transpose(m)
		if err != nil {
			b.fail("%w", err)
		}
		out.Data = t.Data
	} else {
		out.Data = make([]byte, 4*m.Rows*m.Cols)
		row := make([]float32, m.Cols)
		for r := range m.Rows {
			m.DecodeRow(row, r)
			for c, v := range row {
				binary.LittleEndian.PutUint32(out.Data[4*(c*m.Rows+r):], math.Float32bits(v))
			}
		}
	}
	b.src.release(m.Data)
	b.copies += int64(len(out.Data))
	return out
}
