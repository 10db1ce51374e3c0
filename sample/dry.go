package sample

import (
	"cmp"
	"math"
	"slices"
)

// DRY lowers the logits of tokens that would go on with a text that was there
// before: by Multiplier·Base^(n-AllowedLength) where the last n tokens, at least
// AllowedLength, occurred already, and the token came after them ("don't repeat
// yourself", as in llama.cpp).
type DRY struct {
	Multiplier    float32 // 0 is off
	Base          float32 // at least 1; 0 means 1.75
	AllowedLength int     // tokens; 0 means 2, -1 none
	LastN         int     // tokens that are looked at: 0 means DefaultPenaltyLastN, -1 all
	// Breakers are what no repeated text goes beyond, nil for nothing.
	Breakers *Breakers
}

// The numbers that a zero stands for.
const (
	DefaultDRYBase          = 1.75
	DefaultDRYAllowedLength = 2
)

// settle fills in what a zero stands for.
func (d *DRY) settle() {
	if d.Base == 0 {
		d.Base = DefaultDRYBase
	}
	switch d.AllowedLength {
	case 0:
		d.AllowedLength = DefaultDRYAllowedLength
	case -1:
		d.AllowedLength = 0
	}
	switch d.LastN {
	case 0:
		d.LastN = DefaultPenaltyLastN
	case -1:
		d.LastN = maxPenaltyLastN
	}
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

// heldOff returns the logit of a token that would go on with a text of n tokens.
func (s *Sampler) heldOff(l float32, n int32) float32 { return l - s.p.DRY.penalty(n) }

// repeated returns the tokens that DRY holds off, by id, and the length of the
// longest text of each that was there before. It compares the end of what was
// accepted with all that is before it, by the Z function of the reversed text.
func (s *Sampler) repeated() []count {
	d, r := &s.p.DRY, &s.repeats
	text := s.recent[max(0, len(s.recent)-d.LastN):]
	n := len(text)
	at := func(i int) int32 { return text[n-1-i] } // backwards
	limit := d.Breakers.after(text)
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
		if same := min(int(z[i]), limit); same >= d.AllowedLength && !d.Breakers.single(at(i-1)) {
			r.found = append(r.found, count{at(i - 1), int32(same)})
		}
	}
	// Of each token the longest text comes first and stays.
	slices.SortFunc(r.found, func(a, b count) int {
		return cmp.Or(int(a.id)-int(b.id), int(b.n)-int(a.n))
	})
	r.found = slices.CompactFunc(r.found, func(a, b count) bool { return a.id == b.id })
	return r.found
}

// DefaultBreakers are the breakers of DRY where nothing else is said, as in
// llama.cpp.
func DefaultBreakers() []string { return []string{"\n", ":", "\"", "*"} }
