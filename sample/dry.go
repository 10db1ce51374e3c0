package sample

import (
	"math"
	"slices"
)

// DRY lowers the logits of tokens that would go on with a text that was there
// before: by Multiplier·Base^(n-AllowedLength) where the last n tokens, at least
// AllowedLength, occurred already, and the token came after them ("don't repeat
// yourself", as in llama.cpp).
type DRY struct {
	Multiplier    float32 // 0 is off
	Base          float32 // 0 means 1.75
	AllowedLength int     // tokens; 0 means 2
	LastN         int     // tokens that are looked at; -1 for all, 0 means all too
	// Breakers are tokens that no repeated text goes beyond.
	Breakers []int32
}

// defaults fills in what a zero stands for.
func (d DRY) defaults() DRY {
	if d.Base == 0 {
		d.Base = 1.75
	}
	if d.AllowedLength == 0 {
		d.AllowedLength = 2
	}
	if d.LastN <= 0 {
		d.LastN = maxPenaltyLastN
	}
	d.Breakers = slices.Clone(d.Breakers)
	slices.Sort(d.Breakers)
	return d
}

// penalty is what a repeated text of n tokens takes from the logit of the next.
func (d *DRY) penalty(n int32) float32 {
	x := float64(d.Multiplier) * math.Pow(float64(d.Base), float64(int(n)-d.AllowedLength))
	return float32(min(x, math.MaxFloat32))
}

// remember keeps a token for DRY.
func (s *Sampler) remember(tok int32) {
	d := &s.p.DRY
	if d.Multiplier == 0 {
		return
	}
	if len(s.recent) >= 2*d.LastN {
		s.recent = append(s.recent[:0], s.recent[len(s.recent)-d.LastN:]...)
	}
	s.recent = append(s.recent, tok)
}

// repeats is the working memory of DRY.
type repeats struct {
	match []int32 // see repeated
	found []count // tokens by id, and the longest text that they would go on with
}

// repeated returns the tokens that DRY holds off, by id, and the length of the
// longest text of each that was there before. Where penalties are steps of a
// chain only that one asks.
func (s *Sampler) repeated(chained bool) []count {
	if s.p.DRY.Multiplier == 0 || chained {
		return nil
	}
	return s.findRepeats()
}

// findRepeats compares the end of what was accepted with all that is before it,
// by the Z function of the reversed text, in time proportional to its length.
func (s *Sampler) findRepeats() []count {
	d, r := &s.p.DRY, &s.repeats
	text := s.recent[max(0, len(s.recent)-d.LastN):]
	n := len(text)
	at := func(i int) int32 { return text[n-1-i] } // backwards
	limit := 0                                     // tokens behind the last breaker
	for limit < n {
		if _, is := slices.BinarySearch(d.Breakers, at(limit)); is {
			break
		}
		limit++
	}
	r.found = r.found[:0]
	if limit < d.AllowedLength {
		return nil
	}
	if cap(r.match) < n {
		r.match = make([]int32, n, 2*n)
	}
	z := r.match[:n]
	// z[i] is how many tokens before place i from the end are those at the end.
	for i, lo, hi := 1, 0, 0; i < n; i++ {
		z[i] = 0
		if i < hi {
			z[i] = min(int32(hi-i), z[i-lo])
		}
		for i+int(z[i]) < n && at(int(z[i])) == at(i+int(z[i])) {
			z[i]++
		}
		if i+int(z[i]) > hi {
			lo, hi = i, i+int(z[i])
		}
		if same := min(int(z[i]), limit); same >= d.AllowedLength {
			r.add(at(i-1), int32(same))
		}
	}
	return r.found
}

// add notes that tok would go on with a text of n tokens.
func (r *repeats) add(tok, n int32) {
	i, ok := slices.BinarySearchFunc(r.found, tok, func(c count, id int32) int { return int(c.id) - int(id) })
	if !ok {
		r.found = slices.Insert(r.found, i, count{id: tok})
	}
	r.found[i].n = max(r.found[i].n, n)
}
