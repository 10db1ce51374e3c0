package sched

import (
	"cmp"
	"slices"
)

// Classes beside each other: while answers of a class run, sequences of a worse one are
// guests, who may lengthen steps only so far, see Config.ClassSlowdown.

// guestChunk is the least of a guest's prompt that a step computes when it computes any.
const guestChunk = 4

// classes finds the best class of those whose answers go on in this step, and whether
// there are guests beside it.
func (s *Scheduler) classes() {
	s.hosts = false
	if s.cfg.ClassSlowdown == 0 || !s.cost.Ready() {
		return
	}
	found, worst := false, 0
	for _, q := range s.running[:s.active] {
		if q.Hold {
			continue
		}
		if q.decodes() && (!found || q.Priority < s.best) {
			found, s.best = true, q.Priority
		}
		worst = max(worst, q.Priority)
	}
	s.hosts = found && (worst > s.best || s.queue.len() > 0)
}

// guest says whether q is of a worse class than answers that go on.
func (s *Scheduler) guest(q *Seq) bool { return s.hosts && q.Priority > s.best }

// guests plans next tokens of guests as far as the bound goes, and at least one: first
// of those that were not served for longest.
func (s *Scheduler) guests() {
	s.visitors = s.visitors[:0]
	for _, q := range s.running[:s.active] {
		if !q.Hold && q.run < 0 && q.decodes() && s.guest(q) {
			s.visitors = append(s.visitors, q)
		}
	}
	slices.SortFunc(s.visitors, func(a, b *Seq) int { return cmp.Or(cmp.Compare(a.served, b.served), compare(a, b)) })
	for i, q := range s.visitors {
		if q.run >= 0 || q.place != isRunning || s.left == 0 { // a victim of one before it
			continue
		}
		n := q.missing()
		if i > 0 && s.cost.Predict(s.plan.Shape.withRun(&Run{Seq: q, Start: q.Computed, N: n, Outputs: 1})) > s.bound {
			return
		}
		s.schedule(q, min(n, s.left))
	}
}
