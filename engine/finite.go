package engine

import (
	"errors"
	"slices"
)

// notFinite reports whether some number is NaN or infinite. A logit that a mask
// forbids is -Inf, which does not count.
func notFinite(logits []float32) bool {
	return slices.ContainsFunc(logits, func(v float32) bool { return v != v || v > 0 && v-v != 0 })
}

// locate says in a NonFiniteError among err which part of the model is to blame. It
// computes the tokens of q once more, the first time that it happens.
func (e *Engine) locate(q *sequence, err error) error {
	bad := new(NonFiniteError)
	if !errors.As(err, &bad) {
		return err
	}
	if e.blame == "" {
		if need := e.pool.PagesFor(nil, q.Wanted); e.pool.Reserve(need) >= need {
			e.blame, _ = e.m.FirstNonFinite(q.tokens[:q.Wanted])
		}
	}
	bad.Where = e.blame
	return err
}
