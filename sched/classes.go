package sched

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// Classes beside each other: while answers of a class run, sequences of a worse one are
// guests. A step is planned without them first. With them it may take ClassSlowdown times
// as long, or as long as the longest steps of hosts do anyway. Where that leaves nothing,
// guests pay for the least from a purse: it has what ClassSlowdown allows of all steps
// together.

const (
	// guestChunk is the least of a guest's prompt that a step computes whatever the bound.
	guestChunk = 4
	// guestPatience is how many steps with prompts of hosts, one after the other, guests who
	// could pay stay out of. They would add to the longest there are.
	guestPatience = 4
	// aloneEach is how many steps there are to one without guests, which tells what they cost.
	aloneEach = 32
	// guestSteps is how many steps with guests their factor is from, see slower.
	guestSteps = 16
)

// classes finds the best class of those whose answers go on in this step, and whether
// there are guests beside it.
func (s *Scheduler) classes() {
	s.hosts, s.answers = false, false
	if s.cfg.ClassSlowdown == 0 || !s.cost.Ready() {
		return
	}
	worst := 0
	for _, q := range s.running[:s.active] {
		if q.Hold {
			continue
		}
		if q.decodes() && (!s.answers || q.Priority < s.best) {
			s.answers, s.best = true, q.Priority
		}
		worst = max(worst, q.Priority)
	}
	s.hosts = s.answers && (worst > s.best || s.queue.len() > 0)
}

// guest says whether q is of a worse class than answers that go on.
func (s *Scheduler) guest(q *Seq) bool { return s.hosts && q.Priority > s.best }

// guests plans rows of guests beside those of hosts, as far as the bound goes: their
// answers and their prompts come first in turns, and where it leaves nothing and there is
// something in the purse, who comes first gets the least that there is. Steps with prompts
// of hosts, the longest, have none where these are rare.
func (s *Scheduler) guests() {
	if s.prompting == 0 {
		s.kept = 0
	} else if s.kept < guestPatience {
		s.kept++
		return
	}
	if s.stats.Steps%aloneEach == 0 {
		return
	}
	s.kept, s.visiting = 0, true
	if s.guested%2 == 0 {
		s.visits()
	}
	if !s.cfg.Apart || s.decoding == 0 {
		s.prompts()
		s.admit(true)
	}
	if s.guested%2 == 1 {
		s.visits()
	}
}

// least says whether a guest gets the least that there is whatever the bound.
func (s *Scheduler) least() bool { return s.seated == 0 && s.purse > 0 }

// Guest says whether q was, in the last plan, of a worse class than answers that went on.
func (s *Scheduler) Guest(q *Seq) bool { return s.guest(q) }

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
		if !s.least() && s.cost.Predict(s.plan.Shape.withRun(&Run{Seq: q, Start: q.Computed, N: n, Outputs: 1})) > s.bound {
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

// earn sets how long the step that is planned without guests may become with them, and
// fills their purse.
func (s *Scheduler) earn() {
	if !s.answers {
		return
	}
	s.unmixed = s.cost.Predict(s.plan.Shape)
	s.usual.put(s.best, s.stats.Steps, s.unmixed)
	s.bound = time.Duration(max(s.cfg.ClassSlowdown*float64(s.unmixed), float64(s.usual.longest(s.best))) / s.slower())
	s.bound = max(s.bound, s.unmixed)
	s.purse = min(s.purse+time.Duration((s.cfg.ClassSlowdown-1)*float64(s.unmixed)), s.unmixed)
}

// leave enters how long a step with guests took, and has them pay for it: what is within
// the bound without debts.
func (s *Scheduler) leave(elapsed, predicted time.Duration) {
	if s.seated == 0 || predicted <= 0 || elapsed <= 0 {
		return
	}
	s.slow[s.guested%guestSteps] = float64(elapsed) / float64(predicted)
	s.guested++
	least := time.Duration(math.MinInt64)
	if predicted <= s.bound {
		least = min(s.purse, 0)
	}
	s.purse = max(s.purse-max(time.Duration(s.slower()*float64(predicted))-s.unmixed, 0), least)
}

// usual is how long the last steps of a class's answers took by prediction, without what
// guests added.
type usual struct {
	class int
	at    int64 // the last step
	last  [usualSteps]time.Duration
	n     int
}

const (
	usualSteps = 128
	// rare is how many of them are longer than what counts as the longest.
	rare = 3
	// forgotten is how many steps a better class is waited for.
	forgotten = 1024
)

// put enters a step of a class.
func (u *usual) put(class int, at int64, took time.Duration) {
	if class > u.class && u.n > 0 && at-u.at < forgotten {
		return
	}
	if class != u.class {
		u.class, u.n = class, 0
	}
	u.last[u.n%usualSteps] = took
	u.at = at
	u.n++
}

// longest returns how long the longest steps of a class are, but for rare ones; 0 if that
// is not known.
func (u *usual) longest(class int) time.Duration {
	if class != u.class || u.n < usualSteps {
		return 0
	}
	var top [rare + 1]time.Duration // descending
	for _, x := range u.last {
		for i := range top {
			if x > top[i] {
				x, top[i] = top[i], x
			}
		}
	}
	return top[rare]
}
