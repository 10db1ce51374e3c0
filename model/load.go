package model

import (
	"errors"
	"fmt"

	"ridge/internal/arena"
	"ridge/internal/packfile"
	"ridge/internal/pool"
	"ridge/kernel"
	"ridge/nn"
	"ridge/weights/tensor"
)

// block is one transformer layer.
type block struct {
	attnNorm nn.Norm
	mlpNorm  nn.Norm
	// sharedNorm: the MLP reads the normalized rows of attention.
	sharedNorm        bool
	postAttn, postMLP nn.Norm
	q, k, v, o        nn.Linear
	qNorm, kNorm      nn.Norm
	mlp               nn.MLP
}

// weights are all weights of a model, packed for the kernels.
type weights struct {
	embed    tensor.Mat // rows are decoded as they are looked up
	position tensor.Mat // learned positions, or no rows
	embNorm  nn.Norm
	blocks   []block
	outNorm  nn.Norm
	head     nn.Linear

	factors []float32 // rope_freqs
	arenas  []*arena.Arena
	bytes   int64 // packed matrices that a token reads
	params  int64
	sum     []byte         // fingerprint
	packed  []packedMatrix // for a keeper
	file    *packfile.File // that matrices lie in, nil if none do
	from    string         // see Model.PackedFrom
}

func (w *weights) free() error {
	var errs []error
	if w.file != nil {
		errs = append(errs, w.file.Close())
	}
	for _, a := range w.arenas {
		errs = append(errs, a.Free())
	}
	return errors.Join(errs...)
}

// loader builds weights from a source. Matrices are planned first and packed
// in parallel: at the end those that are views of a file, a few at a time those
// that had to be copied. It keeps the first error.
type loader struct {
	src  source
	c    *Config
	w    *weights
	err  error
	jobs []packJob // planned and not yet packed
	pool *pool.Pool
	task packTask
	// joint is the place of the next matrix among those that share its region,
	// zero if it has one of its own.
	joint reading
	// packedCopies is what src had copied when the last jobs were packed.
	packedCopies int64
	print        fingerprint
	// kept, when not nil, has the matrices packed.
	kept *keptMatrices
	// outline, when not nil, gets the matrices in place of memory for them.
	outline *Outline
}

// arenaChunk is what is reserved at a time; the system gives only the pages
// that are written.
const arenaChunk = 256 << 20

func (l *loader) alloc(n int) []byte {
	if l.kept.mapped() {
		return l.kept.bytes()
	}
	if len(l.w.arenas) > 0 {
		if b := l.w.arenas[len(l.w.arenas)-1].Alloc(n); b != nil {
			return b
		}
	}
	a, err := arena.New(max(n, arenaChunk))
	if err != nil {
		return nil
	}
	l.w.arenas = append(l.w.arenas, a)
	return a.Alloc(n)
}

func (l *loader) fail(format string, args ...any) {
	if l.err == nil {
		l.err = fmt.Errorf("model: %s: "+format, append([]any{l.src.name()}, args...)...)
	}
}

// find returns a tensor; shape is checked unless rows is 0.
func (l *loader) find(name string, rows, cols int) (tensor.Mat, bool) {
	if l.err != nil {
		return tensor.Mat{}, false
	}
	m, ok, err := l.kept.mat(name)
	if !ok {
		m, ok, err = l.src.mat(name)
	}
	switch {
	case err != nil:
		l.err = err
		return m, false
	case !ok:
		return m, false
	case rows > 0 && (m.Rows != rows || m.Cols != cols):
		l.fail("tensor %q: expected %d x %d, found %d x %d", name, rows, cols, m.Rows, m.Cols)
		return m, false
	case !m.Type.CanDecode():
		l.fail("tensor %q: element type %v cannot be read", name, m.Type)
		return m, false
	}
	l.w.params += int64(m.Rows) * int64(m.Cols)
	if l.outline == nil && l.kept == nil {
		l.print.add(name, m)
		l.src.release(m.Data) // the samples' pages, and what is mapped around them
	}
	return m, true
}

// vector returns a tensor of n elements as float32, or nil if there is none.
func (l *loader) vector(name string, n int) []float32 {
	m, ok := l.find(name, 1, n)
	if !ok {
		return nil
	}
	x := make([]float32, m.Cols)
	m.DecodeRow(x, 0)
	l.src.release(m.Data)
	return x
}

func (l *loader) norm(name string, n int) nn.Norm {
	norm := nn.Norm{Kind: l.c.Norm, Eps: l.c.NormEps}
	norm.W = l.vector(name+".weight", n)
	norm.B = l.vector(name+".bias", n)
	return norm
}

// mustNorm is norm for one that the architecture cannot do without.
func (l *loader) mustNorm(name string, n int) nn.Norm {
	norm := l.norm(name, n)
	if norm.W == nil && l.c.PlainNorms {
		norm.W = make([]float32, n)
		for i := range norm.W {
			norm.W[i] = 1
		}
	}
	if norm.W == nil {
		l.fail("tensor %q: expected %d elements, found none", name+".weight", n)
	}
	return norm
}

// pack plans the packed form of m.
func (l *loader) pack(name string, m tensor.Mat) *kernel.Packed {
	if l.err != nil {
		return nil
	}
	if l.outline != nil {
		l.outline.add(name, m)
		return nil
	}
	if err := l.kept.next(name, m); err != nil {
		l.fail("tensor %q: %w", name, err)
		return nil
	}
	p, err := kernel.NewPacked(m, l.alloc)
	if err != nil {
		l.fail("tensor %q: %w", name, err)
		return nil
	}
	l.w.bytes += int64(len(p.Data))
	l.w.packed = append(l.w.packed, packedMatrix{name, p})
	if l.kept.mapped() {
		return p
	}
	at := l.joint
	if at.total == 0 {
		at.total = p.Groups
	} else {
		l.joint.first += p.Groups
	}
	l.jobs = append(l.jobs, packJob{p, m, at, l.kept.offset()})
	if l.src.copied()-l.packedCopies > maxCopied {
		l.packPlanned()
	}
	return p
}

func (l *loader) linear(name string, rows, cols int) nn.Linear {
	m, ok := l.find(name+".weight", rows, cols)
	if !ok {
		l.fail("tensor %q: expected %d x %d, found none", name+".weight", rows, cols)
		return nn.Linear{}
	}
	return nn.Linear{W: l.pack(name, m), Bias: l.vector(name+".bias", rows)}
}

// split returns the rows [lo, hi) of a fused matrix and its bias.
func (l *loader) split(name string, m tensor.Mat, bias []float32, lo, hi int) nn.Linear {
	size := m.Type.RowBytes(m.Cols)
	if m.Rows = hi - lo; l.kept == nil {
		m.Data = m.Data[lo*size : hi*size]
	}
	lin := nn.Linear{W: l.pack(name, m)}
	if bias != nil {
		lin.Bias = bias[lo:hi]
	}
	return lin
}

// load plans and packs all weights, or takes them from where they are kept
// packed, if kept is not nil.
func load(src source, c *Config, p *pool.Pool, progress func(done, total int64), kept *keptMatrices) (*weights, error) {
	l := &loader{src: src, c: c, w: &weights{}, print: newFingerprint(c), pool: p, kept: kept}
	l.task = packTask{tell: progress, total: src.size(), release: src.release, apart: p.Spread(), kept: kept}
	l.all()
	if l.err == nil {
		l.packPlanned()
		l.err = kept.finish(l)
	}
	src.drop()
	if l.err != nil {
		l.w.free()
		return nil, l.err
	}
	if kept == nil {
		l.w.sum = l.print.Sum(nil)
	}
	if progress != nil {
		progress(l.task.total, l.task.total)
	}
	return l.w, nil
}

// all plans everything.
func (l *loader) all() {
	l.globals()
	for i := range l.c.Layers {
		if l.err != nil {
			return
		}
		l.w.blocks = append(l.w.blocks, l.block(i))
	}
}

func (l *loader) globals() {
	c, w := l.c, l.w
	var ok bool
	if w.embed, ok = l.find("token_embd.weight", c.Vocab, c.Hidden); !ok {
		l.fail("tensor %q: expected %d x %d, found none", "token_embd.weight", c.Vocab, c.Hidden)
	}
	if m, ok := l.find("position_embd.weight", 0, 0); ok {
		if m.Cols != c.Hidden || m.Rows < c.Context {
			l.fail("tensor %q: expected at least %d x %d, found %d x %d", "position_embd.weight", c.Context, c.Hidden, m.Rows, m.Cols)
		}
		w.position = m
	}
	w.embNorm = l.norm("token_embd_norm", c.Hidden)
	w.outNorm = l.mustNorm("output_norm", c.Hidden)
	if m, ok := l.find("output.weight", c.Vocab, c.Hidden); ok && !c.Tied {
		w.head = nn.Linear{W: l.pack("output", m), Bias: l.vector("output.bias", c.Vocab)}
	} else {
		c.Tied = true
		w.head = nn.Linear{W: l.pack("token_embd", w.embed)}
	}
	if c.RopeStyle != nn.RopeNone {
		w.factors = l.vector("rope_freqs.weight", c.RopeDim/2)
		s := &c.Rope[0].Scaling
		short, long := l.vector("rope_factors_short.weight", c.RopeDim/2), l.vector("rope_factors_long.weight", c.RopeDim/2)
		if short != nil && long != nil {
			s.Kind, s.Short, s.Long = "longrope", short, long
			if s.Factor == 1 && s.Original > 0 {
				s.Factor = float64(c.Context) / float64(s.Original)
			}
		}
		if s.Kind == "longrope" && (len(s.Short) != c.RopeDim/2 || len(s.Long) != c.RopeDim/2) {
			l.fail("longrope factors: expected %d short and long ones, found %d and %d", c.RopeDim/2, len(s.Short), len(s.Long))
		}
	}
}

func (l *loader) block(i int) block {
	c, b := l.c, block{}
	at := func(part string) string { return fmt.Sprintf("blk.%d.%s", i, part) }
	l.norms(&b, at)
	qRows, kvRows := c.Heads*c.HeadDim, c.KVHeads[i]*c.HeadDim
	l.joint = reading{total: groups(qRows) + 2*groups(kvRows)}
	if m, ok := l.find(at("attn_qkv.weight"), qRows+2*kvRows, c.Hidden); ok {
		bias := l.vector(at("attn_qkv.bias"), m.Rows)
		b.q = l.split(at("attn_qkv"), m, bias, 0, qRows)
		b.k = l.split(at("attn_qkv"), m, bias, qRows, qRows+kvRows)
		b.v = l.split(at("attn_qkv"), m, bias, qRows+kvRows, m.Rows)
	} else {
		b.q = l.linear(at("attn_q"), qRows, c.Hidden)
		b.k = l.linear(at("attn_k"), kvRows, c.Hidden)
		b.v = l.linear(at("attn_v"), kvRows, c.Hidden)
	}
	l.joint = reading{}
	b.o = l.linear(at("attn_output"), c.Hidden, qRows)
	b.qNorm = l.qkNorm(at("attn_q_norm"), c.Heads)
	b.kNorm = l.qkNorm(at("attn_k_norm"), c.KVHeads[i])
	l.mlp(&b, at)
	return b
}

// groups returns how many groups rows of a matrix are packed into.
func groups(rows int) int { return (rows + kernel.Lanes - 1) / kernel.Lanes }

func (l *loader) norms(b *block, at func(string) string) {
	c := l.c
	if c.PostNorms {
		b.attnNorm = l.norm(at("attn_norm"), c.Hidden)
		b.mlpNorm = l.norm(at("ffn_norm"), c.Hidden)
		b.postAttn = l.mustNorm(at("post_attention_norm"), c.Hidden)
		b.postMLP = l.mustNorm(at("post_ffw_norm"), c.Hidden)
		return
	}
	b.attnNorm = l.mustNorm(at("attn_norm"), c.Hidden)
	if !c.Parallel {
		b.mlpNorm = l.mustNorm(at("ffn_norm"), c.Hidden)
		return
	}
	// Side by side: a norm of the MLP's own, or Falcon's second one for
	// attention, or one for both.
	second := l.norm(at("attn_norm_2"), c.Hidden)
	b.mlpNorm = l.norm(at("ffn_norm"), c.Hidden)
	switch {
	case second.W != nil:
		b.attnNorm, b.mlpNorm = second, b.attnNorm
	case b.mlpNorm.W == nil:
		b.sharedNorm = true
	}
}

// qkNorm reads the norm of queries or keys: the same weights for each head,
// weights for each head, or one norm over all heads.
func (l *loader) qkNorm(name string, heads int) nn.Norm {
	m, ok := l.find(name+".weight", 0, 0)
	if !ok {
		return nn.Norm{}
	}
	l.w.params -= int64(m.Rows) * int64(m.Cols)
	dim := l.c.HeadDim
	if m.Rows == heads && m.Cols == dim && heads > 1 {
		norm := nn.Norm{Kind: l.c.Norm, Eps: l.c.NormEps, Group: dim, W: make([]float32, heads*dim)}
		for i := range heads {
			m.DecodeRow(norm.W[i*dim:(i+1)*dim], i)
		}
		l.src.release(m.Data)
		return norm
	}
	if m.Cols != dim {
		dim *= heads
	}
	return l.norm(name, dim)
}

func (l *loader) mlp(b *block, at func(string) string) {
	c := l.c
	b.mlp.Act = c.Act
	down := l.linear(at("ffn_down"), c.Hidden, c.FFN)
	b.mlp.Down = &down
	l.joint = reading{mlp: true}
	defer func() { l.joint = reading{} }()
	if c.Gated {
		// Phi-3 keeps gate and up in one matrix.
		if m, ok := l.find(at("ffn_up.weight"), 0, 0); ok && m.Rows == 2*c.FFN && m.Cols == c.Hidden {
			bias := l.vector(at("ffn_up.bias"), m.Rows)
			gate, up := l.split(at("ffn_up"), m, bias, 0, c.FFN), l.split(at("ffn_up"), m, bias, c.FFN, 2*c.FFN)
			b.mlp.Gate, b.mlp.Up = &gate, &up
			return
		} else if ok {
			l.w.params -= int64(m.Rows) * int64(m.Cols) // found again below
		}
		gate := l.linear(at("ffn_gate"), c.FFN, c.Hidden)
		b.mlp.Gate = &gate
	}
	up := l.linear(at("ffn_up"), c.FFN, c.Hidden)
	b.mlp.Up = &up
}
