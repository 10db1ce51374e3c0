package engine

import (
	"fmt"
	"slices"
	"time"

	"ridge/sample"
	"ridge/sched"
	"ridge/spec"
)

// Speculation: what a sequence may go on with is guessed, and computed as rows of the
// step that computes its next token. The sampler verifies the guesses; those that
// were right are tokens of the answer for no step of their own, and what was
// computed behind them is dropped. A text does not depend on guesses.

// checkDrafts refuses drafting that this engine cannot do.
func (e *Engine) checkDrafts() error {
	if e.o.Draft == nil {
		return nil
	}
	if err := e.o.Draft.Check(); err != nil {
		return err
	}
	if e.pool.Stateful() {
		return fmt.Errorf("engine: drafting: expected layers that can drop their last tokens, found some with states")
	}
	return nil
}

// drafts is what a sequence knows of guesses.
type drafts struct {
	by      spec.Drafter // nil: there is none, or not yet
	off     bool         // nothing is guessed
	book    *spec.Book
	guesses []spec.Guess // of what follows the first at tokens
	at      int

	verified, right int  // guesses so far, and those that were right
	hit             bool // the token at hand was guessed
	chain           chain
}

// guess has drafters guess, and sets how many guesses of each sequence the next step
// verifies.
func (e *Engine) guess() {
	if e.o.Draft == nil {
		return
	}
	begin := time.Now()
	e.offers, e.drafted, e.plain = e.offers[:0], e.drafted[:0], 0
	left, fixed, context := e.sched.Config().MaxTokens, 0, int64(0)
	var plain sched.Shape
	for _, s := range e.sched.RunningSeqs() {
		s.Draft = 0
		if s.Hold || left <= 0 {
			continue
		}
		n := min(s.Wanted-s.Computed, left)
		left -= n
		outputs := 0
		if s.Computed+n == s.Wanted {
			outputs = 1
		}
		plain = plain.With(s.Computed, n, outputs)
		fixed++
		q := e.seqs[s]
		if n := e.mayDraft(q); n > 0 && q.draft(e.o.Draft, n, e.limits.vocab, e.book) {
			e.offers = append(e.offers, spec.Offer{Guesses: q.drafts.guesses[:min(n, len(q.drafts.guesses))], Book: q.drafts.book})
			e.drafted = append(e.drafted, q)
			context += int64(s.Wanted)
		}
	}
	if len(e.offers) > 0 {
		if e.o.Draft.Always {
			for i, q := range e.drafted {
				q.Draft = len(e.offers[i].Guesses)
			}
		} else {
			e.choose(plain, fixed, context/int64(len(e.offers)))
		}
	}
	clear(e.offers)
	clear(e.drafted)
	e.counts.drafting += time.Since(begin)
}

// choose sets how many guesses are verified: what makes the most tokens in the
// time that the step is predicted to take.
func (e *Engine) choose(plain sched.Shape, fixed int, context int64) {
	cost := e.sched.Cost()
	spec.Choose(e.offers, fixed, func(rows int) float64 {
		s := plain
		s.Rows, s.Outputs, s.Context = s.Rows+rows, s.Outputs+rows, s.Context+int64(rows)*context
		return float64(cost.Predict(s))
	})
	for i, q := range e.drafted {
		q.Draft = e.offers[i].Take
	}
	e.plain = cost.Predict(plain) / time.Duration(fixed)
}

// timeSaved estimates the time that the guesses of a step have saved, given those that
// were right and how long the step took: what it would have taken without, by
// prediction, and the steps for the tokens that it would not have made.
func (e *Engine) timeSaved(p *sched.Plan, right int64, elapsed time.Duration) time.Duration {
	guessed := slices.ContainsFunc(p.Runs, func(r sched.Run) bool { return r.Draft > 0 })
	if !guessed || e.plain == 0 {
		return 0
	}
	return e.plain*time.Duration(int64(len(p.Runs))+right) - elapsed
}

// mayDraft returns how many tokens may be guessed behind the one that q waits for:
// none where its next token is not drawn in the ordinary way, or where it would not
// be of any use.
func (e *Engine) mayDraft(q *sequence) int {
	g := q.g
	if q.drafts.off || !g.forked && !e.o.Contiguous || g.beams != nil || g.whole() || q.Wanted == q.Prompt || q.Wanted-q.Computed != 1+q.Forced ||
		q.ahead.due > 0 || q.mask.stops != nil {
		return 0
	}
	n := e.o.Draft.Depth()
	if most := g.req.MaxDraft; most > 0 {
		n = min(n, most)
	}
	// The last token of an answer is not computed.
	n = min(n, g.req.MaxTokens-q.length()-1)
	// Tokens of one step are rotated alike.
	for n > 0 && e.m.RopeLength(q.Prompt, q.Wanted+n) != q.rope {
		n--
	}
	return n
}

// draft has n tokens guessed, if they were not yet, and reports whether there are
// guesses. A drafter that fails is not asked again.
func (q *sequence) draft(o *spec.Drafting, n, vocab int, book *spec.Book) bool {
	d := &q.drafts
	if d.at == len(q.tokens) {
		return len(d.guesses) > 0
	}
	d.at, d.guesses = len(q.tokens), d.guesses[:0]
	defer func() {
		if recover() != nil {
			d.off, d.guesses = true, nil
		}
	}()
	if d.by == nil {
		d.by, d.book = o.New(q.Prompt+q.MaxNew), spec.NewBook(book)
		d.guesses = make([]spec.Guess, 0, spec.MaxRows)
	}
	got := d.by.Draft(d.guesses, q.tokens[:len(q.tokens):len(q.tokens)], n)
	got = got[:min(len(got), n)]
	if i := slices.IndexFunc(got, func(g spec.Guess) bool { return g.Token < 0 || int(g.Token) >= vocab }); i >= 0 {
		got = got[:i]
	}
	d.guesses = append(d.guesses, got...) // what the drafter keeps a hold of may change
	return len(d.guesses) > 0
}

// guessed returns q's tokens with n guesses behind them. They lie in the room that
// is left behind the tokens, which are as many as before.
func (q *sequence) guessed(n int) []int32 {
	all := q.tokens
	for _, g := range q.drafts.guesses[:n] {
		all = append(all, g.Token)
	}
	q.tokens = all[:len(q.tokens)]
	return all
}

// chain is a sequence whose guesses are verified. It is a sample.Chain.
type chain struct {
	t       *drawTask
	j       *job
	results []sample.Result
}

// Logits returns the row behind the first i guesses.
func (c *chain) Logits(i int) []float32 { return c.t.e.m.Logits(c.j.out + i - c.t.first) }

// Take takes the next token, and says whether there can be another one.
func (c *chain) Take(r sample.Result) bool {
	j, n := c.j, len(c.results)
	j.res = r
	ends := j.take(c.Logits(n), n)
	c.results = append(c.results, j.res)
	return !ends && len(j.q.ahead.ids) == 0
}

// verify draws the tokens of a job with guesses.
func (t *drawTask) verify(j *job) {
	c := &j.q.drafts.chain
	c.t, c.j, c.results = t, j, c.results[:0]
	known := len(j.q.tokens)
	j.q.sampler.Verify(c, j.q.tokens[known:known+j.drafts:known+j.drafts])
	c.t, c.j = nil, nil
}

// extendAll gives a choice its next token and those that were guessed.
func (e *Engine) extendAll(q *sequence, r *sched.Run, j *job) {
	d, known := &q.drafts, len(q.tokens)
	if r.Draft == 0 {
		r.Finished = e.extend(q, j)
		r.New = 1 + q.Forced
		d.learn(q.tokens, known)
		return
	}
	results, ids, done, err := d.chain.results, q.ahead.ids, j.done, j.err
	q.ahead.ids = ids[:0]
	j.done, j.err = false, nil
	right := 0
	for right < min(r.Draft, len(results)) && results[right].Token == d.guesses[right].Token {
		right++
	}
	d.verified, d.right = d.verified+r.Draft, d.right+right
	e.counts.drafted += int64(r.Draft)
	e.counts.hits += int64(right)
	for i := range results {
		last := i == len(results)-1
		if last {
			q.ahead.ids, j.done, j.err = ids, done, err
		}
		j.res = results[i]
		d.hit = i < right
		r.New++
		if r.Finished = e.extend(q, j); r.Finished {
			break
		}
	}
	clear(results)
	d.hit = false
	r.New += q.Forced
	d.learn(q.tokens, known)
	e.pool.Truncate(q.KV, r.Start+r.N-r.Draft+min(r.New-q.Forced-1, r.Draft))
}

// learn compares guesses with what came, those too that were not verified.
func (d *drafts) learn(tokens []int32, known int) {
	if d.at != known {
		return
	}
	for i, g := range d.guesses {
		if known+i >= len(tokens) {
			return
		}
		right := tokens[known+i] == g.Token
		if d.book.Learn(g.Class, right); !right {
			return
		}
	}
}

// close gives back what the drafter holds.
func (d *drafts) close() {
	if d.by != nil {
		d.by.Close()
	}
	d.by, d.off, d.guesses = nil, true, nil
}
