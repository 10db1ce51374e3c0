package sched

import "time"

// How a step's tokens, slots and pages are given to sequences.

// minChunk is the least of a prompt that a step computes when it computes any,
// whatever the target for the time between tokens: else a target that cannot
// be met would starve prompts.
const minChunk = 16

// decodes plans the next token of each active sequence that waits for one, and
// guesses with what is left.
func (s *Scheduler) decodes() {
	s.serve(func(q *Seq) bool { return q.decodes() && !s.guest(q) })
}

// prompts plans pieces of the prompts that are not computed yet, of guests when their
// turn has come.
func (s *Scheduler) prompts() {
	s.serve(func(q *Seq) bool { return !q.decodes() && (s.visiting || !s.guest(q)) })
}

// serve plans the active sequences that want picks, by rank.
func (s *Scheduler) serve(want func(*Seq) bool) {
	full := false // nobody overtakes a prompt that has no room in this step
	for i := 0; i < s.active && s.left > 0; i++ {
		q := s.running[i]
		if q.Hold || q.run >= 0 || !want(q) || full && !q.decodes() {
			continue
		}
		n := s.share(q)
		full = full || n == 0 && !s.guest(q)
		s.schedule(q, n)
	}
}

// share returns the tokens that q may get in this step.
func (s *Scheduler) share(q *Seq) int {
	n := q.missing()
	if q.decodes() {
		// Forced tokens leave one to each of the others.
		if room := max(s.left-s.active, 0); n-1 > room {
			return min(1+room, s.left)
		}
		return min(n+s.drafts(q, n), s.left)
	}
	if n > s.left && !s.cfg.Split && s.prompting == 0 {
		return n // a prompt that may not be cut exceeds the budget alone
	}
	if s.cfg.Chunk > 0 {
		n = min(n, s.cfg.Chunk)
	}
	most := s.left
	if limit := s.limit(q); limit > 0 {
		most = min(most, s.within(q, limit))
	}
	if n > most {
		if !s.cfg.Split {
			return 0
		}
		n = most
		// What is left of a guest's time others would take for the same tokens, if they
		// begin alike.
		if p := s.cfg.Quantum; p > 1 && n > p && !s.guest(q) {
			n -= n % p
		}
	}
	return n
}

// drafts returns how many guesses of q, behind n tokens, a step verifies: when
// prompts are on their way, the guesses leave half of the budget to them.
func (s *Scheduler) drafts(q *Seq, n int) int {
	if q.Draft == 0 {
		return 0
	}
	room := s.left - s.active - (n - 1) // one for each
	if s.queue.len() > 0 {
		room -= s.cfg.MaxTokens / 2
	}
	return min(q.Draft, max(room, 0))
}

// limit returns how long the step may take with tokens of the prompt of q, 0 for
// no limit: nobody waits for a step without answers.
func (s *Scheduler) limit(q *Seq) time.Duration {
	if s.guest(q) {
		return s.bound
	}
	if s.decoding == 0 || s.cfg.ITLTarget == 0 && s.cfg.StepTime == 0 {
		return 0
	}
	if s.prompting == 0 {
		s.alone = s.cost.Predict(s.plan.Shape)
	}
	if s.cfg.ITLTarget == 0 {
		return max(s.cfg.StepTime, 2*s.alone)
	}
	late := s.late(q)
	if late <= 1 {
		return s.cfg.ITLTarget
	}
	return time.Duration(late * late * float64(max(s.cfg.ITLTarget, s.alone)))
}

// A prompt that runs has a claim to be computed in patient times what it would
// take alone, and patience more, whatever the target for the time between
// tokens. To one that takes longer the target gives way, as the square of how
// late it is, until it is mostLate.
const (
	patient  = 2
	patience = time.Second
	mostLate = 2
)

// late returns how many times as long as it should the prompt of q, which may
// still wait to run, has taken since it began to.
func (s *Scheduler) late(q *Seq) float64 {
	if q.place != isRunning {
		return 0
	}
	due := patient*s.cost.Prompt(q.Wanted, q.Scored, s.cfg.MaxTokens) + patience
	return min(float64(s.now-q.begun)/float64(due), mostLate)
}

// within returns the tokens of a prompt that the step can take in the time of
// limit.
func (s *Scheduler) within(q *Seq, limit time.Duration) int {
	if !s.cost.Ready() {
		return minChunk
	}
	lo, hi := 0, min(s.left, max(s.cost.Reach()-s.plan.Shape.Rows, 0))
	for lo < hi {
		mid := (lo + hi + 1) / 2
		if s.cost.Predict(s.plan.Shape.withRun(&Run{Seq: q, Start: q.Computed, N: mid, Outputs: 1})) <= limit {
			lo = mid
		} else {
			hi = mid - 1
		}
	}
	switch {
	case s.guest(q):
		if lo < guestChunk && s.least() {
			return min(guestChunk, s.left)
		}
	case lo < minChunk && s.prompting == 0:
		return min(minChunk, s.left)
	}
	return lo
}

// schedule plans n tokens of q, or fewer if the memory has no more room even
// after lower-ranked sequences gave theirs. It returns how many.
func (s *Scheduler) schedule(q *Seq, n int) int {
	if n <= 0 {
		return 0
	}
	// The same prompt has its last token computed again, for the logits. A state
	// that is to serve it is one from before that token.
	if last := q.Prompt - 1; s.cfg.Split && s.mem.Stateful() && q.Computed < last && q.Computed+n > last {
		n = last - q.Computed
	}
	if s.cfg.Split && s.mem.Bounded() {
		for _, cut := range q.Cuts {
			if q.Computed < cut && q.Computed+n > cut {
				n = cut - q.Computed
			}
		}
	}
	need := s.mem.Need(q, n)
	// Nobody loses memory for guesses.
	if need > s.mem.Available(need+s.reserved)-s.reserved && n > q.missing() {
		n = q.missing()
		need = s.mem.Need(q, n)
	}
	if need > s.mem.Available(need+s.reserved)-s.reserved {
		s.dropDrafts()
	}
	for need > s.mem.Available(need+s.reserved)-s.reserved {
		v := s.victim(q)
		if v == nil {
			break
		}
		s.preempt(v)
		need = s.mem.Need(q, n) // less, if they shared a page that q would have copied
	}
	if room := s.mem.Available(need+s.reserved) - s.reserved; need > room {
		if !s.cfg.Split && !q.decodes() {
			return 0
		}
		lo, hi := 0, n-1
		for lo < hi {
			if mid := (lo + hi + 1) / 2; s.mem.Need(q, mid) <= room {
				lo = mid
			} else {
				hi = mid - 1
			}
		}
		if n = lo; n == 0 {
			return 0
		}
		need = s.mem.Need(q, n)
	}
	s.appendRun(q, n, need)
	return n
}

// appendRun appends a run to the plan.
func (s *Scheduler) appendRun(q *Seq, n, need int) {
	r := Run{Seq: q, Start: q.Computed, N: n, Decodes: q.decodes()}
	if end := q.Computed + n; end >= q.Wanted {
		r.Draft = end - q.Wanted
		r.Outputs = 1 + r.Draft
	}
	if r.Decodes {
		s.decoding++
	} else {
		s.prompting++
	}
	s.guessing = s.guessing || r.Draft > 0
	if s.guest(q) {
		s.seated++
	}
	q.run, q.pages, q.served = len(s.plan.Runs), need, s.stats.Steps
	s.plan.Runs = append(s.plan.Runs, r)
	s.plan.Shape = s.plan.Shape.withRun(&r)
	s.reserved += need
	s.left = max(s.left-n, 0)
}

// dropDrafts takes the guesses out of the plan, and reports whether there were some.
func (s *Scheduler) dropDrafts() bool {
	if !s.guessing {
		return false
	}
	s.guessing = false
	for i := range s.plan.Runs {
		r := &s.plan.Runs[i]
		if r.Draft == 0 {
			continue
		}
		q := r.Seq
		s.plan.Shape = s.plan.Shape.withoutRun(r)
		s.left += r.Draft
		s.reserved -= q.pages
		r.N, r.Draft, r.Outputs = r.N-r.Draft, 0, 1
		q.pages = s.mem.Need(q, r.N)
		s.reserved += q.pages
		s.plan.Shape = s.plan.Shape.withRun(r)
	}
	return true
}

// removeRun takes the run of q out of the plan again.
func (s *Scheduler) removeRun(q *Seq) {
	r := &s.plan.Runs[q.run]
	s.plan.Shape = s.plan.Shape.withoutRun(r)
	s.left += r.N
	s.reserved -= q.pages
	if q.decodes() {
		s.decoding--
	} else {
		s.prompting--
	}
	if s.guest(q) {
		s.seated--
	}
	*r = Run{}
	q.run = -1
}

// victim returns the running sequence that gives its memory for q: the last of
// those that rank below it and free any, or just the last if all their pages
// are shared: then it ends some of the sharing. It is nil if there is none.
func (s *Scheduler) victim(q *Seq) *Seq {
	var last *Seq
	for i := len(s.running) - 1; i >= 0; i-- {
		v := s.running[i]
		if compare(v, q) <= 0 {
			break
		}
		if s.mem.Frees(v) > 0 {
			return v
		}
		if last == nil && v.Computed > 0 {
			last = v
		}
	}
	return last
}

// preempt takes a running sequence's memory away.
func (s *Scheduler) preempt(v *Seq) {
	if v.run >= 0 {
		s.removeRun(v)
	}
	for i, q := range s.running {
		if q == v {
			s.running = append(s.running[:i], s.running[i+1:]...)
			if i < s.active {
				s.active--
			}
			if v.Hold {
				s.held--
			}
			break
		}
	}
	if v.Swapped = s.swaps(v) && s.mem.SwapOut(v); v.Swapped {
		s.stats.SwapOuts++
		s.stats.Swapped++
	} else {
		s.stats.Recomputes++
		s.stats.LostTokens += int64(v.Computed)
		s.mem.Release(v)
		v.Computed = 0
	}
	s.plan.Preempted = append(s.plan.Preempted, Preemption{v, v.Swapped})
	for i, q := range s.plan.Admitted {
		if q == v {
			s.plan.Admitted = append(s.plan.Admitted[:i], s.plan.Admitted[i+1:]...)
			break
		}
	}
	if v.Hold {
		s.park(v)
		return
	}
	s.queue.push(v)
}

// swaps says whether v should be written out rather than computed again.
func (s *Scheduler) swaps(v *Seq) bool {
	switch s.cfg.Recovery {
	case Swap:
		return true
	case Cheaper:
		move := 2 * s.mem.SwapTime(v) // there and back
		return move > 0 && move < s.cost.Prompt(v.Computed, 0, s.cfg.MaxTokens)
	}
	return false
}

// displace admits waiting sequences that rank above some that would be served.
// Those pause: they keep their memory and their turn comes again, unless the
// memory is too small for all.
func (s *Scheduler) displace() {
	for q := s.head(); q != nil; q = s.head() {
		if s.serving() < s.cfg.MaxSeqs {
			if !s.slot(q) {
				return
			}
		} else if compare(q, s.running[s.cfg.MaxSeqs-1]) > 0 {
			return
		}
		computed, ok := s.allocate(q)
		for !ok {
			v := s.victim(q)
			if v == nil {
				return
			}
			s.preempt(v)
			computed, ok = s.allocate(q)
		}
		s.admitted(q, computed)
		s.insertByRank()
	}
}

// insertByRank moves the last of the running sequences to its place by rank.
func (s *Scheduler) insertByRank() {
	for i := len(s.running) - 1; i > 0 && compare(s.running[i], s.running[i-1]) < 0; i-- {
		s.running[i], s.running[i-1] = s.running[i-1], s.running[i]
	}
}
