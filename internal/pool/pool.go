// Package pool runs one task at a time on a fixed set of workers, with a start
// and a finish cheap enough for the hundreds of short regions of a forward
// pass.
package pool

import (
	"sync"
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
	start   []chan Task
	done    sync.WaitGroup
}

// New starts a pool of the given number of workers, at least 1, of which one
// is the caller of Run.
func New(workers int) *Pool {
	p := &Pool{workers: max(workers, 1)}
	for i := 1; i < p.workers; i++ {
		c := make(chan Task)
		p.start = append(p.start, c)
		go func() {
			for t := range c {
				t.Do(i, p.workers)
				p.done.Done()
			}
		}()
	}
	return p
}

// Workers returns the number of parts that Run cuts a task into.
func (p *Pool) Workers() int { return p.workers }

// Run calls t.Do once for every worker, part 0 on the calling goroutine, and
// returns when all are done: what the parts wrote is visible to the caller.
// Calls from several goroutines run one after the other.
func (p *Pool) Run(t Task) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done.Add(len(p.start))
	for _, c := range p.start {
		c <- t
	}
	t.Do(0, p.workers)
	p.done.Wait()
}

// Close ends the workers. The pool must not be used afterwards.
func (p *Pool) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.start {
		close(c)
	}
	p.start = nil
}

// Split cuts [0, n) into workers nearly equal parts and returns part worker.
func Split(n, worker, workers int) (lo, hi int) {
	return n * worker / workers, n * (worker + 1) / workers
}
