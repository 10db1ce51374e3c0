package run

import (
	"math"

	"ridge/engine"
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

// both applies two maskers.
type both struct{ a, b engine.Masker }

func (m both) Mask(logits []float32) {
	m.a.Mask(logits)
	m.b.Mask(logits)
}

func (m both) Accept(token int32) error {
	if err := m.a.Accept(token); err != nil {
		return err
	}
	return m.b.Accept(token)
}

func (m both) Done() bool {
	for _, x := range []engine.Masker{m.a, m.b} {
		if d, ok := x.(interface{ Done() bool }); ok && d.Done() {
			return true
		}
	}
	return false
}

func (m both) Err() error {
	for _, x := range []engine.Masker{m.a, m.b} {
		if e, ok := x.(interface{ Err() error }); ok && e.Err() != nil {
			return e.Err()
		}
	}
	return nil
}

// Jump appends what one of the maskers forces, while the other one is free. It
// appends nothing where both could forbid tokens.
func (m both) Jump(dst []int32) []int32 {
	for _, x := range [...]both{m, {m.b, m.a}} {
		j, jumps := x.a.(engine.Jumper)
		if f, ok := x.b.(interface{ Free() bool }); jumps && ok && f.Free() {
			return j.Jump(dst)
		}
	}
	return dst
}

// addMasker adds a masker to what a plan has.
func (p *Plan) addMasker(f func() engine.Masker) {
	before := p.Request.NewMasker
	if before == nil {
		p.Request.NewMasker = f
		return
	}
	p.Request.NewMasker = func() engine.Masker { return both{before(), f()} }
}
