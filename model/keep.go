package model

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"sync/atomic"
	"time"

	"ridge/internal/arena"
	"ridge/internal/builtin"
	"ridge/internal/cpu"
	"ridge/internal/mmap"
	"ridge/internal/packfile"
	"ridge/kernel"
	"ridge/weights/tensor"
)

// PackCache says where the packed weights are kept for later starts, which
// then need not pack. Nothing is kept of a model that is part of the program,
// for the kernels of cpu.Ref, which pack nothing, and on systems on which files
// are not mapped. See docs/memory.md.
type PackCache struct {
	Dir  string            // folder of the files; "" keeps nothing
	Warn func(text string) // told why nothing could be kept; may be nil, and is called from other goroutines
}

// KeepPacked keeps packed weights in the folder that this user has for caches. If there
// is none, warn is told so.
func (o *Options) KeepPacked(warn func(text string)) {
	o.PackCache = PackCache{Dir: packfile.Dir(), Warn: warn}
	if o.PackCache.Dir == "" && warn != nil {
		warn("packed weights are not kept: there is no folder for caches (set XDG_CACHE_HOME or HOME)")
	}
}

// packVersion stands for what is packed of a model of every family, and how its
// matrices are changed before. It changes with these, as kernel.LayoutVersion
// does with the packed form of a matrix.
const packVersion = 2

// packedMatrix is a matrix under the name by which it was packed.
type packedMatrix struct {
	name string
	*kernel.Packed
}

// keeper keeps the packed weights of one model in a file.
type keeper struct {
	PackCache
	model string // the path by which the file is found
	id    string // of the model's files, before they were read
	key   string
	src   source

	ctx      context.Context
	stop     context.CancelFunc // ends the writing
	hurry    chan struct{}      // closed when somebody waits for it
	released chan struct{}      // closed when neither weights nor sources are needed any more
	done     chan struct{}      // closed when the file is there, or given up
}

// newKeeper returns the keeper of m's weights, nil if they are not kept.
func newKeeper(m *Model, o PackCache) *keeper {
	if o.Dir == "" || cpu.Current() == cpu.Ref {
		return nil
	}
	k := &keeper{PackCache: o, model: m.path, src: m.src}
	if m.gg != nil {
		k.model = m.gg.Shards()[0] // whichever was given
	}
	id, settled := m.src.id()
	if id != "" && !settled {
		time.Sleep(60 * time.Millisecond) // it was written just now
		id, settled = m.src.id()
	}
	switch {
	case id == "":
		if !builtin.Is(m.path) {
			k.warn(errors.New("this system does not tell whether a file was changed"))
		}
		return nil
	case !settled:
		k.warn(errors.New("the model's files were written in the last seconds: a change of them might not show"))
		return nil
	}
	k.id = id
	h := sha256.New()
	fmt.Fprintf(h, "layout %d, packing %d\n%s%s%s", kernel.LayoutVersion, packVersion, m.act.tag(), id, m.cfg.identity())
	k.key = hex.EncodeToString(h.Sum(nil))
	return k
}

func (k *keeper) warn(err error) {
	if k.Warn != nil {
		k.Warn(fmt.Sprintf("packed weights of %s are not kept: %v", k.model, err))
	}
}

// readWeights reads the weights: packed ones where they are kept, else those of
// the model's files, which it packs and has kept.
func (m *Model) readWeights(o *Options) (err error) {
	beyond, err := m.checkRoom(o)
	if err != nil {
		return err
	}
	k := newKeeper(m, o.PackCache)
	if beyond != nil {
		return m.readBeyond(k, o, beyond)
	}
	if k != nil {
		c := m.cfg // loading adds to it what the weights tell
		c.Rope = slices.Clone(c.Rope)
		if m.w = k.load(m, o); m.w != nil {
			return nil
		}
		m.cfg = c
	}
	if m.w, err = m.load(o.Progress, nil); err == nil && k != nil {
		m.toKeep = k
	}
	return err
}

// load takes the weights from the file that they are kept in. It returns nil if
// there is none for this model as it is now. A damaged file is removed.
func (k *keeper) load(m *Model, o *Options) *weights {
	path := packfile.Path(k.Dir, k.model)
	file, err := packfile.Open(path)
	var w *weights
	if err == nil {
		if file.Key == k.key {
			w, err = m.loadKept(file, o)
		}
		if w == nil || w.file == nil {
			file.Close()
		}
	}
	if errors.Is(err, packfile.ErrDamaged) {
		os.Remove(path) // the next one is written in a moment
	}
	return w
}

// inPlace reports whether weights are used where file is mapped, which other
// processes share. They are not if they would be read more slowly there than in
// memory of the process's own: with small pages in place of huge ones, or far
// from the threads that read them. Then they are copied. Tests replace it.
var inPlace = func(m *Model, file *packfile.File) bool {
	return !m.pool.Spread() && (file.Huge() || !arena.Huge())
}

// loadKept takes the weights from file.
func (m *Model) loadKept(file *packfile.File, o *Options) (*weights, error) {
	if err := file.Fetch(); err != nil {
		return nil, err
	}
	return m.loadFrom(file, o, &keptMatrices{inPlace: inPlace(m, file)})
}

// loadFrom takes the weights from file, as k says.
func (m *Model) loadFrom(file *packfile.File, o *Options, k *keptMatrices) (*weights, error) {
	k.file, k.shapes = file, map[string]tensor.Mat{}
	for _, e := range file.Matrix[:k.matrices()] {
		s := k.shapes[e.Name+".weight"]
		s.Type, s.Rows, s.Cols = tensor.DType(e.Type), s.Rows+e.Rows, e.Cols
		k.shapes[e.Name+".weight"] = s
	}
	delete(k.shapes, "token_embd.weight") // its rows are looked up
	return m.load(o.Progress, k)
}

// keptMatrices hands the matrices of a file to a builder, in their order. Its
// methods can be called on nil, when there is no file.
type keptMatrices struct {
	file    *packfile.File
	inPlace bool // they are used where they are mapped, not copied
	// pinned, when not nil, has the matrices that are copied all the same.
	pinned map[int]bool
	shapes map[string]tensor.Mat
	n      int // matrices handed out; columns apart come behind the last
	failed atomic.Pointer[error]
}

// mat returns the shape of a matrix that is kept packed, without data.
func (k *keptMatrices) mat(name string) (m tensor.Mat, ok bool, err error) {
	if k != nil {
		m, ok = k.shapes[name]
	}
	return m, ok, nil
}

// next goes on to the next matrix, which must be that of the given name and
// shape.
func (k *keptMatrices) next(name string, m tensor.Mat) error {
	if k == nil {
		return nil
	}
	if k.n == k.matrices() {
		return fmt.Errorf("%w: expected it, found none", packfile.ErrDamaged)
	}
	e := &k.file.Matrix[k.n]
	size, err := kernel.PackedBytes(m)
	if err != nil {
		return err
	}
	if e.Name != name || tensor.DType(e.Type) != m.Type || e.Rows != m.Rows || e.Cols != m.Cols || e.Size != int64(size) {
		return fmt.Errorf("%w: expected %v %d x %d in %d bytes, found %q %v %d x %d in %d", packfile.ErrDamaged,
			m.Type, m.Rows, m.Cols, size, e.Name, tensor.DType(e.Type), e.Rows, e.Cols, e.Size)
	}
	k.n++
	return nil
}

// mapped says whether the matrix that next went to is used where it is mapped.
func (k *keptMatrices) mapped() bool { return k != nil && k.inPlace && !k.pinned[k.n-1] }

// bytes returns the matrix that next went to.
func (k *keptMatrices) bytes() []byte { return k.file.Bytes(k.n - 1) }

// offset returns the place of that matrix in the file.
func (k *keptMatrices) offset() int64 {
	if k == nil {
		return 0
	}
	return k.file.Matrix[k.n-1].Offset
}

// copy reads the groups [g0, g1) of j.
func (k *keptMatrices) copy(j *packJob, g0, g1 int) {
	size := j.dst.GroupBytes
	if _, err := k.file.ReadAt(j.dst.Data[g0*size:g1*size], j.at+int64(g0*size)); err != nil {
		k.failed.CompareAndSwap(nil, &err)
	}
}

// finish makes sure that b has all that is kept.
func (k *keptMatrices) finish(b *builder) error {
	if k == nil {
		return nil
	}
	if n := k.matrices(); k.n != n {
		return fmt.Errorf("%w: expected %d matrices, found %d", packfile.ErrDamaged, k.n, n)
	}
	if err := k.failed.Load(); err != nil {
		return *err
	}
	b.w.sum = k.file.Print
	for i, p := range b.w.packed {
		if k.inPlace && !k.pinned[i] {
			continue
		}
		if !k.file.Matrix[i].Matches(p.Data) {
			return fmt.Errorf("%w: matrix %q has other bytes than were written", packfile.ErrDamaged, p.name)
		}
	}
	switch b.w.from = "copied"; {
	case k.pinned != nil:
		b.w.file, b.w.from = k.file, "read again"
	case k.inPlace:
		b.w.file, b.w.from = k.file, "mapped"
	}
	return k.loadApart(b.w)
}

// check returns an error if a file that weights are read from was changed.
func (m *Model) check() error {
	err := m.src.check()
	if err == nil && m.w.file != nil {
		err = m.w.file.Check()
	}
	return err
}

// guard runs f, which reads packed weights. If they lie in a file that was cut
// short meanwhile, it returns ErrChanged.
func (m *Model) guard(f func()) (err error) {
	if m.w.file == nil {
		f()
		return nil
	}
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true)) // the pool's threads have it set
	defer func() {
		if v := recover(); v != nil {
			if !mmap.Faulted(v) && m.w.file.Check() == nil {
				panic(v)
			}
			err = fmt.Errorf("model: packed weights: %w", ErrChanged)
		}
	}()
	f()
	if m.beyond != nil {
		if err := m.beyond.failed(); err != nil {
			return fmt.Errorf("model: packed weights: %w", err)
		}
	}
	return nil
}

// keepRate is how many bytes a second are written while the model answers: a
// third of what the system takes, so that answers are not slowed much.
const keepRate = 500 << 20

// keepPatience is how long Close waits for the file.
const keepPatience = 10 * time.Second

// start writes the file beside what else goes on.
func (k *keeper) start(w *weights) {
	k.ctx, k.stop = context.WithCancel(context.Background())
	k.hurry, k.released, k.done = make(chan struct{}), make(chan struct{}), make(chan struct{})
	d := &packfile.Directory{Model: k.model, Key: k.key, Print: w.sum}
	for _, p := range w.packed {
		d.Matrix = append(d.Matrix, packfile.Entry{Name: p.name, Type: uint32(p.Type), Rows: p.Rows, Cols: p.Cols})
	}
	d.Matrix = append(d.Matrix, w.apartEntries()...)
	go func() {
		defer close(k.done)
		err := packfile.Write(k.ctx, k.Dir, d, packfile.Writing{
			Bytes: func(i int) []byte {
				if n := len(w.packed); i >= n {
					return w.aparts[i-n].mem
				}
				return w.packed[i].Data
			},
			Pause: k.pause,
			Last: func() error {
				defer close(k.released)
				if id, _ := k.src.id(); id != k.id {
					return ErrChanged
				}
				return nil
			},
		})
		if errors.Is(err, context.Canceled) {
			err = fmt.Errorf("the program ended before they were written, and waited %v", keepPatience)
		}
		if err != nil {
			k.warn(err)
		}
	}()
}

// pause waits after n bytes were written, unless somebody waits for the end.
func (k *keeper) pause(n int) {
	select {
	case <-k.hurry:
	case <-time.After(time.Duration(n) * time.Second / keepRate):
	}
}

// close ends the writing: within keepPatience with the file, after that without.
func (k *keeper) close() {
	close(k.hurry)
	select {
	case <-k.done:
		return
	case <-time.After(keepPatience):
	}
	k.stop()
	select {
	case <-k.done:
	case <-k.released:
	}
}
