package sample

import (
	"math"
	"slices"

	"ridge/internal/logits"
)

// Masker forbids tokens: it sets their logits to -Inf. It must not change
// others. A grammar is one.
type Masker interface {
	Mask(logits []float32)
}

// TokenProb is a token and its log-probability.
type TokenProb struct {
	Token   int32
	LogProb float32
}

// Result is what Sample picked.
type Result struct {
	// Token is the token's id, or -1 if no token is allowed: every logit is
	// -Inf or NaN, or the number of logits is not the vocabulary size.
	Token int32
	// LogProb is the token's log-probability under the model's distribution
	// (see Params.LogProbs); 0 if that was not asked for.
	LogProb float32
	// Top are the most probable tokens, most probable first, or those of
	// Params.ProbIDs. It belongs to the caller; nil unless Params.LogProbs > 0.
	Top []TokenProb
	// Trace is there if Params.Trace asked for it. It belongs to the caller.
	Trace *Trace
}

// Sampler picks the tokens of one sequence. It is not safe for concurrent
// use.
type Sampler struct {
	p      Params
	vocab  int
	bias   []bias
	masker Masker
	hist   history
	step   uint64  // tokens accepted
	recent []int32 // the last of them, for DRY
	miro   mirostat

	work []float32 // adjusted logits; allocated when first needed

	*scratch // nil until it is needed
}

// scratch is memory that says nothing between two tokens.
type scratch struct {
	cands, order []cand
	left         []cand         // what the draw at hand was from, if there were cuts
	tops         []float32      // largest logits of blocks
	sums         []float64      // weights of blocks
	part         [block]float32 // weights of one block
	ids          [block]int32   // tokens of one block
	shares       shares
	class        []uint16 // of candidates
	repeats      repeats
}

// New returns a sampler for logits of vocab tokens. The error of a bad
// parameter names it, what is expected and what was found.
func New(p Params, vocab int) (*Sampler, error) {
	if err := p.check(vocab); err != nil {
		return nil, err
	}
	s := &Sampler{p: p, vocab: vocab, bias: p.biases()}
	s.p.LogitBias = nil
	if p.RepetitionPenalty == 0 {
		s.p.RepetitionPenalty = 1
	}
	s.p.settle()
	if s.p.penalizes() {
		n := p.PenaltyLastN
		if n == 0 {
			n = DefaultPenaltyLastN
		}
		s.hist.init(n)
	}
	s.p.DRY.settle()
	s.miro.init(&s.p)
	return s, nil
}

// SetMasker sets the mask that is applied to a copy of the logits in every
// Sample, or nil for none. Log-probabilities do not see it.
func (s *Sampler) SetMasker(m Masker) { s.masker = m }

// Accept tells the sampler the sequence's next token: of the prompt, if
// penalties are to count it, and every token that was picked. Random numbers
// are numbered by the tokens accepted: without Accept, Sample draws the same
// number again.
func (s *Sampler) Accept(tok int32) {
	s.step++
	if tok >= 0 && int(tok) < s.vocab {
		s.hist.add(tok)
		s.remember(tok)
		s.miro.accept(&s.p, tok)
	}
}

// Share makes s use the working memory of o, which is not small and better kept in
// a processor's cache than with each sequence. The two must not be used at the same
// time.
func (s *Sampler) Share(o *Sampler) {
	o.prepare()
	s.scratch = o.scratch
}

// prepare makes the working memory.
func (s *Sampler) prepare() {
	if s.scratch == nil {
		s.scratch = new(scratch)
	}
}

// Reset forgets all accepted tokens.
func (s *Sampler) Reset() {
	s.step = 0
	s.hist.reset()
	s.recent = s.recent[:0]
	s.miro.init(&s.p)
}

// Sample picks the next token from one row of logits, which it does not
// change. A NaN counts as -Inf, which is never picked; the first +Inf is
// always picked. Once warm, it allocates only what it returns in Result.Top.
func (s *Sampler) Sample(logits []float32) Result {
	if len(logits) != s.vocab {
		return Result{Token: -1}
	}
	s.prepare()
	w := s.adjust(logits)
	r := Result{Token: s.pick(w)}
	if s.p.LogProbs > 0 {
		if s.p.Trace { // what is left lies where the most probable tokens are put
			s.left = slices.Clone(s.left)
		}
		if s.p.Drawn {
			s.drawn(w, s.p.LogProbs, &r)
		} else {
			s.logProbs(logits, s.p.LogProbs, s.p.ProbIDs, &r)
		}
		if s.p.Trace {
			r.Trace = s.trace(logits, w, &r)
		}
	}
	return r
}

// Score returns the log-probability of a given token under one row of logits,
// and the n most probable tokens, as Sample does for the token that it picks.
// Nothing about the sampler counts but its vocabulary.
func (s *Sampler) Score(row []float32, token int32, n int) Result {
	return s.score(row, token, n, nil)
}

func (s *Sampler) score(row []float32, token int32, n int, ids []int32) Result {
	if len(row) != s.vocab || token < 0 || int(token) >= s.vocab || n < 1 {
		return Result{Token: -1}
	}
	s.prepare()
	r := Result{Token: token}
	s.logProbs(row, n, ids, &r)
	return r
}

// adjust returns the logits after bias, mask and penalties: a copy, unless
// nothing changes.
func (s *Sampler) adjust(logits []float32) []float32 {
	chained := s.p.chained() // then penalties are steps like others
	var held []count
	if !chained && s.p.DRY.Multiplier > 0 {
		held = s.repeated()
	}
	if len(s.bias) == 0 && s.masker == nil && (chained || len(s.hist.counts) == 0) && len(held) == 0 {
		return logits
	}
	if s.work == nil {
		s.work = make([]float32, s.vocab)
	}
	w := s.work
	copy(w, logits)
	for _, b := range s.bias {
		w[b.id] += b.val
	}
	if s.masker != nil {
		s.masker.Mask(w)
	}
	if chained {
		return w
	}
	for _, c := range s.hist.counts {
		w[c.id] = s.penalized(w[c.id], c.n)
	}
	for _, r := range held {
		w[r.id] = s.heldOff(w[r.id], r.n)
	}
	return w
}

// penalizes reports whether there is a penalty for tokens in the window.
func (p *Params) penalizes() bool {
	return p.RepetitionPenalty != 0 && p.RepetitionPenalty != 1 || p.PresencePenalty != 0 || p.FrequencyPenalty != 0
}

// penalized returns the logit of a token that occurred n times in the window.
func (s *Sampler) penalized(l float32, n int32) float32 {
	if l > 0 {
		l /= s.p.RepetitionPenalty
	} else {
		l *= s.p.RepetitionPenalty
	}
	return l - (float32(float32(n)*s.p.FrequencyPenalty) + s.p.PresencePenalty)
}

// pick chooses among adjusted logits.
func (s *Sampler) pick(w []float32) int32 {
	s.left = nil
	if s.p.chained() {
		return s.chain(w)
	}
	if s.p.Temperature == 0 || s.p.TopK == 1 {
		return argmax(w)
	}
	if s.filtered() {
		c, top := s.candidates(w)
		if isInf(top) {
			return argmax(w)
		}
		s.left = c
		return s.draw(c, top, s.p.Temperature)
	}
	return s.drawAll(w)
}

// filtered reports whether any filter is on.
func (s *Sampler) filtered() bool {
	return s.p.TopK > 0 && s.p.TopK < s.vocab || on(s.p.TypicalP) || on(s.p.TopP) || s.p.MinP > 0
}

// on reports whether a share of the probability is a filter.
func on(p float32) bool { return p > 0 && p < 1 }

func isInf(x float32) bool { return math.IsInf(float64(x), 0) }

// argmax returns the first index of the largest value that is above -Inf, or
// -1.
func argmax(x []float32) int32 { return int32(logits.Argmax(x)) }

// maximum returns the largest value, -Inf if there is none.
func maximum(x []float32) float32 { return logits.Max(x) }
