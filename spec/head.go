package spec

import (
	"time"

	"ridge/kvcache"
	"ridge/model"
)

// trained guesses by a head that was trained to, from states of the model itself. Its
// drafters must be used by one goroutine, between the steps of the model.
//
// A drafter knows the rows that were computed for its sequence. Where the first ones came
// from a cache of prefixes, it sees the text from the first row on that did not; where one is
// missing, from the row behind it on; and it guesses where it knows that of the last token
// but one.
type trained struct {
	h    *model.DraftHead
	took time.Duration // by a guess, on average
}

// Ask has a draft head guess as the slow drafter, a Brancher. d owns it from then
// on.
func (d *Drafting) Ask(h *model.DraftHead) {
	s := &trained{h: h}
	d.Slow, d.Taps, d.Close = s.drafter, h.Taps(), h.Close
}

// drafter returns the drafter of a sequence.
func (s *trained) drafter() Costly { return &headSeq{s: s} }

// headSeq is a sequence of a trained head.
type headSeq struct {
	s       *trained
	kv      *kvcache.Seq // rows of the model's states, and behind them those of the tree
	first   int          // the place of the token that its first row is of
	fed     int          // rows of the model's states
	waiting []float32    // states of the rows behind them
	last    []float32    // that of the last one that was fed
	tree    branches
	states  []float32 // of the head's, behind the last fed row and behind the slots of the tree
	in      []float32 // those that rows of the tree go on from
}

// width returns the numbers of a state of the model.
func (q *headSeq) width() int { return q.s.h.Width() }

// next returns the place of the token whose row is not known.
func (q *headSeq) next() int { return q.first + q.fed + len(q.waiting)/q.width() }

// Read takes the state behind a row.
func (q *headSeq) Read(tokens []int32, at int, rows [][]float32) {
	n := q.width()
	switch next := q.next(); {
	case at < next && next > q.first:
		return
	case at != next:
		q.forget(at)
	}
	if q.s.h.Places() > 0 { // they look at the last row alone
		q.first, q.waiting = at, q.waiting[:0]
	}
	used := len(q.waiting)
	if cap(q.waiting) < used+n {
		more := make([]float32, used, max(2*used, 4*n))
		copy(more, q.waiting)
		q.waiting = more
	}
	q.waiting = q.waiting[:used+n]
	q.s.h.Take(q.waiting[used:], rows)
	if q.s.h.Places() == 0 && len(q.waiting) >= mostRows*n && at+1 < len(tokens) {
		q.feed(tokens, 0)
	}
}

// forget begins anew, with the row of the token at a place.
func (q *headSeq) forget(at int) {
	if q.kv != nil {
		q.s.h.Pool().Free(q.kv)
		q.kv = nil
	}
	q.first, q.fed, q.waiting = at, 0, q.waiting[:0]
	q.tree.clear()
}

// feed computes the rows whose states wait, in place of the tree. Where there is no room,
// it begins anew behind them and reports that.
func (q *headSeq) feed(tokens []int32, outputs int) bool {
	h, n, next := q.s.h, q.width(), q.next()
	if q.kv == nil {
		q.kv = h.Pool().NewSeq()
	}
	q.tree.clear()
	h.Pool().Truncate(q.kv, q.fed)
	for done := 0; done < len(q.waiting); {
		rows := min(mostRows, (len(q.waiting)-done)/n)
		run := model.Run{Seq: q.kv, Tokens: tokens[q.first+q.fed+1:][:rows]}
		part := q.waiting[done : done+rows*n]
		if done += rows * n; done == len(q.waiting) {
			run.Outputs = outputs
			q.last = append(q.last[:0], part[len(part)-n:]...)
		}
		if h.Forward(run, part, false) != nil {
			q.forget(next)
			return false
		}
		q.fed += rows
	}
	q.waiting = q.waiting[:0]
	return true
}

// root computes what is behind the text, and returns how many rows that took.
func (q *headSeq) root(tokens []int32) (rows int, ok bool) {
	h, n := q.s.h, q.width()
	if h.Places() > 0 {
		h.Guess(0, q.waiting)
		return 1, true
	}
	if len(q.waiting) == 0 { // nothing has come since it was asked
		q.fed--
		q.waiting = append(q.waiting, q.last...)
	}
	rows = len(q.waiting) / n
	if !q.feed(tokens, 1) {
		return rows, false
	}
	q.states = append(q.states[:0], h.State(0)...)
	return rows, true
}

// Cost returns how long a guess takes.
func (q *headSeq) Cost() time.Duration { return q.s.took }

// Lag returns how many rows wait, or as many as there are tokens where it cannot guess.
func (q *headSeq) Lag(tokens []int32) int {
	if !q.ready(tokens) {
		return len(tokens)
	}
	return max(len(q.waiting)/q.width(), 1)
}

// ready reports whether what is behind the last token but one is known.
func (q *headSeq) ready(tokens []int32) bool {
	return q.next() > q.first && q.next() == len(tokens)-1
}

// Bytes returns the memory of keys, values and states.
func (q *headSeq) Bytes() int64 {
	n := 4 * int64(cap(q.waiting)+cap(q.last)+cap(q.states)+cap(q.in))
	if q.kv != nil {
		n += int64(q.kv.Pages()) * q.s.h.Pool().PageBytes()
	}
	return n
}

// Close gives it back.
func (q *headSeq) Close() {
	q.forget(0)
	q.waiting, q.last, q.states, q.in, q.tree = nil, nil, nil, nil, branches{}
}

// Draft takes the most probable token, n times.
func (q *headSeq) Draft(dst []Guess, tokens []int32, n int) []Guess {
	for range n {
		known := len(dst)
		if dst = q.extend(dst, tokens, 1, 1); len(dst) == known {
			break
		}
	}
	return dst
}

// Branch goes on with the likeliest of the deepest guesses, as Small's drafters do.
func (q *headSeq) Branch(dst []Guess, tokens []int32, width int) []Guess {
	return q.extend(dst, tokens, width, min(2*width, max(width, MaxRows/(Depth(dst)+1))))
}

// extend appends guesses one place deeper than those in dst, at most so many.
func (q *headSeq) extend(dst []Guess, tokens []int32, width, most int) []Guess {
	h, b := q.s.h, &q.tree
	width = min(width, MaxWidth)
	if !q.ready(tokens) || width < 1 || len(dst) > len(b.nodes) || len(tokens)-q.first+MaxRows > h.Context() {
		return dst
	}
	begin, rows := time.Now(), 1
	b.next = b.next[:0]
	switch depth := Depth(dst); {
	case depth == 0:
		var ok bool
		b.clear() // also of a head without keys and values
		if rows, ok = q.root(tokens); !ok {
			return dst
		}
		b.expand(h.Logits(0), -1, 1, width)
	case h.Places() > 0:
		if depth >= h.Places() {
			return dst
		}
		h.Guess(depth, q.waiting)
		b.nodes = b.nodes[:len(dst)]
		for i := b.level; i < min(len(b.nodes), b.level+width); i++ {
			b.expand(h.Logits(0), int32(i), b.nodes[i].joint, width)
		}
	default:
		b.nodes = b.nodes[:len(dst)]
		if !q.goOn(width) {
			return dst
		}
	}
	for i := range b.next {
		b.next[i].token = h.Token(b.next[i].token)
	}
	dst = b.grow(dst, most)
	q.s.learn(begin, rows)
	return dst
}

// goOn computes the likeliest of the deepest guesses from the head's own states.
func (q *headSeq) goOn(width int) bool {
	h, b := q.s.h, &q.tree
	n := len(q.states) / (1 + len(b.tokens)) // numbers of a state
	first := b.choose(width)
	rows := len(b.tokens) - first
	if rows == 0 {
		return false
	}
	q.in = q.in[:0]
	for _, parent := range b.parents[first:] {
		q.in = append(q.in, q.states[int(parent+1)*n:][:n]...)
	}
	if h.Forward(model.Run{Seq: q.kv, Tokens: b.tokens[first:], Tree: b.parents, Outputs: rows}, q.in, true) != nil {
		return false
	}
	for i := range rows {
		q.states = append(q.states, h.State(i)...)
	}
	for i := b.level; i < len(b.nodes); i++ {
		if node := &b.nodes[i]; node.slot >= int32(first) {
			b.expand(h.Logits(int(node.slot)-first), int32(i), node.joint, width)
		}
	}
	return true
}

// learn learns how long a guess took, unless rows had waited.
func (s *trained) learn(begin time.Time, rows int) {
	if rows > 2 {
		return
	}
	took := time.Since(begin)
	if s.took == 0 {
		s.took = took
	}
	s.took += (took - s.took) / 16
}
