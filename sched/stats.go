package sched

import (
	"fmt"
	"time"
)

// Stats are counters of a scheduler.
type Stats struct {
	Waiting, Running, Swapped int // sequences now; Swapped are those of Waiting that were written out

	Added, Admitted, Finished, Removed, Shed int64 // sequences
	Recomputes, SwapOuts, SwapIns            int64 // preemptions by kind, and returns
	LostTokens                               int64 // computed, to be computed again
	CachedTokens                             int64 // found by admissions
	Steps                                    int64
	PromptTokens, NewTokens, DraftTokens     int64 // computed of prompts, added to answers, guessed

	SlotSteps, IdleSlots int64 // static batches: slots times steps, and those of finished members

	// How long the first waiting sequence could not be admitted, by what it
	// lacked. The others wait behind it.
	BlockedSlots, BlockedTokens, BlockedMemory time.Duration
}

// Stats returns the scheduler's counters.
func (s *Scheduler) Stats() Stats {
	st := s.stats
	st.Waiting, st.Running = s.queue.len()+len(s.parked), len(s.running)
	return st
}

// RunningSeqs returns the sequences that have memory, first those served first.
// The slice is valid until the next call of a method that changes something.
func (s *Scheduler) RunningSeqs() []*Seq { return s.running }

// Check verifies the scheduler's bookkeeping. It is for tests and for an idle
// server.
func (s *Scheduler) Check() error {
	n := 0
	for lane, h := range s.queue.lanes {
		for i, q := range h {
			if q.place != isWaiting || q.lane != lane || q.pos != i || s.cfg.Policy.Lane(q) != lane || s.cfg.Policy.Rank(q) != q.rank {
				return fmt.Errorf("sched: sequence %d at %d of lane %d: place %d, lane %d, position %d", q.ID, i, lane, q.place, q.lane, q.pos)
			}
			if i > 0 && inLane(q, h[(i-1)/2]) {
				return fmt.Errorf("sched: lane %d is no heap at %d", lane, i)
			}
			if (q.Computed != 0) != q.Swapped {
				return fmt.Errorf("sched: sequence %d waits with %d tokens computed, written out: %v", q.ID, q.Computed, q.Swapped)
			}
			n++
		}
		busy := len(s.queue.busy) > 0 && len(h) > 0 && s.queue.busy[s.queue.at[lane]] == lane
		if busy != (len(h) > 0) {
			return fmt.Errorf("sched: lane %d has %d sequences, busy: %v", lane, len(h), busy)
		}
	}
	if n != s.queue.len() {
		return fmt.Errorf("sched: queue: expected %d sequences, found %d", n, s.queue.len())
	}
	seen := map[*Seq]bool{}
	for _, q := range s.running {
		if q.place != isRunning || seen[q] || q.Swapped || q.Computed < 0 || q.Computed >= q.Wanted || q.Wanted < q.Prompt {
			return fmt.Errorf("sched: sequence %d runs: place %d, %d of %d tokens computed, prompt of %d", q.ID, q.place, q.Computed, q.Wanted, q.Prompt)
		}
		seen[q] = true
	}
	for _, q := range s.parked {
		if q.place != isParked {
			return fmt.Errorf("sched: sequence %d is parked and has place %d", q.ID, q.place)
		}
	}
	return nil
}
