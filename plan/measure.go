package plan

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"time"

	"ridge/internal/arena"
	"ridge/internal/cpu"
	"ridge/internal/machine"
	"ridge/internal/pool"
	"ridge/kernel"
	"ridge/tensor"
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
}

// usualEffort takes short windows and many of them. Of operations a high
// percentile counts, since other programs only ever make a core slower. Of
// reads the median does: the memory is shared, and its best moments do not last
// for a token.
var usualEffort = effort{window: 3 * time.Millisecond, readWindow: 8 * time.Millisecond, kernel: 6 * time.Millisecond, windows: 40, sizes: readSizes}

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
		r, err := e.threads(ctx, n, most)
		if err != nil {
			return nil, err
		}
		m.Threads = append(m.Threads, r)
	}
	if err := e.kernels(ctx, m, o.Types); err != nil {
		return nil, err
	}
	m.Load = max(m.Load, machine.LoadAverage())
	return m, m.validate()
}

// threads measures what n threads do together.
func (e *effort) threads(ctx context.Context, n int, most int64) (ThreadRates, error) {
	r := ThreadRates{Threads: n}
	p, err := machine.NewProber(n, int(most))
	if err != nil {
		return r, fmt.Errorf("plan: %w", err)
	}
	defer p.Close()
	best := func(x []float64) float64 {
		slices.Sort(x)
		return x[int(bestWindows*float64(len(x)-1))]
	}
	for _, size := range e.sizes {
		if err := ctx.Err(); err != nil {
			return r, err
		}
		if size > most && len(r.Read) > 0 {
			break
		}
		r.Read = append(r.Read, ReadPoint{size, sustained(p.Reads(int(size), e.readWindow, e.windows))})
	}
	var ints, floats []float64
	for range e.windows {
		ints = append(ints, p.Ops(true, e.window))
		floats = append(floats, p.Ops(false, e.window))
	}
	r.IntOps, r.FloatOps = best(ints), best(floats)
	r.Region = p.Region(e.window * time.Duration(e.windows)).Seconds()
	return r, ctx.Err()
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
		return nil, fmt.Errorf("plan: %w", err)
	}
	most := kernelRows[len(kernelRows)-1]
	x := kernel.Acts{N: most, K: cols, LDF: cols, LDQ: kernel.ActRowBytes(cols)}
	mem, err := arena.New(size + 4*most*(cols+rows) + most*x.LDQ + 4*64)
	if err != nil {
		return nil, fmt.Errorf("plan: %w", err)
	}
	defer mem.Free()
	w, err := kernel.NewPacked(mat, mem.Alloc)
	if err != nil {
		return nil, fmt.Errorf("plan: %w", err)
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
