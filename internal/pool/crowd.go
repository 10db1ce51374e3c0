package pool

import "sync/atomic"

// crowd watches for other processes that want the processors. Static parts of a
// region are all needed before the next one: a worker whose processor is with
// another process for some milliseconds holds up all the others, and a decoding
// step has a hundred regions. So when workers come late again and again, the
// pool does without one of them for a number of regions, and without more if the
// others are still late; then it tries with all again, and if that was too
// early, does without for twice as long.
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

	score int    // rises with late regions and falls with others
	calm  int    // regions since all were tried again, at most calmRegions
	next  uint32 // how many regions the next such stretch lasts, or 0
}

const (
	// Three late regions within some sixty are a crowd. A quiet machine makes
	// one region in a hundred late, one with a competing process every second.
	lateWeight = 64
	lateLimit  = 2*lateWeight + lateWeight/2

	firstRegions = 128 // about a forward pass
	mostRegions  = 8192
	calmRegions  = 1024
)

// region enters a region and whether a worker came late, and reports whether
// the number of workers to do without has changed.
func (c *crowd) region(late bool) (changed bool) {
	left := c.left.Load()
	if left > 0 {
		left--
		c.left.Store(left)
		late = late && c.most > 0 // short waits make workers late by themselves
	} else if c.calm++; c.calm >= calmRegions {
		c.calm, c.next = calmRegions, 0
	}
	switch {
	case late:
		c.score += lateWeight
	case c.score > 0:
		c.score--
	}
	before := c.out
	switch {
	case c.score > lateLimit && left > 0: // even without those
		c.out = min(2*c.out, c.most)
		c.left.Store(c.next)
	case c.score > lateLimit:
		c.out = min(1, c.most)
		c.next = max(firstRegions, min(2*c.next, mostRegions))
		c.left.Store(c.next)
	case left == 0:
		c.out = 0
	}
	if c.score > lateLimit || c.out != before {
		c.score, c.calm = 0, 0
	}
	return c.out != before
}
