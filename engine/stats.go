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

// Who asks for figures waits for the model no longer than stepPatience, for what comes
// between two of its computations, as when events are sent, no longer than
// statsPatience, and looks each statsLook whether there are figures of the beginning of
// a step that takes long: one with longStep rows, or after one that took more than
// stepPatience.
const (
	statsPatience = 2 * time.Second
	stepPatience  = 20 * time.Millisecond
	statsLook     = 2 * time.Millisecond
	longStep      = 64
)

// For so long after somebody asked, figures are kept now and then at the beginning of
// short steps too, so that those of a step that takes long after all are not old.
const (
	statsAsked = 10 * time.Second
	statsEach  = time.Second
)

// Stats returns counters and a row for each sequence: as of now, or while the model
// computes a step that takes long, at once, as of its beginning. They are older if the
// loop is busy with anything else that takes long. What an event has told is in them.
func (e *Engine) Stats() Stats {
	e.asked.Store(int64(e.now()))
	if e.noted.Load() {
		return *e.last.Load()
	}
	// If the wait is given up, the loop still runs the function, later: it must
	// write where nobody else reads.
	st, ran := new(Stats), make(chan struct{})
	fresh := func() { *st = e.stats(); e.keep(st); close(ran) }
	if e.post(command{kind: callFunc, call: fresh}) != nil {
		return *e.last.Load()
	}
	look := time.NewTicker(statsLook)
	defer look.Stop()
	for begin := e.now(); ; {
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
		case <-look.C:
		}
		if waited := e.now() - begin; e.noted.Load() || waited >= statsPatience || waited >= stepPatience && e.computing.Load() {
			return *e.last.Load()
		}
	}
}

// keep makes st what who asks gets without waiting.
func (e *Engine) keep(st *Stats) {
	e.last.Store(st)
	e.kept = e.now()
}

// note keeps figures of now if the step that begins will take long: who asks for them
// meanwhile gets those.
func (e *Engine) note(p *sched.Plan) {
	rows := 0
	for i := range p.Runs {
		rows += p.Runs[i].N
	}
	long := rows >= longStep || e.took > stepPatience
	now := e.now()
	if asked := time.Duration(e.asked.Load()); !long && (asked == 0 || now-asked > statsAsked || now-e.kept < statsEach) {
		return
	}
	st := e.stats()
	e.keep(&st)
	e.noted.Store(long)
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
