// Package skip drafts with the model itself, some parts of whose layers are left out:
// no other weights, and none but the model's own keys and values, which are there for all
// of the text. What is computed of guesses is dropped before they are verified (Zhang et
// al., "Draft & Verify", 2023, arXiv 2309.08168; Xia et al., "SWIFT", 2024, arXiv
// 2410.06916). With all layers from one on left out, the model exits early (Elhoushi et
// al., "LayerSkip", 2024, arXiv 2404.16710; Liu et al., "Kangaroo", 2024, arXiv
// 2404.18911, without its adapter).
package skip

import (
	"fmt"
	"slices"
	"time"

	"ridge/internal/logits"
	"ridge/kvcache"
	"ridge/model"
	"ridge/spec"
)

// Drafters are drafters of a model by itself. They must be used by one goroutine, while
// the model computes nothing else.
type Drafters struct {
	m    *model.Model
	step model.Step
	took time.Duration // by a guess, on average
}

// New returns drafters of m without parts of its layers, as model.Step.Skip has them.
func New(m *model.Model, parts []uint8) (*Drafters, error) {
	if m.Pool().Stateful() {
		return nil, fmt.Errorf("skip: expected layers that can drop their last tokens, found some with states")
	}
	d := &Drafters{m: m, step: model.Step{Skip: slices.Clone(parts)}}
	q := m.Pool().NewSeq()
	d.step.Runs = append(d.step.Runs, model.Run{Seq: q, Tokens: []int32{0}, Outputs: 1})
	err := m.Forward(&d.step) // says what cannot be left out
	m.Pool().Free(q)
	if err != nil {
		return nil, fmt.Errorf("skip: %w", err)
	}
	return d, nil
}

// Exit returns the parts of all layers from the first-th on.
func Exit(m *model.Model, first int) ([]uint8, error) {
	n := len(m.Net().Layers)
	if first < 1 || first >= n {
		return nil, fmt.Errorf("skip: expected 1 to %d layers that draft, found %d", n-1, first)
	}
	parts := make([]uint8, n)
	for i := first; i < n; i++ {
		parts[i] = both
	}
	return parts, nil
}

// Parts of a layer.
const (
	mixer = 1
	ffn   = 2
	both  = mixer | ffn
)

// Drafter returns the drafter of a sequence.
func (d *Drafters) Drafter() spec.Costly { return &seq{d: d} }

// seq is the drafter of a sequence. It is a spec.Guest.
type seq struct {
	d    *Drafters
	kv   *kvcache.Seq // the model's, while it guesses
	long int          // of kv without guesses
}

// Visit has the drafter compute on keys and values, or with nil give them back as they
// were.
func (q *seq) Visit(kv *kvcache.Seq) {
	if q.kv != nil {
		q.d.m.Pool().Truncate(q.kv, q.long)
	}
	if q.kv = kv; kv != nil {
		q.long = kv.Len()
	}
}

// Cost returns how long a guess takes.
func (q *seq) Cost() time.Duration { return q.d.took }

// Lag returns that nothing but the last token is to be computed.
func (q *seq) Lag([]int32) int { return 1 }

// Bytes returns nothing: keys and values are the model's.
func (q *seq) Bytes() int64 { return 0 }

// Close does nothing.
func (q *seq) Close() { q.kv = nil }

// Draft appends the most probable tokens behind the text and dst.
func (q *seq) Draft(dst []spec.Guess, tokens []int32, n int) []spec.Guess {
	m, s := q.d.m, &q.d.step
	for range n {
		all := len(tokens) + len(dst)
		if q.kv == nil || len(tokens) == 0 || q.long != len(tokens)-1 || all >= m.Context() {
			return dst
		}
		var last [1]int32
		if last[0] = tokens[len(tokens)-1]; len(dst) > 0 {
			last[0] = dst[len(dst)-1].Token
		}
		if q.kv.Len() > all-1 { // other guesses than before
			m.Pool().Truncate(q.kv, q.long+len(dst))
		}
		if q.kv.Len() != all-1 {
			return dst
		}
		begin := time.Now()
		s.Runs[0] = model.Run{Seq: q.kv, Tokens: append(s.Runs[0].Tokens[:0], last[0]), Outputs: 1}
		if m.Forward(s) != nil {
			return dst
		}
		row := m.Logits(0)
		best := logits.Argmax(row)
		if best < 0 {
			return dst
		}
		dst = append(dst, spec.Guess{Token: int32(best)}.Sure(1/logits.Weight(row, row[best], 1)))
		q.d.learn(time.Since(begin))
	}
	return dst
}

// learn learns how long a guess took.
func (d *Drafters) learn(took time.Duration) {
	if d.took == 0 {
		d.took = took
	}
	d.took += (took - d.took) / 16
}
