package pool

import (
	"sync/atomic"
	"time"
)

// crowd watches for other processes that want the processors. Static parts of a
// region are all needed before the next one: a worker whose processor is with
// another process for some milliseconds holds up all the others, and a decoding
// step has a hundred regions. So when waiting for workers costs more time than
// it would to do without one of them, the pool does, for a number of regions,
// and without more if it still waits; then it tries with all again, and if that
// was too early, does without for twice as long.
//
// Where workers cannot be left out (see Pool.Spread), waits become short
// instead: a thread that waits awake keeps the other process, and with it the
// late worker, from getting on. Otherwise they are long, for to sleep and be
// woken takes some 50 µs, in which the others end their part and go to sleep in
// turn: once that has begun, every region is as slow.
//
// The zero value sees nobody. One thread at a time tells it about regions; any
// may ask.
type crowd struct {
	left atomic.Uint32 // regions until all workers are tried again
	out  int           // workers to do without until then
	most int           // the workers there are, less the one that must stay

	// Sums of what the caller's parts took and of what it waited after them, in
	// which older regions fade.
	own, wait time.Duration
	seen      int // regions in these, at most evidence

	calm int    // regions since all were tried again, at most calmRegions
	next uint32 // how many regions the next stretch without them lasts, or 0
}

const (
	fade     = 256 // with each region the sums lose this part of them
	evidence = 128 // regions to judge from, about a forward pass
	// longestWait bounds what one region counts: a machine that stood still for
	// a moment is no reason.
	longestWait = time.Millisecond

	firstRegions = 128
	mostRegions  = 16384
	calmRegions  = 1024
)

// region enters a region of width parts, what the caller's took, and how long it
// waited for the others. It reports whether the number of workers to do without
// has changed.
func (c *crowd) region(width int, own, wait time.Duration) (changed bool) {
	left := c.left.Load()
	if left > 0 {
		left--
		c.left.Store(left)
		if c.most == 0 {
			return false // short waits make workers late by themselves
		}
	} else if c.calm++; c.calm >= calmRegions {
		c.calm, c.next = calmRegions, 0
	}
	c.own += own - c.own/fade
	c.wait += min(wait, longestWait) - c.wait/fade
	c.seen = min(c.seen+1, evidence)

	// Without step more workers the parts of the others grow by this. Less than
	// half a part is no reason where there are many workers: leaving out a few
	// mends waits for these, but not unevenness in general.
	step := max(1, min(c.out, width-1))
	growth := c.own * time.Duration(step) / time.Duration(max(width-step, 1))
	crowded := width > 1 && c.seen == evidence && c.wait > max(growth, c.own/2)
	before := c.out
	switch {
	case crowded && left > 0:
		c.out = min(c.out+step, c.most)
	case crowded:
		c.out = min(step, c.most)
		c.next = max(firstRegions, min(2*c.next, mostRegions))
	case left == 0:
		c.out = 0
	}
	if crowded {
		c.left.Store(c.next)
	}
	if crowded || c.out != before {
		c.own, c.wait, c.seen, c.calm = 0, 0, 0, 0
	}
	return c.out != before
}
