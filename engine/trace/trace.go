// Package trace remembers the last steps of an engine, for those who watch it: in
// rings of fixed size that are filled in place, so that to remember a step allocates
// nothing.
package trace

import (
	"sync"
	"time"
)

// Kind says what a run of rows of a step was for.
type Kind uint8

// The kinds.
const (
	Prefill Kind = iota // tokens of a prompt, or what is computed again
	Decode              // the next token of an answer
	Draft               // the next token of an answer and those that were known or guessed behind it

	// What became of sequences since the step before: they got memory, or lost it.
	Admitted
	Preempted
	Finished // requests: they were complete
)

// String returns the kind's name.
func (k Kind) String() string {
	return [...]string{"prefill", "decode", "draft", "admitted", "preempted", "finished"}[k]
}

// Row is what a step did for one sequence.
type Row struct {
	ID      string // of the request
	Tenant  string
	Choice  int32
	Kind    Kind
	Tokens  int32 // rows of the step
	Context int32 // tokens of the sequence whose keys and values are there after the step
}

// keys are those that attention reads for the rows: for each the tokens up to its own.
func (r *Row) keys() int64 {
	n := int64(r.Tokens)
	return n*int64(r.Context) - n*(n-1)/2
}

// Step describes a step.
type Step struct {
	N         int64 // the first one is 1
	At        time.Time
	Took      time.Duration
	Predicted time.Duration // by the scheduler's model of costs; 0 if it did not know yet
	Kernels   time.Duration // of Took, in the model
	Budget    int           // tokens that a step can have
	Waiting   int           // requests whose computation had not begun
	Paused    int           // requests whose reader was slow
	Rows      []Row

	Admitted, Preempted, Finished []Row // since the step before
}

// Totals are sums over the steps that computed nothing but next tokens of answers.
type Totals struct {
	Steps int64
	Rows  int64 // tokens
	Keys  int64 // that attention read: for each row, the tokens up to its own
	Took  time.Duration
}

const (
	stepsKept = 256  // steps that are remembered at most
	rowsKept  = 8192 // rows of them, if no step has so many that more are needed
	movesKept = 512  // what is noted of sequences between two steps
)

// Ring remembers steps. One goroutine writes, others may read: the lock is held for
// the copy of one step at a time.
type Ring struct {
	moves []Row // of the writer alone

	mu     sync.Mutex
	steps  []kept // step n is at n % len
	rows   []Row  // row i is at i % len
	n      int64  // steps so far
	wrote  int64  // rows so far
	decode Totals
}

// kept is a step whose rows lie elsewhere.
type kept struct {
	Step
	first int64 // its first row
	count int
}

// New returns an empty ring for steps of at most the given number of sequences.
func New(seqs int) *Ring {
	return &Ring{steps: make([]kept, stepsKept), rows: make([]Row, max(rowsKept, 2*seqs+2*movesKept)), moves: make([]Row, 0, movesKept)}
}

// Move notes that a sequence came or went, to be told with the next step.
func (t *Ring) Move(kind Kind, id, tenant string, choice int) {
	if len(t.moves) < cap(t.moves) {
		t.moves = append(t.moves, Row{ID: id, Tenant: tenant, Choice: int32(choice), Kind: kind})
	}
}

// Record adds the step that has ended: s, which is given its number here, and what it
// did. The rows are copied.
func (t *Ring) Record(s Step, rows []Row) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.n++
	s.N = t.n
	k := &t.steps[t.n%int64(len(t.steps))]
	k.Step, k.first, k.count = s, t.wrote, len(rows)+len(t.moves)
	own := Totals{Steps: 1, Took: s.Took}
	for i := range rows {
		r := &rows[i]
		t.rows[t.wrote%int64(len(t.rows))] = *r
		t.wrote++
		own.Rows += int64(r.Tokens)
		own.Keys += r.keys()
		if r.Kind == Prefill {
			own.Steps = 0
		}
	}
	for i := range t.moves {
		t.rows[t.wrote%int64(len(t.rows))] = t.moves[i]
		t.wrote++
	}
	t.moves = t.moves[:0]
	if own.Steps > 0 {
		d := &t.decode
		d.Steps, d.Rows, d.Keys, d.Took = d.Steps+1, d.Rows+own.Rows, d.Keys+own.Keys, d.Took+own.Took
	}
}

// Steps returns the steps after the one of a number, the last of them and at most so
// many, as far as they are remembered.
func (t *Ring) Steps(after int64, most int) []Step {
	t.mu.Lock()
	last := t.n
	t.mu.Unlock()
	var out []Step
	for n := max(after, last-int64(most), last-stepsKept) + 1; n <= last; n++ {
		if s, ok := t.step(n); ok {
			out = append(out, s)
		}
	}
	return out
}

// step returns a step if it is remembered with all of its rows.
func (t *Ring) step(n int64) (Step, bool) {
	k := &t.steps[n%int64(len(t.steps))]
	t.mu.Lock()
	count := k.count
	t.mu.Unlock()
	all := make([]Row, count) // not while the writer waits
	t.mu.Lock()
	if k.N != n || k.first < t.wrote-int64(len(t.rows)) {
		t.mu.Unlock()
		return Step{}, false
	}
	out, at := k.Step, int(k.first%int64(len(t.rows)))
	got := copy(all, t.rows[at:])
	copy(all[got:], t.rows)
	t.mu.Unlock()
	rows := 0 // they come first
	for i := range all {
		switch r := all[i]; r.Kind {
		case Admitted:
			out.Admitted = append(out.Admitted, r)
		case Preempted:
			out.Preempted = append(out.Preempted, r)
		case Finished:
			out.Finished = append(out.Finished, r)
		default:
			rows++
		}
	}
	out.Rows = all[:rows:rows]
	return out, true
}

// Decode returns sums over all steps that only computed next tokens of answers.
func (t *Ring) Decode() Totals {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.decode
}
