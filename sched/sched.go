// Package sched decides what each step of the engine computes. A step is a
// batch of rows, and there are no phases: a sequence has computed tokens and
// wanted tokens, and a step spends a budget of tokens so that the first catch
// up with the second. A prompt that is computed in chunks, a prefix that the
// cache had, a guessed continuation and the next token of an answer are all
// the same to it (iteration-level scheduling, ORCA: Yu et al., A Distributed
// Serving System for Transformer-Based Generative Models, 2022).
//
// Two seams carry the techniques of the field: a [Policy] says who comes first,
// a [Config] how a step's budget is spent; [Preset] has those of known systems.
// docs/scheduling.md names the source of each.
//
// The package keeps books only. It sees no model, no text and no clock: time is
// an argument. Everything belongs to one goroutine, and Next and Done allocate
// nothing once their buffers have grown.
package sched

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

var (
	// ErrTooLarge is returned for a sequence that could not even run alone.
	ErrTooLarge = errors.New("sched: sequence does not fit")
	// ErrQueueFull is returned when as many sequences wait as may.
	ErrQueueFull = errors.New("sched: queue is full")
)

// Scheduler decides what the steps of one model compute.
type Scheduler struct {
	cfg     Config
	mem     Memory
	queue   queue  // sequences without memory
	parked  []*Seq // preempted while on hold
	running []*Seq // sequences with memory, by rank after Next, those on hold last
	plan    Plan
	cost    *CostModel
	lengths *LengthModel
	order   int64 // sequences added so far
	stats   Stats

	slow    [guestSteps]float64 // steps with guests: measured over predicted time
	guested int                 // of these, ever
	kept    int                 // steps with prompts of hosts that guests stayed out of, one after the other
	purse   time.Duration       // that guests pay from what they add to steps beyond the bound
	usual   usual

	// Of the step at hand.
	now       time.Duration
	active    int           // the first of running, which may be served
	held      int           // the last of running, which are on hold
	left      int           // tokens
	reserved  int           // pages that the rows planned so far will take
	decoding  int           // rows of answers
	prompting int           // rows of prompts
	guessing  bool          // there may be guesses
	alone     time.Duration // of the answers without prompts
	batch     int           // members of the static batch at its start
	answers   bool          // those of the class best go on
	hosts     bool          // and there may be guests
	best      int
	unmixed   time.Duration // of the step without guests
	bound     time.Duration // of the step with guests
	visiting  bool          // hosts are planned: now guests
	seated    int           // guests with rows
	visitors  []*Seq        // guests that answer
	blocked   reason
	peak      []peakEntry
}

// reason says why the first waiting sequence was not admitted.
type reason uint8

const (
	notBlocked reason = iota
	bySlots
	byTokens
	byMemory
)

// New returns a scheduler for sequences whose memory is mem.
func New(cfg Config, mem Memory) (*Scheduler, error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	return &Scheduler{cfg: cfg, mem: mem, cost: cfg.Cost, lengths: cfg.Lengths, queue: queue{policy: cfg.Policy}}, nil
}

// Cost returns the model of step times.
func (s *Scheduler) Cost() *CostModel { return s.cost }

// Lengths returns the model of answer lengths.
func (s *Scheduler) Lengths() *LengthModel { return s.lengths }

// Config returns the scheduler's configuration, with its defaults filled in.
func (s *Scheduler) Config() Config { return s.cfg }

// Add puts a new sequence into the queue. It fails with ErrTooLarge if the
// sequence would not fit the memory with MaxNew tokens even alone, and with
// ErrQueueFull.
func (s *Scheduler) Add(q *Seq, now time.Duration) error {
	if q.Prompt < 1 || q.MaxNew < 1 || q.Computed != 0 || q.place != nowhere {
		return fmt.Errorf("sched: sequence %d: expected a new one with a prompt and room for an answer, found %d and %d tokens, %d computed", q.ID, q.Prompt, q.MaxNew, q.Computed)
	}
	if need, have := s.mem.PagesOf(q.Prompt+q.MaxNew), s.mem.Total(); need > have {
		return fmt.Errorf("%w: %d tokens of prompt and %d of answer need %d pages, there are %d", ErrTooLarge, q.Prompt, q.MaxNew, need, have)
	}
	if s.cfg.MaxQueue > 0 && s.queue.len() >= s.cfg.MaxQueue {
		return fmt.Errorf("%w: %d sequences wait", ErrQueueFull, s.queue.len())
	}
	q.Wanted = max(q.Wanted, q.Prompt)
	q.order = s.order
	s.order++
	s.stats.Added++
	s.cfg.Policy.Arrive(q, now)
	s.queue.push(q)
	return nil
}

// Fork makes child a running sequence beside parent, with the same tokens: its
// memory must be a fork of the parent's. It counts as one that was admitted
// right after its parent. It wants as many tokens as the parent unless its Wanted
// is set.
func (s *Scheduler) Fork(parent, child *Seq, now time.Duration) error {
	if parent.place != isRunning || child.place != nowhere {
		return fmt.Errorf("sched: fork of sequence %d: it must run, and %d must be new", parent.ID, child.ID)
	}
	child.inherit(parent)
	child.Computed = parent.Computed
	s.stats.Added++
	s.cfg.Policy.Arrive(child, now)
	s.cfg.Policy.Admit(child, now)
	s.start(child)
	return nil
}

// ForkWaiting puts child into the queue with the tokens of parent, which the
// scheduler has, and with its place in the order of arrival: a fork that has no
// memory yet.
func (s *Scheduler) ForkWaiting(parent, child *Seq, now time.Duration) error {
	if parent.place == nowhere || child.place != nowhere {
		return fmt.Errorf("sched: fork of sequence %d: it must be known, and %d must be new", parent.ID, child.ID)
	}
	child.inherit(parent)
	s.stats.Added++
	s.cfg.Policy.Arrive(child, now)
	s.queue.push(child)
	return nil
}

// inherit puts a new sequence into the order of arrival beside its parent.
func (q *Seq) inherit(parent *Seq) {
	if q.Wanted == 0 {
		q.Wanted = parent.Wanted
	}
	q.Computed, q.order = 0, parent.order
}

// Remove takes a sequence out, whatever it is doing, and releases its memory.
// It does nothing if the scheduler does not have it. It must not be called
// between Next and Done.
func (s *Scheduler) Remove(q *Seq, now time.Duration) {
	if q.place == nowhere {
		return
	}
	s.remove(q, now)
	s.stats.Removed++
}

// remove takes q from its place and releases its memory.
func (s *Scheduler) remove(q *Seq, now time.Duration) {
	switch q.place {
	case isWaiting:
		s.queue.remove(q)
	case isRunning:
		s.running = slices.DeleteFunc(s.running, func(x *Seq) bool { return x == q })
	case isParked:
		s.parked = slices.DeleteFunc(s.parked, func(x *Seq) bool { return x == q })
	}
	s.cfg.Policy.Leave(q, now)
	q.place, q.State = nowhere, nil
	if q.Swapped {
		s.stats.Swapped--
	}
	s.mem.Release(q)
	q.Swapped = false
}

// start makes q a running sequence.
func (s *Scheduler) start(q *Seq) {
	q.place, q.run, q.begun = isRunning, -1, s.now
	s.running = append(s.running, q)
}

// Position returns how many waiting sequences come before q, as things are at
// the given time, or -1 if it does not wait.
func (s *Scheduler) Position(q *Seq, now time.Duration) int {
	if q.place != isWaiting {
		return -1
	}
	return s.queue.before(q, now)
}

// Idle says whether there is no sequence.
func (s *Scheduler) Idle() bool {
	return len(s.running) == 0 && s.queue.len() == 0 && len(s.parked) == 0
}

// Next plans a step. The plan is valid until the next call, and belongs to the
// scheduler; after the step, or without it if the plan is empty, Done must be
// called.
func (s *Scheduler) Next(now time.Duration) *Plan {
	p := &s.plan
	p.Runs, p.Preempted, p.Admitted, p.Shed = p.Runs[:0], p.Preempted[:0], p.Admitted[:0], p.Shed[:0]
	p.Shape, p.Wake, p.Predicted = Shape{}, 0, 0
	s.now, s.active, s.left, s.reserved, s.blocked = now, 0, s.cfg.MaxTokens, 0, notBlocked
	s.decoding, s.prompting, s.guessing, s.hosts = 0, 0, false, false
	s.answers, s.visiting, s.seated = false, false, 0
	s.unpark()
	s.shed()
	s.rank()
	if s.cfg.Static {
		s.static()
	} else {
		s.iteration()
	}
	p.Runs = slices.DeleteFunc(p.Runs, func(r Run) bool { return r.Seq == nil })
	for i := range p.Runs {
		p.Runs[i].Seq.run = -1
	}
	p.Blocked = len(p.Runs) == 0 && p.Wake == 0 && (s.queue.len() > 0 || len(s.running) > 0)
	p.Predicted = s.cost.Predict(p.Shape)
	return p
}

// unpark puts sequences that are no longer on hold back into the queue.
func (s *Scheduler) unpark() {
	kept := s.parked[:0]
	for _, q := range s.parked {
		if q.Hold {
			kept = append(kept, q)
		} else {
			s.queue.push(q)
		}
	}
	s.parked = kept
}

// head returns the waiting sequence to admit first, nil if there is none. Those
// on hold are put aside.
func (s *Scheduler) head() *Seq {
	for {
		q := s.queue.best(s.now)
		if q == nil || !q.Hold {
			return q
		}
		s.queue.remove(q)
		s.park(q)
	}
}

func (s *Scheduler) park(q *Seq) {
	q.place = isParked
	s.parked = append(s.parked, q)
}

// shed drops waiting sequences whose deadline cannot be met any more.
func (s *Scheduler) shed() {
	if !s.cfg.Shed {
		return
	}
	for {
		q := s.head()
		if q == nil || q.Deadline == 0 || q.Wanted > q.Prompt || s.now+s.cost.Prompt(q.Prompt, q.Scored, s.cfg.MaxTokens) <= q.Deadline {
			return
		}
		s.remove(q, s.now)
		s.stats.Shed++
		s.plan.Shed = append(s.plan.Shed, q)
	}
}

// rank sorts the running sequences.
func (s *Scheduler) rank() {
	s.held = 0
	for _, q := range s.running {
		q.level, q.rank = s.cfg.Policy.Level(q, s.now), s.cfg.Policy.Rank(q)
		if q.Hold {
			s.held++
		}
	}
	slices.SortFunc(s.running, compare)
}

// serving returns the number of running sequences that are not on hold.
func (s *Scheduler) serving() int { return len(s.running) - s.held }

// static plans a step of a batch that was formed once and stays together until
// its last member has finished.
func (s *Scheduler) static() {
	if s.serving() == 0 {
		first := s.head()
		if first == nil {
			return
		}
		if due := first.Arrived + s.cfg.BatchWait; s.queue.len() < s.cfg.MaxSeqs && s.now < due {
			s.plan.Wake = due
			return
		}
		s.admit(false)
		s.batch = len(s.running)
	}
	s.active = min(s.serving(), s.cfg.MaxSeqs)
	s.batch = max(s.batch, len(s.running)) // forks join
	s.prompts()
	if len(s.plan.Runs) == 0 {
		s.decodes()
	}
	s.stats.SlotSteps += int64(s.batch)
	s.stats.IdleSlots += int64(s.batch - len(s.running))
}

// iteration plans a step that sequences may enter and leave.
func (s *Scheduler) iteration() {
	if s.cfg.Preemptive {
		s.displace()
	}
	s.active = min(s.serving(), s.cfg.MaxSeqs)
	s.classes()
	switch s.cfg.Order {
	case DecodeFirst:
		s.decodes()
		if !s.cfg.Apart || len(s.plan.Runs) == 0 {
			s.prompts()
			s.admit(true)
		}
	case PrefillFirst:
		s.prompts()
		s.admit(true)
		if !s.cfg.Apart || len(s.plan.Runs) == 0 {
			s.decodes()
		}
	case ByRank:
		s.serve(func(q *Seq) bool { return !s.guest(q) })
		s.admit(true)
	}
	s.earn()
	if s.hosts {
		s.guests()
	}
}

// Done books the step that Next planned: the caller has set New and Finished
// in its rows. elapsed is how long the step took, now the time after it.
func (s *Scheduler) Done(elapsed, now time.Duration) {
	p := &s.plan
	if len(p.Runs) > 0 {
		s.cost.Observe(p.Shape, elapsed)
		s.leave(elapsed, p.Predicted)
		s.stats.Steps++
	}
	switch s.blocked {
	case bySlots:
		s.stats.BlockedSlots += elapsed
	case byTokens:
		s.stats.BlockedTokens += elapsed
	case byMemory:
		s.stats.BlockedMemory += elapsed
	}
	for i := range p.Runs {
		s.book(&p.Runs[i], elapsed, now)
	}
	p.Runs = p.Runs[:0]
}

// book enters what became of one run.
func (s *Scheduler) book(r *Run, elapsed, now time.Duration) {
	q := r.Seq
	if q.place != isRunning {
		return
	}
	if prompt := min(r.N, max(q.Prompt-r.Start, 0)); prompt > 0 {
		s.stats.PromptTokens += int64(prompt)
	}
	q.Computed += r.N - r.Draft
	if r.Outputs > 0 && r.New > 0 {
		// Of the guesses, those before the last new token were right; what is
		// forced comes behind it.
		q.Computed += min(r.New-q.Forced-1, r.Draft)
		q.Wanted += r.New
		s.stats.NewTokens += int64(r.New)
		s.stats.DraftTokens += int64(r.Draft)
	}
	if r.Undone {
		q.Forced += q.Computed - r.Start
		q.Computed = r.Start
	}
	s.cfg.Policy.Serve(q, r, elapsed, now)
	if r.Finished {
		s.lengths.Observe(q)
		s.remove(q, now)
		s.stats.Finished++
	}
}
