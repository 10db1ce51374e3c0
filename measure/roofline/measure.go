package roofline

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"time"

	"ridge/internal/arena"
	"ridge/internal/cpu"
	"ridge/internal/pool"
	"ridge/kernel"
	"ridge/measure/machine"
	"ridge/weights/tensor"
)

// MeasureOptions say what of this machine is measured.
type MeasureOptions struct {
	Threads []int          // thread counts, rising; nil means one, and as many as there are cores
	Types   []tensor.DType // matrix kernels
	Build   string         // of the program that measures

	effort *effort // nil for the usual one; tests hurry
}

// effort is how long each number is measured, and how often.
type effort struct {
	window, readWindow, kernel time.Duration
	windows                    int
	sizes                      []int64 // of buffers that are read
	share                      float64 // of the processor time of its threads that a measurement must get to count
}

// usualEffort takes short windows and many of them. Of operations a high
// percentile counts, since other programs only ever make a core slower. Of
// reads the median does: the memory is shared, and its best moments do not last
// for a token.
var usualEffort = effort{window: 3 * time.Millisecond, readWindow: 8 * time.Millisecond, kernel: 6 * time.Millisecond, windows: 40, sizes: readSizes, share: quietShare}

// bestWindows is the percentile.
const bestWindows = 0.9

// sustained returns the median of x.
func sustained(x []float64) float64 {
	slices.Sort(x)
	return x[len(x)/2]
}

// readSizes are the sizes of buffers that are read, from some that fit in the
// caches of the cores to one that fits in none.
var readSizes = []int64{1 << 20, 4 << 20, 16 << 20, 48 << 20, 128 << 20, 320 << 20, 1 << 30}

// kernelRows are the rows of activations for which kernels are measured.
var kernelRows = []int{1, 2, 4, 8, 16, 32, 128, 512}

// Measure measures this machine, in some seconds.
func Measure(ctx context.Context, o MeasureOptions) (*Machine, error) {
	info := machine.Read()
	m := &Machine{
		Name: info.CPU, Source: Measured, Arch: info.Arch, Tier: cpu.Current().String(), Cores: info.Cores,
		L2: info.L2, L3: info.L3, Memory: info.MemoryTotal, Taken: time.Now().UTC().Truncate(time.Second), Build: o.Build,
	}
	if m.Name == "" {
		m.Name = runtime.GOOS + "/" + runtime.GOARCH
	}
	if len(o.Threads) == 0 {
		o.Threads = []int{1}
		if n := pool.DefaultWorkers(); n > 1 {
			o.Threads = append(o.Threads, n)
		}
	}
	e := o.effort
	if e == nil {
		e = &usualEffort
	}
	most := e.sizes[len(e.sizes)-1]
	if info.MemoryFree > 0 {
		most = min(most, info.MemoryFree/4)
	}
	m.Load = machine.LoadAverage()
	for _, n := range o.Threads {
		r, calm, err := e.threads(ctx, n, most)
		if err != nil {
			return nil, err
		}
		m.Threads = append(m.Threads, r)
		m.Disturbed = m.Disturbed || !calm
	}
	if err := e.kernels(ctx, m, o.Types); err != nil {
		return nil, err
	}
	m.Load = max(m.Load, machine.LoadAverage())
	return m, m.validate()
}

// threads measures what n threads do together. calm reports that other programs
// did not disturb it.
func (e *effort) threads(ctx context.Context, n int, most int64) (r ThreadRates, calm bool, err error) {
	r.Threads = n
	p, err := machine.NewProber(n, int(most))
	if err != nil {
		return r, false, fmt.Errorf("roofline: %w", err)
	}
	defer p.Close()
	calm = true
	for _, size := range e.sizes {
		if err := ctx.Err(); err != nil {
			return r, false, err
		}
		if size > most && len(r.Read) > 0 {
			break
		}
		reads, ok := e.collect(n, func(k int) []float64 { return p.Reads(int(size), e.readWindow, k) })
		r.Read = append(r.Read, ReadPoint{size, sustained(reads)})
		calm = calm && ok
	}
	ints, floats, brains, ok := e.ops(p)
	r.IntOps, r.FloatOps, r.BrainOps = ints, floats, brains
	r.Region = p.Region(e.window * time.Duration(e.windows)).Seconds()
	return r, calm && ok, ctx.Err()
}

// ops measures operations per second. brains are floats where the processor has
// no products of bfloat16.
func (e *effort) ops(p *machine.Prober) (ints, floats, brains float64, calm bool) {
	calm = true
	best := func(ops func(time.Duration) float64) float64 {
		x, ok := e.collect(p.Threads(), func(k int) (x []float64) {
			for range k {
				x = append(x, ops(e.window))
			}
			return x
		})
		slices.Sort(x)
		calm = calm && ok
		return x[int(bestWindows*float64(len(x)-1))]
	}
	ints = best(func(d time.Duration) float64 { return p.Ops(true, d) })
	floats = best(func(d time.Duration) float64 { return p.Ops(false, d) })
	if brains = floats; kernel.BrainProbe(1) > 0 {
		brains = best(p.BrainOps)
	}
	return ints, floats, brains, calm
}

// Measurements come in batches, long enough for the system to tell what
// processor time they got, of which some more are taken than are needed.
const (
	batches   = 5
	mostTries = 3 * batches
	// clockStep is how far the system's count of processor time may lag behind.
	clockStep = 4 * time.Millisecond
)

// collect takes batches of measurements that each take n windows, with threads
// threads, until enough of them got their processor time. If that does not
// come about, it returns all of them, and calm is false.
func (e *effort) collect(threads int, take func(n int) []float64) (x []float64, calm bool) {
	var good []float64
	for tries, rest := mostTries, batches; rest > 0; tries-- {
		if tries == 0 {
			return x, false
		}
		start, used := time.Now(), cpu.Time()
		batch := take(max(e.windows/batches, 1))
		wall, own := time.Since(start), cpu.Time()-used
		x = append(x, batch...)
		if used == 0 || (own+clockStep).Seconds() >= e.share*wall.Seconds()*float64(threads) {
			good = append(good, batch...)
			rest--
		}
	}
	return good, true
}

// kernels adds the rates of the kernels for types of weights that m has none of
// yet: the best of several rounds, some time apart.
func (e *effort) kernels(ctx context.Context, m *Machine, types []tensor.DType) error {
	var added []tensor.DType
	for _, t := range types {
		if !m.hasKernel(t) && !slices.Contains(added, t) {
			added = append(added, t)
		}
	}
	var best []KernelRate
	for round := range kernelRounds {
		var rates []KernelRate
		for _, t := range added {
			r, err := e.kernelRates(ctx, t)
			if err != nil {
				return err
			}
			rates = append(rates, r...)
		}
		if round == 0 {
			best = rates
		}
		for i, r := range rates {
			best[i].OpRate = max(best[i].OpRate, r.OpRate)
		}
	}
	m.Kernels = append(m.Kernels, best...)
	return nil
}

const kernelRounds = 3

func (m *Machine) hasKernel(t tensor.DType) bool {
	return slices.ContainsFunc(m.Kernels, func(k KernelRate) bool { return k.Type == t.String() })
}

// kernelRates multiplies a matrix that fits in the cache of a core.
func (e *effort) kernelRates(ctx context.Context, t tensor.DType) ([]KernelRate, error) {
	const rows, cols = 256, 1024
	mat := tensor.Mat{Type: t, Rows: rows, Cols: cols, Data: sampleWeights(t, rows, cols)}
	size, err := kernel.PackedBytes(mat)
	if err != nil {
		return nil, fmt.Errorf("roofline: %w", err)
	}
	most := kernelRows[len(kernelRows)-1]
	x := kernel.Acts{N: most, K: cols, LDF: cols, LDQ: kernel.ActRowBytes(cols)}
	mem, err := arena.New(size + 4*most*(cols+rows) + most*x.LDQ + 4*64)
	if err != nil {
		return nil, fmt.Errorf("roofline: %w", err)
	}
	defer mem.Free()
	w, err := kernel.NewPacked(mat, mem.Alloc)
	if err != nil {
		return nil, fmt.Errorf("roofline: %w", err)
	}
	w.Pack(mat, 0, w.Groups)
	x.Q = mem.Alloc(most * x.LDQ)
	x.F32, x.N = make([]float32, most*cols), most
	rng := rand.New(rand.NewPCG(1, 1))
	for i := range x.F32 {
		x.F32[i] = float32(rng.NormFloat64())
	}
	for r := range most {
		kernel.QuantizeRow(x.Q[r*x.LDQ:][:x.LDQ], x.F32[r*cols:][:cols])
	}
	dst := make([]float32, most*rows)
	var out []KernelRate
	for _, n := range kernelRows {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		sec := quick(e.kernel, func() { w.Mul(dst, rows, &x, 0, n, 0, w.Groups) })
		out = append(out, KernelRate{t.String(), n, 2 * float64(n) * rows * cols / sec})
	}
	return out, nil
}

// quick returns how long f takes when nothing disturbs it: a low percentile of
// many calls.
func quick(d time.Duration, f func()) float64 {
	f()
	var x []float64
	for start := time.Now(); len(x) < 5 || time.Since(start) < d; {
		at := time.Now()
		f()
		x = append(x, time.Since(at).Seconds())
	}
	slices.Sort(x)
	return x[len(x)/10]
}

// sampleWeights returns random weights, or zeros for types that cannot be
// written: the kernels' speed does not depend on them.
func sampleWeights(t tensor.DType, rows, cols int) []byte {
	b := make([]byte, rows*t.RowBytes(cols))
	const some = 16 // rows that are made, and repeated
	if !t.CanEncode() {
		return b
	}
	rng := rand.New(rand.NewPCG(1, 2))
	x := make([]float32, some*cols)
	for i := range x {
		x[i] = float32(rng.NormFloat64()) * 0.02
	}
	n := t.RowBytes(len(x))
	if t.Encode(b[:n], x) != nil {
		return make([]byte, len(b))
	}
	for i := n; i < len(b); i += n {
		copy(b[i:], b[:n])
	}
	return b
}
