package run

import (
	"math"

	"ridge/engine"
	"ridge/text/constraint"
)

var negInf = float32(math.Inf(-1))

// allowed lets only some tokens come, and those that end the answer.
type allowed struct{ tokens map[int32]bool }

func (a allowed) Mask(logits []float32) {
	for i := range logits {
		if !a.tokens[int32(i)] {
			logits[i] = negInf
		}
	}
}
func (allowed) Accept(int32) error { return nil }

// badWords forbids sequences of tokens: the last token of one may not come
// after the others.
type badWords struct {
	words [][]int32
	last  []int32 // tokens so far, as many as the longest word needs
}

func (b *badWords) Mask(logits []float32) {
	for _, w := range b.words {
		n := len(w) - 1
		if n > len(b.last) || int(w[n]) >= len(logits) {
			continue
		}
		same := true
		for i, id := range b.last[len(b.last)-n:] {
			same = same && w[i] == id
		}
		if same {
			logits[w[n]] = negInf
		}
	}
}

func (b *badWords) Accept(token int32) error {
	if b.last = append(b.last, token); len(b.last) > 64 {
		b.last = append(b.last[:0], b.last[32:]...)
	}
	return nil
}

// addMasker adds a masker to what a plan has.
func (p *Plan) addMasker(f func() engine.Masker) {
	before := p.Request.NewMasker
	if before == nil {
		p.Request.NewMasker = f
		return
	}
	p.Request.NewMasker = func() engine.Masker { return constraint.Both(before(), f()) }
}
