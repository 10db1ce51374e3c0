// Package many has several models draft one tree: what one of them gets wrong, another may
// know (Miao et al., "SpecInfer", 2024, arXiv 2305.09781).
package many

import (
	"time"

	"ridge/spec"
)

// Of returns what makes drafters that guess what all of some guess. Where two of them have
// the same guess, it is the first one's.
func Of(all ...func() spec.Costly) func() spec.Costly {
	return func() spec.Costly {
		q := &seq{trees: make([][]spec.Guess, len(all))}
		for i, one := range all {
			q.by = append(q.by, one())
			q.trees[i] = make([]spec.Guess, 0, spec.MaxRows)
		}
		return q
	}
}

// seq is the drafters of a sequence. It is a spec.Brancher.
type seq struct {
	by    []spec.Costly
	trees [][]spec.Guess // of each
}

// Branch has each drafter go one place deeper, with as many guesses as it makes there.
func (q *seq) Branch(dst []spec.Guess, tokens []int32, width int) []spec.Guess {
	for i, d := range q.by {
		tree := q.trees[i]
		if len(dst) == 0 {
			tree = tree[:0]
		}
		switch d := d.(type) {
		case spec.Brancher:
			tree = d.Branch(tree, tokens, width)
		case spec.Strider:
			tree = d.Stride(tree, tokens, 1)
		default:
			tree = d.Draft(tree, tokens, 1)
		}
		q.trees[i] = tree
	}
	for _, tree := range q.trees {
		dst = spec.Merge(dst, tree)
	}
	return dst
}

// Draft has the first drafter guess: a chain is of one.
func (q *seq) Draft(dst []spec.Guess, tokens []int32, n int) []spec.Guess {
	return q.by[0].Draft(dst, tokens, n)
}

// Cost returns how long all take for a place.
func (q *seq) Cost() (sum time.Duration) {
	for _, d := range q.by {
		sum += d.Cost()
	}
	return sum
}

// Lag returns how many tokens the one that is furthest behind would have to compute.
func (q *seq) Lag(tokens []int32) (most int) {
	for _, d := range q.by {
		most = max(most, d.Lag(tokens))
	}
	return most
}

// Bytes returns what all hold.
func (q *seq) Bytes() (sum int64) {
	for _, d := range q.by {
		sum += d.Bytes()
	}
	return sum
}

// Close gives it back.
func (q *seq) Close() {
	for _, d := range q.by {
		d.Close()
	}
}
