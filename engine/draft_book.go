package engine

import (
	"time"

	"ridge/sched"
	"ridge/spec"
)

// What becomes of guesses: the time that they took and saved is booked, and what was
// computed behind wrong ones is dropped.

// account books a step that took so long, and returns the time that guesses have
// saved. It must be called before the step's time is learned from.
func (e *Engine) account(p *sched.Plan, elapsed time.Duration, right float64) time.Duration {
	if e.o.Draft == nil {
		return 0
	}
	cost := e.sched.Cost()
	plain, answers := sched.Shape{Scored: p.Shape.Scored}, sched.Shape{}
	guesses, tokens, redone := 0, 0, 0
	for i := range p.Runs {
		r := &p.Runs[i]
		again, drafts := e.runs[i].redo, r.Draft
		if e.runs[i].forced {
			drafts = 0
		}
		if r.Outputs > 0 {
			tokens++
			answers = answers.With(r.Start+r.N-drafts-1, 1, 1)
		}
		plain = plain.With(r.Start+again, r.N-drafts-again, min(r.Outputs, 1+r.Draft-drafts))
		guesses, redone = guesses+drafts, redone+again
	}
	o := spec.Outcome{
		Rows: p.Shape.Rows - guesses, Guesses: guesses, Right: right, Redone: redone,
		Plain: float64(cost.Predict(plain)), Predicted: float64(cost.Predict(p.Shape)),
		Took: float64(elapsed), Drafting: float64(e.drafting),
	}
	if tokens > 0 {
		o.Worth = float64(cost.Predict(answers)) / float64(tokens)
	}
	e.drafting = 0
	return time.Duration(e.control.Learn(o))
}

// keepStates keeps the states of sequences whose guesses the step verifies. Where
// there is no memory for that, nothing is guessed.
func (e *Engine) keepStates(p *sched.Plan) {
	if !e.pool.Stateful() {
		return
	}
	need, guesses := 0, false
	for i := range p.Runs {
		r := &p.Runs[i]
		if r.Draft > 0 {
			guesses = true
			e.pool.Keep(r.Seq.KV)
		}
		need += e.pool.PagesFor(r.Seq.KV, r.N)
	}
	if !guesses || e.pool.Reserve(need) >= need {
		return
	}
	shape := sched.Shape{Scored: p.Shape.Scored}
	for i := range p.Runs {
		r := &p.Runs[i]
		if r.Draft > 0 {
			e.pool.Drop(r.Seq.KV)
			r.N, r.Draft, r.Outputs = r.N-r.Draft, 0, 1
		}
		shape = shape.With(r.Start, r.N, r.Outputs)
	}
	p.Shape = shape
}

// dropWrong drops what a run has computed behind the right ones of its guesses. A
// state is taken back to where it was before the run: what was right is computed
// again with the next token.
func (e *Engine) dropWrong(q *sequence, r *sched.Run, right int) {
	switch {
	case !e.pool.Stateful():
		e.pool.Truncate(q.KV, r.Start+r.N-r.Draft+right)
	case right == r.Draft:
		e.pool.Drop(q.KV)
	default:
		e.pool.Return(q.KV)
		r.Undone, q.drafts.redo = true, r.N-r.Draft+right
	}
}
