package machine

import (
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"time"

	"ridge/internal/arena"
	"ridge/internal/pool"
	"ridge/kernel"
)

// ReadBandwidth measures how many bytes per second the given number of threads
// read together from a buffer of size bytes, again and again for about d. It
// is the bound of decoding with weights of that size. It returns 0 if there is
// no memory for the buffer.
func ReadBandwidth(threads int, size int, d time.Duration) float64 {
	p, err := NewProber(threads, size)
	if err != nil {
		return 0
	}
	defer p.Close()
	return p.Read(size, d)
}

// Prober measures what bounds a computation: reads from memory, arithmetic,
// and the start and end of a parallel region. It keeps its threads and its
// buffer, so that it can measure often, between the pieces of other work.
type Prober struct {
	pool *pool.Pool
	mem  *arena.Arena
	part int // bytes of a thread
}

// page is the unit of a thread's share of the buffer.
const page = 4096

// NewProber starts a prober with the given number of threads, at least 1, and
// a buffer of about size bytes, all of which is taken from the system.
func NewProber(threads, size int) (*Prober, error) {
	if threads < 1 || size < 0 {
		return nil, fmt.Errorf("machine: prober: expected at least one thread and a size, found %d and %d", threads, size)
	}
	p := &Prober{part: max((size/threads)&^(page-1), page)}
	var err error
	if p.mem, err = arena.New(p.part * threads); err != nil {
		return nil, fmt.Errorf("machine: prober: %w", err)
	}
	p.pool = pool.New(threads)
	p.pool.Run(touch{p})
	return p, nil
}

// Threads returns the number of threads that measure.
func (p *Prober) Threads() int { return p.pool.Workers() }

// Close ends the threads and gives the buffer back.
func (p *Prober) Close() error {
	if p.pool == nil {
		return errors.New("machine: prober: expected one close, found a second")
	}
	p.pool.Close()
	p.pool = nil
	return p.mem.Free()
}

func (p *Prober) bytes(worker int) []byte {
	return p.mem.Bytes()[worker*p.part : (worker+1)*p.part]
}

// touch gets the pages of the buffer from the system.
type touch struct{ p *Prober }

func (t touch) Do(worker, workers int) {
	b := t.p.bytes(worker)
	for i := 0; i < len(b); i += page {
		b[i] = 1
	}
}

// Read measures how many bytes per second all threads read together, each from
// a part of its own, when the parts have size bytes in all, at most what
// NewProber was given. It reads everything once, and then measures for about d.
func (p *Prober) Read(size int, d time.Duration) float64 { return p.Reads(size, d, 1)[0] }

// Reads is Read for n measurements, one after the other, that go on reading
// where the one before ended.
func (p *Prober) Reads(size int, d time.Duration, n int) []float64 {
	part := max(min(size/p.Threads()&^(page-1), p.part), page)
	step := min(part, readStep)
	at := make([]int, 8*p.Threads())
	p.pool.Run(warm{p, part})
	rates := make([]float64, n)
	for i := range rates {
		rates[i] = p.rate(d, func(worker int) func() int {
			b, at := p.bytes(worker)[:part], &at[8*worker]
			return func() int {
				piece := b[*at:min(*at+step, part)]
				kernel.ReadProbe(piece)
				if *at += step; *at >= part {
					*at = 0
				}
				return len(piece)
			}
		})
	}
	return rates
}

// warm reads every part once.
type warm struct {
	p    *Prober
	part int
}

func (t warm) Do(worker, workers int) {
	b := t.p.bytes(worker)[:t.part]
	for len(b) > 0 {
		n := min(len(b), readStep)
		kernel.ReadProbe(b[:n])
		b = b[n:]
	}
}

// readStep is read between two looks at the clock.
const readStep = 128 << 10

// Ops measures how many additions and multiplications per second all threads
// do together, on int8 or on float32 values in registers, for about d.
func (p *Prober) Ops(integer bool, d time.Duration) float64 {
	return p.rate(d, func(int) func() int {
		return func() int { return kernel.DotProbe(integer, dotStep) }
	})
}

// BrainOps is Ops for bfloat16 values, 0 where the processor has no products of
// these that kernels use.
func (p *Prober) BrainOps(d time.Duration) float64 {
	if kernel.BrainProbe(1) == 0 {
		return 0
	}
	return p.rate(d, func(int) func() int {
		return func() int { return kernel.BrainProbe(dotStep) }
	})
}

// dotStep makes a call of the probe some tens of microseconds long.
const dotStep = 5000

// rate runs a worker's unit of work on every thread for about d and adds what
// the units returned, per second. prepare runs before any thread starts to
// measure.
func (p *Prober) rate(d time.Duration, prepare func(worker int) func() int) float64 {
	t := &rateTask{d: d, prepare: prepare, rates: make([]float64, 8*p.Threads())}
	p.pool.Run(t)
	sum := 0.0
	for _, r := range t.rates {
		sum += r
	}
	return sum
}

type rateTask struct {
	d       time.Duration
	prepare func(worker int) func() int
	ready   atomic.Int32
	rates   []float64 // 8 apart: workers do not share cache lines
}

func (t *rateTask) Do(worker, workers int) {
	unit := t.prepare(worker)
	t.ready.Add(1)
	for t.ready.Load() < int32(workers) {
		runtime.Gosched()
	}
	n, start := 0, time.Now()
	for {
		n += unit()
		if d := time.Since(start); d >= t.d {
			t.rates[8*worker] = float64(n) / d.Seconds()
			return
		}
	}
}

// Region measures what starting and ending a parallel region of all threads
// costs beyond the work in it: the shortest mean over a run of regions, among as
// many runs as fit in about d. The regions have some microseconds of work, for
// a pool does without threads that it only waits for.
func (p *Prober) Region(d time.Duration) time.Duration {
	alone := shortest(d/4, func() { brief{}.Do(0, 1) })
	return max(shortest(d*3/4, func() { p.pool.Run(brief{}) })-alone, 1)
}

// shortest returns the shortest mean duration of f over a run of calls.
func shortest(d time.Duration, f func()) time.Duration {
	const n = 30
	best := time.Duration(1<<63 - 1)
	for start := time.Now(); ; {
		at := time.Now()
		for range n {
			f()
		}
		best = min(best, time.Since(at)/n)
		if time.Since(start) >= d {
			return best
		}
	}
}

// brief works for some microseconds.
type brief struct{}

func (brief) Do(worker, workers int) { kernel.DotProbe(false, dotStep/10) }
