// Package spec guesses what a sequence goes on with, so that a step of the engine
// can compute several of its tokens at once (speculative decoding: Leviathan et
// al., "Fast Inference from Transformers via Speculative Decoding", 2023; Chen et
// al., "Accelerating Large Language Model Decoding with Speculative Sampling",
// 2023). Which guesses are right the sampler finds out (sample.Sampler.Verify): no
// guess can change a text, only the time it takes.
//
// A [Drafter] makes guesses, a [Book] learns how many of them come true, and
// the [Controller] decides how many are worth their rows in a step.
package spec

import (
	"fmt"
	"time"

	"ridge/kvcache"
)

// Classes is the number of classes that guesses fall into: each kind of drafter has as
// many, by how sure it is of them, an NGram the first, then models, then Suffixes, then
// Datastores, then Recycling, then what a grammar forces. As many more are of guesses against those of others: see
// Merge.
const Classes = 2 * against

const (
	half       = 16 // classes of a kind of drafter
	suffixes   = 2 * half
	datastores = 3 * half
	recycled   = 4 * half
	forced     = 5 * half
	against    = 6 * half
)

// Forced is the class of guesses that a grammar leaves no other text than. They can be
// spelled otherwise.
const Forced = forced + half - 1

// Guess is a token that may come next. Guesses that are listed are a tree: each is of
// what follows one before it in the list, or the text. As they come, they are a chain.
type Guess struct {
	Token int32
	Class uint8 // below Classes: guesses of one come true about equally often
	Up    uint8 // guesses between this one and that which it follows, 0 for none
}

// Drafter guesses the next tokens of one sequence. Its methods are called by one
// goroutine at a time.
type Drafter interface {
	// Draft appends at most n guesses of what follows tokens and the guesses in dst
	// to dst, each of what follows the one before it, and returns it. Calls see the
	// same tokens as those before them and more.
	Draft(dst []Guess, tokens []int32, n int) []Guess
	// Bytes returns the memory that the drafter holds for the sequence.
	Bytes() int64
	// Close gives it back.
	Close()
}

// Observer is a Drafter that learns from what the model holds likely.
type Observer interface {
	// Observe is told of the logits behind a token: in row 0 of the step the last one of
	// the text, in others guesses, each after that in row parent, which it follows. Several
	// goroutines may call it, for different sequences, and while others draft.
	Observe(row, parent int, token int32, logits []float32)
}

// Costly is a drafter whose guesses take time.
type Costly interface {
	Drafter
	// Cost returns how long a guess takes, 0 as long as that is not known.
	Cost() time.Duration
	// Lag returns how many tokens it would have to compute before it can guess.
	Lag(tokens []int32) int
}

// Strider is a Costly drafter that may make several guesses in the time of one.
type Strider interface {
	Costly
	// Stride is Draft for as many guesses as that time gives, n at most. The guesses in
	// dst, which it has made, may become other ones.
	Stride(dst []Guess, tokens []int32, n int) []Guess
	// Trail appends at most n guesses that take next to no time behind those in dst.
	Trail(dst []Guess, tokens []int32, n int) []Guess
}

// Guest is a Costly drafter that computes on the keys and values that the model itself
// keeps of the sequence.
type Guest interface {
	Costly
	// Visit is called before the drafter guesses, and with nil afterwards: keys and
	// values must then be what they were.
	Visit(kv *kvcache.Seq)
}

// Brancher is a Costly drafter that guesses several tokens for one place.
type Brancher interface {
	Costly
	// Branch appends guesses one place deeper than those in dst, a tree that it has made,
	// to dst: of what follows the likeliest of the deepest, at most width of them.
	// Those before them stay. It takes about the time of a guess.
	Branch(dst []Guess, tokens []int32, width int) []Guess
}

// Drafting says who guesses, and how much of it is verified.
type Drafting struct {
	// New makes the drafter of a sequence that may become so many tokens long.
	New func(tokens int) Drafter
	// Texts makes another one for a sequence of a tenant, nil for none. Of the two, the
	// one guesses whose guesses are expected to come true more often.
	Texts func(tenant string) Drafter
	// Slow makes another one, for which each guess takes time; nil for none. It
	// guesses where that is expected to gain more than the first.
	Slow func() Costly
	// Taps are layers of the model whose rows the slow drafter reads, see
	// model.Step.Taps, by a method Read. Nil for none.
	Taps []int
	// Close is called when no drafter is used any more; nil for nothing to do.
	Close func() error
	// Patience is how long an engine measures, when it starts, how long steps that
	// verify guesses take; 0 for not at all: it learns that as it goes along.
	Patience time.Duration
	// Most bounds how deep guesses are behind a token, 0 means 8.
	Most int
	// Width is how many guesses of the slow drafter go on at each place, 0 means 1, a
	// chain.
	Width int
	// Stretch bounds the times between tokens, see Controller; 0 for no bound.
	Stretch float64
	// Always has all guesses verified, also where that is expected to lose: for
	// measurements and tests.
	Always bool
}

// Check says what is wrong with d.
func (d *Drafting) Check() error {
	switch {
	case d.New == nil:
		return fmt.Errorf("spec: drafting: expected a drafter, found none")
	case d.Most < 0 || d.Most > MaxRows:
		return fmt.Errorf("spec: drafting: expected 0 to %d guesses behind a token, found %d", MaxRows, d.Most)
	case d.Stretch != 0 && !(d.Stretch >= 1):
		return fmt.Errorf("spec: drafting: stretch: expected at least 1 or 0, found %v", d.Stretch)
	case d.Width < 0 || d.Width > MaxWidth:
		return fmt.Errorf("spec: drafting: expected a width of 0 to %d, found %d", MaxWidth, d.Width)
	}
	return nil
}

// Depth returns the most guesses behind a token.
func (d *Drafting) Depth() int {
	const usual = 8
	if d.Most == 0 {
		return usual
	}
	return d.Most
}
