// Package pool runs one task at a time on a fixed set of workers, with a start
// and a finish cheap enough for the hundreds of short regions of a forward
// pass: a region costs some tenths of a microsecond, a goroutine some ten.
//
// Workers are locked to threads of their own. Between regions they watch for
// the next one for some tens of microseconds, then sleep in the system until
// it comes, so that an idle pool takes no processor time. All waiting loops
// can be stopped by the garbage collector. Workers that regions leave out for a
// while, see SetWidth, sleep at once.
package pool

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"
)

// Task is work cut into as many parts as there are workers.
type Task interface {
	// Do does part worker of workers parts. It must not call Run.
	Do(worker, workers int)
}

// Pool is a set of workers. The goroutine that calls Run is one of them.
type Pool struct {
	mu      sync.Mutex // one region at a time
	workers int
	home    *affinity // of the caller while it computes, nil for any
	before  affinity  // of the caller before Enter
	nodes   int
	spins   int // calls of spin that take about spinTime
	crowd   crowd
	start   time.Time     // of the region
	asked   int           // parts of a region when no other process is in the way
	task    Task          // of the region, written before epoch changes
	width   atomic.Uint32 // workers that take part in regions; those above sleep here
	closed  bool
	exited  sync.WaitGroup
	fault   atomic.Pointer[fault] // first panic of a worker in the region

	// The words that threads wait on, and how many sleep there, are kept on
	// cache lines of their own: a change reaches only who waits for it.
	_        [64]byte
	epoch    atomic.Uint32 // counts regions, see begin; workers wait for it to change
	sleepers atomic.Int32  // workers that sleep or are about to
	_        [64]byte
	pending  atomic.Uint32 // workers not done yet; the caller waits for zero
	asleep   atomic.Bool   // the caller sleeps or is about to
	_        [64]byte
}

// fault is a panic on a worker.
type fault struct {
	value any
	stack []byte
}

// New starts a pool of the given number of workers, at least 1 and at most
// MaxWorkers, of which one is the caller of Run. The system chooses where they
// run.
func New(workers int) *Pool {
	p := newPool(Placement{Workers: workers})
	for i := 1; i < p.workers; i++ {
		p.exited.Go(func() {
			runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
			p.work(i)
		})
	}
	return p
}

// NewPlaced starts a pool whose workers run where pl says: each is bound to its
// processors, and what it allocates first lies in the memory next to them. The
// caller of Run is bound between Enter and Leave only.
func NewPlaced(pl Placement) (*Pool, error) {
	if len(pl.CPUs) == 0 {
		return New(pl.Workers), nil
	}
	p := newPool(pl)
	if len(pl.CPUs) != p.workers {
		return nil, fmt.Errorf("pool: expected processors for %d workers, found them for %d", p.workers, len(pl.CPUs))
	}
	home := affinityOf(pl.CPUs[0])
	p.home = &home
	bound := make(chan error)
	for i := 1; i < p.workers; i++ {
		mine := affinityOf(pl.CPUs[i])
		p.exited.Go(func() {
			runtime.LockOSThread()
			err := mine.apply()
			bound <- err
			if err == nil {
				p.work(i)
			}
		})
	}
	var err error
	for range p.workers - 1 {
		err = cmp.Or(err, <-bound)
	}
	if err == nil {
		err = p.enter()
		p.Leave()
	}
	if err != nil {
		p.Close()
		return nil, fmt.Errorf("pool: bind workers to processors %v: %w", pl.CPUs, err)
	}
	return p, nil
}

func newPool(pl Placement) *Pool {
	p := &Pool{workers: min(max(pl.Workers, 1), MaxWorkers), nodes: pl.Nodes, spins: spinCalls()}
	p.asked = p.workers
	if !p.Spread() {
		p.crowd.most = p.workers - 1
	}
	p.width.Store(uint32(p.workers))
	return p
}

// Workers returns the number of workers, the most parts that Run cuts a task
// into.
func (p *Pool) Workers() int { return p.workers }

// Width returns the most parts that Run cuts a task into: while other processes
// keep workers waiting, it makes do with fewer.
func (p *Pool) Width() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.asked
}

// Crowded reports whether the pool makes do with fewer workers, or shorter
// waits, because other processes keep workers waiting.
func (p *Pool) Crowded() bool { return p.crowd.left.Load() > 0 }

// SetWidth makes Run cut tasks into n parts, at least 1 and at most Workers,
// from now on. The workers left out sleep until they are wanted again. On a pool
// that is spread over memory nodes all workers always take part: the weights lie
// where they are read from.
func (p *Pool) SetWidth(n int) {
	n = min(max(n, 1), p.workers)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.Spread() || n == p.asked {
		return
	}
	p.asked = n
	p.resize()
}

// resize makes the next regions as wide as is asked, less the workers that the
// pool does without.
func (p *Pool) resize() {
	p.width.Store(uint32(max(p.asked-p.crowd.out, 1)))
	wake(&p.width)
}

// Spread reports whether the workers lie on several memory nodes: then what a
// worker reads often should be written first by the same worker.
func (p *Pool) Spread() bool { return p.nodes > 1 }

// Enter binds the calling goroutine to its thread, and that to the processors
// of worker 0, until Leave. It does nothing on a pool whose workers are not
// bound, or if the system took those processors away since. Between the two
// only this goroutine may call Run.
func (p *Pool) Enter() { _ = p.enter() }

func (p *Pool) enter() error {
	if p.home == nil {
		return nil
	}
	runtime.LockOSThread()
	p.before.read()
	return p.home.apply()
}

// Leave undoes Enter.
func (p *Pool) Leave() {
	if p.home == nil {
		return
	}
	_ = p.before.apply() // it was allowed a moment ago
	runtime.UnlockOSThread()
}

// Run calls t.Do once for each of at most Width parts, part 0 on the calling
// goroutine, and returns when all are done: what the parts wrote is visible to
// the caller. It allocates nothing. Calls from several goroutines run one after the other. A
// panic in any part ends in a panic here, after all parts are done. On a
// closed pool the caller does all parts itself.
func (p *Pool) Run(t Task) { p.run(t, nil, 0, 0) }

// RunShared is Run for a task whose parts take their work from s: n units in
// pieces of at least the given number. On a pool that is spread over memory nodes every
// worker keeps to the units that lie next to it, unless s says that none do.
func (p *Pool) RunShared(t Task, s *Shares, n, least int) { p.run(t, s, n, least) }

func (p *Pool) run(t Task, s *Shares, n, least int) {
	p.mu.Lock()
	width := int(p.width.Load())
	if s != nil {
		s.reset(n, least, width, p.Spread())
	}
	if p.closed || width == 1 {
		defer p.mu.Unlock()
		for i := range width {
			t.Do(i, width)
		}
		p.end(1, 0, 0)
		return
	}
	p.task = t
	p.pending.Store(uint32(width - 1))
	p.begin(width)
	p.start = time.Now()
	defer p.finish()
	t.Do(0, width)
}

// widthBits is how many of the epoch's low bits hold the region's width less
// one: a worker that comes late sees in one look whether it takes part.
const widthBits = 8

// begin changes the epoch, so that the workers of the region see it.
func (p *Pool) begin(width int) {
	p.epoch.Store((p.epoch.Load()>>widthBits+1)<<widthBits | uint32(width-1))
	if p.sleepers.Load() > 0 {
		wake(&p.epoch)
	}
}

// finish waits for the workers and ends the region.
func (p *Pool) finish() {
	own := time.Since(p.start) // what the caller's part took
	waited := p.pending.Load() != 0
	for n, limit := 0, p.looks(); p.pending.Load() != 0; n++ {
		v := p.pending.Load()
		if v == 0 {
			break
		}
		if n < limit {
			spin(&p.pending, v)
			continue
		}
		p.asleep.Store(true)
		if v = p.pending.Load(); v != 0 {
			sleep(&p.pending, v)
		}
		p.asleep.Store(false)
	}
	var wait time.Duration
	if waited {
		wait = time.Since(p.start) - own
	}
	p.end(int(p.width.Load()), own, wait)
	p.task = nil
	f := p.fault.Swap(nil)
	p.mu.Unlock()
	if f != nil {
		panic(fmt.Sprintf("pool: a worker panicked: %v\n%s", f.value, f.stack))
	}
}

// end enters a region with the crowd.
func (p *Pool) end(width int, own, wait time.Duration) {
	if p.crowd.region(width, own, wait) {
		p.resize()
	}
}

// work is the life of worker i.
func (p *Pool) work(i int) {
	debug.SetPanicOnFault(true) // tasks read mapped files
	for seen := uint32(0); ; {
		seen = p.next(i, seen)
		last := int(seen & (MaxWorkers - 1))
		if i > last {
			continue // it was the region of others
		}
		if p.task == nil {
			return
		}
		p.do(i, last+1)
		if p.pending.Add(^uint32(0)) == 0 && p.asleep.Load() {
			wake(&p.pending)
		}
	}
}

// looks returns how often a thread looks before it sleeps.
func (p *Pool) looks() int {
	if p.Spread() && p.crowd.left.Load() > 0 {
		return p.spins
	}
	return int(patientTime/spinTime) * p.spins
}

// next waits for a region after the one seen last, and before that until worker
// i is among those that take part.
func (p *Pool) next(i int, seen uint32) uint32 {
	for w := p.width.Load(); i >= int(w); w = p.width.Load() {
		sleep(&p.width, w)
	}
	for range p.looks() {
		if e := p.epoch.Load(); e != seen {
			return e
		}
		spin(&p.epoch, seen)
	}
	p.sleepers.Add(1)
	defer p.sleepers.Add(-1)
	for {
		if e := p.epoch.Load(); e != seen {
			return e
		}
		sleep(&p.epoch, seen)
	}
}

// do runs part i of width and keeps its panic for the caller of Run.
func (p *Pool) do(i, width int) {
	defer func() {
		if v := recover(); v != nil {
			p.fault.CompareAndSwap(nil, &fault{v, debug.Stack()})
		}
	}()
	p.task.Do(i, width)
}

// Close ends the workers and returns when they are gone. It waits for a region
// that runs.
func (p *Pool) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return
	}
	p.closed = true
	p.task = nil
	width := p.width.Swap(uint32(p.workers))
	wake(&p.width)
	p.begin(p.workers)
	p.exited.Wait()
	p.width.Store(width)
}

// Split cuts [0, n) into workers nearly equal parts and returns part worker.
func Split(n, worker, workers int) (lo, hi int) {
	return n * worker / workers, n * (worker + 1) / workers
}
