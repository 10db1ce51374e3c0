package spec

import (
	"time"

	"ridge/internal/logits"
)

// Cascade returns the drafter of a sequence whose guesses are guessed themselves: what
// an NGram of the text holds for next are rows of the model's pass, which so may give
// several guesses where its most probable tokens are those (a vertical cascade). Behind
// them the NGram goes on alone, with phrases of the text (a horizontal one): they come
// true less often, and cost no pass (Spector and Re, "Accelerating LLM Inference with
// Staged Speculative Decoding", 2023, arXiv 2308.04623; Chen et al., "Cascade Speculative
// Drafting", 2024, arXiv 2312.11462; phrases: Zhao et al., "Ouroboros", 2024, arXiv
// 2402.13720).
func (s *Small) Cascade() Costly {
	return &cascadeSeq{reader: reader{s: s}, grams: NewNGram(0)}
}

// Passes returns how many passes of the model its guesses took.
func (s *Small) Passes() int64 { return s.passes }

// cascadeSeq is a sequence of a Small with an NGram in front.
type cascadeSeq struct {
	reader
	grams *NGram
	all   []int32 // the text and the guesses behind it
	ahead []Guess // what the pass is expected to give
}

// Bytes returns the memory of keys and values and of the NGram.
func (q *cascadeSeq) Bytes() int64 { return q.reader.Bytes() + q.grams.Bytes() }

// Close gives it back.
func (q *cascadeSeq) Close() {
	q.free()
	q.grams.Close()
}

// lookUp sets what the NGram holds for next behind the text and the guesses: at most n
// tokens, and no more than the tokens of the match that they follow from.
func (q *cascadeSeq) lookUp(dst []Guess, tokens []int32, n int) {
	q.ahead = q.ahead[:0]
	q.all = append(q.all[:0], tokens...)
	for _, g := range dst {
		q.all = append(q.all, g.Token)
	}
	if len(tokens) >= 2 {
		q.ahead = q.grams.behind(q.ahead, tokens, q.all, n)
	}
	if len(q.ahead) > 0 {
		q.ahead = q.ahead[:min(len(q.ahead), int(q.ahead[0].Class))]
	}
}

// Draft makes passes until there are n guesses more.
func (q *cascadeSeq) Draft(dst []Guess, tokens []int32, n int) []Guess {
	return strides(q, dst, tokens, n)
}

// strides makes strides until there are n guesses more.
func strides(q Strider, dst []Guess, tokens []int32, n int) []Guess {
	for most := len(dst) + n; len(dst) < most; {
		known := len(dst)
		if dst = q.Stride(dst, tokens, most-known); len(dst) <= known {
			break
		}
	}
	return dst
}

// Stride makes one pass, and appends the model's most probable tokens as far as the
// NGram has foreseen them, and one more.
func (q *cascadeSeq) Stride(dst []Guess, tokens []int32, n int) []Guess {
	m := q.s.m
	if n <= 0 || len(tokens)+len(dst)+n > m.Context() || len(tokens) == 0 {
		return dst
	}
	begin, first := time.Now(), len(dst)
	q.lookUp(dst, tokens, n-1)
	rows, ok := q.catchUp(dst, tokens, q.ahead)
	if !ok {
		q.free()
		return dst
	}
	for i := 0; i <= len(q.ahead); i++ {
		g, ok := guessOf(m.Logits(i))
		if !ok {
			break
		}
		dst = append(dst, g)
		if i < len(q.ahead) && q.ahead[i].Token != g.Token {
			break
		}
	}
	q.s.learn(begin, rows-len(q.ahead), len(dst)-first)
	return dst
}

// Trail appends what the NGram holds for next behind the guesses.
func (q *cascadeSeq) Trail(dst []Guess, tokens []int32, n int) []Guess {
	if len(dst) == 0 {
		return dst
	}
	q.lookUp(dst, tokens, n)
	return append(dst, q.ahead...)
}

// guessOf returns the most probable token of a row of logits, its class being how
// probable it is.
func guessOf(row []float32) (g Guess, ok bool) {
	best := logits.Argmax(row)
	if best < 0 {
		return g, false
	}
	return Guess{Token: int32(best), Class: classOf(1 / logits.Weight(row, row[best], 1))}, true
}
