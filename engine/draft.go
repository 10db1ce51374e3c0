package engine

import (
	"time"

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
	by       spec.Drafter  // nil: there is none, or not yet
	texts    spec.Drafter  // nil: there is none
	learns   spec.Observer // nil: none does
	slow     spec.Costly   // nil: there is none
	off      bool          // nothing is guessed
	straight bool          // no two guesses are of one place: layers have states
	book     *spec.Book
	depths   *spec.Book   // of the slow one's guesses, by their places
	guesses  []spec.Guess // of what follows the first at tokens, the likeliest first
	own      []spec.Guess // those of each drafter, which guesses are made of
	stored   []spec.Guess
	slowly   []spec.Guess
	forced   []spec.Guess
	ids      []int32      // that are forced
	made     []spec.Guess // what drafters write to, who may keep a hold of it
	at       int
	idle     int     // how often the slow one was not asked, since it was
	worth    float64 // of a token that guesses save, see spec.Offer
	rate     float64 // tokens of a step, were its guesses verified
	paying   int     // of the guesses, from the first: those worth their rows
	pursued  int     // of slowly, those that took time
	redo     int     // tokens that are computed again, with the next one

	verified, right int  // guesses so far, and those that were right
	steps, places   int  // see Event
	hit             bool // the token at hand was guessed
	chain           chain
	tree            tree
}

// guess has drafters guess, and sets how many guesses of each sequence the next step
// verifies.
func (e *Engine) guess() {
	begin := time.Now()
	e.offers, e.drafted = e.offers[:0], e.drafted[:0]
	left, context := e.sched.Config().MaxTokens, int64(0)
	var step steps
	for _, s := range e.sched.RunningSeqs() {
		s.Draft = 0
		if s.Hold || left <= 0 || e.sched.Guest(s) { // a guest has what guesses leave
			continue
		}
		n, outputs := min(s.Wanted-s.Computed, left), 0
		if s.Computed+n == s.Wanted {
			outputs = 1
		}
		left -= n
		step.plain = step.plain.With(s.Computed, n, outputs)
		step.tokens++
		q := e.seqs[s]
		if s.Draft = min(e.force(q), max(left, 0)); s.Draft > 0 {
			left -= s.Draft
			step.plain = step.plain.With(s.Wanted, s.Draft, s.Draft)
			step.tokens += s.Draft
		} else if e.o.Draft != nil && e.mayDraft(q) > 0 {
			e.drafted = append(e.drafted, q)
			context += int64(s.Wanted)
		}
	}
	if n := len(e.drafted); n > 0 {
		step.context = context / int64(n)
		e.weigh()
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
	price := 1.0 // of a row, in tokens
	if token > 0 {
		price = min(max(float64(row)/float64(token), 0), 1)
	}
	for _, q := range e.drafted {
		worth := &q.drafts.worth
		*worth = price + (1-price)**worth // an answer that ends earlier saves a row at least
		n := e.mayDraft(q)
		q.draft(o, n, e.limits.vocab, e)
		if slow := q.drafts.slow; slow != nil && (o.Always || e.control.Affords(float64(slow.Cost()))) {
			q.draftSlowly(o, n, e.limits.vocab, time.Duration(*worth*float64(token)), row)
		}
		q.combine(e.mayBranch(q, n))
		q.drafts.paying = q.drafts.book.Likely(q.drafts.guesses, price)
		e.offers = append(e.offers, spec.Offer{Guesses: q.drafts.guesses, Book: q.drafts.book, Worth: *worth})
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

// single says whether the next token of q is drawn in the ordinary way, or forced, and
// nothing but it is waited for.
func (e *Engine) single(q *sequence) bool {
	g := q.g
	return (g.forked || e.o.Contiguous) && g.beams == nil && !g.whole() && q.Wanted > q.Prompt && q.Wanted-q.Computed == 1+q.Forced
}

// mayDraft returns how many tokens may be guessed behind the one that q waits for:
// none where its next token is not drawn in the ordinary way, or where it would not
// be of any use.
func (e *Engine) mayDraft(q *sequence) int {
	if q.drafts.off || !e.single(q) || len(q.ahead.due()) > 0 {
		return 0
	}
	n := e.o.Draft.Depth()
	if most := q.g.req.MaxDraft; most > 0 {
		n = min(n, most)
	}
	return e.room(q, n)
}

// room returns how many of n guesses behind the token that q waits for can be computed.
func (e *Engine) room(q *sequence, n int) int {
	r := &q.g.req
	// The last token of an answer is not computed.
	n = min(n, r.MaxTokens-q.length()-1)
	if q.mask.stops != nil { // what is forbidden changes with the tokens of a step
		n = min(n, r.MinTokens-q.length()-1)
	}
	// Tokens of one step are rotated alike.
	for n > 0 && e.m.RopeLength(q.Prompt, q.Wanted+n) != q.rope {
		n--
	}
	return max(n, 0)
}

// mayBranch returns how many guesses may be computed of which none is deeper than n: as
// many as n where layers have states, which go from a token to the next. What a request
// says is of all guesses; and there is room for as many tokens as the answer may have.
func (e *Engine) mayBranch(q *sequence, n int) int {
	switch g := q.g; {
	case n <= 0 || e.pool.Stateful():
		return n
	case g.req.MaxDraft > 0:
		return n
	default:
		return min(g.req.MaxTokens-q.length()-1, spec.MaxRows)
	}
}

// draft has n tokens guessed, if they were not yet. A drafter that fails is not asked
// again.
func (q *sequence) draft(o *spec.Drafting, n, vocab int, e *Engine) {
	d := &q.drafts
	if d.at == len(q.tokens) {
		return
	}
	d.at, d.own, d.stored, d.slowly, d.forced = len(q.tokens), d.own[:0], d.stored[:0], d.slowly[:0], d.forced[:0]
	if d.book == nil {
		d.book, d.depths = spec.NewBook(e.book), spec.NewDepths(e.depths)
		for _, list := range []*[]spec.Guess{&d.guesses, &d.own, &d.made} {
			*list = make([]spec.Guess, 0, spec.MaxRows)
		}
	}
	defer d.fails()
	if d.by == nil {
		d.by = o.New(q.Prompt + q.MaxNew)
		if o.Texts != nil {
			d.texts, d.stored = o.Texts(q.g.salt), make([]spec.Guess, 0, spec.MaxRows)
			d.learns, _ = d.texts.(spec.Observer)
		}
		if o.Slow != nil {
			d.openSlow(o)
		}
	}
	q.draftForced(n, vocab)
	tokens := q.tokens[:len(q.tokens):len(q.tokens)]
	d.own = legal(d.own, d.by.Draft(d.made[:0], tokens, n), n, vocab)
	if d.texts != nil {
		d.stored = legal(d.stored, d.texts.Draft(d.made[:0], tokens, n), n, vocab)
	}
}

// draftForced guesses the tokens of what a grammar leaves no choice about: that text
// comes, and most often as the tokenizer spells it. The grammar verifies them, as it masks
// the rows that tokens are drawn from.
func (q *sequence) draftForced(n, vocab int) {
	d := &q.drafts
	by, is := q.mask.inner.(Jumper)
	if !is || q.ahead.by != nil {
		return
	}
	d.ids, d.made = by.Jump(d.ids[:0]), d.made[:0]
	for _, id := range d.ids[:min(len(d.ids), n)] {
		d.made = append(d.made, spec.Guess{Token: id, Class: spec.Forced})
	}
	d.forced = legal(d.forced, d.made, n, vocab)
}

// combine makes one tree of what the drafters have guessed, of at most so many guesses,
// those first that are likely to come true. Of guesses that cannot branch, it takes the
// best chain.
func (q *sequence) combine(most int) {
	d := &q.drafts
	if d.off {
		return
	}
	lists := [4][]spec.Guess{d.own, d.stored, d.slowly, d.forced}
	var worth [len(lists)]float64
	for i, list := range lists {
		worth[i] = d.book.Expect(list)
		for k := i; k > 0 && worth[k] > worth[k-1]; k-- {
			lists[k], lists[k-1], worth[k], worth[k-1] = lists[k-1], lists[k], worth[k-1], worth[k]
		}
	}
	d.guesses = append(d.guesses[:0], lists[0]...)
	if q.drafts.straight {
		d.guesses = spec.Chain(d.guesses)
	} else {
		for _, list := range lists[1:] {
			d.guesses = spec.Merge(d.guesses, list)
		}
		d.book.Sort(d.guesses)
	}
	d.guesses = d.guesses[:min(len(d.guesses), max(most, 0))]
}

// fails is what becomes of a drafter that panics.
func (d *drafts) fails() {
	if recover() != nil {
		d.off, d.guesses, d.own, d.stored, d.slowly, d.forced = true, nil, nil, nil, nil, nil
	}
}

// legal appends those of a drafter's guesses to dst that may be computed, the deepest n
// behind the text.
func legal(dst, got []spec.Guess, n, vocab int) []spec.Guess {
	var depth [spec.MaxRows]int
	for i, g := range got[:min(len(got), spec.MaxRows)] {
		p := spec.Parent(got, i)
		if g.Token < 0 || int(g.Token) >= vocab || p < -1 {
			break
		}
		if depth[i] = 1; p >= 0 {
			depth[i] += depth[p]
		}
		if depth[i] > n {
			break
		}
		dst = append(dst, g)
	}
	return dst
}

// unasked is how often a slow drafter is passed over before it is asked again, to see
// whether it has become better.
const unasked = 64

// draftSlowly has the slow drafter guess, too, if that is expected to gain more than
// what the quick ones have guessed: place by place, as long as the next one is worth its
// time. token is the time of a token without guesses, row what a guess adds to the step.
func (q *sequence) draftSlowly(o *spec.Drafting, n, vocab int, token, row time.Duration) {
	d := &q.drafts
	if d.off || len(d.slowly) > 0 || token <= 0 && !o.Always {
		return
	}
	defer d.fails()
	price := float64(row+d.slow.Cost()) / float64(max(token, 1))
	if !o.Always {
		quick, chance := 0.0, 1.0
		for _, g := range d.own {
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
	d.idle = 0
	if guest, is := d.slow.(spec.Guest); is {
		defer guest.Visit(nil)
		guest.Visit(q.KV)
	}
	q.pursue(o, n, vocab, price)
	d.pursued = len(d.slowly)
	if trail, is := d.slow.(spec.Strider); is && len(d.slowly) < n {
		d.made = append(d.made[:0], d.slowly...)
		d.slowly = legal(d.slowly[:0], trail.Trail(d.made, q.tokens[:len(q.tokens):len(q.tokens)], n-len(d.slowly)), n, vocab)
	}
}

// pursue has the slow drafter guess place by place, as long as the next guess is worth its
// price.
func (q *sequence) pursue(o *spec.Drafting, n, vocab int, price float64) {
	d := &q.drafts
	tree, branches := d.slow.(spec.Brancher)
	branches = branches && o.Width > 1 && !q.drafts.straight && q.g.req.MaxDraft <= 0
	strider, strides := d.slow.(spec.Strider)
	tokens := q.tokens[:len(q.tokens):len(q.tokens)]
	chance := 1.0
	for i := 0; i < n; {
		place := d.depths.Share(uint8(i))
		if chance *= place; !o.Always && i > 0 && chance < price {
			return
		}
		d.made = append(d.made[:0], d.slowly...)
		known := len(d.slowly)
		switch {
		case branches:
			d.slowly = legal(d.slowly[:0], tree.Branch(d.made, tokens, o.Width), n, vocab)
		case strides:
			d.slowly = legal(d.slowly[:0], strider.Stride(d.made, tokens, n-i), n, vocab)
		default:
			d.slowly = legal(d.slowly[:0], d.slow.Draft(d.made, tokens, 1), n, vocab)
		}
		if len(d.slowly) <= known {
			return
		}
		if branches {
			i++
			continue
		}
		chance /= max(place, 1e-3)
		for ; i < len(d.slowly); i++ {
			chance *= d.book.Share(d.slowly[i].Class)
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
	d.by, d.texts, d.learns, d.slow, d.off = nil, nil, nil, nil, true
	d.guesses, d.own, d.stored, d.slowly, d.forced = nil, nil, nil, nil, nil
}
