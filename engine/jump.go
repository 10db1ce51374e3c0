package engine

import (
	"slices"

	"ridge/sample"
	"ridge/sched"
)

// Jump-ahead: where a grammar leaves one continuation, its tokens are not drawn
// one by one. They are appended to the answer in one go and computed together
// with the token before them, as rows of one step.

// Jumper is a Masker that may know which tokens come next whatever the logits
// are. With Request.JumpAhead they are taken without being drawn.
type Jumper interface {
	Masker
	// Jump appends these tokens to dst, most often none, and returns it. It
	// moves nothing: Accept follows for each token that is taken. What it
	// appends may depend on the tokens so far only.
	Jump(dst []int32) []int32
}

// ahead is what a sequence knows of forced tokens.
type ahead struct {
	by  Jumper  // nil: nothing is forced
	ids []int32 // forced after the token of the job at hand
	// params say which log-probabilities are wanted of each token, nil for none.
	params *sample.Params

	// Log-probabilities of forced tokens are known when they are computed: until
	// then the events of tokens from due on wait. 0 if none do.
	due int
	end Finish // how the answer ends with the last of them, "" if it goes on
}

// length returns the tokens of the answer so far, those included whose events
// wait.
func (q *sequence) length() int { return max(len(q.tokens)-q.Prompt, 0) }

// jump takes the tokens that are forced after n tokens of the answer, as far as
// it may be long, and without those that would end it if they were drawn. It
// may run on any thread.
func (q *sequence) jump(n int) (done bool, err error) {
	a, r := &q.ahead, &q.g.req
	a.ids = a.by.Jump(a.ids)
	for i, id := range a.ids {
		if n+i >= r.MaxTokens || slices.Contains(r.StopTokens, id) {
			a.ids = a.ids[:i]
			return false, nil
		}
		if done, err = q.accept(id); done || err != nil {
			a.ids = a.ids[:i+1]
			return done, err
		}
	}
	return false, nil
}

// open lets an answer begin with forced tokens, if there are any: the first is
// the job's, and nothing is drawn.
func (j *job) open(logits []float32, scorer *sample.Sampler) bool {
	a := &j.q.ahead
	if j.done, j.err = j.q.jump(0); len(a.ids) == 0 {
		return j.err != nil
	}
	j.res, j.forced = sample.Result{Token: a.ids[0]}, true
	if a.params != nil {
		j.res = scorer.ScoreForced(logits, a.ids[0], a.params)
		j.trace(logits, scorer)
	}
	a.ids = append(a.ids[:0], a.ids[1:]...)
	return true
}

// appendForced gives a choice the forced tokens that come after the one it has got, and
// says whether it is complete.
func (e *Engine) appendForced(q *sequence, end Finish) (finished bool) {
	a := &q.ahead
	q.Forced = len(a.ids)
	first := len(q.tokens)
	q.tokens = append(q.tokens, a.ids...)
	if a.params != nil {
		a.due, a.end = first, end
		if end != "" {
			q.Forced-- // the last one is not computed
		}
		return false
	}
	for i, id := range a.ids {
		last := Finish("")
		if i == len(a.ids)-1 {
			last = end
		}
		finished = e.emit(q, &sample.Result{Token: id}, true, last)
	}
	return finished
}

// scoreAhead adds jobs for the log-probabilities of forced tokens and returns
// how many of the row's last tokens want logits.
func (e *Engine) scoreAhead(r *sched.Run, q *sequence, out int) int {
	first, end := max(r.Start, q.ahead.due-1), r.Start+r.N
	for at := first + 1; at <= min(end, len(q.tokens)-1); at++ {
		e.jobs = append(e.jobs, job{q: q, out: out + at - 1 - first, at: at})
	}
	return max(end-first, 0)
}

// reveal gives a choice a forced token whose log-probability has become known.
func (e *Engine) reveal(q *sequence, j *job) (finished bool) {
	a := &q.ahead
	if j.err != nil {
		e.finish(q, &Event{Token: -1, StopToken: -1, Finish: FinishError, Err: j.err})
		return true
	}
	q.total += float64(j.res.LogProb)
	if a.due = j.at + 1; a.due < len(q.tokens) {
		return e.emit(q, &j.res, true, "")
	}
	a.due = 0
	return e.emit(q, &j.res, true, a.end)
}
