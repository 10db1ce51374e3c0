package engine

import (
	"slices"
	"time"
)

// pause stops a request whose stream is full.
func (e *Engine) pause(g *group) {
	g.held, g.heldAt = true, e.now()
	for _, q := range g.seqs {
		q.Hold = true
	}
	e.held = append(e.held, g)
	e.counts.paused++
}

// resume looks after the requests that are paused: whose reader has caught up
// goes on, and whose never does ends.
func (e *Engine) resume(now time.Duration) {
	for i := 0; i < len(e.held); {
		g := e.held[i]
		switch waited := now - g.heldAt; {
		case !g.stream.isPaused():
			e.held = slices.Delete(e.held, i, i+1)
			g.held = false
			for _, q := range g.seqs {
				q.Hold = false
			}
			continue
		case waited >= e.o.DropAfter || e.o.SlowReader == DropReader:
			e.abort(g, FinishError, ErrSlowReader) // takes it out of the list
			continue
		}
		i++
	}
}
