package engine

import (
	"slices"
	"time"
)

// hold pauses a request whose stream is full.
func (e *Engine) hold(g *group) {
	g.held, g.heldAt = true, e.now()
	for _, q := range g.seqs {
		q.Hold = true
	}
	e.held = append(e.held, g)
	e.counts.paused++
}

// resume looks after the requests that are paused: whose reader has caught up
// goes on, who waits for long gives its memory away, and in the end its place.
func (e *Engine) resume(now time.Duration) {
	for i := 0; i < len(e.held); {
		g := e.held[i]
		switch waited := now - g.heldAt; {
		case !g.stream.isPaused():
			e.held = slices.Delete(e.held, i, i+1)
			e.unhold(g)
			continue
		case waited >= e.o.DropAfter || e.o.SlowReader == DropReader:
			e.abort(g, FinishError, ErrSlowReader) // takes it out of the list
			continue
		case waited >= e.o.ParkAfter && !g.parked:
			e.park(g)
		}
		i++
	}
}

// park takes a request out of the scheduler. Its tokens are kept, and the prefix
// tree may keep what was computed of them.
func (e *Engine) park(g *group) {
	g.parked = true
	for _, q := range g.seqs {
		if e.seqs[&q.Seq] == nil {
			continue
		}
		e.sched.Remove(&q.Seq, e.now())
		q.Computed = 0
	}
	e.counts.parked++
}

func (e *Engine) unhold(g *group) {
	g.held = false
	parked := g.parked
	g.parked = false
	for _, q := range g.seqs {
		q.Hold = false
		if !parked || e.seqs[&q.Seq] == nil {
			continue
		}
		if err := e.sched.Add(&q.Seq, e.now()); err != nil {
			e.abort(g, FinishError, err)
			return
		}
	}
}
