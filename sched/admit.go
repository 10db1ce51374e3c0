package sched

import (
	"cmp"
	"slices"
)

// admit gives memory to waiting sequences, in order, as long as there are
// slots, tokens and pages for the first of them: nobody overtakes in a lane
// that is blocked. If rows is set they are served at once.
func (s *Scheduler) admit(rows bool) {
	for q := s.head(); q != nil && (s.visiting || !s.guest(q)); q = s.head() {
		if !s.slot(q) {
			s.blocked = bySlots
			return
		}
		if rows && !s.hasTokens(q) {
			s.blocked = byTokens
			return
		}
		computed, ok := s.allocate(q)
		if !ok && s.dropDrafts() {
			computed, ok = s.allocate(q)
		}
		for !ok && s.held > 0 {
			s.preempt(s.running[len(s.running)-1])
			computed, ok = s.allocate(q)
		}
		if !ok {
			s.blocked = byMemory
			return
		}
		s.admitted(q, computed)
		if rows && !s.mixes(q) {
			s.schedule(q, s.share(q))
		}
		s.insertByRank()
		s.active = min(s.serving(), s.cfg.MaxSeqs)
	}
}

// mixes says whether a row of q would mix prompts and answers where that is not
// wanted: a preempted sequence may come back with nothing but its next token to
// compute.
func (s *Scheduler) mixes(q *Seq) bool {
	if !s.cfg.Apart {
		return false
	}
	if q.decodes() {
		return s.prompting > 0
	}
	return s.decoding > 0
}

// hasTokens says whether the step has tokens for q, which waits.
func (s *Scheduler) hasTokens(q *Seq) bool {
	if s.left == 0 {
		return false
	}
	if s.guest(q) { // it waits for its turn with its memory, and not in the way of others
		return true
	}
	found := q.Computed
	q.Computed = s.mem.Cached(q)
	n := s.share(q)
	q.Computed = found
	return n > 0
}

// slot says whether the number of running sequences leaves room for q: both
// the limit, and the time between tokens that the answers would have.
func (s *Scheduler) slot(q *Seq) bool {
	if s.serving() >= s.cfg.MaxSeqs {
		return false
	}
	if s.cfg.ITLTarget == 0 || s.serving() == 0 || !s.cost.Ready() {
		return true
	}
	shape := Shape{}.With(q.Wanted, 1, 1)
	for _, r := range s.running[:s.serving()] {
		shape = shape.With(r.Wanted, 1, 1)
	}
	return s.cost.Predict(shape) <= s.cfg.ITLTarget
}

// Keep returns the pages that running sequences still need, beside those that
// they have, for the tokens that they want already, prompts to their ends, and a
// watermark for answers to grow. Admission leaves them alone.
func (s *Scheduler) Keep() int {
	if s.serving() == 0 {
		return 0
	}
	n := s.mem.Total() * s.cfg.Watermark / 1000
	for _, q := range s.running[:s.serving()] {
		need := s.mem.Need(q, q.missing())
		if q.run >= 0 {
			need = max(need, q.pages)
		}
		n += need
	}
	return n
}

// allocate gives q its memory if all of its tokens have room beside those of the
// running sequences. It returns how many are computed already.
func (s *Scheduler) allocate(q *Seq) (computed int, ok bool) {
	if s.cfg.Admission != Optimistic && !s.fits(q) {
		return 0, false
	}
	return s.mem.Allocate(q, s.Keep())
}

// admitted makes q, which has got its memory, a running sequence.
func (s *Scheduler) admitted(q *Seq, computed int) {
	s.queue.remove(q)
	s.cfg.Policy.Admit(q, s.now)
	q.Computed = computed
	if q.Swapped {
		q.Swapped = false
		s.stats.Swapped--
		s.stats.SwapIns++
	} else {
		s.stats.Admitted++
		s.stats.CachedTokens += int64(computed)
	}
	q.level, q.rank = s.cfg.Policy.Level(q, s.now), s.cfg.Policy.Rank(q)
	s.start(q)
	s.plan.Admitted = append(s.plan.Admitted, q)
}

// peakEntry is a sequence in the arithmetic of fits: its tokens now, and how
// many may still come.
type peakEntry struct{ now, left int }

// fits says whether q and all running sequences have room up to their ends, if
// these come as expected.
func (s *Scheduler) fits(q *Seq) bool {
	if s.serving() == 0 {
		return true
	}
	s.peak = append(s.peak[:0], s.expected(q))
	most := s.most()
	return most <= s.mem.Reach(most)
}

// Peak returns the pages that running sequences will have at most before they
// end, if their ends come as expected.
func (s *Scheduler) Peak() int {
	s.peak = s.peak[:0]
	return s.most()
}

// most returns the pages that the sequences in s.peak and the running ones need.
// The most memory is needed just before one of them ends: when the i-th but last
// to end does, it and the i that outlast it have grown by what it had left, and
// the others are gone (the admission rule of LightLLM's router).
func (s *Scheduler) most() int {
	for _, r := range s.running[:s.serving()] {
		s.peak = append(s.peak, s.expected(r))
	}
	slices.SortFunc(s.peak, func(a, b peakEntry) int { return cmp.Compare(b.left, a.left) })
	page := s.mem.PageTokens()
	tokens, most := 0, 0
	if s.mem.Bounded() {
		for i, e := range s.peak {
			pages := 0
			for _, other := range s.peak[:i+1] {
				pages += s.mem.PagesOf(other.now + e.left)
			}
			most = max(most, pages)
		}
		return most
	}
	for i, e := range s.peak {
		tokens += e.now
		// Each of the i+1 sequences may leave a page all but one token empty.
		most = max(most, (tokens+(i+1)*(e.left+page-1))/page)
	}
	return most
}

// firstAnswers is the length of answers that admission expects before it has
// seen any: to expect the longest would keep a new server half empty.
const firstAnswers = 256

// expected returns what q has and what the admission rule expects it to get.
func (s *Scheduler) expected(q *Seq) peakEntry {
	left := max(q.MaxNew-q.Generated(), 0)
	if s.cfg.Admission == PeakExpected {
		if s.lengths.Known() {
			left = min(left, s.lengths.Quantile(q, 90)-q.Generated())
		} else {
			left = min(left, max(firstAnswers-q.Generated(), firstAnswers/4))
		}
	}
	return peakEntry{q.Wanted, max(left, 1)}
}
