package model

import (
	"errors"
	"fmt"
	"slices"

	"ridge/internal/arena"
	"ridge/internal/packfile"
	"ridge/internal/pool"
	"ridge/kernel"
	"ridge/nn"
	"ridge/weights/tensor"
)

// weights is the memory of a network's weights, and what is known of all of them.
type weights struct {
	arenas []*arena.Arena
	params int64
	sum    []byte         // fingerprint
	packed []packedMatrix // for a keeper
	file   *packfile.File // that matrices lie in, nil if none do
	from   string         // see Model.PackedFrom
	apart  bool           // matrices have the columns that they keep apart
	aparts []keptApart
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

// builder builds a network from a source. Matrices are planned first and packed
// in parallel: at the end those that are views of a file, layer by layer those
// that had to be copied. It keeps the first error.
type builder struct {
	src      source
	c        *Config
	w        *weights
	ropes    []*nn.Rope   // of the sets of frequencies
	slopes   []float32    // of ALiBi
	distance *nn.Distance // biases of encoders
	// attentions are those that were built, in order: of families that share keys and
	// values, one of each layer.
	attentions []*nn.Attention
	more       func(l *Layer, at func(string) string) // builds what else a family's layers have; nil for nothing

	// first is the first layer to build: of a network that is built beside another one,
	// without what is around the layers.
	first int

	gguf    bool                // src is a GGUF file
	scores  bool                // the network has a classifier, and writes no text
	present map[string]presence // of weights that not every model has
	used    map[string]bool     // tensors of the file
	asked   map[string]asked    // of the weights in present

	err  error
	jobs []packJob // planned and not yet packed
	// placed is how many of jobs place has seen.
	placed int
	pool   *pool.Pool
	task   packTask
	copies int64 // bytes of weights that were widened
	// packedCopies is what was copied when the last jobs were packed.
	packedCopies int64
	print        fingerprint
	// kept, when not nil, has the matrices packed.
	kept *keptMatrices
	// shapes leaves all bytes of matrices out: the network is only asked for what
	// it would read.
	shapes bool
	found  []string // names of the weights that were asked for and are there, if shapes is set
	// later leaves packing to who planned, and takes no memory for it.
	later bool
}

// builder returns a builder of m's network.
func (m *Model) builder() *builder {
	return &builder{src: m.src, c: &m.cfg, w: &weights{}, gguf: m.gg != nil, present: m.present, used: map[string]bool{}, asked: map[string]asked{}}
}

// load plans and packs all weights of a network, or takes them from where they
// are kept packed, if kept is not nil.
func (m *Model) load(progress func(done, total int64), kept *keptMatrices) (*weights, error) {
	b := m.builder()
	b.print, b.pool, b.kept = newFingerprint(&m.cfg), m.pool, kept
	b.task = packTask{tell: progress, total: m.src.size(), release: m.src.release, apart: m.pool.Spread(), kept: kept}
	net := m.arch.build(b)
	if b.checkUnused(m.arch); b.err == nil {
		b.packPlanned()
		b.err = kept.finish(b)
	}
	m.src.drop()
	if b.err != nil {
		b.w.free()
		return nil, b.err
	}
	if kept == nil {
		b.w.sum = b.print.Sum(nil)
	}
	m.net, m.ropes = net, b.ropes
	if progress != nil {
		progress(b.task.total, b.task.total)
	}
	return b.w, nil
}

// arenaChunk is what is reserved at a time; the system gives only the pages
// that are written.
const arenaChunk = 256 << 20

func (b *builder) alloc(n int) []byte {
	if b.kept.mapped() {
		return b.kept.bytes()
	}
	return b.w.alloc(n)
}

// alloc returns n bytes of memory aligned to 64, nil if there are none.
func (w *weights) alloc(n int) []byte {
	if len(w.arenas) > 0 {
		if mem := w.arenas[len(w.arenas)-1].Alloc(n); mem != nil {
			return mem
		}
	}
	a, err := arena.New(max(n, arenaChunk))
	if err != nil {
		return nil
	}
	w.arenas = append(w.arenas, a)
	return a.Alloc(n)
}

func (b *builder) fail(format string, args ...any) {
	if b.err == nil {
		b.err = fmt.Errorf("model: %s: "+format, append([]any{b.src.name()}, args...)...)
	}
}

// has says whether there is a tensor of the given name.
func (b *builder) has(name string) bool {
	return b.src.has(name)
}

// find returns a tensor; shape is checked unless rows is 0.
func (b *builder) find(name string, rows, cols int) (tensor.Mat, bool) {
	if b.err != nil {
		return tensor.Mat{}, false
	}
	m, ok, err := b.kept.mat(name)
	if !ok {
		m, ok, err = b.src.mat(name)
	}
	switch {
	case err != nil:
		b.err = err
		return m, false
	case !ok:
		return m, false
	case rows > 0 && (m.Rows != rows || m.Cols != cols):
		b.fail("tensor %q: expected %d x %d, found %d x %d", b.spelling(name), rows, cols, m.Rows, m.Cols)
		return m, false
	case !m.Type.CanDecode():
		b.fail("tensor %q: element type %v cannot be read", b.spelling(name), m.Type)
		return m, false
	}
	for _, n := range b.src.names(name) {
		b.used[n] = true
	}
	if b.shapes {
		b.found = append(b.found, name)
	}
	b.w.params += int64(m.Rows) * int64(m.Cols)
	if !b.shapes && b.kept == nil {
		b.print.add(name, m)
		b.src.release(m.Data) // the samples' pages, and what is mapped around them
	}
	return b.widen(name, m), b.err == nil
}

// vector returns a tensor of n elements as float32, or nil if there is none.
func (b *builder) vector(name string, n int) []float32 { return b.floats(b.find(name, 1, n)) }

// bias is vector for one that not every model has.
func (b *builder) bias(name string, n int) []float32 { return b.floats(b.optional(name, 1, n)) }

func (b *builder) floats(m tensor.Mat, ok bool) []float32 {
	if !ok {
		return nil
	}
	x := make([]float32, m.Cols)
	m.DecodeRow(x, 0)
	b.src.release(m.Data)
	return x
}

// norm returns a norm of n elements.
func (b *builder) norm(name string, n int) nn.Norm {
	norm := nn.Norm{Kind: b.c.Norm, Eps: b.c.NormEps}
	if b.c.PlainNorms {
		norm.W = ones(n)
		return norm
	}
	if norm.W = b.vector(name+".weight", n); norm.W == nil {
		b.missing(1, n, name+".weight")
	}
	norm.B = b.bias(name+".bias", n)
	return norm
}

// ones returns the weights of a norm without any.
func ones(n int) []float32 { return slices.Repeat([]float32{1}, n) }

// optionalNorm is norm for one that not every model has: without it rows pass
// through.
func (b *builder) optionalNorm(name string, n int) nn.Norm {
	norm := nn.Norm{Kind: b.c.Norm, Eps: b.c.NormEps, W: b.bias(name+".weight", n)}
	if norm.W != nil {
		norm.B = b.bias(name+".bias", n)
	}
	return norm
}

// pack plans the packed form of m.
func (b *builder) pack(name string, m tensor.Mat) *kernel.Packed {
	if b.err != nil {
		return nil
	}
	if b.shapes {
		p, err := kernel.PackedShape(m)
		if err != nil {
			b.fail("tensor %q: %w", name, err)
		}
		return p
	}
	if err := b.kept.next(name, m); err != nil {
		b.fail("tensor %q: %w", name, err)
		return nil
	}
	p, err := kernel.PackedShape(m)
	if !b.later && err == nil {
		p, err = kernel.NewPacked(m, b.alloc)
	}
	if err != nil {
		b.fail("tensor %q: %w", name, err)
		return nil
	}
	b.w.packed = append(b.w.packed, packedMatrix{name, p})
	if !b.kept.mapped() {
		b.jobs = append(b.jobs, packJob{dst: p, src: m, reading: reading{total: p.Groups, unit: 1}, at: b.kept.offset()})
	}
	return p
}

// linear returns a matrix and its bias, which may be missing.
func (b *builder) linear(name string, rows, cols int) nn.Linear {
	m, ok := b.find(name+".weight", rows, cols)
	if !ok {
		b.missing(rows, cols, name+".weight")
		return nn.Linear{}
	}
	return nn.Linear{W: b.pack(name, m), Bias: b.bias(name+".bias", rows)}
}

// fused returns the parts of a matrix, which have so many rows each, one after
// the other. It returns nil if there is no such matrix.
func (b *builder) fused(name string, cols int, rows ...int) []nn.Linear {
	total := 0
	for _, n := range rows {
		total += n
	}
	m, ok := b.find(name+".weight", total, cols)
	if !ok {
		return nil
	}
	bias := b.bias(name+".bias", total)
	var parts []nn.Linear
	lo, size := 0, m.Type.RowBytes(m.Cols)
	for _, n := range rows {
		part := m
		if part.Rows = n; b.kept == nil {
			part.Data = m.Data[lo*size : (lo+n)*size]
		}
		l := nn.Linear{W: b.pack(name, part)}
		if bias != nil {
			l.Bias = bias[lo : lo+n]
		}
		parts = append(parts, l)
		lo += n
	}
	return parts
}
