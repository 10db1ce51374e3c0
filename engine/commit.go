package engine

import (
	"errors"
	"slices"

	"ridge/sample"
	"ridge/sched"
)

// outcome enters what a run has given: into the plan, into the sequences, and
// into their streams.
func (e *Engine) outcome(r *sched.Run, run *runState) {
	q, g := run.q, run.q.g
	jobs := e.jobs[run.jobs : run.jobs+run.njobs]
	for ; len(jobs) > 0 && jobs[0].at > 0; jobs = jobs[1:] {
		at := jobs[0].at
		if g.info.LogProbs != nil {
			g.info.LogProbs[at] = jobs[0].res
		}
		g.scored, g.fault = at, errors.Join(g.fault, jobs[0].err)
		q.Scored = g.rowsToScore()
	}
	if r.Outputs == 0 {
		g.progress(r.Start + r.N)
		return
	}
	if !g.told && g.info.Computed == 0 {
		g.info.Computed = e.now() - g.begun
	}
	switch {
	case g.fault != nil:
		r.Finished = true
		e.faulty(q)
	case g.req.MaxTokens == 0:
		r.Finished = true
		e.finish(q, e.scored(q, run))
	case g.beams != nil:
		r.New = 1
		e.candidates(q, &jobs[0])
	case g.forked || e.o.Contiguous:
		e.extendAll(q, r, &jobs[0], run.forced)
	default:
		r.Finished = e.branch(q, jobs)
		r.New = 1 + q.Forced
	}
}

// faulty ends q, and the choices that would be forks of it, for what happened
// when their prompt was scored.
func (e *Engine) faulty(q *sequence) {
	q.g.fault = e.locate(q, q.g.fault)
	for _, c := range q.g.seqs {
		if !c.done && (c == q || e.seqs[&c.Seq] == nil) {
			e.finish(c, &Event{Token: -1, StopToken: -1, Finish: FinishError, Err: q.g.fault})
		}
	}
}

// scored is the only event of a request that wants no tokens.
func (e *Engine) scored(q *sequence, run *runState) *Event {
	g := q.g
	var err error
	ev := &Event{Token: -1, StopToken: -1, Finish: FinishLength}
	if g.pool != NoPooling {
		ev.Finish = FinishStop
		ev.Embedding, err = e.represent(g, run)
	}
	if err != nil {
		ev.Finish, ev.Err = FinishError, e.locate(q, err)
	}
	return ev
}

// branch gives every choice its first token. The root's sequence has computed
// the prompt; the others become forks of it.
func (e *Engine) branch(root *sequence, jobs []job) (finished bool) {
	g := root.g
	g.forked = true
	others := false
	root.Forced = 0
	for _, q := range g.seqs {
		if q != root && !q.done {
			q.begin(root.tokens[:root.Prompt])
		}
	}
	for _, q := range g.seqs {
		end := q.done
		if q.stop && !end {
			end = true
			e.finish(q, &Event{Token: -1, StopToken: -1, Finish: FinishStop})
		} else if !end {
			end = e.extendToEnd(q, &jobs[0])
			jobs = jobs[1:]
		}
		if q == root {
			finished = end
		} else if !end {
			q.Wanted = q.Prompt + 1
			e.forks = append(e.forks, fork{root, q})
			others = true
		}
	}
	if finished && others {
		// It is needed until they are made.
		if len(root.tokens) == root.Prompt {
			root.tokens = append(root.tokens, 0)
		}
		e.removes = append(e.removes, root)
		return false
	}
	return finished
}

// extend gives a choice its next token, and says whether it is complete.
func (e *Engine) extend(q *sequence, j *job) (finished bool) {
	g := q.g
	if j.err != nil {
		e.finish(q, &Event{Token: -1, StopToken: -1, Finish: FinishError, Err: e.locate(q, j.err)})
		return true
	}
	token := j.res.Token
	q.tokens = append(q.tokens, token)
	q.total += float64(j.res.LogProb)
	if slices.Contains(g.req.StopTokens, token) {
		e.finish(q, &Event{Token: -1, StopToken: token, LogProb: j.res.LogProb, Top: j.res.Top, Trace: j.res.Trace, Finish: FinishStop})
		return true
	}
	n := q.length()
	if q.mask.stops != nil && n >= g.req.MinTokens {
		q.mask.stops = nil
		q.setMask()
	}
	end := Finish("")
	switch {
	case j.done:
		end = FinishStop
	case n >= g.req.MaxTokens:
		end = FinishLength
	case q.loops() && n >= g.req.MinTokens:
		end = FinishLoop
	}
	return e.emit(q, &j.res, j.forced, end)
}

// emit tells the reader of a token that a choice has got, and ends the choice if
// end says so.
func (e *Engine) emit(q *sequence, res *sample.Result, forced bool, end Finish) (finished bool) {
	q.n++
	e.counts.tokens++
	if forced {
		e.counts.forced++
	}
	ev := Event{Choice: q.choice, Token: res.Token, Forced: forced, Drafted: q.drafts.hit && !forced, StopToken: -1, LogProb: res.LogProb, Top: res.Top, Trace: res.Trace, Finish: end}
	q.drafts.tell(&ev)
	if q.g.silent() {
		q.buffer(&ev)
		if end == "" {
			return false
		}
		ev.Token = -1
	}
	if end != "" {
		e.finish(q, &ev)
		return true
	}
	e.send(q.g, &ev)
	return false
}

// buffer stores what will be sent of a token when all choices are complete.
func (q *sequence) buffer(ev *Event) {
	if n := q.g.req.Sampling.LogProbs; n > 0 {
		q.probs = append(q.probs, ev.LogProb)
		q.tops = append(q.tops, ev.Top[:min(n, len(ev.Top))])
	}
	if ev.Trace != nil {
		q.traces = append(q.traces, ev.Trace)
	}
	if q.ahead.by != nil {
		q.given = append(q.given, ev.Forced)
	}
}

// score is what choices are ranked by: the log-probability per token.
func (q *sequence) score() float64 { return q.total / float64(max(len(q.tokens)-q.Prompt, 1)) }

// failRun ends a request one of whose runs was not computed.
func (e *Engine) failRun(r *sched.Run) {
	if q := e.seqs[r.Seq]; q != nil {
		e.removes = append(e.removes, q)
	}
}

// commit does what must wait until the scheduler has booked the step.
func (e *Engine) commit(err error) {
	if err != nil {
		for _, q := range e.removes {
			if !q.g.removed {
				e.abort(q.g, FinishError, err)
			}
		}
		clear(e.removes)
		e.removes = e.removes[:0]
		return
	}
	for i := range e.runs {
		q := e.runs[i].q
		e.notePrefixes(q)
		if q.done {
			if !slices.Contains(e.removes, q) {
				delete(e.seqs, &q.Seq)
			}
			continue
		}
		e.publish(q)
		if q.KV != nil { // the next row begins behind what is computed
			e.pool.Slide(q.KV, q.Computed-1)
		}
	}
	for _, f := range e.forks {
		if !f.child.g.removed {
			e.fork(f.parent, f.child)
		}
	}
	for _, q := range e.removes {
		e.remove(q)
	}
	clear(e.forks)
	clear(e.removes)
	e.forks, e.removes = e.forks[:0], e.removes[:0]
	for _, g := range e.beams {
		if !g.removed {
			e.search(g)
		}
	}
	clear(e.beams)
	e.beams = e.beams[:0]
	e.catchUp()
}

// fork makes child go on from where parent is.
func (e *Engine) fork(parent, child *sequence) {
	child.Hold = child.g.held
	e.register(child)
	var err error
	if parent.Running() && !e.o.Contiguous {
		child.KV, child.published, child.rope = e.pool.Fork(parent.KV), parent.published, parent.rope
		err = e.sched.Fork(&parent.Seq, &child.Seq, e.now())
	} else { // it has no memory that could be shared
		// It is computed again, as one that was preempted, as far as the prefix
		// tree does not have it.
		err = e.sched.ForkWaiting(&parent.Seq, &child.Seq, e.now())
	}
	if err != nil {
		e.abort(child.g, FinishError, err)
	}
}

// publish gives what q has computed to the prefix tree: its full pages, or where
// layers have windows or states, which can be continued at few lengths, its prompt
// as far as it is computed. What came after that is published at its end. The
// same prompt is continued before its last token, which a state must be from.
func (e *Engine) publish(q *sequence) {
	if e.tree == nil || q.KV == nil {
		return
	}
	n := q.Computed
	if !e.tree.Marked() {
		n -= n % e.page
	} else if n > q.Prompt {
		return
	}
	if n <= q.published {
		return
	}
	if n < q.Prompt && !(e.pool.Stateful() && n == q.Prompt-1) && !q.breaksAt(n) {
		e.tree.InsertPart(q.salt(), q.tokens[:n], q.KV)
	} else {
		e.tree.Insert(q.salt(), q.tokens[:n], q.KV)
	}
	q.published = n
	e.inserted = true
}

// catchUp moves prompts that are being computed on to what others have
// published since they were admitted.
func (e *Engine) catchUp() {
	if !e.inserted {
		return
	}
	e.inserted = false
	for _, s := range e.sched.RunningSeqs() {
		q := e.seqs[s]
		if s.Computed >= s.Prompt || q.g.whole() {
			continue
		}
		n, _, _ := e.tree.Peek(q.salt(), q.tokens[:s.Wanted-1])
		least := s.Computed + e.page
		if !e.tree.Marked() {
			n -= n % e.page
			least = s.Computed + 1
		}
		if n < least {
			continue
		}
		kv := e.tree.Match(q.salt(), q.tokens[:n])
		e.pool.Free(s.KV)
		if !q.g.told {
			q.g.info.Cached += n - s.Computed
			q.g.info.Known = max(q.g.info.Known, q.g.info.Cached)
		}
		s.KV, s.Computed, q.published = kv, n, n
	}
}
