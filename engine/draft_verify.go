package engine

import (
	"ridge/sample"
	"ridge/sched"
	"ridge/spec"
)

// tree is the guesses that a step computes, in the order of their rows.
type tree struct {
	tokens  []int32
	parents []int32 // of each, its place, -1 for the text; a chain has them, too
	chain   bool    // each follows the one before it
}

// lay lays out guesses as rows: from each on, the likeliest of those that follow it, and
// then the others, so that what is likely to be right lies side by side.
func (t *tree) lay(guesses []spec.Guess) {
	t.tokens, t.parents = t.tokens[:0], t.parents[:0]
	t.chain = len(spec.Chain(guesses)) == len(guesses)
	t.layBehind(guesses, -1, -1)
}

// layBehind lays out what follows a guess whose row is at.
func (t *tree) layBehind(guesses []spec.Guess, guess, at int) {
	for i := guess + 1; i < len(guesses); i++ {
		if spec.Parent(guesses, i) == guess {
			t.tokens, t.parents = append(t.tokens, guesses[i].Token), append(t.parents, int32(at))
			t.layBehind(guesses, i, len(t.tokens)-1)
		}
	}
}

// shape returns the parents for the model and the sampler, nil for a chain.
func (t *tree) shape() []int32 {
	if t.chain {
		return nil
	}
	return t.parents
}

// goesOn says whether anything was guessed of what follows a guess.
func (t *tree) goesOn(at int) bool {
	for _, p := range t.parents {
		if int(p) == at {
			return true
		}
	}
	return false
}

// tell enters what has become of guesses.
func (d *drafts) tell(ev *Event) {
	ev.Guessed, ev.Right, ev.Verified, ev.Places = d.verified, d.right, d.steps, d.places
}

// guessed returns q's tokens with n guesses behind them, as rows of a step. They lie in
// the room that is left behind the tokens, which are as many as before.
func (q *sequence) guessed(n int) []int32 {
	t := &q.drafts.tree
	t.lay(q.drafts.guesses[:n])
	all := append(q.tokens, t.tokens...)
	q.tokens = all[:len(q.tokens)]
	return all
}

// chain is a sequence whose guesses are verified. It is a sample.Chain.
type chain struct {
	t       *drawTask
	j       *job
	scorer  *sample.Sampler
	row     int // that was asked for last
	results []sample.Result
	forced  []bool // of each, whether it was not drawn
}

// Logits returns the row behind guess i-1, or for 0 the one before all.
func (c *chain) Logits(i int) []float32 {
	c.row = i
	return c.t.e.m.Logits(c.j.out + i - c.j.skip - c.t.first)
}

// Forced returns the token that is next whatever row i is, if there is one.
func (c *chain) Forced(i int) (sample.Result, bool) {
	c.row = i
	return c.j.forcedNext(func() []float32 { return c.Logits(i) }, c.scorer)
}

// Take takes the next token, and says whether there can be another one.
func (c *chain) Take(r sample.Result) bool {
	j, n := c.j, len(c.results)
	j.res = r
	var logits []float32
	if !j.forced {
		logits = c.Logits(c.row)
	}
	ends := j.take(logits, n)
	c.results, c.forced = append(c.results, j.res), append(c.forced, j.forced)
	return !ends
}

// observe shows a drafter that learns from them the rows of a job.
func (t *drawTask) observe(j *job) {
	d := &j.q.drafts
	if d.learns == nil || d.off || j.skip > 0 {
		return
	}
	defer d.fails()
	token := j.q.tokens[len(j.q.tokens)-1]
	for i := range j.drafts + 1 {
		parent := -1
		if i > 0 {
			token, parent = d.tree.tokens[i-1], int(d.tree.parents[i-1])+1
		}
		d.learns.Observe(i, parent, token, t.e.m.Logits(j.out+i-t.first))
	}
}

// verify draws the tokens of a job with guesses.
func (t *drawTask) verify(j *job, scorer *sample.Sampler) {
	d := &j.q.drafts
	c := &d.chain
	c.t, c.j, c.scorer, c.results, c.forced = t, j, scorer, c.results[:0], c.forced[:0]
	j.q.sampler.Verify(c, d.tree.tokens, d.tree.shape())
	c.t, c.j, c.scorer = nil, nil, nil
}

// extendAll gives a choice its next token and those that were guessed.
func (e *Engine) extendAll(q *sequence, r *sched.Run, j *job, forced bool) {
	d, known := &q.drafts, len(q.tokens)
	q.Forced = 0
	if r.Draft == 0 {
		r.Finished = e.extendToEnd(q, j)
		r.New = 1 + q.Forced
		d.learn(q.tokens, known)
		return
	}
	results, done, err := d.chain.results, j.done, j.err
	j.done, j.err = false, nil
	right, at := 0, -1
	for right < len(results) {
		next := sample.Follow(d.tree.tokens, d.tree.shape(), at, results[right].Token)
		if next < 0 {
			break
		}
		right, at = right+1, next
	}
	if !forced {
		d.verified, d.right, d.steps, d.places = d.verified+r.Draft, d.right+right, d.steps+1, d.places+right
		if right < len(results) && d.tree.goesOn(at) {
			d.places++
		}
		e.counts.drafted += int64(r.Draft)
		e.counts.hits += int64(right)
		e.won += d.worth * float64(right)
	}
	for i := range results {
		j.res, j.forced = results[i], d.chain.forced[i]
		d.hit = i < right
		r.New++
		if i == len(results)-1 {
			j.done, j.err = done, err
			r.Finished = e.extendToEnd(q, j)
		} else {
			r.Finished = e.extend(q, j)
		}
		if r.Finished {
			break
		}
	}
	d.hit = false
	right = min(r.New-1, r.Draft)
	e.moveRight(q, r, results[:right])
	clear(results)
	d.learn(q.tokens, known)
	r.New += q.Forced
	e.dropWrong(q, r, right)
}

// moveRight gives the keys and values of right guesses the places of their tokens.
func (e *Engine) moveRight(q *sequence, r *sched.Run, right []sample.Result) {
	t, at := &q.drafts.tree, -1
	if t.chain {
		return
	}
	first := r.Start + r.N - r.Draft
	for i := range right {
		if at = sample.Follow(t.tokens, t.parents, at, right[i].Token); at < 0 {
			return // the last one was not guessed
		}
		if at != i {
			e.pool.Move(q.KV, first+i, first+at)
		}
	}
}

// learn compares guesses with what came, those too that were not verified.
func (d *drafts) learn(tokens []int32, known int) {
	if d.at != known {
		return
	}
	came := tokens[known:]
	for _, list := range [...][]spec.Guess{d.own, d.stored, d.forced} {
		d.book.LearnTree(list, came)
	}
	d.learnSlow(came)
	d.book.LearnAgainst(d.guesses, came)
	d.follow(came)
}

// learnSlow enters which guesses of the slow drafter came true, and at which places one did
// of those that took time.
func (d *drafts) learnSlow(came []int32) {
	reached := d.book.LearnTree(d.slowly, came)
	for i := range min(reached+1, len(came), spec.Depth(d.slowly[:min(d.pursued, len(d.slowly))])) {
		d.depths.Learn(uint8(i), i < reached)
	}
}
