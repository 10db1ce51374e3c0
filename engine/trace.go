package engine

import (
	"time"

	"ridge/engine/trace"
	"ridge/sched"
)

// move notes that a choice of a request came or went.
func (e *Engine) move(kind trace.Kind, g *group, choice int) {
	e.ring.Move(kind, g.req.ID, g.req.Tenant, choice)
}

// record remembers the step that has ended. runs are those of the plan, kernels is
// what counters.kernels was before.
func (e *Engine) record(p *sched.Plan, runs []sched.Run, begin, kernels time.Duration) {
	e.rows = e.rows[:0]
	for i := range runs {
		r, q := &runs[i], e.runs[i].q
		kind := trace.Prefill
		if r.Decodes {
			if kind = trace.Decode; r.N > 1 {
				kind = trace.Draft
			}
		}
		e.rows = append(e.rows, trace.Row{ID: q.g.req.ID, Tenant: q.g.req.Tenant, Choice: int32(q.choice), Kind: kind, Tokens: int32(r.N), Context: int32(r.Start + r.N)})
	}
	e.ring.Record(trace.Step{At: e.start.Add(begin), Took: e.took, Predicted: p.Predicted, Kernels: e.counts.kernels - kernels,
		Budget: e.sched.Config().MaxTokens, Waiting: int(e.waiting.Load()), Paused: len(e.held)}, e.rows)
}

// Trace returns what is remembered of the last steps, a few hundred. To look at it
// does not wait for the step at hand.
func (e *Engine) Trace() *trace.Ring { return e.ring }
