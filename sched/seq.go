package sched

import (
	"cmp"
	"time"

	"ridge/kvcache"
)

// Seq is a sequence as the scheduler sees it. The caller sets the first group
// of fields before Add; times are on the clock of Next.
type Seq struct {
	ID       uint64
	Tenant   string
	Weight   int           // the tenant's share under VTC; 0 means 1
	Priority int           // class; a lower one comes first
	Prompt   int           // tokens
	MaxNew   int           // tokens that it may be extended by
	Arrived  time.Duration // when the request came
	Deadline time.Duration // when its first new token is due; 0 for no deadline
	Cuts     []int         // lengths at which a step of its prompt ends if layers have windows or states, ascending: others are likely to begin alike up to there

	// The caller may change these between Done and Next.
	Draft int // tokens guessed behind the wanted ones, to be verified in one step
	// Forced are the last of the wanted tokens that are known without having been
	// computed for: with the token before them they are computed like the next one
	// of an answer, not like a prompt. The caller sets it with Run.New.
	Forced int
	// Scored is the number of tokens before the last one of the prompt that give
	// logits as well: log-probabilities of the prompt are wanted from there on.
	Scored int
	Hold   bool // not served, because its reader is slow; its slot, and if needed its memory, serve others

	// The scheduler keeps these.
	Wanted   int  // tokens known: the prompt and what came after it
	Computed int  // tokens whose keys and values are in the cache
	Swapped  bool // its keys and values were written out

	// KV is the sequence's memory. It belongs to the scheduler's Memory.
	KV *kvcache.Seq

	// State is what the policy keeps of the sequence. It belongs to the
	// scheduler's Policy, which sets it in Arrive; it is nil after Leave.
	State any

	place  place
	order  int64 // of arrival
	level  int64 // as of Level and Rank
	rank   int64
	lane   int
	pos    int           // in the heap of its lane
	run    int           // in the plan at hand, -1 for none
	pages  int           // reserved for that run
	served int64         // the step that it was last in
	begun  time.Duration // when it got its memory
}

// place says where the scheduler has a sequence.
type place uint8

const (
	nowhere place = iota
	isWaiting
	isRunning
	isParked
)

// Generated returns the number of tokens that came after the prompt.
func (q *Seq) Generated() int { return q.Wanted - q.Prompt }

// Running says whether q has memory and is served by turns.
func (q *Seq) Running() bool { return q.place == isRunning }

// scoredIn returns how many of n tokens from start on are scored.
func (q *Seq) scoredIn(start, n int) int {
	last := q.Prompt - 1
	return max(min(start+n, last)-max(start, last-q.Scored), 0)
}

// missing returns the tokens that must be computed before q is extended.
func (q *Seq) missing() int { return q.Wanted - q.Computed }

// maxForced bounds the forced tokens that are computed at once as part of an
// answer. A longer piece waits its turn and its share of the time like a prompt,
// so that it does not stall other answers.
const maxForced = 16

// decodes says whether q only waits for its next token.
func (q *Seq) decodes() bool {
	return q.missing() <= 1+min(q.Forced, maxForced) && q.Wanted > q.Prompt
}

// compare orders sequences: first those served first.
func compare(a, b *Seq) int {
	if a.Hold != b.Hold {
		if a.Hold {
			return 1
		}
		return -1
	}
	if a.level != b.level {
		return cmp.Compare(a.level, b.level)
	}
	if a.rank != b.rank {
		return cmp.Compare(a.rank, b.rank)
	}
	if a.order != b.order {
		return cmp.Compare(a.order, b.order)
	}
	return cmp.Compare(a.ID, b.ID)
}

// Plan is what a step computes.
type Plan struct {
	Runs      []Run
	Admitted  []*Seq       // got memory; Computed says how much was in the cache
	Preempted []Preemption // lost their memory, for others
	Shed      []*Seq       // were dropped: their deadline cannot be met
	Shape     Shape
	Predicted time.Duration // how long it will take, 0 if that is not known yet

	// Wake is when Next should be called again though nothing happened, if the
	// plan is empty; 0 for no such time. Blocked says that the plan is empty
	// although there are sequences: all are on hold, or somebody else has the
	// memory.
	Wake    time.Duration
	Blocked bool
}

// Preemption says that a sequence lost its memory, and whether its keys and
// values were written out or must be computed again.
type Preemption struct {
	Seq     *Seq
	Swapped bool
}

// Run is a part of a step: N tokens of one sequence from token Start on. The
// last Draft of them are guesses.
type Run struct {
	Seq      *Seq
	Start, N int
	Draft    int
	Outputs  int // how many of the last tokens want logits: none within a prompt, else 1 + Draft

	// Decodes says that the sequence only waited for its next token.
	Decodes bool

	// The caller sets these before Done, where Outputs > 0: how many tokens
	// the sequence was extended by (1, one more for each guess that was right,
	// and Seq.Forced), and whether it is complete.
	New      int
	Finished bool
	// Undone says that what the run computed was dropped again, since layers have
	// states that cannot drop wrong guesses alone. What is right of it is computed
	// with the next token, as Forced ones are.
	Undone bool
}
