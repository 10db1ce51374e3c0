package model

import (
	"errors"
	"fmt"

	"ridge/internal/mmap"
	"ridge/kernel"
	"ridge/kvcache"
	"ridge/nn"
)

// ErrChanged is the reason why a model cannot compute any more: its files were
// written to or cut short, and rows of its embedding are read from them. A file
// that is replaced by a rename does no harm.
var ErrChanged = mmap.ErrChanged

// ErrContext is returned for a batch that would make a sequence longer than
// the model's context.
var ErrContext = errors.New("model: context length exceeded")

// Segment is a run of consecutive tokens of one sequence.
type Segment struct {
	Seq    *kvcache.Seq
	Tokens []int32
	// Outputs is how many of the last tokens give a row of output.
	Outputs int
}

// runState is every buffer of a step. They grow to the largest batch and are
// kept.
type runState struct {
	rows     []nn.RowRef
	segs     []nn.Span
	x, h     kernel.Acts // residual stream, normalized rows
	h2       kernel.Acts // normalized rows of a parallel MLP
	q, k, v  kernel.Acts
	att, y   kernel.Acts
	gate, up kernel.Acts
	out      kernel.Acts // final rows
	part     kernel.Acts // those of out that Project reads
	logits   kernel.Acts
	cos, sin [][]float32
	wanted   []int
}

// Forward computes the segments, appends their keys and values to their
// sequences and leaves a row of output for each token that wants one, in
// order: see Logits and Hidden. Each sequence may appear once. On an error no
// sequence has changed.
func (m *Model) Forward(segs []Segment) error { return m.forward(segs, true) }

// Embed is Forward without the output matrix: only Hidden is left, and Project
// computes logits where they are wanted.
func (m *Model) Embed(segs []Segment) error { return m.forward(segs, false) }

func (m *Model) forward(segs []Segment, logits bool) error {
	if err := m.plan(segs); err != nil {
		return err
	}
	if len(m.run.rows) == 0 {
		return nil
	}
	m.setWidth(len(m.run.rows))
	m.pool.Enter()
	defer m.pool.Leave()
	err := m.lookUp(segs)
	if err == nil {
		err = m.guard(func() {
			for i := range m.w.blocks {
				m.block(i)
			}
			m.outputs(logits)
		})
	}
	if err != nil {
		for _, s := range segs {
			m.kv.Truncate(s.Seq, s.Seq.Len()-len(s.Tokens))
		}
	}
	return err
}

// plan checks the batch, takes pages and fills the rows' metadata.
func (m *Model) plan(segs []Segment) error {
	r := &m.run
	r.rows, r.segs, r.wanted = r.rows[:0], r.segs[:0], r.wanted[:0]
	for i, s := range segs {
		if s.Seq.Len()+len(s.Tokens) > m.context {
			return fmt.Errorf("%w: %d tokens held and %d more, the context has %d", ErrContext, s.Seq.Len(), len(s.Tokens), m.context)
		}
		if s.Outputs < 0 || s.Outputs > len(s.Tokens) {
			return fmt.Errorf("model: segment %d: outputs: expected 0 to %d, found %d", i, len(s.Tokens), s.Outputs)
		}
		for _, t := range s.Tokens {
			if t < 0 || int(t) >= m.cfg.Vocab {
				return fmt.Errorf("model: segment %d: token: expected 0 to %d, found %d", i, m.cfg.Vocab-1, t)
			}
		}
	}
	for i, s := range segs {
		start := s.Seq.Len()
		if err := m.kv.Grow(s.Seq, len(s.Tokens)); err != nil {
			for _, done := range segs[:i] {
				m.kv.Truncate(done.Seq, done.Seq.Len()-len(done.Tokens))
			}
			return err
		}
		first := len(r.rows)
		for j := range s.Tokens {
			r.rows = append(r.rows, nn.RowRef{Seq: s.Seq, Pos: start + j})
		}
		for j := len(s.Tokens) - s.Outputs; j < len(s.Tokens); j++ {
			r.wanted = append(r.wanted, first+j)
		}
		if len(s.Tokens) > 0 {
			r.segs = append(r.segs, nn.Span{Seq: s.Seq, Row: first, N: len(s.Tokens), Pos: start})
		}
	}
	return nil
}

// lookUp is embed, whose rows come from the files. Once these have been changed
// nothing can be computed any more.
func (m *Model) lookUp(segs []Segment) error {
	err := mmap.Guard(func() { m.embed(segs) })
	if changed := m.check(); changed != nil {
		err = changed
	}
	if err != nil {
		return fmt.Errorf("model: %w", err)
	}
	return nil
}

// embed looks the tokens up and prepares the rotary tables of their positions.
func (m *Model) embed(segs []Segment) {
	c, r := &m.cfg, &m.run
	n := len(r.rows)
	nn.Rows(&r.x, n, c.Hidden, false)
	row := 0
	for _, s := range segs {
		for _, t := range s.Tokens {
			x := nn.Row(&r.x, row)
			m.w.embed.DecodeRow(x, int(t))
			if c.EmbScale != 1 {
				kernel.Scale(x, c.EmbScale)
			}
			if m.w.position.Rows > 0 {
				nn.Rows(&r.y, 1, c.Hidden, false)
				m.w.position.DecodeRow(nn.Row(&r.y, 0), r.rows[row].Pos)
				kernel.Add(x, nn.Row(&r.y, 0))
			}
			if m.w.embNorm.W != nil {
				m.w.embNorm.Apply(x, x)
			}
			row++
		}
	}
	if c.RopeStyle == nn.RopeNone {
		return
	}
	half := c.RopeDim / 2
	for len(r.cos) < len(m.ropeInv) {
		r.cos, r.sin = append(r.cos, nil), append(r.sin, nil)
	}
	for i, inv := range m.ropeInv {
		if cap(r.cos[i]) < n*half {
			r.cos[i], r.sin[i] = make([]float32, n*half), make([]float32, n*half)
		}
		r.cos[i], r.sin[i] = r.cos[i][:n*half], r.sin[i][:n*half]
		m.exec.RopeTables(r.cos[i], r.sin[i], r.rows, inv, m.ropeScale[i])
	}
}

// block runs one layer on the residual rows.
func (m *Model) block(i int) {
	c, r, e, b := &m.cfg, &m.run, m.exec, &m.w.blocks[i]

	quant := nn.Quant(&b.q, &b.k, &b.v) || b.sharedNorm && nn.Quant(b.mlp.Gate, b.mlp.Up)
	e.Norm(&r.h, &r.x, &b.attnNorm, quant)
	m.continueFromNorm()
	e.Linear(&r.h, nn.Out{L: &b.q, Dst: &r.q}, nn.Out{L: &b.k, Dst: &r.k}, nn.Out{L: &b.v, Dst: &r.v})
	rope := nn.RopeArgs{
		Rows: r.rows, Pool: m.kv, Layer: i,
		Heads: c.Heads, KVHeads: c.KVHeads[i], HeadDim: c.HeadDim,
		QNorm: &b.qNorm, KNorm: &b.kNorm, Clip: c.ClipQKV,
	}
	if set := c.LayerRope[i]; set >= 0 {
		rope.Style, rope.Dim, rope.Cos, rope.Sin = c.RopeStyle, c.RopeDim, r.cos[set], r.sin[set]
	}
	e.RopeStore(&r.q, &r.k, &r.v, &rope)
	scale := c.AttnScale
	if c.ScaleByLayer {
		scale /= float32(i + 1)
	}
	e.Attention(&r.att, &r.q, &nn.AttnArgs{
		Spans: r.segs, Pool: m.kv, Layer: i,
		Heads: c.Heads, KVHeads: c.KVHeads[i], HeadDim: c.HeadDim,
		Scale: scale, Softcap: c.AttnSoftcap, Window: c.Window[i], Slopes: m.slopes,
		Quant: nn.Quant(&b.o),
	})

	if c.Parallel {
		m.parallelMLP(b)
		return
	}
	m.addOut(&r.att, &b.o, &b.postAttn)
	e.Norm(&r.h, &r.x, &b.mlpNorm, nn.Quant(b.mlp.Gate, b.mlp.Up))
	m.continueFromNorm()
	e.MLPHidden(&r.h, &r.gate, &r.up, &b.mlp)
	m.addOut(&r.up, b.mlp.Down, &b.postMLP)
}

// continueFromNorm makes the normalized rows the residual stream, where the
// architecture wants that.
func (m *Model) continueFromNorm() {
	if r := &m.run; m.cfg.NormResid {
		for i := range r.x.N {
			copy(nn.Row(&r.x, i), nn.Row(&r.h, i))
		}
	}
}

// parallelMLP finishes a block whose attention and MLP read the same rows: the
// MLP's input is taken before attention's output is added.
func (m *Model) parallelMLP(b *block) {
	r, e := &m.run, m.exec
	in := &r.h
	if !b.sharedNorm {
		e.Norm(&r.h2, &r.x, &b.mlpNorm, nn.Quant(b.mlp.Gate, b.mlp.Up))
		in = &r.h2
	}
	e.MLPHidden(in, &r.gate, &r.up, &b.mlp)
	m.addOut(&r.att, &b.o, &b.postAttn)
	m.addOut(&r.up, b.mlp.Down, &b.postMLP)
}

// addOut adds l(x), normalized if post has weights, to the residual rows.
func (m *Model) addOut(x *kernel.Acts, l *nn.Linear, post *nn.Norm) {
	r, e := &m.run, m.exec
	if post.W == nil {
		e.LinearAdd(&r.x, &r.y, x, l, m.cfg.ResidScale)
		return
	}
	e.Linear(x, nn.Out{L: l, Dst: &r.y})
	e.AddNorm(&r.x, &r.y, post, m.cfg.ResidScale)
}

// outputs computes the final rows of the tokens that want one, and their
// logits.
func (m *Model) outputs(logits bool) {
	c, r, e := &m.cfg, &m.run, m.exec
	n := len(r.wanted)
	nn.Rows(&r.out, n, c.Hidden, false)
	r.logits.N = 0
	if n == 0 {
		return
	}
	// Wanted rows move to the front: what comes after is not read again.
	for i, row := range r.wanted {
		copy(nn.Row(&r.x, i), nn.Row(&r.x, row))
	}
	r.x.N = n
	e.Norm(&r.out, &r.x, &m.w.outNorm, nn.Quant(&m.w.head))
	if logits {
		m.Project(0, n)
	}
}

// Project computes the logits of n output rows of the last Forward or Embed,
// from row first on: Logits(i) is that of row first+i afterwards. Many rows of
// a large vocabulary can so be had in pieces.
func (m *Model) Project(first, n int) {
	c, r := &m.cfg, &m.run
	r.part = r.out
	r.part.N = n
	r.part.F32 = r.out.F32[first*r.out.LDF:]
	if nn.Quant(&m.w.head) {
		r.part.Q = r.out.Q[first*r.out.LDQ:]
	}
	if m.guard(func() { m.exec.Linear(&r.part, nn.Out{L: &m.w.head, Dst: &r.logits}) }) != nil {
		clear(r.logits.F32) // the next Forward says why
	}
	for i := range n {
		y := nn.Row(&r.logits, i)
		if c.LogitScale != 1 {
			kernel.Scale(y, c.LogitScale)
		}
		if c.FinalSoftcap != 0 {
			kernel.Softcap(y, c.FinalSoftcap)
		}
	}
}

// Outputs returns the number of output rows of the last Forward or Embed.
func (m *Model) Outputs() int { return m.run.out.N }

// Logits returns the logits of output row i of the last Forward, or of row i of
// those that Project computed since: one per entry of the vocabulary. The slice
// is valid until the next Forward or Project and may be changed.
func (m *Model) Logits(i int) []float32 { return nn.Row(&m.run.logits, i) }

// Hidden returns the final normalized state of output row i of the last
// Forward or Embed, valid until the next one.
func (m *Model) Hidden(i int) []float32 { return nn.Row(&m.run.out, i) }
