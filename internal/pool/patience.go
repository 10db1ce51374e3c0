package pool

import "sync/atomic"

// patience decides how long threads wait awake. To sleep and be woken takes some
// 50 µs, in which the others end their part and go to sleep in turn: once that
// has begun, every region is as slow. So threads watch for patientTime, unless
// workers come later than that again and again: then others want the processors,
// and a thread that waits awake keeps them from the work. The short waits last
// for a number of regions and are then given up, for with them all regions are
// slow, and how late a worker comes says nothing; if that was too early, they
// come back for twice as long.
//
// The zero value is patient. One thread at a time tells it about regions; any
// may ask.
type patience struct {
	hurry atomic.Uint32 // regions for which waits stay short
	score int           // rises with late regions and falls with others
	calm  int           // regions since waits became long again, at most calmRegions
	next  uint32        // how many regions the next short waits last
}

const (
	// Three late regions within some sixty make waits short. A quiet machine
	// makes one region in a hundred late, one with a competing process every
	// second.
	lateWeight = 64
	lateLimit  = 2*lateWeight + lateWeight/2

	shortRegions = 128 // about a forward pass
	mostRegions  = 1024
	calmRegions  = 1024
)

// long reports whether threads are to watch for patientTime.
func (w *patience) long() bool { return w.hurry.Load() == 0 }

// region enters a region, and whether its caller watched for patientTime in
// vain.
func (w *patience) region(late bool) {
	if n := w.hurry.Load(); n > 0 {
		w.hurry.Store(n - 1)
		return
	}
	if w.calm++; w.calm >= calmRegions {
		w.calm, w.next = calmRegions, 0
	}
	switch {
	case late:
		w.score += lateWeight
	case w.score > 0:
		w.score--
	}
	if w.score > lateLimit {
		w.next = max(shortRegions, min(2*w.next, mostRegions))
		w.score, w.calm = 0, 0
		w.hurry.Store(w.next)
	}
}
