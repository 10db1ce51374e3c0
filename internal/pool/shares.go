package pool

import "sync/atomic"

// Shares hands out the units of a region's work. Each worker begins with a
// run of its own, the same in every region, and reads it strictly forward; one
// that is done early goes on from the end of the longest run that is left. So
// a worker that came late, or that gets less of the memory's bandwidth than
// the others for a while, costs the region little more than one piece of work.
//
// Only work whose results do not depend on who does it, and in which pieces,
// may be shared. The zero value is ready for Pool.RunShared.
type Shares struct {
	// Anywhere says that no worker is nearer to a unit than another, even where
	// workers are spread over memory nodes.
	Anywhere bool

	runs  []run
	least int  // units of a piece, if there are as many
	fixed bool // everybody keeps to his own run
}

// run is [lo, hi) of what is left of a worker's units, as lo<<32 | hi. Each has
// a cache line to itself.
type run struct {
	left atomic.Uint64
	_    [56]byte
}

func span(lo, hi int) uint64       { return uint64(lo)<<32 | uint64(hi) }
func bounds(v uint64) (lo, hi int) { return int(v >> 32), int(uint32(v)) }

// piece is how much of what is left of a run is taken at a time: half, so that
// all workers are done at about the same time and yet read in long stretches.
func piece(left, least int) int { return min(left, max((left+1)/2, least)) }

// reset divides n units over workers.
func (s *Shares) reset(n, least, workers int, fixed bool) {
	if cap(s.runs) < workers {
		s.runs = make([]run, workers)
	}
	s.runs, s.least, s.fixed = s.runs[:workers], max(least, 1), fixed && !s.Anywhere
	for i := range s.runs {
		lo, hi := Split(n, i, workers)
		s.runs[i].left.Store(span(lo, hi))
	}
}

// Next returns the next piece [lo, hi) for worker, smaller and smaller towards
// the end of a run, until all work is taken.
func (s *Shares) Next(worker int) (lo, hi int, ok bool) {
	for own := &s.runs[worker]; ; {
		v := own.left.Load()
		lo, hi := bounds(v)
		if lo >= hi {
			break
		}
		mid := lo + piece(hi-lo, s.least)
		if own.left.CompareAndSwap(v, span(mid, hi)) {
			return lo, mid, true
		}
	}
	for !s.fixed {
		var from *run
		most := 0
		for i := range s.runs {
			if lo, hi := bounds(s.runs[i].left.Load()); hi-lo > most {
				from, most = &s.runs[i], hi-lo
			}
		}
		if from == nil {
			break
		}
		v := from.left.Load()
		lo, hi := bounds(v)
		if lo >= hi {
			continue
		}
		mid := hi - piece(hi-lo, s.least)
		if from.left.CompareAndSwap(v, span(lo, mid)) {
			return mid, hi, true
		}
	}
	return 0, 0, false
}
