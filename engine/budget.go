package engine

import (
	"time"

	"ridge/kvcache"
)

// The memory that an engine shares with those of other models, see
// kvcache.Budget. Others never touch the pool: they say what they lack, which
// wakes the loop, and the loop looks here between two steps.

// trimAfter is how long an engine without requests keeps memory that holds
// nothing.
const trimAfter = time.Second

// share gives others what they want of this engine's memory, as far as it can do
// without, and sees to it that there is some for the next steps. What others have
// a claim to they get as soon as running sequences leave as much, before those
// that wait here are admitted. Of the rest they get what nobody here waits for:
// the prefix tree keeps only what no running sequence anywhere needs.
func (e *Engine) share() {
	if e.pool.Budget() == nil {
		return
	}
	wanted, due := e.pool.Claims()
	idle := e.sched.Stats().Waiting == 0
	if idle {
		due = wanted
	}
	if due > 0 {
		keep := e.pool.Stats().InUse + e.sched.Keep()
		if idle {
			keep = max(keep, e.sched.Peak())
		}
		e.pool.Shrink(due, keep, e.holders())
	}
	if len(e.sched.RunningSeqs()) > 0 {
		// Asked for before it is needed: else sequences would be preempted for
		// memory that others give a moment later.
		e.pool.Reserve(e.sched.Keep() + e.chunk)
	}
}

// trim gives memory back that holds nothing, if there was no request for a
// while; else it returns when to look again, 0 for never.
func (e *Engine) trim(now time.Duration) time.Duration {
	if e.pool.Budget() == nil || len(e.groups) > 0 {
		return 0
	}
	spare := e.pool.Spare()
	if spare == 0 {
		return 0
	}
	if at := e.ends + trimAfter; now < at {
		return at
	}
	st := e.pool.Stats()
	e.pool.Shrink(spare, st.InUse+st.Cached, e.holders())
	return 0
}

// holders returns all sequences that hold pages.
func (l *loop) holders() []*kvcache.Seq {
	var held []*kvcache.Seq
	for s := range l.seqs {
		if s.KV != nil {
			held = append(held, s.KV)
		}
	}
	return held
}
