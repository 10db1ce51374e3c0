package engine

import (
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync/atomic"
	"time"

	"ridge/model"
	"ridge/sample"
	"ridge/sched"
)

// runState is what the engine knows of a run of the plan.
type runState struct {
	q      *sequence
	out    int // its first row of output
	outs   int
	forced bool // what it guesses is forced
	redo   int  // its tokens that were computed before, see drafts.redo
	skip   int  // its tokens before the first row of output, if its prompt gives something
	jobs   int  // its first job
	njobs  int
}

// step computes a plan.
func (e *Engine) step(p *sched.Plan) {
	begin := e.now()
	e.stepAt.Store(int64(begin))
	kernels := e.counts.kernels
	e.won = 0
	runs := p.Runs // Done takes them out of the plan
	e.note(p)
	e.keepStates(p)
	e.build(p)
	e.computing.Store(true)
	err := e.compute(p)
	e.computing.Store(false)
	e.noted.Store(false) // who hears of an event asks for what is true then
	for i := range p.Runs {
		if err != nil {
			e.failRun(&p.Runs[i])
		} else {
			e.outcome(&p.Runs[i], &e.runs[i])
			e.tell(i, &p.Runs[i])
		}
	}
	end := e.now()
	if err != nil {
		e.sched.Done(0, end) // its time says nothing
	} else {
		e.counts.saved += e.account(p, end-begin, e.won)
		e.sched.Done(end-begin, end)
	}
	e.commit(err)
	e.stepAt.Store(0)
	e.counts.steps++
	e.took = e.now() - begin
	e.counts.busy += e.took
	e.record(p, runs, begin, kernels)
	clear(e.runs)
	clear(e.jobs)
}

// build makes the model's batch and the jobs for its outputs.
func (e *Engine) build(p *sched.Plan) {
	e.batch.Runs, e.runs, e.jobs = e.batch.Runs[:0], e.runs[:0], e.jobs[:0]
	e.batch.Taps = nil
	out := 0
	for i := range p.Runs {
		r := &p.Runs[i]
		q := e.seqs[r.Seq]
		run := runState{q: q, out: out, outs: r.Outputs, jobs: len(e.jobs)}
		tokens, parents := q.tokens, []int32(nil)
		if r.Draft > 0 {
			tokens, parents = q.guessed(r.Draft), q.drafts.tree.shape()
			run.forced = len(q.ahead.due()) > 0
		}
		if r.Outputs > 0 {
			run.redo, q.drafts.redo = min(q.drafts.redo, r.N-r.Draft-1), 0
		}
		if q.g.whole() {
			run.skip = min(max(q.g.scored-r.Start, 0), r.N)
			run.outs = r.N - run.skip
			if q.g.scores() {
				e.score(r, q, out-run.skip)
			}
		}
		skip := 0
		if run.forced && q.ahead.params == nil {
			// What is forced is not looked for in logits.
			skip, run.outs = r.Draft, 1
		}
		if r.Outputs > 0 {
			e.drawJobs(q, out+run.outs-1-r.Draft+skip, r.Draft, skip)
		}
		run.njobs = len(e.jobs) - run.jobs
		if e.reads(q) {
			e.batch.Taps = e.o.Draft.Taps
		}
		e.runs = append(e.runs, run)
		e.batch.Runs = append(e.batch.Runs, model.Run{Seq: q.KV, Tokens: tokens[r.Start : r.Start+r.N], Tree: parents, Outputs: run.outs, Second: q.g.req.Second, Adapter: q.g.req.Adapter.Run(), Length: max(q.rope, 1)})
		out += run.outs
	}
}

// score adds jobs for the scores of prompt tokens. A row gives that of the token
// after it. out is where the output of the first row would be.
func (e *Engine) score(r *sched.Run, q *sequence, out int) {
	for at := max(r.Start, q.g.scored); at < min(r.Start+r.N, q.Prompt-1); at++ {
		e.jobs = append(e.jobs, job{q: q, out: out + at - r.Start, at: at + 1})
	}
}

// drawJobs adds jobs for the next token: one for each choice that goes on from
// this row. The rows after it are behind guesses.
func (e *Engine) drawJobs(q *sequence, out, drafts, skip int) {
	g := q.g
	switch {
	case g.req.MaxTokens == 0:
	case !g.forked && g.beams == nil && !e.o.Contiguous:
		for _, c := range g.seqs {
			if !c.done && !c.stop {
				e.jobs = append(e.jobs, job{q: c, out: out})
			}
		}
	default:
		e.jobs = append(e.jobs, job{q: q, out: out, drafts: drafts, skip: skip})
	}
}

// maxLogits bounds the logits that are held at a time where prompts are scored,
// 16 MB of them. It is at least 16 rows.
const maxLogits = 4 << 20

// compute runs the model and the jobs.
func (e *Engine) compute(p *sched.Plan) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("engine: the step failed: %v\n%s", v, debug.Stack())
			for i := range p.Runs { // what was not computed must not be used
				r := &p.Runs[i]
				e.pool.Truncate(r.Seq.KV, r.Start)
			}
		}
	}()
	begin := time.Now()
	most := max(e.logits/e.limits.vocab, 16)
	simple, rows := len(e.jobs) > 0, 0
	for i := range e.runs {
		run, r := &e.runs[i], &p.Runs[i]
		simple = simple && run.outs <= 1+r.Draft && run.q.g.req.Embed == NoPooling
		rows += r.Draft
	}
	simple = simple && (rows == 0 || rows+len(e.jobs) <= most)
	if e.inject != nil {
		e.inject()
	}
	e.batch.NoLogits = !simple
	err = e.m.Forward(&e.batch)
	e.counts.kernels += time.Since(begin)
	if err != nil {
		if errors.Is(err, model.ErrChanged) {
			e.broken.Store(true)
		}
		return fmt.Errorf("engine: step: %w", err)
	}
	if simple {
		e.runJobs(e.jobs, 0)
		return nil
	}
	e.pooling(p)
	// The jobs are in the order of their outputs.
	for rest := e.jobs; len(rest) > 0; {
		first, n := rest[0].out, 0
		for n < len(rest) && (n == 0 || rest[n].last() < first+most) {
			n++
		}
		begin = time.Now()
		e.m.Project(first, rest[n-1].last()-first+1)
		e.counts.kernels += time.Since(begin)
		e.runJobs(rest[:n], first)
		rest = rest[n:]
	}
	return nil
}

// pooling adds up the states of prompts whose mean is wanted, in the order of
// their tokens, or takes the first.
func (e *Engine) pooling(p *sched.Plan) {
	for i := range p.Runs {
		r, run := &p.Runs[i], &e.runs[i]
		g := run.q.g
		if !g.pools() || !g.whole() {
			continue
		}
		for k := range r.N {
			if r.Start+k != g.scored {
				continue
			}
			if g.pool == PoolingMean || g.scored == 0 {
				for d, v := range e.m.Hidden(run.out + k - run.skip) {
					g.sum[d] += float64(v)
				}
			}
			g.scored++
		}
	}
}

// job is one row of logits, or one and those behind guesses, and what is to be taken
// from it.
type job struct {
	q      *sequence
	out    int
	at     int // > 0: the log-probability of this token; 0: the next token
	drafts int // rows behind guesses
	skip   int // rows without logits: of those, the first

	res    sample.Result
	forced bool // it was not drawn
	done   bool // the masker says that the text is complete
	err    error
}

// last returns the last row of j.
func (j *job) last() int { return j.out + j.drafts - j.skip }

// score takes what is wanted of a token of the prompt.
func (j *job) score(logits []float32, scorer *sample.Sampler) {
	r := &j.q.g.req
	if r.PromptLogits != nil {
		r.PromptLogits(j.at, logits)
	}
	if r.PromptLogProbs == 0 {
		return
	}
	j.res = scorer.Score(logits, j.q.tokens[j.at], r.PromptLogProbs)
	if j.res.LogProb-j.res.LogProb != 0 && notFinite(logits) {
		j.err = &NonFiniteError{}
	}
}

// trace adds what is wanted of a token that was forced and has been scored.
func (j *job) trace(logits []float32, scorer *sample.Sampler) {
	if j.q.g.req.Sampling.Trace && j.res.Token >= 0 {
		j.res.Trace = scorer.TraceForced(logits, &j.res)
	}
}

// drawTask runs jobs on the model's threads. Each touches its own sequence only,
// so the order does not matter.
type drawTask struct {
	e       *Engine
	jobs    []job
	first   int          // output row that Logits(0) is
	next    atomic.Int32 // job that nobody has begun
	scorers []*sample.Sampler
}

// fewLogits is the amount below which one thread does all jobs.
const fewLogits = 1 << 15

func (e *Engine) runJobs(jobs []job, first int) {
	begin := time.Now()
	t := &e.draw
	t.e, t.jobs, t.first = e, jobs, first
	t.next.Store(0)
	if len(jobs) == 1 || len(jobs)*e.limits.vocab < fewLogits {
		t.Do(0, 1)
	} else {
		e.m.Threads().Run(t)
	}
	t.jobs = nil
	e.counts.sampling += time.Since(begin)
}

// Do runs the next job until there is none: some take ten times as long as others.
func (t *drawTask) Do(worker, _ int) {
	for i := t.next.Add(1) - 1; int(i) < len(t.jobs); i = t.next.Add(1) - 1 {
		t.run(&t.jobs[i], t.scorers[worker])
	}
}

func (t *drawTask) run(j *job, scorer *sample.Sampler) {
	defer func() {
		if v := recover(); v != nil {
			j.err = fmt.Errorf("engine: sampling failed: %v\n%s", v, debug.Stack())
		}
	}()
	logits, q := t.e.m.Logits(j.out-t.first), j.q // of a job that skips some, the last row
	if j.at > 0 {
		j.score(logits, scorer)
		return
	}
	if q.ahead.by != nil && q.length() == 0 {
		q.jump(0)
	}
	q.sampler.Share(scorer)
	t.observe(j)
	if j.drafts > 0 {
		t.verify(j, scorer)
		return
	}
	if _, forced := j.forcedNext(func() []float32 { return logits }, scorer); !forced {
		j.res = q.sampler.Sample(logits)
	}
	j.take(logits, 0)
}

// take looks at the token that was drawn from a row, n tokens behind the last known
// one, and tells sampler and masker of it, unless it ends the answer, which it
// reports.
func (j *job) take(logits []float32, n int) (ends bool) {
	q := j.q
	if j.res.Trace != nil {
		q.mask.explain(&j.res)
	}
	switch {
	case q.g.beams != nil || j.forced:
	case j.res.Token < 0 && notFinite(logits), j.res.Token >= 0 && notFinite(logits[j.res.Token:][:1]):
		j.err = &NonFiniteError{}
	case j.res.Token < 0:
		j.err = ErrNoToken
		if m, ok := q.mask.inner.(interface{ Err() error }); ok {
			if err := m.Err(); err != nil {
				j.err = fmt.Errorf("%w: %w", ErrNoToken, err)
			}
		}
	case slices.Contains(q.g.req.StopTokens, j.res.Token):
		return true
	default:
		if j.done, j.err = q.accept(j.res.Token); q.ahead.by != nil && !j.done && j.err == nil {
			q.jump(q.length() + n + 1)
		}
	}
	return j.done || j.err != nil
}
