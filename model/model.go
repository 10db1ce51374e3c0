// Package model opens language models and runs them. Open reads a GGUF file or
// a Hugging Face checkpoint; Forward computes a batch of tokens of any number
// of sequences and appends their keys and values to a page pool.
package model

import (
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"

	"ridge/internal/mmap"
	"ridge/internal/pool"
	"ridge/kvcache"
	"ridge/nn"
	"ridge/text/tokenizer"
	"ridge/weights/gguf"
	"ridge/weights/quantized"
	"ridge/weights/safetensors"
	"ridge/weights/tensor"
)

// Options are the choices that Open leaves to its caller.
type Options struct {
	Workers    int          // threads; 0 means what Measured says, or one per core given to the process
	KV         tensor.DType // element type of keys and values, F16, F32, BF16 or Q8_0; 0 (F32) is kept, see DefaultOptions
	Act        Act          // how activations are kept that quantized matrices read
	PageTokens int          // tokens in a page of keys and values; 0 means 64
	KVBytes    int64        // memory for keys and values; 0 means one sequence of Context tokens, and for encoders room for 64 short texts beside it
	// KVBudget is where memory for keys and values is taken from as it is needed,
	// in place of KVBytes; nil for none.
	KVBudget   *kvcache.Budget
	Context    int // positions that will be used; 0 means what the model was made for
	MaxContext int // bound of Context when that is 0; 0 means none
	// BatchWorkers is the number of threads for steps of more than 8 rows, such
	// as prompts; 0 means as many as Workers.
	BatchWorkers int
	// Measured are the numbers of threads that are best on this machine for
	// weights in memory next to them; 0 means not known.
	Measured  pool.Counts
	Pin       bool      // bind each thread to a processor of its own while it computes
	PackCache PackCache // for quick starts, and for weights that do not fit into memory
	// Memory is how many bytes the model may take; 0 means what the system and the
	// control groups leave. See MemoryError.
	Memory int64
	// Progress, when not nil, is told how many bytes of weights were packed.
	Progress func(done, total int64)
}

// DefaultOptions returns the options that suit most uses.
func DefaultOptions() Options { return Options{KV: tensor.F16} }

// Model is an open model. Its methods other than the accessors must not be
// called at the same time.
type Model struct {
	arch *architecture
	cfg  Config
	net  *Net
	w    *weights
	src  source
	// present says which weights it has that not every model has.
	present map[string]presence
	gg      *gguf.File // nil for a checkpoint directory
	// quantized says how a checkpoint's weights are quantized, nil if they are not.
	quantized *quantized.Config
	parts     parts // of sentence-transformers
	kv        *kvcache.Pool
	pool      *pool.Pool
	exec      *nn.Exec
	rows      netRows

	widths widths
	beyond *Beyond // nil if the weights fit into memory
	keeper *keeper // nil if nothing is to be kept
	toKeep *keeper // it starts when the weights are complete

	tok      *tokenizer.Tokenizer
	template string
	defaults Defaults
	context  int
	act      Act
	path     string
	ropes    []*nn.Rope
	steerID  string // of the control vectors that all rows have, "" for none
}

// Open reads the model at path: a GGUF file (any shard of a split one), a
// directory with config.json and safetensors files, or the path of a model that
// is part of the program (see internal/builtin). The errors name the file,
// the field, what was expected and what was found.
func Open(path string, o Options) (_ *Model, err error) {
	m := &Model{path: path}
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true)) // the pool's threads have it set
	defer func() {
		if v := recover(); v != nil {
			if !mmap.Faulted(v) && (m.src == nil || m.src.check() == nil) {
				panic(v)
			}
			err = fmt.Errorf("model: %s: %w", path, ErrChanged)
		}
		if err != nil {
			m.Close()
		}
	}()
	if err := m.openSource(); err != nil {
		return nil, err
	}
	if err := m.setup(o); err != nil {
		return nil, err
	}
	if err := m.src.check(); err != nil { // while it was read
		return nil, fmt.Errorf("model: %w", err)
	}
	return m, nil
}

// openSource opens the files and reads the configuration.
func (m *Model) openSource() error {
	dir, err := isDir(m.path)
	if err != nil {
		return fmt.Errorf("model: %w", err)
	}
	open := m.openGGUF
	if dir {
		open = m.openHF
	}
	if err := open(m.path); err != nil {
		return err
	}
	if m.defaults, err = ReadDefaults(m.path, m.gg); err != nil {
		return err
	}
	m.cfg.defaults()
	if err := m.cfg.Validate(); err != nil {
		return fmt.Errorf("model: %s: %w", m.path, err)
	}
	return nil
}

func (m *Model) openGGUF(path string) error {
	f, err := gguf.Open(path)
	if err != nil {
		return err
	}
	src := &ggufSource{f: f}
	m.gg, m.src = f, src
	arch, _ := f.Lookup("general.architecture")
	name, _ := arch.(string)
	if m.arch = byName(name); m.arch == nil {
		near := unlike(name, architectureNames(), byName, func(a *architecture, _ *Config) (source, *description, error) {
			return &ggufSource{f: f, aliases: a.aliases}, ggufDescription(f, name), nil
		})
		return fmt.Errorf("model: %s: metadata %q: expected one of %v, found %q: %s", path, "general.architecture", architectureNames(), name, near)
	}
	src.aliases, src.judge = m.arch.aliases, ggufJudge(f)
	d := ggufDescription(f, name)
	if err := m.arch.read(d, &m.cfg); err != nil {
		return err
	}
	m.present = d.present
	if t, ok := f.Tensor("token_embd.weight"); ok && len(t.Dims) == 2 {
		m.cfg.Vocab = int(min(t.Dims[1], 1<<31))
	}
	m.template = f.String("tokenizer.chat_template", "")
	return nil
}

func (m *Model) openHF(dir string) error {
	d, err := hfDescription(dir)
	if err != nil {
		return err
	}
	if m.parts, err = hfParts(dir); err != nil {
		return err
	}
	kind := d.str("", "model_type", "")
	if m.arch = byType(kind); m.arch == nil && *d.err == nil {
		st, err := safetensors.Open(dir)
		if err != nil {
			return fmt.Errorf("model: %s: model_type: expected one of %v, found %q", d.file, hfTypes(), kind)
		}
		defer st.Close()
		near := unlike(kind, hfTypes(), byType, func(a *architecture, c *Config) (source, *description, error) {
			return a.names.open(st, dir, c), d, nil
		})
		return fmt.Errorf("model: %s: model_type: expected one of %v, found %q: %s", d.file, hfTypes(), kind, near)
	}
	if *d.err != nil {
		return *d.err
	}
	if err := m.arch.read(d, &m.cfg); err != nil {
		return err
	}
	if d.around != nil && d.around != m.arch { // its other parts lie beside the language model
		both := *m.arch
		both.unused = slices.Concat(both.unused, d.around.unused)
		m.arch = &both
	}
	m.present = d.present
	m.parts.present(d)
	st, err := safetensors.Open(dir)
	if err != nil {
		return err
	}
	if err := m.openCheckpoint(st, d.quantized); err != nil {
		st.Close()
		return err
	}
	m.template, err = hfTemplate(dir)
	return err
}

// openCheckpoint takes st as the source of weights, quantized in the way that c
// says, if it is not nil.
func (m *Model) openCheckpoint(st *safetensors.File, c *quantized.Config) error {
	var files hfFiles = st
	if c != nil {
		q, err := quantized.Open(st, c)
		if err != nil {
			return fmt.Errorf("model: %w", err)
		}
		files, m.quantized, m.cfg.Quantized = q, c, c.Identity()
	}
	files, err := m.parts.beside(files)
	if err != nil {
		return err
	}
	if files, err = m.parts.judge.beside(files, &m.arch.names, &m.cfg); err != nil {
		return fmt.Errorf("model: %s: modules: %w", m.path, err)
	}
	m.src = m.arch.names.open(files, m.path, &m.cfg)
	return nil
}

// setup does what is left once the configuration is known: weights and
// tokenizer side by side, then the page pool.
func (m *Model) setup(o Options) error {
	c := &m.cfg
	if m.act = o.Act; !m.act.valid() {
		return fmt.Errorf("model: activations: expected one of %v, found %v", Acts(), m.act)
	}
	if m.act == ActBF16x2 && o.PackCache.Dir != "" {
		return fmt.Errorf("model: activations: expected others than %v with a cache of packed weights, which has them as they are in the file", m.act)
	}
	if m.context = o.Context; m.context <= 0 {
		m.context = c.Context
		if o.MaxContext > 0 {
			m.context = min(m.context, o.MaxContext)
		}
	}
	if err := m.startPool(&o); err != nil {
		return fmt.Errorf("model: %w", err)
	}
	m.exec = nn.NewExec(m.pool)

	var wg sync.WaitGroup
	var tokErr error
	wg.Go(func() {
		m.tok, tokErr = readTokenizer(m.path, m.gg)
		m.src.drop() // the metadata; what is being packed is mapped again
	})
	var err error
	func() {
		m.pool.Enter()
		defer m.pool.Leave()
		err = m.readWeights(&o)
	}()
	wg.Wait()
	if err == nil {
		err = tokErr
	}
	if err != nil {
		return err
	}
	if err := m.checkVocabulary(); err != nil {
		return err
	}
	if rows := m.net.Embed.Positions.Rows; rows > 0 && m.context > rows {
		return fmt.Errorf("model: %s: context: expected at most %d, the learned positions, found %d", m.path, rows, m.context)
	}
	m.net.Embed.read = m.src.read
	m.net.Dense = m.parts.activate(m.net.Dense)
	if m.net.Classes != nil {
		m.defaults.Pooling = PoolingRank
	}
	if err := m.openPool(o); err != nil {
		return err
	}
	m.net.setBrain(m.act)
	for l, n := range m.net.Planes(m.act) {
		l.Planes = n
	}
	if err := m.keepApart(); err != nil {
		return err
	}
	if k := m.toKeep; k != nil {
		m.keeper, m.toKeep = k, nil
		k.start(m.w)
	}
	return nil
}

// bothTexts is how many short texts in both directions have room for their keys at
// one time beside a long one: these are one layer's.
const bothTexts = 64

// keptStates is how many states have room beside that of a sequence.
const keptStates = 3

func (m *Model) openPool(o Options) error {
	cfg := m.poolConfig(m.net, &o)
	var err error
	if cfg.MaxBytes == 0 {
		page := max(o.PageTokens, 64)
		if m.cfg.Encoder.Both {
			page *= bothTexts
		}
		if cfg.MaxBytes, err = kvcache.SequenceBytes(cfg, m.context+page, 0); err != nil {
			return err
		}
		if slices.ContainsFunc(cfg.Layers, func(l kvcache.LayerShape) bool { return l.State > 0 }) {
			// A prefix that is kept has a state of its own, and so has what goes on from it.
			first, _ := kvcache.SequenceBytes(cfg, 1, 0)
			cfg.MaxBytes += keptStates * first
		}
	}
	m.kv, err = kvcache.New(cfg)
	m.exec.KV = m.kv
	return err
}

// poolConfig says what pool n needs.
func (m *Model) poolConfig(n *Net, o *Options) kvcache.Config {
	if m.cfg.Encoder.Both {
		o.KV = tensor.F32 // nothing is kept beyond a step
	}
	cfg := kvcache.Config{Layers: n.Keeps(), DType: o.KV, PageTokens: o.PageTokens, MaxBytes: o.KVBytes, Budget: o.KVBudget}
	for i := range cfg.Layers {
		if l := &cfg.Layers[i]; l.Window >= m.context {
			l.Window = 0 // it sees all
		}
	}
	return cfg
}

// Config returns what is known of the architecture.
func (m *Model) Config() Config { return m.cfg }

// Context returns the number of positions that a sequence may have.
func (m *Model) Context() int { return m.context }

// Act returns how activations are kept that quantized matrices read.
func (m *Model) Act() Act { return m.act }

// Tokenizer returns the model's tokenizer, nil if the files carry none.
func (m *Model) Tokenizer() *tokenizer.Tokenizer { return m.tok }

// ChatTemplate returns the source of the model's chat template, "" if the
// files carry none.
func (m *Model) ChatTemplate() string { return m.template }

// Defaults returns what the model's files recommend to those who use it.
func (m *Model) Defaults() *Defaults { return &m.defaults }

// Quantized says how the weights of a checkpoint are quantized: the method with
// its settings, "" if they are not, and notes for people.
func (m *Model) Quantized() (method string, notes []string) {
	if s, ok := m.src.(*hfSource); ok && m.quantized != nil {
		if q, ok := s.st.(*quantized.File); ok {
			return m.quantized.Text, q.Notes()
		}
	}
	return "", nil
}

// GGUF returns the file that the model was read from, nil for a directory.
func (m *Model) GGUF() *gguf.File { return m.gg }

// Pool returns the pool that holds keys and values. It belongs to the model.
func (m *Model) Pool() *kvcache.Pool { return m.kv }

// Workers returns the number of threads that compute, at most.
func (m *Model) Workers() int { return m.pool.Workers() }

// Widths returns how many threads compute steps of up to 8 rows, and of more.
func (m *Model) Widths() (narrow, wide int) { return m.widths.narrow, m.widths.wide }

// Threads returns the threads that compute, for work of the same step. Nothing
// may run on them during a method of the model.
func (m *Model) Threads() *pool.Pool { return m.pool }

// Net returns the network. It belongs to the model.
func (m *Model) Net() *Net { return m.net }

// Parameters returns the number of weights.
func (m *Model) Parameters() int64 { return m.w.params }

// WeightBytes returns the bytes of matrices that a decoded token reads.
func (m *Model) WeightBytes() int64 { return m.net.activeBytes() }

// PackedFrom says how the weights came to be packed: "" if that was done at the
// start, "mapped" if they are used where Options.PackCache has them mapped,
// "copied" if they were read from there into memory, "read again" if they do not
// fit into memory: see Beyond.
func (m *Model) PackedFrom() string { return m.w.from }

// Close gives memory and threads back.
func (m *Model) Close() error {
	var errs []error
	if m.keeper != nil {
		m.keeper.close()
		m.keeper = nil
	}
	if m.pool != nil {
		m.pool.Close()
	}
	if m.kv != nil {
		errs = append(errs, m.kv.Close())
	}
	if m.beyond != nil {
		m.beyond.experts.close()
		m.beyond.layers.close()
		m.beyond = nil
	}
	if m.w != nil {
		errs = append(errs, m.w.free())
	}
	if m.src != nil {
		errs = append(errs, m.src.close())
	}
	return errors.Join(errs...)
}
