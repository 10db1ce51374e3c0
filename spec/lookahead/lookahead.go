// Package lookahead drafts without a model and without earlier texts: a window of guesses
// is computed beside each token, and becomes what the model holds likely behind them; what
// comes of it in some steps are n-grams, which are verified where they fit (Fu et al., "Break
// the Sequential Dependency of LLM Inference Using Lookahead Decoding", 2024, arXiv
// 2402.02057). With one level it is Jacobi's iteration, whose fixed point is the greedy text
// (Santilli et al., "Accelerating Transformer Inference for Translation via Parallel
// Decoding", 2023, arXiv 2305.10427).
package lookahead

import (
	"ridge/internal/logits"
	"ridge/spec"
)

// Shape of windows.
const (
	maxWidth  = 8
	maxLevels = 4
	grams     = 4       // n-grams of a token that are kept, the last ones
	entries   = 1 << 10 // tokens whose n-grams are kept
)

// Shape is that of a window: Width guesses behind the last token, each of which is the first
// of Levels.
type Shape struct{ Width, Levels int }

// Jacobi is the window of Jacobi's iteration, Usual that of lookahead decoding.
var (
	Jacobi = Shape{8, 1}
	Usual  = Shape{5, 3}
)

// seq is the drafter of a sequence: nothing of it is anybody else's. It is a
// spec.Observer.
type seq struct {
	shape  Shape
	levels int // that are filled
	// window has the guesses: the first level is a chain behind the text, each other one
	// has what follows the guess of the level before at the same place.
	window [maxLevels][maxWidth]int32
	next   [maxLevels][maxWidth]int32 // what the model holds for next behind each, -1 for not known
	row    [maxLevels][maxWidth]int32 // of the step, 0 for none
	drawn  int                        // places of the window that the last draft had
	read   int                        // tokens of the text at the last draft
	pool   []entry                    // by token, nil with one level
	seed   uint32

	chain [maxLevels]spec.Guess
	comb  [maxLevels * maxWidth]spec.Guess
}

// entry is the n-grams that begin with a token.
type entry struct {
	token int32 // plus 1
	next  int   // that is replaced
	gram  [grams][maxLevels]int32
	n     [grams]int
}

// New returns the drafter of a sequence.
func New(s Shape) spec.Drafter {
	q := &seq{shape: Shape{min(max(s.Width, 1), maxWidth), min(max(s.Levels, 1), maxLevels)}}
	if q.shape.Levels > 1 {
		q.pool = make([]entry, entries)
	}
	return q
}

// Bytes returns the memory of the n-grams.
func (q *seq) Bytes() int64 { return int64(len(q.pool)) * (8 + 8 + grams*(4*maxLevels+8)) }

// Close gives it back.
func (q *seq) Close() { q.pool = nil }

// some returns some token of the text: where nothing is known, guesses begin with those.
func (q *seq) some(tokens []int32) int32 {
	q.seed = q.seed*1664525 + 1013904223
	return tokens[int(q.seed>>8)%len(tokens)]
}

// advance takes what the last step told, and moves the window behind the text.
func (q *seq) advance(tokens []int32) {
	by := len(tokens) - q.read
	if q.read == 0 || by < 0 {
		by, q.levels, q.drawn = q.shape.Width, 1, 0
	}
	q.read = len(tokens)
	if by > 0 && q.seen() {
		q.collect()
		last := q.next[q.levels-1]
		for i := q.drawn; i < q.shape.Width; i++ {
			last[i] = q.some(tokens)
		}
		if q.levels < q.shape.Levels {
			q.window[q.levels] = last
			q.levels++
		} else { // each level becomes the one before, whose guesses are a place further on
			copy(q.window[:q.levels-1], q.window[1:q.levels])
			q.window[q.levels-1] = last
			by--
		}
	}
	for j := range q.levels {
		for i := range q.shape.Width {
			if k := i + by; k < q.shape.Width {
				q.window[j][i] = q.window[j][k]
			} else {
				q.window[j][i] = q.some(tokens)
			}
		}
	}
	for j := range q.next {
		for i := range q.next[j] {
			q.next[j][i], q.row[j][i] = -1, 0
		}
	}
}

// seen says whether the window has been computed.
func (q *seq) seen() bool {
	for i := range q.drawn {
		if q.next[q.levels-1][i] < 0 {
			return false
		}
	}
	return q.drawn > 0
}

// collect keeps the n-grams that have come of the window.
func (q *seq) collect() {
	if q.pool == nil {
		return
	}
	for i := range q.drawn {
		first := q.window[0][i]
		e := &q.pool[uint32(first)%entries]
		if e.token != first+1 {
			*e = entry{token: first + 1}
		}
		var g [maxLevels]int32
		n := 0
		for j := 1; j < q.levels; j++ {
			g[n] = q.window[j][i]
			n++
		}
		g[n] = q.next[q.levels-1][i]
		n++
		known := false
		for k := range e.gram {
			known = known || e.n[k] == n && e.gram[k] == g
		}
		if !known {
			e.gram[e.next], e.n[e.next] = g, n
			e.next = (e.next + 1) % grams
		}
	}
}

// Draft appends the n-grams that begin with the last token, and the window.
func (q *seq) Draft(dst []spec.Guess, tokens []int32, n int) []spec.Guess {
	if len(tokens) == 0 || len(dst) > 0 || n <= 0 {
		return dst
	}
	q.advance(tokens)
	q.levels = min(q.levels, max((n+1)/2, 1))
	if last := tokens[len(tokens)-1]; q.pool != nil && last >= 0 {
		if e := &q.pool[uint32(last)%entries]; e.token == last+1 {
			for k := range grams {
				gram := q.chain[:0]
				for _, id := range e.gram[k][:min(e.n[k], n)] {
					gram = append(gram, spec.Guess{Token: id}.Sure(0.4))
				}
				dst = spec.Merge(dst, gram)
			}
		}
	}
	q.drawn = min(max(n-q.levels+1, 0), q.shape.Width)
	comb := q.comb[:0]
	var at [maxWidth]int // place of the level before
	for j := range q.levels {
		for i := range q.drawn {
			parent := i - 1 // in the first level, which is a chain
			if j > 0 {
				parent = at[i]
			}
			g := spec.Guess{Token: q.window[j][i], Up: uint8(len(comb) - 1 - parent)}
			at[i] = len(comb)
			comb = append(comb, g.Sure(0))
		}
	}
	return spec.Merge(dst, comb)
}

// Observe takes what the model holds for next behind the window's guesses.
func (q *seq) Observe(row, parent int, token int32, logitsOf []float32) {
	best := int32(-2)
	for j := range q.levels {
		for i := range q.shape.Width {
			up := int32(0)
			switch {
			case q.row[j][i] > 0 || row == 0 || q.window[j][i] != token:
				continue
			case j > 0:
				up = q.row[j-1][i]
			case i > 0:
				up = q.row[0][i-1]
			}
			if up == 0 && (j > 0 || i > 0) || int(up) != parent {
				continue
			}
			if best == -2 {
				best = int32(logits.Argmax(logitsOf))
			}
			q.row[j][i], q.next[j][i] = int32(row), best
		}
	}
}
