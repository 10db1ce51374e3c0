package engine

import (
	"slices"

	"ridge/sample"
	"ridge/spec"
)

// Jump-ahead: where a grammar leaves one continuation, its tokens are not drawn. They are
// guesses, computed in one step with the token before them, and verified by the grammar
// alone: whatever the logits are, the next of them is the next token.

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
	ids []int32 // forced, the first of them already taken or next
	at  int     // the next one
	// ends says that the answer ends with them, done and err what the masker says then.
	ends, done bool
	err        error
	// params say which log-probabilities are wanted of each token, nil for none.
	params *sample.Params
}

// due returns the forced tokens that come next.
func (a *ahead) due() []int32 { return a.ids[a.at:] }

// length returns the tokens of the answer so far.
func (q *sequence) length() int { return max(len(q.tokens)-q.Prompt, 0) }

// jump finds the tokens that are forced after n tokens of the answer, as far as
// it may be long, and without those that would end it if they were drawn. Nothing is
// drawn before they are taken, so that sampler and masker can be told of them now. It
// may run on any thread.
func (q *sequence) jump(n int) {
	a, r := &q.ahead, &q.g.req
	a.ids, a.at, a.done, a.ends, a.err = a.by.Jump(a.ids[:0]), 0, false, false, nil
	for i, id := range a.ids {
		if n+i >= r.MaxTokens || slices.Contains(r.StopTokens, id) {
			a.ids = a.ids[:i]
			break
		}
		if a.done, a.err = q.accept(id); a.done || a.err != nil {
			a.ids = a.ids[:i+1]
			break
		}
	}
	a.ends = a.done || a.err != nil || n+len(a.ids) >= r.MaxTokens
}

// takeForced takes the forced token that comes next as the job's.
func (j *job) takeForced() {
	a := &j.q.ahead
	j.res, j.forced = sample.Result{Token: a.due()[0]}, true
	if a.at++; len(a.due()) == 0 {
		j.done, j.err = a.done, a.err
	}
}

// extendToEnd gives a choice its next token, and those that are forced behind it if the
// answer ends with them and nothing is wanted of their logits: nothing is computed for
// them.
func (e *Engine) extendToEnd(q *sequence, j *job) (finished bool) {
	finished = e.extend(q, j)
	for a := &q.ahead; !finished && a.ends && a.params == nil && len(a.due()) > 0; q.Forced++ {
		j.takeForced()
		finished = e.extend(q, j)
	}
	return finished
}

// forcedNext takes the forced token that comes next, if there is one. logits are those
// that it is scored with, where that is wanted.
func (j *job) forcedNext(logits func() []float32, scorer *sample.Sampler) (sample.Result, bool) {
	a := &j.q.ahead
	if j.forced = len(a.due()) > 0; !j.forced {
		return sample.Result{}, false
	}
	j.takeForced()
	if a.params != nil {
		j.res = scorer.ScoreForced(logits(), j.res.Token, a.params)
		if j.res.LogProb-j.res.LogProb != 0 && notFinite(logits()) {
			j.err = &NonFiniteError{}
		}
		j.trace(logits(), scorer)
	}
	return j.res, true
}

// maxForced bounds the forced tokens that a step computes where others wait for theirs.
const maxForced = 16

// force makes forced tokens the guesses of q, which are computed whatever it costs, and
// returns how many they are.
func (e *Engine) force(q *sequence) int {
	due := q.ahead.due()
	if len(due) == 0 || !e.single(q) {
		return 0
	}
	most := spec.MaxRows
	if len(e.sched.RunningSeqs()) > 1 {
		most = maxForced
	}
	d := &q.drafts
	d.at, d.guesses = -1, d.guesses[:0] // they are not learned from
	for _, id := range due[:e.room(q, min(len(due), most))] {
		d.guesses = append(d.guesses, spec.Guess{Token: id, Class: spec.Forced})
	}
	return len(d.guesses)
}
