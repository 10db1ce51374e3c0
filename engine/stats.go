package engine

import (
	"maps"
	"slices"
	"time"

	"ridge/kvcache"
	"ridge/model"
	"ridge/sched"
)

// counters are kept by the loop.
type counters struct {
	submitted int64
	finished  map[Finish]int64
	tokens    int64
	forced    int64
	steps     int64
	paused    int64
	drafted   int64 // guesses that were verified
	hits      int64 // of these, those that were right

	busy, kernels, sampling, drafting, saved time.Duration
}

// Stats describe an engine at one moment.
type Stats struct {
	Requests  int // not complete
	Waiting   int // of these, those whose computation has not begun
	Paused    int // of these, those whose reader is slow
	Submitted int64
	Finished  map[Finish]int64 // choices, by how they ended
	Pauses    int64            // how often a request was paused for its reader

	Tokens   int64 // of answers
	Forced   int64 // of these, those that were not drawn, see Request.JumpAhead
	Steps    int64
	Busy     time.Duration // time of all steps
	Kernels  time.Duration // of Busy, in the model
	Sampling time.Duration // of Busy, drawing tokens and scoring prompts
	Drafting time.Duration // guessing, between steps

	Guessed    int64         // tokens that were guessed and computed, see Options.Draft
	Right      int64         // of these, those that became part of an answer
	DraftBytes int64         // held by drafters
	Saved      time.Duration // by guesses, as estimated

	Sched     sched.Stats
	Swap      SwapStats      // zero without a SwapSpace
	Predicted sched.Accuracy // how far off predicted step times were

	Pool  kvcache.Stats
	Usage kvcache.Usage
	Tree  kvcache.TreeStats // zero without a prefix tree

	Prefixes PrefixStats

	Experts []model.ExpertLoad // of the layers that have some

	Sequences []SequenceStats // the running ones, then those that wait, in order
}

// SequenceStats describe one sequence.
type SequenceStats struct {
	ID       string // of the request
	Choice   int
	State    string // "running", "waiting", "swapped" or "paused"
	Position int    // among those that wait, else -1
	Prompt   int    // tokens
	Cached   int    // of these, those that were found
	Known    int    // see PromptInfo
	Computed int    // tokens whose keys and values are there
	Tokens   int    // of the answer
	Max      int    // tokens that the answer can have
	Pages    int
	Tenant   string
	Priority int
	Age      time.Duration
}

// maxListed bounds the waiting sequences in Stats: the position of one takes
// time in proportion to the queue.
const maxListed = 100

// statsPatience is how long Stats waits for a step to end, and notedPatience how long
// for one of whose beginning there are figures. There are when the one before took
// more than stepPatience.
const (
	statsPatience = 2 * time.Second
	stepPatience  = 20 * time.Millisecond
	notedPatience = 2 * time.Millisecond
)

// longStep is the number of rows from which on a step counts as one that takes long.
const longStep = 64

// Stats returns counters and a row for each sequence, as of the end of the step
// at hand; if that takes long, as of its beginning, of the last time that they were
// asked for, or of the engine's start.
func (e *Engine) Stats() Stats {
	// If the wait is given up, the loop still runs the function, later: it must
	// write where nobody else reads.
	st, ran := new(Stats), make(chan struct{})
	fresh := func() { *st = e.stats(); e.last.Store(st); close(ran) }
	if e.post(command{kind: callFunc, call: fresh}) != nil {
		return *e.last.Load()
	}
	first := stepPatience
	if e.noted.Load() {
		first = notedPatience
	}
	patience := time.NewTimer(first)
	defer patience.Stop()
	for long := false; ; long = true {
		select {
		case <-ran:
			return *st
		case <-e.done:
			select {
			case <-ran:
				return *st
			default:
				return *e.last.Load()
			}
		case <-patience.C:
		}
		if long || e.noted.Load() {
			return *e.last.Load()
		}
		patience.Reset(statsPatience - first)
	}
}

// note keeps figures of now if the step that begins will take long: who asks for them
// meanwhile gets those.
func (e *Engine) note(p *sched.Plan) {
	rows := 0
	for i := range p.Runs {
		rows += p.Runs[i].N
	}
	if rows >= longStep || e.took > stepPatience {
		st := e.stats()
		e.last.Store(&st)
		e.noted.Store(true)
	}
}

func (e *Engine) stats() Stats {
	c := &e.counts
	st := Stats{
		Requests: len(e.groups), Waiting: int(e.waiting.Load()), Paused: len(e.held),
		Submitted: c.submitted, Finished: maps.Clone(c.finished), Pauses: c.paused,
		Tokens: c.tokens, Forced: c.forced, Steps: c.steps, Busy: c.busy, Kernels: c.kernels, Sampling: c.sampling,
		Drafting: c.drafting, Guessed: c.drafted, Right: c.hits, Saved: c.saved,
		Sched: e.sched.Stats(), Pool: e.pool.Stats(), Usage: e.pool.Usage(),
	}
	if e.reserved != nil {
		st.Usage = e.reserved.Usage(e.sched.RunningSeqs(), e.o.Reserve)
	}
	if w, ok := e.o.Swap.(interface{ SwapStats() SwapStats }); ok {
		st.Swap = w.SwapStats()
	}
	st.Prefixes = e.prefixStats()
	st.Experts = e.m.ExpertLoads()
	st.Predicted = e.sched.Cost().Accuracy()
	if e.tree != nil {
		st.Tree = e.tree.Stats()
	}
	now := e.now()
	var waiting []*sequence
	for s, q := range e.seqs {
		st.DraftBytes += q.drafts.bytes()
		if s.Running() {
			st.Sequences = append(st.Sequences, q.stats(now))
		} else {
			waiting = append(waiting, q)
		}
	}
	byID := func(a, b *sequence) int { return int(a.ID) - int(b.ID) }
	slices.SortFunc(waiting, byID)
	running := len(st.Sequences)
	for _, q := range waiting[:min(len(waiting), maxListed)] {
		row := q.stats(now)
		row.Position = e.sched.Position(&q.Seq, now)
		st.Sequences = append(st.Sequences, row)
	}
	slices.SortStableFunc(st.Sequences[:running], func(a, b SequenceStats) int { return int(b.Age - a.Age) })
	slices.SortStableFunc(st.Sequences[running:], func(a, b SequenceStats) int { return a.Position - b.Position })
	return st
}

func (q *sequence) stats(now time.Duration) SequenceStats {
	s := SequenceStats{
		ID: q.g.req.ID, Choice: q.choice, Position: -1, State: "waiting",
		Prompt: q.Prompt, Cached: q.g.info.Cached, Known: q.g.info.Known, Computed: q.Computed, Tokens: q.n, Max: q.g.req.MaxTokens,
		Tenant: q.Tenant, Priority: q.Priority, Age: now - q.g.arrived,
	}
	switch {
	case q.Hold:
		s.State = "paused"
	case q.Running():
		s.State = "running"
	case q.Swapped:
		s.State = "swapped"
	}
	if q.KV != nil {
		s.Pages = q.KV.Pages()
	}
	return s
}
