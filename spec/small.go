package spec

import (
	"fmt"
	"math"
	"time"

	"ridge/kvcache"
	"ridge/model"
)

// Small is a model that guesses for a larger one with the same vocabulary. It takes
// its most probable tokens, one by one, and keeps what it has computed of each
// sequence in step with the text. Its drafters must be used by one goroutine.
type Small struct {
	m    *model.Model
	step model.Step
	took time.Duration // by a guess, on average

	passes int64
}

// NewSmall returns drafters of m for a model whose vocabulary has so many tokens, of
// which same says whether a text of m's is that of the other one. It owns m from then
// on.
func NewSmall(m *model.Model, vocab int, same func(id int32) bool) (*Small, error) {
	n := m.Config().Vocab
	if tok := m.Tokenizer(); tok != nil {
		n = tok.VocabSize()
	}
	if n != vocab {
		return nil, fmt.Errorf("spec: model that drafts: expected the %d tokens of the other one's vocabulary, found %d", vocab, n)
	}
	for id := range int32(n) {
		if !same(id) {
			return nil, fmt.Errorf("spec: model that drafts: expected the vocabulary of the other one, found another token %d", id)
		}
	}
	if m.Pool().Stateful() {
		return nil, fmt.Errorf("spec: model that drafts: expected layers that can drop their last tokens, found some with states")
	}
	return &Small{m: m}, nil
}

// Drafter returns the drafter of a sequence.
func (s *Small) Drafter() Costly { return &smallSeq{reader: reader{s: s}} }

// Close closes the model.
func (s *Small) Close() error { return s.m.Close() }

// reader is what a model has computed of a sequence.
type reader struct {
	s    *Small
	kv   *kvcache.Seq
	text []int32 // that kv is of
}

// smallSeq is a sequence of a Small.
type smallSeq struct {
	reader
	tree branches
}

// mostRows bounds the tokens of a prompt that a model that drafts computes at once.
const mostRows = 256

// Cost returns how long a guess takes.
func (q *reader) Cost() time.Duration { return q.s.took }

// Lag returns how many tokens are not computed.
func (q *reader) Lag(tokens []int32) int { return len(tokens) - min(len(q.text), len(tokens)-1) }

// Bytes returns the memory of the keys and values.
func (q *reader) Bytes() int64 {
	if q.kv == nil {
		return 0
	}
	return int64(q.kv.Pages()) * q.s.m.Pool().PageBytes()
}

// Close gives it back.
func (q *smallSeq) Close() {
	q.free()
	q.tree = branches{}
}

// free gives back what was computed.
func (q *reader) free() {
	if q.kv != nil {
		q.s.m.Pool().Free(q.kv)
	}
	q.kv, q.text = nil, nil
}

// Draft takes the most probable token after tokens and dst, n times. Where the model
// has no room, for the length of its context or for memory, it guesses nothing.
func (q *smallSeq) Draft(dst []Guess, tokens []int32, n int) []Guess {
	m := q.s.m
	if len(tokens)+len(dst)+n > m.Context() || len(tokens) == 0 {
		return dst
	}
	q.follow(tokens)
	for range n {
		begin := time.Now()
		rows, ok := q.catchUp(dst, tokens, nil)
		if !ok {
			q.Close()
			return dst
		}
		g, ok := guessOf(m.Logits(0))
		if !ok {
			return dst
		}
		dst = append(dst, g)
		q.s.learn(begin, rows, 1)
	}
	return dst
}

// learn learns how long a guess took, unless the text had to be caught up with.
func (s *Small) learn(begin time.Time, rows, guesses int) {
	if rows > 2 || guesses == 0 {
		return
	}
	took := time.Since(begin) / time.Duration(guesses)
	if s.took == 0 {
		s.took = took
	}
	s.took += (took - s.took) / 16
}

// catchUp computes what is not computed of tokens and the guesses behind them, at
// least the last one, and those ahead of it. Logits(0) are those after the last one,
// Logits(i) those after the first i of those ahead.
func (q *reader) catchUp(dst []Guess, tokens []int32, ahead []Guess) (rows int, ok bool) {
	all := len(tokens) + len(dst)
	at := func(i int) int32 {
		if i < len(tokens) {
			return tokens[i]
		}
		return dst[i-len(tokens)].Token
	}
	if q.kv == nil {
		q.kv = q.s.m.Pool().NewSeq()
	}
	known := min(q.kv.Len(), len(q.text))
	same := 0
	for same < min(known, all-1) && q.text[same] == at(same) {
		same++
	}
	q.s.m.Pool().Truncate(q.kv, same)
	q.text = q.text[:q.kv.Len()]
	for len(q.text) < all {
		first := len(q.text)
		for len(q.text) < min(first+mostRows, all) {
			q.text = append(q.text, at(len(q.text)))
		}
		run := model.Run{Seq: q.kv}
		if len(q.text) == all {
			run.Outputs = 1 + len(ahead)
			for _, g := range ahead {
				q.text = append(q.text, g.Token)
			}
		}
		run.Tokens = q.text[first:]
		q.s.step.Runs = append(q.s.step.Runs[:0], run)
		if err := q.s.m.Forward(&q.s.step); err != nil {
			return 0, false
		}
		rows += len(q.text) - first
	}
	q.s.passes++
	return rows, true
}

// Sure returns the guess of a model that holds it as probable as p.
func (g Guess) Sure(p float64) Guess {
	g.Class = classOf(p)
	return g
}

// classOf returns the class of a guess of a model that is as probable as p.
func classOf(p float64) uint8 {
	if math.IsNaN(p) {
		p = 0
	}
	return uint8(half + min(max(int(p*half), 0), half-1))
}
