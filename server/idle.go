package server

import (
	"net/http"
	"runtime/debug"
	"sync/atomic"
	"time"
)

// idleness gives memory back to the system when no request needs it any more: what
// large requests took would stay with the process for long.
type idleness struct {
	after time.Duration
	busy  atomic.Int64 // requests with a body under way
	timer *time.Timer
}

func newIdle(after time.Duration) *idleness {
	i := &idleness{after: after}
	i.timer = time.AfterFunc(time.Hour, i.free)
	i.timer.Stop()
	return i
}

func (i *idleness) free() {
	if i.busy.Load() == 0 {
		debug.FreeOSMemory()
	}
}

// watch counts a request until the function that it returns is called. Those
// without a body, which balancers and monitors send all the time, do not count.
func (i *idleness) watch(r *http.Request) (done func()) {
	if r.ContentLength == 0 {
		return func() {}
	}
	i.busy.Add(1)
	return func() {
		if i.busy.Add(-1) == 0 {
			i.timer.Reset(i.after)
		}
	}
}
