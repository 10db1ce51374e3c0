package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"ridge/internal/arena"
	"ridge/internal/cpu"
	"ridge/internal/pool"
	"ridge/kernel"
	"ridge/weights/tensor"
)

// KernelOptions say which matrix kernels are measured: every type with every
// shape, number of rows and tier.
type KernelOptions struct {
	Types   []tensor.DType
	Shapes  [][2]int // rows and columns of the weights
	Rows    []int    // rows of activations
	Tiers   []cpu.Tier
	Threads int           // 0 means 1
	Time    time.Duration // for each kernel; 0 means a fifth of a second
	Seed    uint64
	Spread  int // bytes over which copies of the weights are spread; 0 means 256 MiB
}

// KernelResult is one kernel measured. The times are the 10th percentile of
// all calls: what a call takes when nothing else runs on the core.
type KernelResult struct {
	Type    string `json:"type"`
	OutRows int    `json:"out_rows"` // of the weights
	Cols    int    `json:"cols"`
	Rows    int    `json:"rows"` // of activations
	Tier    string `json:"kernels"`
	Threads int    `json:"threads"`

	Seconds  float64 `json:"seconds"`
	Bytes    float64 `json:"bytes_per_s"` // of weights
	Ops      float64 `json:"ops_per_s"`
	ReadRate float64 `json:"probe_read_bytes_per_s"` // of a loop that only reads as many other bytes, in turns
	OpsRate  float64 `json:"probe_ops_per_s"`        // of a loop of products alone, in turns
	Bound    float64 `json:"of_bound"`               // least time at these rates over the time taken
	Limit    string  `json:"limit"`                  // "read", "int8" or "f32"
}

// coldBytes is the default of KernelOptions.Spread: each call finds its weights
// outside of the caches of its core.
const coldBytes = 256 << 20

// maxRows bounds the rows of activations.
const maxRows = 1 << 16

// Kernels measures matrix kernels on weights that are read from main memory, or
// from the last cache where that is larger than 256 MiB.
func Kernels(ctx context.Context, o KernelOptions, yield func(*KernelResult) error) error {
	o.Threads = max(o.Threads, 1)
	if o.Time <= 0 {
		o.Time = 200 * time.Millisecond
	}
	if o.Spread <= 0 {
		o.Spread = coldBytes
	}
	for _, n := range o.Rows {
		if n < 1 || n > maxRows {
			return fmt.Errorf("bench: kernels: rows: expected 1 to %d, found %d", maxRows, n)
		}
	}
	for _, tier := range o.Tiers {
		if !tier.Runs() {
			return fmt.Errorf("bench: kernels: tier %v: expected one that this processor has, %v", tier, cpu.Tiers())
		}
	}
	for _, tier := range o.Tiers {
		if err := kernelsOf(ctx, &o, tier, yield); err != nil {
			return err
		}
	}
	return nil
}

func kernelsOf(ctx context.Context, o *KernelOptions, tier cpu.Tier, yield func(*KernelResult) error) error {
	defer cpu.Set(tier)()
	p := pool.New(o.Threads)
	defer p.Close()
	for _, t := range o.Types {
		for _, shape := range o.Shapes {
			k, err := newKernelBench(o, p, t, shape[0], shape[1])
			if err != nil {
				return err
			}
			for _, rows := range o.Rows {
				err := ctx.Err()
				if err == nil {
					err = yield(k.run(rows, tier))
				}
				if err != nil {
					return errors.Join(err, k.mem.Free())
				}
			}
			if err := k.mem.Free(); err != nil {
				return err
			}
		}
	}
	return nil
}

type kernelBench struct {
	o    *KernelOptions
	pool *pool.Pool
	mem  *arena.Arena
	mats []*kernel.Packed
	rng  *rand.Rand
}

func newKernelBench(o *KernelOptions, p *pool.Pool, t tensor.DType, rows, cols int) (*kernelBench, error) {
	k := &kernelBench{o: o, pool: p, rng: rand.New(rand.NewPCG(o.Seed, 2))}
	m := tensor.Mat{Type: t, Rows: rows, Cols: cols}
	size, err := kernel.PackedBytes(m)
	if err != nil {
		return nil, fmt.Errorf("bench: %w", err)
	}
	s := synthesizer{seed: o.Seed, banks: map[tensor.DType][]byte{}}
	bank, err := s.bank(t)
	if err != nil {
		return nil, err
	}
	m.Data = make([]byte, rows*t.RowBytes(cols))
	(&randomBlocks{bank: bank, block: t.BlockBytes(), seed: o.Seed}).fill(m.Data, 0)
	n := max(o.Spread/size, 1)
	if k.mem, err = arena.New(n * (size + 64)); err != nil {
		return nil, fmt.Errorf("bench: %w", err)
	}
	for i := range n {
		w, err := kernel.NewPacked(m, k.mem.Alloc)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("bench: %w", err), k.mem.Free())
		}
		if i == 0 {
			w.Pack(m, 0, w.Groups)
		} else {
			copy(w.Data, k.mats[0].Data)
		}
		k.mats = append(k.mats, w)
	}
	return k, nil
}

// mulTask multiplies one matrix, split over the workers.
type mulTask struct {
	w   *kernel.Packed
	dst []float32
	x   *kernel.Acts
}

func (t *mulTask) Do(worker, workers int) {
	g0, g1 := pool.Split(t.w.Groups, worker, workers)
	t.w.Mul(t.dst, kernel.Lanes*t.w.Groups, t.x, 0, t.x.N, g0, g1)
}

// readTask reads what mulTask reads, and nothing else.
type readTask struct{ b []byte }

func (t *readTask) Do(worker, workers int) {
	lo, hi := pool.Split(len(t.b), worker, workers)
	kernel.ReadProbe(t.b[lo:hi])
}

// dotTask does products alone.
type dotTask struct {
	integer bool
	ops     int // of the caller's part
}

func (t *dotTask) Do(worker, workers int) {
	n := kernel.DotProbe(t.integer, 2000)
	if worker == 0 {
		t.ops = n
	}
}

func (k *kernelBench) run(rows int, tier cpu.Tier) *KernelResult {
	w := k.mats[0]
	x := k.acts(rows, w.Cols)
	mul := &mulTask{dst: make([]float32, rows*kernel.Lanes*w.Groups), x: x}
	read, dot := &readTask{}, &dotTask{integer: w.UsesQuant()}
	var muls, reads, dots []float64
	timed := func(s *[]float64, t pool.Task) {
		at := time.Now()
		k.pool.Run(t)
		*s = append(*s, time.Since(at).Seconds())
	}
	for i, start := 0, time.Now(); i < 3 || time.Since(start) < k.o.Time; i++ {
		mul.w = k.mats[i%len(k.mats)]
		read.b = k.mats[(i+len(k.mats)/2)%len(k.mats)].Data
		timed(&reads, read)
		timed(&muls, mul)
		timed(&dots, dot)
	}
	r := &KernelResult{
		Type: w.Type.String(), OutRows: w.Rows, Cols: w.Cols, Rows: rows, Tier: tier.String(), Threads: k.o.Threads,
		Seconds: quantile(muls, 0.1),
	}
	bytes, ops := float64(len(w.Data)), 2*float64(rows)*float64(w.Rows)*float64(w.Cols)
	r.Bytes, r.Ops = bytes/r.Seconds, ops/r.Seconds
	r.ReadRate, r.OpsRate = bytes/quantile(reads, 0.1), float64(dot.ops*k.o.Threads)/quantile(dots, 0.1)
	byRead, byOps := r.Bytes/r.ReadRate, r.Ops/r.OpsRate
	switch {
	case byRead >= byOps:
		r.Bound, r.Limit = byRead, "read"
	case dot.integer:
		r.Bound, r.Limit = byOps, "int8"
	default:
		r.Bound, r.Limit = byOps, "f32"
	}
	return r
}

// acts returns rows of random activations, as they are and quantized.
func (k *kernelBench) acts(rows, cols int) *kernel.Acts {
	a := &kernel.Acts{N: rows, K: cols, LDF: (cols + 15) &^ 15, LDQ: kernel.ActRowBytes(cols)}
	a.F32, a.Q = make([]float32, rows*a.LDF), make([]byte, rows*a.LDQ)
	for i := range a.F32 {
		a.F32[i] = float32(k.rng.NormFloat64())
	}
	for r := range rows {
		kernel.QuantizeRow(a.Q[r*a.LDQ:][:a.LDQ], a.F32[r*a.LDF:][:cols])
	}
	return a
}

// WriteKernels prints kernel results as a Markdown table.
func WriteKernels(w io.Writer, results []*KernelResult) error {
	t := table{head: []string{"type", "-shape", "-rows", "kernels", "-threads", "-time µs", "-GB/s", "-GOP/s", "of limit"}}
	for _, r := range results {
		limit := fmt.Sprintf("%.0f%% of %.1f GB/s", 100*r.Bound, r.ReadRate/1e9)
		if r.Limit != "read" {
			limit = fmt.Sprintf("%.0f%% of %.0f %s GOP/s", 100*r.Bound, r.OpsRate/1e9, r.Limit)
		}
		t.rows = append(t.rows, []string{r.Type, fmt.Sprintf("%dx%d", r.OutRows, r.Cols), strconv.Itoa(r.Rows), r.Tier, strconv.Itoa(r.Threads),
			fmt.Sprintf("%.1f", 1e6*r.Seconds), fmt.Sprintf("%.1f", r.Bytes/1e9), fmt.Sprintf("%.1f", r.Ops/1e9), limit})
	}
	return t.write(w)
}

// ParseShape reads a shape of weights, ROWSxCOLUMNS.
func ParseShape(s string) ([2]int, error) {
	a, b, ok := strings.Cut(s, "x")
	rows, err1 := strconv.Atoi(a)
	cols, err2 := strconv.Atoi(b)
	if !ok || err1 != nil || err2 != nil || rows < 1 || cols < 1 || rows > 1<<24 || cols > 1<<24 {
		return [2]int{}, fmt.Errorf("expected ROWSxCOLUMNS such as 2048x5632, found %q", s)
	}
	return [2]int{rows, cols}, nil
}
