package sched

import (
	"cmp"
	"slices"
	"time"
)

// Classes beside each other: while answers of a class run, sequences of a worse one are
// guests, who may lengthen steps only so far, see Config.ClassSlowdown. A step is planned
// without them first.

const (
	// guestChunk is the least of a guest's prompt that a step computes whatever the bound.
	guestChunk = 4
	// guestPatience is how many steps with prompts of hosts go by before guests get the
	// least all the same. In those steps it would add to the longest there are.
	guestPatience = 16
	// aloneEach is how many steps there are to one without guests, which tells what they cost.
	aloneEach = 32
	// guestSteps is how many steps with guests their factor is from, see slower.
	guestSteps = 16
)

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

// guests plans rows of guests beside those of hosts, as far as the bound goes: their
// answers and their prompts come first in turns, and where it leaves nothing, who comes
// first gets the least that there is. Steps with prompts of hosts, the longest, have none
// where these are rare.
func (s *Scheduler) guests() {
	rest := s.stats.Steps - s.visited
	if s.stats.Steps%aloneEach == 0 || s.prompting > 0 && rest <= 1 {
		return
	}
	s.bound = time.Duration(max(s.cfg.ClassSlowdown/s.slower(), 1) * float64(s.cost.Predict(s.plan.Shape)))
	s.least = s.prompting == 0 || rest >= guestPatience
	s.visiting = true
	if s.stats.Steps%2 == 0 {
		s.visits()
	}
	if !s.cfg.Apart || s.decoding == 0 {
		s.prompts()
		s.admit(true)
	}
	if s.stats.Steps%2 == 1 {
		s.visits()
	}
}

// visits plans next tokens of guests: first of those that were not served for longest.
func (s *Scheduler) visits() {
	if s.cfg.Apart && s.prompting > 0 {
		return
	}
	s.visitors = s.visitors[:0]
	for _, q := range s.running[:s.active] {
		if !q.Hold && q.run < 0 && s.guest(q) && q.decodes() {
			s.visitors = append(s.visitors, q)
		}
	}
	slices.SortFunc(s.visitors, func(a, b *Seq) int { return cmp.Or(cmp.Compare(a.served, b.served), compare(a, b)) })
	for _, q := range s.visitors {
		if q.run >= 0 || q.place != isRunning || s.left == 0 { // a victim of one before it
			continue
		}
		n := q.missing()
		if !(s.least && s.seated == 0) && s.cost.Predict(s.plan.Shape.withRun(&Run{Seq: q, Start: q.Computed, N: n, Outputs: 1})) > s.bound {
			return
		}
		s.schedule(q, min(n, s.left))
	}
}

// slower returns how many times as long as predicted steps with guests took lately.
func (s *Scheduler) slower() float64 {
	n := min(s.guested, guestSteps)
	if n == 0 {
		return 1
	}
	sorted := s.slow
	return min(max(median(sorted[:n]), 1), 2)
}

// leave enters how long a step with guests took.
func (s *Scheduler) leave(elapsed, predicted time.Duration) {
	if s.seated == 0 || predicted <= 0 || elapsed <= 0 {
		return
	}
	s.slow[s.guested%guestSteps] = float64(elapsed) / float64(predicted)
	s.guested++
}
