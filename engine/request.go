package engine

import (
	"fmt"
	"time"

	"ridge/model"
	"ridge/sample"
)

// Masker forbids tokens. Mask is called before each draw, Accept after it with
// the token drawn, unless that token ended the answer. If it also has a method
// Done() bool that returns true after Accept, the answer ends there; a method
// Err() error tells why it allows nothing. The calls of one masker come one
// after the other, those of different maskers at the same time.
type Masker interface {
	sample.Masker
	Accept(token int32) error
}

// Pooling says how the states of a prompt's tokens become one embedding, or scores.
type Pooling uint8

// The poolings.
const (
	NoPooling     Pooling = iota
	PoolingMean           // mean of all tokens
	PoolingLast           // last token
	PoolingCLS            // first token
	PoolingScores         // the scores of labels that the model's classifier gives, as they come
)

// Beam asks for beam search: the N most probable answers that a search with
// Width candidates per step finds. It works as that of Hugging Face
// transformers.
type Beam struct {
	Width int // beams, 1 to MaxChoices
	// LengthPenalty is the power of an answer's length, its end token included,
	// by which its log-probability is divided. Above 0 it favours long answers.
	// Transformers' default is 1.
	LengthPenalty float32
	// EarlyStop ends the search as soon as there are Width complete answers,
	// rather than when no running one can become better.
	EarlyStop bool
}

// MaxChoices is the largest number of choices or beams of a request.
const MaxChoices = 256

// Request asks for one or more continuations of a prompt, for
// log-probabilities of the prompt itself, or for its embedding. Its slices and
// maps must not be changed after Submit.
type Request struct {
	ID       string  // shown in Stats
	Tokens   []int32 // the prompt, at least one token
	Sampling sample.Params
	// NewMasker is called once per choice; nil for no constraint.
	NewMasker func() Masker
	// JumpAhead takes tokens that the masker forces, if it is a [Jumper], without
	// drawing them: one step computes all of them. They count as tokens of the
	// answer for every limit and penalty; biases and penalties have no say in
	// them. The answer differs from what would be drawn where forced text can be
	// spelled in several ways, and depends on the request alone as always.
	JumpAhead bool

	// MaxDraft bounds the tokens that are guessed behind each one of the answer, if the
	// engine guesses (see Options.Draft): 0 leaves it to the engine, a negative number
	// means none. The answer does not depend on it.
	MaxDraft int

	// MaxTokens bounds each answer, without its end token. 0 means as many as
	// the context holds; a negative number means none: the prompt is computed
	// and scored only. An answer that reaches the bound, the end of the context
	// or the size of the page pool ends with FinishLength.
	MaxTokens int
	MinTokens int // the answer does not end by itself before it has so many

	// EndLoops ends an answer that only repeats itself, as sample.Loop defines it,
	// with FinishLoop. Tokens of the prompt do not count.
	EndLoops bool

	// StopTokens end an answer and are not part of it. With IgnoreEOS those that
	// the model's vocabulary has for that purpose are ignored.
	StopTokens []int32
	IgnoreEOS  bool

	// N is how many choices are returned, 0 means 1. They are drawn from the
	// prompt computed once, choice i with the seed ChoiceSeed(Sampling.Seed, i).
	// If BestOf is greater than N, so many are drawn, and the N with the largest
	// log-probability per token are returned, best first, when all are complete.
	N, BestOf int
	// Beam replaces drawing by a search. Of Sampling only LogProbs counts then;
	// parameters that change logits are refused, and so are masks.
	Beam *Beam

	Priority  int       // class; a lower one comes first, if the policy looks at it, and see sched.Config.ClassSlowdown
	Deadline  time.Time // when the first token is due, for policies that look at it
	Tenant    string    // prefixes are not shared between tenants; fairness is per tenant
	Weight    int       // the tenant's share under fair policies, 0 means 1
	CacheSalt string    // prefixes are shared only under the same salt

	// Adapter changes the model's weights for this request; nil for none. Prefixes are
	// shared only under the same adapter.
	Adapter *model.Adapter

	// Breakpoints are lengths of the prompt up to which others are likely to begin
	// alike, at most 4.
	Breakpoints []Breakpoint

	// PromptLogProbs asks for the log-probability of each prompt token, given
	// those before it, and of so many most probable ones in its place; below 1
	// it is off. The whole prompt is computed then, cached or not.
	PromptLogProbs int
	// PromptLogits, if not nil, is called with the logits that predict the token
	// of the prompt at index at, [vocabulary] of them: once for each token, on the
	// threads that compute, several at once, in no order. The logits hold during
	// the call only and must not be changed. A panic of it ends the request with
	// FinishError.
	PromptLogits func(at int, logits []float32)
	// ScoreFrom is the first token of the prompt that PromptLogProbs and
	// PromptLogits are about; 0 means 1, since nothing predicts the first. What
	// is before the token before it may come from the prefix tree.
	ScoreFrom int

	// Progress asks for events that say how far the prompt is, see Event.Progress.
	Progress bool

	// Embed asks for an embedding, scaled to length 1 unless Raw is set, in place of
	// an answer, or for scores.
	Embed Pooling
	Raw   bool
	// Second is how many tokens come before a second text, of models that tell two
	// texts apart; 0 for one text.
	Second int
}

// ChoiceSeed returns the seed that choice i of a request is drawn with: a
// request with this seed and N = 1 gets the same answer.
func ChoiceSeed(seed uint64, i int) uint64 {
	if i == 0 {
		return seed
	}
	// SplitMix64's mixing function, so that choices of neighbouring seeds differ.
	z := seed + uint64(i)*0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// limits are what a request is checked against.
type limits struct {
	vocab   int
	context int  // positions of a sequence
	pool    int  // tokens that fit what the page pool can have for sure
	seqs    int  // sequences in a step
	reads   bool // the model reads texts in both directions, and writes none
	scores  bool // it has a classifier
}

// complete checks r and fills in defaults. Afterwards MaxTokens is the number
// of tokens that an answer can really get, 0 if none is wanted.
func (r *Request) complete(l limits) error {
	for i, t := range r.Tokens {
		if t < 0 || int(t) >= l.vocab {
			return badRequest("tokens", "token %d: expected 0 to %d, found %d", i, l.vocab-1, t)
		}
	}
	switch fits := min(l.context, l.pool-1); {
	case len(r.Tokens) == 0:
		return badRequest("tokens", "expected at least one, found none")
	case len(r.Tokens) > fits:
		return &ContextError{Tokens: len(r.Tokens), Context: fits}
	case r.MinTokens < 0:
		return badRequest("min_tokens", "expected 0 or more, found %d", r.MinTokens)
	case r.PromptLogProbs > l.vocab:
		return badRequest("prompt_logprobs", "expected at most %d, found %d", l.vocab, r.PromptLogProbs)
	case r.ScoreFrom < 0 || r.ScoreFrom > len(r.Tokens):
		return badRequest("score_from", "expected 0 to %d, the tokens of the prompt, found %d", len(r.Tokens), r.ScoreFrom)
	case r.Embed != NoPooling && (r.PromptLogits != nil || r.PromptLogProbs > 0):
		return badRequest("embed", "an embedding cannot be combined with scores of the prompt")
	case r.Embed > PoolingScores:
		return badRequest("embed", "unknown pooling %d", r.Embed)
	case r.Embed == PoolingScores && !l.scores:
		return badRequest("embed", "expected a model with a classifier, found one without")
	case r.Embed == NoPooling && (l.reads || l.scores):
		return badRequest("model", "expected a request for embeddings or scores, found one for text: the model writes none")
	case r.Second < 0 || r.Second > len(r.Tokens):
		return badRequest("second", "expected 0 to %d, the tokens of the prompt, found %d", len(r.Tokens), r.Second)
	}
	if err := r.breakpoints(); err != nil {
		return err
	}
	if err := r.completeChoices(); err != nil {
		return err
	}
	// The last token of an answer is not computed: it may be one more than the
	// context has positions.
	room := min(l.context-len(r.Tokens)+1, l.pool-len(r.Tokens))
	switch {
	case r.MaxTokens < 0 || r.Embed != NoPooling:
		r.MaxTokens = 0
	case r.MaxTokens == 0 || r.MaxTokens > room:
		r.MaxTokens = room
	}
	return nil
}

func (r *Request) completeChoices() error {
	if r.N == 0 {
		r.N = 1
	}
	if b := r.Beam; b != nil {
		if b.Width < 1 || b.Width > MaxChoices {
			return badRequest("beam width", "expected 1 to %d, found %d", MaxChoices, b.Width)
		}
		if b.LengthPenalty != b.LengthPenalty {
			return badRequest("length_penalty", "expected a number, found %v", b.LengthPenalty)
		}
		s := r.Sampling
		if s.Trace || s.Drawn || s.ProbIDs != nil {
			return badRequest("beam", "expected log-probabilities of the most probable tokens alone: a search draws no tokens")
		}
		if r.NewMasker != nil || len(s.LogitBias) > 0 || s.PresencePenalty != 0 || s.FrequencyPenalty != 0 || s.RepetitionPenalty != 0 && s.RepetitionPenalty != 1 {
			return badRequest("beam", "a search cannot be combined with a grammar, a logit bias or penalties")
		}
		r.BestOf = b.Width
	}
	if r.BestOf == 0 {
		r.BestOf = r.N
	}
	if r.N < 1 || r.N > MaxChoices || r.BestOf < r.N || r.BestOf > MaxChoices {
		return badRequest("n", "expected 1 ≤ n ≤ best_of (or beams) ≤ %d, found %d and %d", MaxChoices, r.N, r.BestOf)
	}
	if r.Sampling.Drawn && r.BestOf > r.N {
		return badRequest("best_of", "expected n where log-probabilities are those of what is drawn, found %d: the best answers are the model's", r.BestOf)
	}
	if (r.Embed != NoPooling || r.MaxTokens < 0) && r.BestOf > 1 {
		return badRequest("n", "expected 1 where no token is generated, found %d", r.BestOf)
	}
	return nil
}

func badRequest(field, format string, a ...any) error {
	return &RequestError{Field: field, Err: fmt.Errorf(format, a...)}
}
