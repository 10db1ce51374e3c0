package engine

import (
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
	return e.o.Draft.Check()
}

// drafts is what a sequence knows of guesses.
type drafts struct {
	by      spec.Drafter // nil: there is none, or not yet
	texts   spec.Drafter // nil: there is none
	slow    spec.Costly  // nil: there is none
	off     bool         // nothing is guessed
	book    *spec.Book
	depths  *spec.Book   // of the slow one's guesses, by their places
	guesses []spec.Guess // of what follows the first at tokens
	slowly  bool         // these guesses are the slow one's
	passed  []spec.Guess // of a drafter whose guesses are expected to come true less often
	quick   []spec.Guess // guesses of a quick drafter, where these are the slow one's
	made    []spec.Guess // what drafters write to, who may keep a hold of it
	at      int
	idle    int // how often the slow one was not asked, since it was
	redo    int // tokens that are computed again, with the next one

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
	e.offers, e.drafted = e.offers[:0], e.drafted[:0]
	left, context := e.sched.Config().MaxTokens, int64(0)
	var step steps
	for _, s := range e.sched.RunningSeqs() {
		s.Draft = 0
		if s.Hold || left <= 0 {
			continue
		}
		n, outputs := min(s.Wanted-s.Computed, left), 0
		if s.Computed+n == s.Wanted {
			outputs = 1
		}
		left -= n
		step.plain = step.plain.With(s.Computed, n, outputs)
		step.tokens++
		if q := e.seqs[s]; e.mayDraft(q) > 0 {
			e.drafted = append(e.drafted, q)
			context += int64(s.Wanted)
		}
	}
	if n := len(e.drafted); n > 0 {
		step.context = context / int64(n)
		e.draft(&step)
	}
	clear(e.offers)
	clear(e.drafted)
	e.drafting = time.Since(begin)
	e.counts.drafting += e.drafting
}

// steps are the steps that the next one could be, by how many guesses it verifies.
type steps struct {
	plain   sched.Shape // without any
	tokens  int         // that it gives
	context int64       // before a guess, on average
}

// time returns how long the step with so many guesses should take, 0 if nobody knows.
func (s *steps) time(cost *sched.CostModel, rows int) time.Duration {
	x := s.plain
	x.Rows, x.Outputs, x.Context = x.Rows+rows, x.Outputs+rows, x.Context+int64(rows)*s.context
	return cost.Predict(x)
}

// draft has guesses made of the sequences in e.drafted, and sets how many of them are
// verified.
func (e *Engine) draft(step *steps) {
	cost, o := e.sched.Cost(), e.o.Draft
	plain := step.time(cost, 0)
	token := plain / time.Duration(step.tokens)
	row := step.time(cost, 1) - plain
	for _, q := range e.drafted {
		n := e.mayDraft(q)
		q.draft(o, n, e.limits.vocab, e)
		if slow := q.drafts.slow; slow != nil && (o.Always || e.control.Affords(float64(slow.Cost()))) {
			q.draftSlowly(o, n, e.limits.vocab, token, row)
		}
		d := &q.drafts
		e.offers = append(e.offers, spec.Offer{Guesses: d.guesses[:min(n, len(d.guesses))], Book: d.book})
	}
	if !o.Always {
		e.control.Choose(e.offers, step.tokens, step.plain.Rows, func(rows int) float64 { return float64(step.time(cost, rows)) })
	}
	for i, q := range e.drafted {
		if q.Draft = e.offers[i].Take; o.Always {
			q.Draft = len(e.offers[i].Guesses)
		}
	}
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

// draft has n tokens guessed, if they were not yet. A drafter that fails is not asked
// again.
func (q *sequence) draft(o *spec.Drafting, n, vocab int, e *Engine) {
	d := &q.drafts
	if d.at == len(q.tokens) {
		return
	}
	d.at, d.guesses, d.slowly, d.quick, d.passed = len(q.tokens), d.guesses[:0], false, d.quick[:0], d.passed[:0]
	if d.book == nil {
		d.book, d.depths = spec.NewBook(e.book), spec.NewDepths(e.depths)
		d.guesses, d.made = make([]spec.Guess, 0, spec.MaxRows), make([]spec.Guess, 0, spec.MaxRows)
	}
	defer d.fails()
	if d.by == nil {
		d.by = o.New(q.Prompt + q.MaxNew)
		if o.Texts != nil {
			d.texts, d.passed = o.Texts(q.g.salt), make([]spec.Guess, 0, spec.MaxRows)
		}
		if o.Slow != nil {
			d.slow, d.quick = o.Slow(), make([]spec.Guess, 0, spec.MaxRows)
		}
	}
	tokens := q.tokens[:len(q.tokens):len(q.tokens)]
	d.guesses = legal(d.guesses, d.by.Draft(d.made[:0], tokens, n), n, vocab)
	if d.texts == nil {
		return
	}
	d.passed = legal(d.passed, d.texts.Draft(d.made[:0], tokens, n), n, vocab)
	if d.book.Expect(d.passed) > d.book.Expect(d.guesses) {
		d.guesses, d.passed = d.passed, d.guesses
	}
}

// fails is what becomes of a drafter that panics.
func (d *drafts) fails() {
	if recover() != nil {
		d.off, d.guesses, d.quick, d.passed = true, nil, nil, nil
	}
}

// legal appends those of a drafter's guesses to dst that may be computed.
func legal(dst, got []spec.Guess, n, vocab int) []spec.Guess {
	for _, g := range got[:min(len(got), n)] {
		if g.Token < 0 || int(g.Token) >= vocab {
			break
		}
		dst = append(dst, g)
	}
	return dst
}

// unasked is how often a slow drafter is passed over before it is asked again, to see
// whether it has become better.
const unasked = 64

// draftSlowly has the slow drafter guess in place of the quick one, if that is expected
// to gain more: token by token, as long as the next one is worth its time. token is
// the time of a token without guesses, row what a guess adds to the step.
func (q *sequence) draftSlowly(o *spec.Drafting, n, vocab int, token, row time.Duration) {
	d := &q.drafts
	if d.off || d.slowly || token <= 0 && !o.Always {
		return
	}
	defer d.fails()
	price := float64(row+d.slow.Cost()) / float64(max(token, 1))
	if !o.Always {
		quick, chance := 0.0, 1.0
		for _, g := range d.guesses {
			chance *= d.book.Share(g.Class)
			quick += max(chance-float64(row)/float64(token), 0)
		}
		slow := 0.0
		chance = 1
		for i := range n {
			chance *= d.depths.Share(uint8(i))
			slow += max(chance-price, 0)
		}
		// A row of a prompt takes a fraction of the time of a guess.
		const rows = 8
		left := float64(q.g.req.MaxTokens - q.length())
		lag := float64(d.slow.Lag(q.tokens)-1) * float64(d.slow.Cost()) / rows / float64(token)
		if slow -= lag / min(left, 128); slow <= quick {
			if d.idle++; d.idle < unasked || lag > 1 {
				return
			}
			n = 1
		}
	}
	d.idle, d.slowly = 0, true
	d.quick, d.guesses = append(d.quick, d.guesses...), d.guesses[:0]
	chance := 1.0
	for i := range n {
		if chance *= d.depths.Share(uint8(i)); !o.Always && i > 0 && chance < price {
			return
		}
		d.made = append(d.made[:0], d.guesses...)
		got := d.slow.Draft(d.made, q.tokens[:len(q.tokens):len(q.tokens)], 1)
		if len(got) != i+1 || got[i].Token < 0 || int(got[i].Token) >= vocab {
			return
		}
		d.guesses = append(d.guesses, got[i])
		chance *= d.book.Share(got[i].Class) / max(d.depths.Share(uint8(i)), 1e-3)
	}
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
	e.dropWrong(q, r, min(r.New-q.Forced-1, r.Draft))
}

// learn compares guesses with what came, those too that were not verified.
func (d *drafts) learn(tokens []int32, known int) {
	if d.at != known {
		return
	}
	d.compare(d.guesses, tokens[known:], d.slowly)
	d.compare(d.quick, tokens[known:], false)
	d.compare(d.passed, tokens[known:], false)
}

// compare enters which of some guesses came true. slow says that they are the slow
// drafter's.
func (d *drafts) compare(guesses []spec.Guess, came []int32, slow bool) {
	for i, g := range guesses[:min(len(guesses), len(came))] {
		right := came[i] == g.Token
		if d.book.Learn(g.Class, right); slow {
			d.depths.Learn(uint8(i), right)
		}
		if !right {
			return
		}
	}
}

// bytes returns the memory that drafters hold.
func (d *drafts) bytes() (n int64) {
	if d.by != nil {
		n += d.by.Bytes()
	}
	if d.texts != nil {
		n += d.texts.Bytes()
	}
	if d.slow != nil {
		n += d.slow.Bytes()
	}
	return n
}

// close gives back what drafters hold.
func (d *drafts) close() {
	if d.by != nil {
		d.by.Close()
	}
	if d.texts != nil {
		d.texts.Close()
	}
	if d.slow != nil {
		d.slow.Close()
	}
	d.by, d.texts, d.slow, d.off, d.guesses, d.quick, d.passed = nil, nil, nil, true, nil, nil, nil
}
