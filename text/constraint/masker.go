package constraint

import (
	"ridge/text/chat"
	"ridge/text/grammar"
	"ridge/text/tokenizer"
)

// Masker forbids tokens: Mask before each draw, Accept after it. It may say
// when the answer is complete, why nothing is allowed, and which tokens are
// forced, as grammar.State does.
type Masker interface {
	Mask(logits []float32)
	Accept(token int32) error
}

// After returns what makes the maskers of answers to prompt whose text is of g.
// Reasoning comes first, free, if the model is in it or may choose to begin it;
// with keepReasoning it is a part of the text.
func (c *Compiler) After(g *grammar.Grammar, prompt string, keepReasoning bool) (func() Masker, error) {
	return After(g, c.tok, c.syntax, prompt, keepReasoning)
}

// After is Compiler.After for the model with the tokenizer t and the syntax s.
func After(g *grammar.Grammar, t *tokenizer.Tokenizer, s chat.Syntax, prompt string, keepReasoning bool) (func() Masker, error) {
	newState := func() Masker { return g.NewState() }
	if keepReasoning || s.ThinkClose == "" || s.ClosedThinking(prompt) {
		return newState, nil
	}
	o := grammar.GateOptions{Text: s.ThinkClose}
	if id, ok := t.ID(s.ThinkClose); ok {
		o.Tokens = []int32{id}
	}
	newGate, err := Gates(g, o)
	if err != nil {
		return nil, err
	}
	if s.Thinks(prompt) {
		return newGate, nil
	}
	open, ok := t.ID(s.ThinkOpen)
	if !ok {
		return newState, nil
	}
	return func() Masker {
		return &branch{chosen: g.NewState(), doors: map[int32]Masker{open: newGate()}}
	}, nil
}

// Gates returns what makes gates before g.
func Gates(g *grammar.Grammar, o grammar.GateOptions) (func() Masker, error) {
	first, err := grammar.NewGate(g, o)
	if err != nil {
		return nil, err
	}
	return func() Masker { return first.Clone() }, nil
}

// branch lets the first token decide which masker holds for the rest: a door's
// token that of the door, any other one the one chosen so far.
type branch struct {
	chosen Masker
	doors  map[int32]Masker // nil once the first token has come
	kept   []float32        // logits of the doors
	ids    []int32
}

// Mask forbids the tokens that neither way allows.
func (b *branch) Mask(logits []float32) {
	if b.doors == nil {
		b.chosen.Mask(logits)
		return
	}
	b.ids, b.kept = b.ids[:0], b.kept[:0]
	for id := range b.doors {
		if int(id) < len(logits) {
			b.ids, b.kept = append(b.ids, id), append(b.kept, logits[id])
		}
	}
	b.chosen.Mask(logits)
	for i, id := range b.ids {
		logits[id] = b.kept[i]
	}
}

// Accept goes through a door or on.
func (b *branch) Accept(token int32) error {
	door, ok := b.doors[token]
	b.doors = nil
	if ok {
		b.chosen = door
		return nil
	}
	return b.chosen.Accept(token)
}

// Done reports whether nothing can follow.
func (b *branch) Done() bool {
	d, ok := b.chosen.(interface{ Done() bool })
	return ok && b.doors == nil && d.Done()
}

// Err returns why nothing is allowed.
func (b *branch) Err() error {
	if e, ok := b.chosen.(interface{ Err() error }); ok {
		return e.Err()
	}
	return nil
}

// Jump returns what the masker forces that holds. Nothing is forced while that
// is open.
func (b *branch) Jump(dst []int32) []int32 {
	if j, ok := b.chosen.(interface{ Jump(dst []int32) []int32 }); ok && b.doors == nil {
		return j.Jump(dst)
	}
	return dst
}
