package engine

import (
	"time"

	"ridge/sample"
	"ridge/sched"
	"ridge/spec"
)

// What drafters read of the model: rows of some of its layers, as soon as it is known that
// they are of the text.

// reader is a drafter that reads what layers of the model compute.
type reader interface {
	// Read is told of a row that the model has computed, of the token at place at of
	// a text: rows are what it has of each layer of spec.Drafting.Taps, valid during the
	// call. Rows come in the order of their places, but some may come again, and some not
	// at all, where the caches had them. tokens are all that are known of the text.
	Read(tokens []int32, at int, rows [][]float32)
}

// reads reports whether the drafter of q reads the rows that are computed for it.
func (e *Engine) reads(q *sequence) bool {
	return e.o.Draft != nil && len(e.o.Draft.Taps) > 0 && !q.drafts.off && !q.done && q.g.beams == nil && !q.g.whole() && q.g.req.MaxTokens > 1
}

// openSlow makes the slow drafter, if there is none yet.
func (d *drafts) openSlow(o *spec.Drafting) {
	if d.slow == nil {
		d.slow, d.slowly = o.Slow(), make([]spec.Guess, 0, spec.MaxRows)
	}
}

// tell shows the drafter of a run the rows that are of the text: those that are not behind
// guesses, and those behind the right ones.
func (e *Engine) tell(i int, r *sched.Run) {
	q := e.runs[i].q
	if len(e.batch.Taps) == 0 || !e.reads(q) {
		return
	}
	d := &q.drafts
	begin := time.Now()
	defer func() {
		took := time.Since(begin)
		e.drafting += took
		e.counts.drafting += took
	}()
	defer d.fails()
	d.openSlow(e.o.Draft)
	by, is := d.slow.(reader)
	if !is {
		return
	}
	text, tokens := r.N-r.Draft, q.tokens[:len(q.tokens):len(q.tokens)]
	first := e.batch.Runs[i].First()
	show := func(at, row int) {
		e.tapped = e.tapped[:0]
		for k := range e.batch.Taps {
			e.tapped = append(e.tapped, e.m.Tapped(k, row))
		}
		by.Read(tokens, at, e.tapped)
	}
	for k := range text {
		show(r.Start+k, first+k)
	}
	if r.Draft == 0 {
		return
	}
	t, node := &d.tree, -1
	for at := r.Start + text; at < len(tokens); at++ {
		if node = sample.Follow(t.tokens, t.shape(), node, tokens[at]); node < 0 {
			return
		}
		show(at, first+text+node)
	}
}
