// Package pool runs one task at a time on a fixed set of workers, with a start
// and a finish cheap enough for the hundreds of short regions of a forward
// pass: a region costs some tenths of a microsecond, a goroutine some ten.
//
// Workers are locked to threads of their own. Between regions they watch for
// the next one for some tens of microseconds, then sleep in the system until
// it comes, so that an idle pool takes no processor time. All waiting loops
// can be stopped by the garbage collector.
package pool

import (
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
	spins   int           // calls of spin that take about spinTime
	calm    atomic.Uint32 // regions since a worker was very late, at most calmRegions
	task    Task          // of the region, written before epoch changes
	closed  bool
	exited  sync.WaitGroup
	fault   atomic.Pointer[fault] // first panic of a worker in the region

	// The words that threads wait on, and how many sleep there, are kept on
	// cache lines of their own: a change reaches only who waits for it.
	_        [64]byte
	epoch    atomic.Uint32 // counts regions; workers wait for it to change
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

// New starts a pool of the given number of workers, at least 1, of which one
// is the caller of Run.
func New(workers int) *Pool {
	p := &Pool{workers: max(workers, 1), spins: spinCalls()}
	for i := 1; i < p.workers; i++ {
		p.exited.Go(func() { p.work(i) })
	}
	return p
}

// Workers returns the number of parts that Run cuts a task into.
func (p *Pool) Workers() int { return p.workers }

// Run calls t.Do once for every worker, part 0 on the calling goroutine, and
// returns when all are done: what the parts wrote is visible to the caller. It
// allocates nothing. Calls from several goroutines run one after the other. A
// panic in any part ends in a panic here, after all parts are done. On a
// closed pool the caller does all parts itself.
func (p *Pool) Run(t Task) {
	p.mu.Lock()
	if p.closed || p.workers == 1 {
		defer p.mu.Unlock()
		for i := range p.workers {
			t.Do(i, p.workers)
		}
		return
	}
	p.task = t
	p.pending.Store(uint32(p.workers - 1))
	p.epoch.Add(1)
	if p.sleepers.Load() > 0 {
		wake(&p.epoch)
	}
	defer p.finish()
	t.Do(0, p.workers)
}

// finish waits for the workers and ends the region.
func (p *Pool) finish() {
	limit, late := p.patience(), false
	var since time.Time
	for n := 0; p.pending.Load() != 0; n++ {
		v := p.pending.Load()
		if v == 0 {
			break
		}
		if n < limit {
			spin(&p.pending, v)
			continue
		}
		if n == limit {
			since = time.Now()
		}
		p.asleep.Store(true)
		if v = p.pending.Load(); v != 0 {
			sleep(&p.pending, v)
		}
		p.asleep.Store(false)
		late = limit > p.spins || time.Since(since) > patientTime-spinTime
	}
	if late {
		p.calm.Store(0)
	} else if c := p.calm.Load(); c < calmRegions {
		p.calm.Store(c + 1)
	}
	p.task = nil
	f := p.fault.Swap(nil)
	p.mu.Unlock()
	if f != nil {
		panic(fmt.Sprintf("pool: a worker panicked: %v\n%s", f.value, f.stack))
	}
}

// work is the life of worker i.
func (p *Pool) work(i int) {
	runtime.LockOSThread()      // and never unlocked: the thread ends with the goroutine
	debug.SetPanicOnFault(true) // tasks read mapped files
	for seen := uint32(0); ; {
		seen = p.next(seen)
		if p.task == nil {
			return
		}
		p.do(i)
		if p.pending.Add(^uint32(0)) == 0 && p.asleep.Load() {
			wake(&p.pending)
		}
	}
}

// patience returns how often a thread looks before it sleeps. To sleep and be
// woken takes some 50 µs, in which the others end their part and go to sleep
// in turn: once it has begun, every region is as slow. So threads wait for
// patientTime, unless a worker was later than that a moment ago: then others
// want the processors, and a thread that waits awake keeps them from it.
func (p *Pool) patience() int {
	if p.calm.Load() < calmRegions {
		return p.spins
	}
	return int(patientTime/spinTime) * p.spins
}

// next waits for a region after the one seen last.
func (p *Pool) next(seen uint32) uint32 {
	for range p.patience() {
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

// do runs part i and keeps its panic for the caller of Run.
func (p *Pool) do(i int) {
	defer func() {
		if v := recover(); v != nil {
			p.fault.CompareAndSwap(nil, &fault{v, debug.Stack()})
		}
	}()
	p.task.Do(i, p.workers)
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
	p.epoch.Add(1)
	wake(&p.epoch)
	p.exited.Wait()
}

// Split cuts [0, n) into workers nearly equal parts and returns part worker.
func Split(n, worker, workers int) (lo, hi int) {
	return n * worker / workers, n * (worker + 1) / workers
}
