package pool

import (
	"sync"
	"sync/atomic"
	"time"
)

// spinTime is how long a thread watches for a change before it sleeps where
// processors are short, and patientTime elsewhere, see crowd. Regions of a
// forward pass follow each other within the first, mostly, and steps of an
// engine within the second.
const (
	spinTime    = 40 * time.Microsecond
	patientTime = 500 * time.Microsecond
)

// spinCalls returns how many calls of spin take about spinTime.
var spinCalls = sync.OnceValue(func() int {
	const n = 64
	var word atomic.Uint32
	best := time.Hour
	for range 4 { // the shortest time is the one without an interruption
		start := time.Now()
		for range n {
			spin(&word, 0)
		}
		best = min(best, time.Since(start))
	}
	return int(max(1, min(1e6, spinTime*n/max(best, 1))))
})
